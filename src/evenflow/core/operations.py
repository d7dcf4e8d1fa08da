"""What a person does with tasks of a run: which tasks are meant, and in which states they are touched.

An operation names tasks, never the states that it expects: the states when a scheduler applies it decide. It travels as JSON, by
task id, because each of its runs may be of another version of its DAG.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from evenflow.core.graph import Graph
from evenflow.core.model import UNMAPPED
from evenflow.core.states import HOLDING, TaskEvent, TaskState, sources

FAILURES = frozenset({TaskState.FAILED, TaskState.UPSTREAM_FAILED})


def cancel_reason(actor: str) -> str:
    """Why it ended, for people, of what the cancel of its run has ended."""
    return f"The run was cancelled by {actor}"


def by_cancel(actor: str) -> str:
    """Why a run has failed that was cancelled; and why a try of it that waits is to clean up, as that is told."""
    return f"cancelled by {actor}"


NOT_RUN = "The run was cancelled, and something that it waits for did not run."  # why trigger rules skip something of it later
INTERRUPTED = "it was cancelled, and some of its tasks are still as that left them: evenflow runs rerun"  # why a run failed


class Only(StrEnum):
    FAILED = "failed"  # upstream_failed too, and of a cancelled run what never ran
    RUNNING = "running"


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """``event`` is CLEAR or a mark. Without ``tasks`` it is about the whole run. ``map_indexes`` are of each of these tasks, and
    of those ``upstream`` and ``downstream`` of them that they depend on index by index; others are always meant as a whole."""

    event: TaskEvent
    actor: str
    tasks: tuple[str, ...] | None = None
    map_indexes: tuple[int, ...] | None = None
    upstream: bool = False
    downstream: bool = False
    only: Only | None = None


class Target(NamedTuple):
    """A task, as a whole or some of its instances."""

    task_index: int
    map_indexes: tuple[int, ...] | None


TargetKey = tuple[int, int | None]  # (task index, map index), where None means all instances


def keys_of(found: Iterable[Target]) -> list[TargetKey]:
    return [(t.task_index, index) for t in found for index in ((None,) if t.map_indexes is None else sorted(set(t.map_indexes)))]


def targets(graph: Graph, operation: Operation) -> list[Target]:
    """Returns the tasks that are meant, in the order of the DAG; those that this version lacks are left out."""
    if operation.tasks is None:
        return [Target(index, None) for index in range(graph.n)]
    wanted = set(operation.tasks)
    found = {i: Target(i, operation.map_indexes) for i in range(graph.n) if graph.task(i).task_id in wanted}
    around: dict[int, Target] = {}
    for edges, asked in ((graph.upstream, operation.upstream), (graph.downstream, operation.downstream)):
        for target in beyond(graph, edges, found.values()) if asked else ():
            other = around.get(target.task_index)
            around[target.task_index] = target if other is None or target.map_indexes is None else other
    return [target for _, target in sorted({**around, **found}.items())]


def beyond(graph: Graph, edges: Sequence[Sequence[int]], start: Iterable[Target]) -> list[Target]:
    """What can be reached from ``start``, without it: the same instances of tasks that depend on each other index by index, all of
    other tasks.
    """
    named = {target.task_index for target in start}
    found: dict[int, Target] = {}
    todo = list(start)
    while todo:
        target = todo.pop()
        for index in edges[target.task_index]:
            same = graph.same_region(target.task_index, index)
            reached = Target(index, target.map_indexes if same else None)
            known = found.get(index)
            if index not in named and (known is None or (known.map_indexes is not None and reached.map_indexes is None)):
                found[index] = reached
                todo.append(reached)
    return [target for _, target in sorted(found.items())]


def among(found: Iterable[Target], keys: Iterable[tuple[int, int]]) -> list[Target]:
    """Returns those of these instances, as (task index, map index), that are meant."""
    meant = {target.task_index: target.map_indexes for target in found}
    named: dict[int, list[int]] = {}
    for task_index, map_index in keys:
        if task_index in meant and (meant[task_index] is None or map_index in (meant[task_index] or ())):
            named.setdefault(task_index, []).append(map_index)
    return [Target(index, None if maps == [UNMAPPED] else tuple(maps)) for index, maps in sorted(named.items())]


def touched_states(event: TaskEvent, only: Only | None) -> frozenset[TaskState]:
    """Returns the states in which a task instance is touched; in those of ``HOLDING`` once its process has ended."""
    match only:
        case Only.FAILED:
            return sources(event) & FAILURES
        case Only.RUNNING:
            return sources(event) & HOLDING
        case None:
            return sources(event)


def without(ranges: Iterable[tuple[int, int]], taken: Iterable[int]) -> list[tuple[int, int]]:
    """What is left of these ranges (first, behind the last) when ``taken`` are gone, without empty ones."""
    left: list[tuple[int, int]] = []
    cuts = sorted(taken)
    for first, end in ranges:
        for cut in cuts:
            if first <= cut < end:
                if first < cut:
                    left.append((first, cut))
                first = cut + 1
        if first < end:
            left.append((first, end))
    return left
