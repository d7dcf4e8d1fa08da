"""What a plan counts and names at most, and which limits block a lane."""

from __future__ import annotations

from collections.abc import Mapping

from evenflow.core.selection import Lane, LimitClass

LANES_COUNTED = 100_000  # waiting lanes that a plan counts; about 50 ms
GROUPS_COUNTED = 10_000  # (limit, limit class) that lanes wait for
NAMES_SHOWN = 5  # tasks of one lane that are named
TASKS_READ = 1_000  # of one lane, to name them
UNAPPLIED_COUNTED = 1_000  # reports, timers, pauses and runs that are still to be applied


def blocking(limit_class: LimitClass, lane: Lane, free: Mapping[int, int]) -> list[int]:
    """Every limit that has no room for a task of the lane: the witness first, then limits of its run, of the task, of many."""
    task = () if limit_class.task_limit is None else (limit_class.task_limit,)
    found = [limit for limit in (*lane.locals, *task, limit_class.executor_limit) if free[limit] < 1]
    if free[limit_class.pool_limit] < limit_class.weight:
        found.append(limit_class.pool_limit)
    return sorted(found, key=lambda limit: limit != lane.parked_on)


def kept(limit_class: LimitClass, lane: Lane, reserved: Mapping[int, Lane]) -> bool:
    """Whether its pool keeps its room for a better lane."""
    keeper = reserved.get(limit_class.pool_limit)
    return keeper is not None and keeper.order < lane.order
