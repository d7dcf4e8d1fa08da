"""What one level of a propagation adds, before anything is decided by it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from evenflow.core.flow.questions import Deltas
from evenflow.core.flow.state import InstanceKey, RunFacts, TaskKey
from evenflow.core.trigger_rules import UpstreamCounts

Counts = dict[TaskKey, UpstreamCounts]
NOTHING_YET = UpstreamCounts(0)


@dataclass(slots=True)
class Level:
    """``deltas`` are for tasks and gates that have counters. A task without a counter has one upstream, which stands in ``single``.
    ``inner`` is about instances with an ended upstream of the same index: [total, success, failed, skipped], to be added.
    """

    runs: Mapping[int, RunFacts]
    deltas: Deltas = field(default_factory=lambda: defaultdict(lambda: [0, 0, 0, 0]))
    single: Counts = field(default_factory=dict)
    inner: dict[InstanceKey, list[int]] = field(default_factory=lambda: defaultdict(lambda: [0, 0, 0, 0]))

    def add(self, key: TaskKey, given: Sequence[int]) -> None:
        """Adds to the counter of a task or gate."""
        delta = self.deltas[key]
        total, success, failed, skipped = given
        delta[0] += total
        delta[1] += success
        delta[2] += failed
        delta[3] += skipped

    def ask(self, key: TaskKey) -> None:
        """Asks for a counter, even if nothing is added to it."""
        self.deltas[key]

    def add_inside(self, key: InstanceKey, given: Sequence[int]) -> None:
        """Adds to the counter of one index."""
        delta = self.inner[key]
        for i, n in enumerate(given):
            delta[i] += n

    def lengthen(self, run_key: int, task_index: int, length: int) -> None:
        """Counts that a task has become ``length`` instances, for tasks that wait for all of them."""
        graph = self.runs[run_key].graph
        for other in graph.downstream[task_index]:
            if graph.region_of[other] != graph.region_of[task_index]:
                self.add((run_key, other), (length - 1, 0, 0, 0))
        for gate in graph.gates_of.get(task_index, ()):
            self.add((run_key, gate), (length - 1, 0, 0, 0))


def summed(counts: UpstreamCounts, delta: Iterable[int]) -> UpstreamCounts:
    """Returns ``counts`` with ``delta`` added, number by number."""
    return UpstreamCounts(*map(sum, zip(counts, delta, strict=True)))
