"""After an operation: computes all counts of a run anew from its states (R-CS8), and decides about waiting instances by them.

Once the counts are right, an instance that is not yet judged is like one that waits for its upstreams: it keeps the run from
ending, and later events may decide about it. Instances that depend on each other index by index are judged one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from evenflow.core.flow.branches import skip
from evenflow.core.flow.level import NOTHING_YET, summed
from evenflow.core.flow.readiness import settle
from evenflow.core.flow.state import Flow, MappedTask, Opening, RunFacts, T
from evenflow.core.graph import Graph
from evenflow.core.model import UNMAPPED
from evenflow.core.states import FINISHED, TaskEvent, TaskState
from evenflow.core.trigger_rules import UpstreamCounts, Verdict, contribution, counted_as, evaluate

Skips = Mapping[tuple[int, int], int]  # task index, map index: index of the branch that skips it


class RunCounts(NamedTuple):
    """What a run counts, as its states have it."""

    unfinished: int
    failed_leaves: int
    interrupted: bool  # some of it is as a cancel left it


@dataclass(slots=True, frozen=True)
class Recounted:
    """The states of a run's instances. ``counts_of`` counts them for each task. Expanded regions of several tasks are also listed
    one by one: ``mapped`` has their tasks, ``states`` the instances that are not virtual, by task and map index.
    """

    graph: Graph
    counts_of: Mapping[int, UpstreamCounts]
    mapped: Mapping[int, MappedTask]
    states: Mapping[int, Mapping[int, TaskState]]

    def outside(self, task_index: int) -> UpstreamCounts:
        """Returns the value of the counter of a task or gate, if it has one."""
        graph, counts = self.graph, NOTHING_YET
        for upstream in graph.outside(task_index):
            total, *ended = self.counts_of[upstream]
            given = UpstreamCounts(0, *ended)
            if task_index < graph.n:
                given = contribution(graph.rules[task_index], (given[1], given[2], given[3]), setup=graph.setup[upstream])
            counts = summed(counts, given._replace(total=total + given.total))
        return counts

    def inside(self, task_index: int, map_index: int) -> UpstreamCounts:
        """Returns the counts of the upstreams of the same index."""
        graph = self.graph
        counts = UpstreamCounts(graph.inner[task_index])
        for upstream in graph.upstream[task_index]:
            if graph.same_region(upstream, task_index):
                state = self.states[upstream].get(map_index, self._virtual(upstream))
                counts = summed(counts, contribution(graph.rules[task_index], counted_as(state), setup=graph.setup[upstream]))
        return counts

    def counters(self) -> Iterator[tuple[int, int, int, int, int, int]]:
        """Yields the counters of one index that should exist: for tasks where one upstream is not enough, once an upstream has
        ended.
        """
        graph = self.graph
        for task_index in self.mapped:
            inner = [u for u in graph.upstream[task_index] if graph.same_region(u, task_index)]
            if len(inner) > 1 or (inner and graph.outer[task_index]):
                for map_index in sorted(set().union(*(self._ended(upstream) for upstream in inner))):
                    yield (task_index, map_index, *self.inside(task_index, map_index))

    def verdict(self, task_index: int, map_index: int) -> Verdict:
        graph = self.graph
        counts = self.outside(task_index)
        if map_index != UNMAPPED and task_index in self.mapped:
            counts = summed(counts, self.inside(task_index, map_index))
        elif graph.inner[task_index]:  # it follows a mapped task, and neither is expanded yet
            (followed,) = graph.upstream[task_index]
            counts = self.counts_of[followed]
        return evaluate(graph.rules[task_index], counts)

    def _ended(self, task_index: int) -> set[int]:
        states = self.states[task_index]
        ended = {map_index for map_index, state in states.items() if state in FINISHED}
        if self._virtual(task_index) not in FINISHED:
            return ended
        return ended | (set(range(self.mapped[task_index].length)) - states.keys())

    def _virtual(self, task_index: int) -> TaskState:
        """Returns the state of virtual instances. If the task expands anew once its processes end, they have not ended."""
        state = self.mapped[task_index].virtual_state
        return TaskState.NONE if state is TaskState.REMOVED else state


def by_index(graph: Graph) -> list[int]:
    """Returns the tasks whose instances are judged one by one."""
    return [i for region in graph.regions if region.head is None or len(region.tasks) > 1 for i in region.tasks]


def decided_skips(graph: Graph, decisions: Iterable[tuple[int, int, Iterable[int]]]) -> Skips:
    """Returns what the decisions of branches (task index, map index, skipped tasks) still skip. A decision holds while its branch
    is a success. It skips a task again that is cleared alone.
    """
    return {
        (task_index, map_index if graph.same_region(branch, task_index) else UNMAPPED): branch
        for branch, map_index, skipped in decisions
        for task_index in skipped
    }


def judge(flow: Flow[T], run: RunFacts, recounted: Recounted, waiting: Iterable[T], skips: Skips) -> None:
    """Decides about these waiting instances, and about virtual ones. Groups that can open join ``flow.opening``."""
    graph = run.graph
    unopened: set[int] = set()
    for item in [*waiting, *_no_longer_virtual(flow, run, recounted, skips)]:
        if flow.waits(item.key) is None:
            continue
        branch = skips.get(item.key[1:], skips.get((item.task_index, UNMAPPED)))
        if branch is not None:
            skip(flow, item, branch)
        elif item.map_index == UNMAPPED and graph.grouped(item.task_index):
            unopened.add(graph.region_of[item.task_index])
        else:
            settle(flow, item, recounted.verdict(item.task_index, item.map_index))
    for number in sorted(unopened):
        region = graph.regions[number]
        counts = NOTHING_YET if region.gate is None else recounted.outside(region.gate)
        if counts.done >= counts.total:
            flow.opening.append(Opening(run.run_key, region, counts))


def _no_longer_virtual(flow: Flow[T], run: RunFacts, recounted: Recounted, skips: Skips) -> Iterator[T]:
    """Yields virtual instances that stop waiting. A task whose instances are all virtual and ready becomes one lane."""
    graph = run.graph
    for task_index, stored in recounted.mapped.items():
        mapped = flow.mapped.known.get((run.run_key, task_index), stored)
        if mapped.virtual_state is not TaskState.NONE:
            continue
        task, begun = graph.task(task_index), recounted.states[task_index]
        named = any(index == task_index for index, _ in skips)
        alike = not graph.inner[task_index] and not begun and not named and not (task.empty or task.depends_on_past)
        if alike and recounted.verdict(task_index, 0) is Verdict.READY:
            flow.mapped.move(mapped, TaskEvent.READY, lane=True)
            continue
        for map_index in range(mapped.length):
            key = (run.run_key, task_index, map_index)
            if map_index in begun or key in flow.instances.items:
                continue
            skipped = named and ((task_index, map_index) in skips or (task_index, UNMAPPED) in skips)
            if skipped or recounted.verdict(task_index, map_index) is not Verdict.WAIT:
                yield flow.instances.new_item(*key)
