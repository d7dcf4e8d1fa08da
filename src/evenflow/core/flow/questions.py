"""What the flow asks for."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence, Set
from dataclasses import dataclass
from typing import Any, NamedTuple

from evenflow.core.asking import Question
from evenflow.core.flow.state import InstanceKey, MappedTask, TaskKey
from evenflow.core.trigger_rules import UpstreamCounts

Deltas = dict[TaskKey, list[int]]  # total, success, failed, skipped: to be added


class Touched(NamedTuple):
    """An instance of a mapped task that has a counter of its own, or is not virtual (else ``state`` is None)."""

    key: InstanceKey
    counts: UpstreamCounts | None
    state: str | None
    epoch: int = 0
    try_number: int = 0


@dataclass
class FindInstances(Question[Any]):
    """Those of these instances that have a row are made known; the answer says nothing else."""

    keys: Iterable[InstanceKey]


@dataclass
class FindCleared(Question[Sequence[InstanceKey]]):
    """Which instances of these mapped tasks wait, although they have a row? They are made known."""

    tasks: Iterable[TaskKey]


@dataclass
class FindMapped(Question[Iterable[MappedTask]]):
    """Which of these tasks have been expanded?"""

    tasks: Collection[TaskKey]


@dataclass
class FindTouched(Question[Sequence[Touched]]):
    """Of these mapped tasks: the instances that have a row, which are made known, or a counter of their own."""

    tasks: Collection[TaskKey]


@dataclass
class MeasureResults(Question[Iterable[tuple[int, int, str, "int | None"]]]):
    """How long are these results (run_key, task_index, XCom key, whether the task is mapped)? None: it is no list or dict."""

    results: Set[tuple[int, int, str, bool]]


@dataclass
class CountUpstreams(Question[Iterable[tuple[TaskKey, UpstreamCounts]]]):
    """Add to the counters of these tasks and gates. How do they stand?"""

    deltas: Deltas


@dataclass
class CountIndexed(Question[Iterable[tuple[InstanceKey, UpstreamCounts]]]):
    """The same for counters of one map index. The first number of each is its total when it is made."""

    deltas: Sequence[tuple[InstanceKey, int, Sequence[int]]]


@dataclass
class FindHeld(Question[Set[InstanceKey]]):
    """Which of these instances does the previous run hold back?"""

    keys: Sequence[InstanceKey]
