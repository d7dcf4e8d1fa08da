"""The questions that the flow asks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence, Set
from dataclasses import dataclass
from typing import Any, NamedTuple

from evenflow.core.asking import Question
from evenflow.core.flow.state import InstanceKey, MappedTask, TaskKey
from evenflow.core.trigger_rules import UpstreamCounts

Deltas = dict[TaskKey, list[int]]  # total, success, failed, skipped: to be added


class Touched(NamedTuple):
    """An instance of a mapped task that has its own counter, or is not virtual (else ``state`` is None)."""

    key: InstanceKey
    counts: UpstreamCounts | None
    state: str | None
    epoch: int = 0
    try_number: int = 0


@dataclass
class FindInstances(Question[Any]):
    """Make known which of these instances have a row; the answer says nothing else."""

    keys: Iterable[InstanceKey]


@dataclass
class FindCleared(Question[Sequence[InstanceKey]]):
    """Which instances of these mapped tasks wait, although they have a row? They become known."""

    tasks: Iterable[TaskKey]


@dataclass
class FindMapped(Question[Iterable[MappedTask]]):
    """Which of these tasks have been expanded?"""

    tasks: Collection[TaskKey]


@dataclass
class FindTouched(Question[Sequence[Touched]]):
    """Of these mapped tasks: the instances that have a row, which become known, or their own counter."""

    tasks: Collection[TaskKey]


@dataclass
class MeasureResults(Question[Iterable[tuple[int, int, str, "int | None"]]]):
    """How long are these results (run_key, task_index, XCom key, whether the task is mapped)? None: not a list or dict."""

    results: Set[tuple[int, int, str, bool]]


@dataclass
class CountUpstreams(Question[Iterable[tuple[TaskKey, UpstreamCounts]]]):
    """Add to the counters of these tasks and gates. What are their values?"""

    deltas: Deltas


@dataclass
class CountIndexed(Question[Iterable[tuple[InstanceKey, UpstreamCounts]]]):
    """Add to counters of one map index. The first number of each is its total when it is made. What are their values?"""

    deltas: Sequence[tuple[InstanceKey, int, Sequence[int]]]


@dataclass
class FindHeld(Question[Set[InstanceKey]]):
    """Which of these instances does the previous run hold back?"""

    keys: Sequence[InstanceKey]
