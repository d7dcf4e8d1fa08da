"""What people do with the tasks of a run, as set-based statements. Callers of all but the reading ones hold the run's lock and the
executor's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from psycopg.types.json import Json

from evenflow.core.flow.changes import LaneRange, LiveTry, StateChange
from evenflow.core.flow.recount import RunCounts
from evenflow.core.operations import Operation, TargetKey
from evenflow.core.selection.order import key_end
from evenflow.core.states import Ender, RunEvent, RunState
from evenflow.core.trigger_rules import UpstreamCounts
from evenflow.store.db.columns import numbers, words
from evenflow.store.db.rows import Conn, Rows, execute, row_of
from evenflow.store.scheduling.runs import run_moved
from evenflow.store.scheduling.tasks import Instance, as_instance


class Indexed(NamedTuple):
    task_index: int
    map_index: int
    state: str


def _move(change: StateChange) -> dict[str, Any]:
    """``detail`` is for history."""
    return {
        "event": change.event,
        "state": change.state,
        "states": words(change.states),
        "cleared": change.cleared,
        "reason": change.reason,
        "ended_by": change.ended_by,
        "detail": Json({"actor": change.actor}),
    }


def find_left(conn: Conn, run_key: int) -> list[tuple[int, int]]:
    """Of a cancelled run what never ran, as (task_index, map_index)."""
    return execute(conn, "operations/find_left", {"run_key": run_key, "cancel": Ender.CANCEL}).fetchall()


def find_live(conn: Conn, run_key: int, keys: Sequence[TargetKey], states: Collection[str]) -> list[LiveTry]:
    params = {"run_key": run_key, **key_columns(keys), "states": words(states)}
    return Rows(execute(conn, "operations/find_live", params), row_of(LiveTry)).all()


def find_deferred(conn: Conn, run_key: int, keys: Sequence[TargetKey], states: Collection[str]) -> list[tuple[int, int, int]]:
    """Returns those of these tasks that have deferred in their try and have no dispatch, as (run_key, task_index, map_index)."""
    return execute(conn, "operations/find_deferred", {"run_key": run_key, **key_columns(keys), "states": words(states)}).fetchall()


def set_intents(conn: Conn, epochs: Sequence[int], intent: Mapping[str, str]) -> None:
    """``intent`` is applied when these tries have ended."""
    execute(conn, "operations/set_intents", {"epochs": numbers(epochs), "intent": Json(intent)})


def move_instances(
    conn: Conn, run_key: int, keys: Sequence[TargetKey], change: StateChange, *, live: Collection[int]
) -> tuple[int, list[tuple[int, int]]]:
    """Returns how many moved, and which of them had a timer. ``live`` are epochs whose process still runs: they stay."""
    params = {"run_key": run_key, **key_columns(keys), **_move(change), "live": numbers(live)}
    row = execute(conn, "operations/move_instances", params).fetchone()
    assert row is not None
    return row[0], [(task_index, map_index) for task_index, map_index in row[1]]


def insert_virtual(conn: Conn, run_key: int, keys: Sequence[TargetKey], change: StateChange) -> list[tuple[int, int]]:
    """Which virtual instances have a row now."""
    params = {"run_key": run_key, **key_columns(keys), **_move(change)}
    return execute(conn, "operations/insert_virtual", params).fetchall()


def end_virtual(conn: Conn, run_key: int, tasks: Iterable[int], change: StateChange) -> int:
    """How many virtual instances have ended."""
    params = {"run_key": run_key, "tasks": numbers(tasks), **_move(change)}
    return sum(count for (count,) in execute(conn, "operations/end_virtual", params).fetchall())


def remove_instances(
    conn: Conn, run_key: int, tasks: Iterable[int], change: StateChange, *, live: Collection[int]
) -> list[tuple[int, int]]:
    """Removes the instances of mapped tasks; answers which of them a timer was about."""
    params = {
        "run_key": run_key,
        "tasks": numbers(tasks),
        "live": numbers(live),
        "event": change.event,
        "state": change.state,
        "detail": Json({"actor": change.actor}),
    }
    return execute(conn, "operations/remove_instances", params).fetchall()


def collapse_mapped(conn: Conn, run_key: int, regions: Iterable[tuple[int, int]], change: StateChange) -> list[int]:
    """``regions`` says with which others a task is expanded, as (task_index, number). Answers for which one row stands again."""
    tasks, numbered = zip(*regions, strict=True)
    params = {"run_key": run_key, "tasks": numbers(tasks), "regions": numbers(numbered), **_move(change)}
    return [task_index for (task_index,) in execute(conn, "operations/collapse_mapped", params).fetchall()]


def withdraw_ready(conn: Conn, run_key: int) -> None:
    execute(conn, "operations/withdraw_ready", {"run_key": run_key})


def withdraw_some(conn: Conn, run_key: int, keys: Sequence[tuple[int, int]]) -> None:
    """These instances leave their lanes, although they are scheduled."""
    execute(conn, "operations/withdraw_some", {"run_key": run_key, **key_columns(keys)})


def withdraw_ranges(conn: Conn, run_key: int, tasks: Iterable[int]) -> None:
    execute(conn, "operations/withdraw_ranges", {"run_key": run_key, "tasks": numbers(tasks)})


def read_ranges(conn: Conn, run_key: int, tasks: Iterable[int]) -> list[LaneRange]:
    params = {"run_key": run_key, "tasks": numbers(tasks)}
    return Rows(execute(conn, "operations/read_ranges", params), row_of(LaneRange)).all()


def change_ranges(conn: Conn, ranges: Sequence[LaneRange]) -> None:
    lanes, _, first, past = zip(*ranges, strict=True)
    execute(conn, "operations/change_ranges", {"lanes": numbers(lanes), "first": numbers(first), "past": numbers(past)})


def split_lanes(conn: Conn, parts: Sequence[LaneRange], fresh: Sequence[int]) -> set[int]:
    """Makes a lane like that of each of these ranges for it, with its ``fresh`` id. Answers the limits to wake."""
    lanes, _, first, past = zip(*parts, strict=True)
    params = {
        "lanes": numbers(lanes),
        "fresh": numbers(fresh),
        "key_ends": words(key_end(lane_id).hex() for lane_id in fresh),
        "first": numbers(first),
        "past": numbers(past),
    }
    return {limit for (limit,) in execute(conn, "operations/split_lanes", params).fetchall() if limit > 0}


def delete_empty_lanes(conn: Conn, run_key: int) -> list[int]:
    """The limits to wake."""
    return [limit for (limit,) in execute(conn, "operations/delete_empty_lanes", {"run_key": run_key}).fetchall()]


def delete_results(conn: Conn, run_key: int, keys: Sequence[TargetKey]) -> None:
    execute(conn, "operations/delete_results", {"run_key": run_key, **key_columns(keys)})


def count_ended(conn: Conn, run_key: int, tasks: Iterable[int]) -> dict[int, UpstreamCounts]:
    """How the instances of each of these tasks have ended, so far."""
    params = {"run_key": run_key, "tasks": numbers(tasks)}
    return {task: UpstreamCounts(*counts) for task, *counts in execute(conn, "operations/count_ended", params).fetchall()}


def set_counters(conn: Conn, run_key: int, counters: Sequence[tuple[int, int, int, int, int]]) -> None:
    """Counters as (task_index, total, success, failed, skipped)."""
    tasks, total, success, failed, skipped = zip(*counters, strict=True)
    params = {
        "run_key": run_key,
        "tasks": numbers(tasks),
        "total": numbers(total),
        "success": numbers(success),
        "failed": numbers(failed),
        "skipped": numbers(skipped),
    }
    execute(conn, "operations/set_counters", params)


def read_indexed(conn: Conn, run_key: int, tasks: Iterable[int]) -> list[Indexed]:
    """The instances of these mapped tasks that have a row."""
    params = {"run_key": run_key, "tasks": numbers(tasks)}
    return Rows(execute(conn, "operations/read_indexed", params), row_of(Indexed)).all()


def set_indexed(conn: Conn, run_key: int, counters: Sequence[tuple[int, int, int, int, int, int]]) -> None:
    """The counters of a run that are of one index, all of them, as (task_index, map_index, total, success, failed, skipped)."""
    columns = zip(*counters, strict=True) if counters else ((),) * 6
    names = ("tasks", "maps", "total", "success", "failed", "skipped")
    params = {name: numbers(column) for name, column in zip(names, columns, strict=True)}
    execute(conn, "operations/set_indexed", {"run_key": run_key, **params})


def recount_run(conn: Conn, run_key: int, leaves: Iterable[int]) -> RunCounts:
    params = {"run_key": run_key, "leaves": numbers(leaves), "cancel": Ender.CANCEL}
    row = execute(conn, "operations/recount_run", params).fetchone()
    assert row is not None
    return RunCounts(*row)


def read_waiting(conn: Conn, run_key: int, after: tuple[int, int], *, limit: int | None) -> list[Instance]:
    """Those behind ``after``, a task index and a map index, in their order."""
    params = {"run_key": run_key, "task_index": after[0], "map_index": after[1], "limit": limit}
    return [as_instance(row) for row in execute(conn, "operations/read_waiting", params).fetchall()]


def read_cleared(conn: Conn, keys: Iterable[tuple[int, int]]) -> Rows[Instance]:
    """Instances of these mapped (run_key, task_index) that wait although their task has been expanded."""
    run_keys, tasks = zip(*keys, strict=True)
    params = {"run_keys": numbers(run_keys), "tasks": numbers(tasks)}
    return Rows(execute(conn, "operations/read_cleared", params), as_instance)


def revive_unbegun(conn: Conn, run_key: int) -> bool:
    """Makes a run wait again that ended before it began; returns whether it had."""
    params = {"run_key": run_key, **run_moved(RunState.FAILED, RunEvent.CLEAR)}
    return execute(conn, "operations/revive_unbegun", params).fetchone() is not None


def change_run(conn: Conn, run_key: int, state: str, *, revived: bool) -> None:
    execute(conn, "operations/change_run", {"run_key": run_key, "state": state, "revived": revived})


def say_how_it_ended(conn: Conn, run_key: int, state: str, reason: str | None, *, marked_by: str | None = None) -> bool:
    """Changes the state and the reason, and nothing else of the run. ``marked_by`` is the person who says that a success has
    failed. Returns False for a run that has not ended, or had never begun.
    """
    params = {"run_key": run_key, "state": state, "reason": reason, "marked_by": marked_by}
    return execute(conn, "operations/say_how_it_ended", params).fetchone() is not None


def take_back_failure(conn: Conn, run_key: int) -> bool:
    """Returns whether the run had failed because a person said so: now it is a success again."""
    params = {"run_key": run_key, **run_moved(RunState.FAILED, RunEvent.MARK_SUCCESS)}
    return execute(conn, "operations/take_back_failure", params).fetchone() is not None


def record_operation(conn: Conn, run_key: int, event: str, state: str, actor: str, detail: Mapping[str, Any]) -> None:
    params = {"run_key": run_key, "event": event, "state": state, "actor": actor, "detail": Json(detail)}
    execute(conn, "operations/record_operation", params)


def key_columns(keys: Sequence[TargetKey]) -> dict[str, str]:
    """Arrays of task indexes and map indexes, as the statements name them."""
    maps = ",".join("NULL" if map_index is None else str(map_index) for _, map_index in keys)
    return {"tasks": numbers(task_index for task_index, _ in keys), "maps": "{" + maps + "}"}


def request(conn: Conn, run_keys: Iterable[int], operation: Operation) -> None:
    """Asks the schedulers for an operation on each of these runs."""
    params = {"run_keys": numbers(run_keys), "payload": msgspec.json.encode(operation).decode()}
    execute(conn, "operations/request", params)
