"""What an operator does with tasks of a run: which ones are meant, and in which states they are touched.

An operation names tasks, never states that it wishes to find: what is true when a scheduler applies it decides. It travels as JSON,
by task id, because each run that it is about may be of another version of its DAG.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from evenflow.core.graph import Graph
from evenflow.core.states import HOLDING, TaskEvent, TaskState, sources

FAILURES = frozenset({TaskState.FAILED, TaskState.UPSTREAM_FAILED})


class Only(StrEnum):
    FAILED = "failed"  # upstream_failed too
    RUNNING = "running"


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """``event`` is CLEAR or a mark. Without ``tasks`` it is about the whole run. ``map_indexes`` are of each of these tasks, not of
    those found ``upstream`` and ``downstream`` of them, which are always meant as a whole."""

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


def targets(graph: Graph, operation: Operation) -> list[Target]:
    """The tasks that are meant, in the order of the DAG; those that this version has not are left out."""
    if operation.tasks is None:
        return [Target(index, None) for index in range(graph.n)]
    wanted = set(operation.tasks)
    named = [index for index in range(graph.n) if graph.task(index).task_id in wanted]
    found = {index: Target(index, operation.map_indexes) for index in named}
    around: set[int] = set()
    if operation.upstream:
        around |= reachable(graph.upstream, named)
    if operation.downstream:
        around |= reachable(graph.downstream, named)
    found.update((index, Target(index, None)) for index in around if index not in found)
    return [found[index] for index in sorted(found)]


def reachable(edges: Sequence[Sequence[int]], start: Iterable[int]) -> set[int]:
    """What can be reached from ``start``, without it."""
    start = list(start)
    seen, todo = set(start), list(start)
    while todo:
        for index in edges[todo.pop()]:
            if index not in seen:
                seen.add(index)
                todo.append(index)
    return seen - set(start)


def index_by_index(graph: Graph, operation: Operation) -> str | None:
    """The first of the tasks that an operation is about, or that a mark clears, which depends on others index by index: a task of a
    mapped group, or one that maps over a mapped task one to one. Operations cannot be applied to those.
    """
    found = {target.task_index for target in targets(graph, operation)}
    if operation.event is not TaskEvent.CLEAR:
        found |= reachable(graph.downstream, found)
    spans = [span for span in graph.spans if span.head is None or len(span.tasks) > 1]
    return next((graph.task(i).task_id for span in spans for i in span.tasks if i in found), None)


def touched_states(event: TaskEvent, only: Only | None) -> frozenset[TaskState]:
    """The states in which a task instance is touched; in those of ``HOLDING`` once its process has ended."""
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
