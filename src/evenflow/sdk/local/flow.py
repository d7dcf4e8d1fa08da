"""The flow of one run in memory: it answers the questions of :mod:`evenflow.core.flow` from dicts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from evenflow.core.asking import Asking, Question
from evenflow.core.callbacks import Callback, of_move
from evenflow.core.flow import questions
from evenflow.core.flow.branches import apply_skips
from evenflow.core.flow.cancel import Fate, Unfinished, end, end_virtual, fate_of, waiting_for_killed
from evenflow.core.flow.indexes import begin_groups
from evenflow.core.flow.level import summed
from evenflow.core.flow.questions import Touched
from evenflow.core.flow.readiness import propagate, settle
from evenflow.core.flow.state import Flow, InstanceKey, MappedTasks, RunFacts
from evenflow.core.graph import Graph
from evenflow.core.mapping import UpstreamKey
from evenflow.core.model import UNMAPPED, DagSpec
from evenflow.core.states import FINISHED, Ender, RunState, TaskEvent, TaskState, move
from evenflow.core.trigger_rules import UpstreamCounts, Verdict
from evenflow.sdk import xcom

RUN = 0  # the key of the only run

A = TypeVar("A")


@dataclass(slots=True, eq=False)
class LocalInstance:
    """``try_number`` counts the tries that have begun."""

    task_index: int
    map_index: int
    map_length: int | None = None
    state: TaskState = TaskState.NONE
    try_number: int = 0
    reason: str | None = None

    @property
    def run_key(self) -> int:
        return RUN

    @property
    def key(self) -> InstanceKey:
        return RUN, self.task_index, self.map_index


@dataclass(slots=True)
class LocalInstances:
    """``moves`` are unreported: the instance, its new state, and what this calls."""

    mapped: MappedTasks
    items: dict[InstanceKey, LocalInstance] = field(default_factory=dict)
    wave: list[LocalInstance] = field(default_factory=list)
    gone: set[InstanceKey] = field(default_factory=set)
    moves: list[tuple[LocalInstance, TaskState, Callback | None]] = field(default_factory=list)

    def new_item(self, run_key: int, task_index: int, map_index: int = UNMAPPED) -> LocalInstance:
        length = None if map_index == UNMAPPED else self.mapped.known[run_key, task_index].length
        item = self.items[run_key, task_index, map_index] = LocalInstance(task_index, map_index, length)
        return item

    def apply(self, item: LocalInstance, event: TaskEvent, detail: dict[str, Any] | None = None) -> None:
        was, item.state = item.state, move(item.state, event)
        self.moves.append((item, item.state, of_move(was, event, item.state)))
        if item.state in FINISHED:
            self.wave.append(item)

    def explain(self, item: LocalInstance, reason: str, ended_by: Ender | None = None) -> None:
        item.reason = reason


class LocalFlow:
    """``xcoms`` are the values by task id, key and map index; they grow during the run."""

    def __init__(self, spec: DagSpec, xcoms: Mapping[tuple[str, str, int], bytes]) -> None:
        self.run = RunFacts(run_key=RUN, graph=Graph.of(spec))
        self.instances = LocalInstances(MappedTasks())
        self.flow = Flow({RUN: self.run}, self.instances, mapped=self.instances.mapped)
        self._spec, self._xcoms = spec, xcoms
        self._counters = {index: UpstreamCounts(total) for index, total in self.run.graph.counters}
        self._indexed: dict[InstanceKey, UpstreamCounts] = {}

    def begin(self) -> None:
        items = [self.instances.new_item(RUN, index) for index in range(self.run.graph.n)]
        for index in self.run.graph.roots:
            settle(self.flow, items[index], Verdict.READY)
        begin_groups(self.flow, RUN)
        self.go_on()

    def go_on(self) -> None:
        """Decides everything that follows from the last end."""
        self._decide(propagate(self.flow))

    def skip(self, branch: LocalInstance, skipped: Sequence[int]) -> None:
        self._decide(apply_skips(self.flow, [(branch, skipped)]))

    def take_stop(self) -> str | None:
        """Returns why the run must be cancelled, or None."""
        stops, self.flow.stops = self.flow.stops, []
        return stops[0][1] if stops else None

    def cancel(self, by: str) -> Iterator[list[LocalInstance]]:
        """Yields instances that a cancel ends, before they end: waiting ones, those with a process, then those that need one."""
        self.run.cancelled_by = by
        items, gone = self.instances.items, self.instances.gone
        rows = {item: _unfinished(item) for key, item in items.items() if item.state not in FINISHED and key not in gone}
        waits = waiting_for_killed(self.run, rows.values())
        fates = {instance: fate_of(self.run, row, instance.state, waits) for instance, row in rows.items()}
        for fate in (Fate.END, Fate.KILL, Fate.CLEAN_UP):
            ending = [instance for instance, found in fates.items() if found is fate]
            yield ending
            for instance in ending:
                end(self.flow, instance, has_run=instance.try_number > 0)
            if fate is Fate.END:
                expanded = [index for _, index in self.instances.mapped.known]
                self._decide(end_virtual(self.flow, self.run, expanded, waits))
            self.go_on()

    def take_ready(self) -> list[LocalInstance]:
        """Returns what may start now. Virtual instances get items as soon as they may start."""
        mapped = self.flow.mapped
        lanes = [task for task in mapped.changed if task.lane]
        found = [self.instances.new_item(RUN, task.task_index, index) for task in lanes for index in range(task.length)]
        found += self.flow.ready
        for task in mapped.changed:
            task.changed = task.lane = False
        mapped.changed.clear()
        self.flow.ready.clear()
        for item in found:
            self.instances.apply(item, TaskEvent.READY)
        return found

    def state(self) -> RunState:
        """The state of the run at its end."""
        _, failed_leaves = self.flow.finished.get(RUN, (0, 0))
        return RunState.FAILED if failed_leaves or self.run.cancelled else RunState.SUCCESS

    def _decide(self, rule: Asking[A]) -> None:
        for asked in rule:
            for question in asked:
                question.answer = self._answer(question)

    def _answer(self, question: Question[Any]) -> Any:
        """Answers a question. Nothing is forgotten here: an unknown row does not exist."""
        match question:
            case questions.FindInstances() | questions.FindCleared() | questions.FindMapped():
                return ()
            case questions.FindTouched():
                keys = {key for key in (*self.instances.items, *self._indexed) if key[:2] in question.tasks and key[2] != UNMAPPED}
                items = self.instances.items
                return [Touched(key, self._indexed.get(key), items[key].state if key in items else None) for key in sorted(keys)]
            case questions.MeasureResults():
                return [(RUN, index, key, self._length((index, key), mapped=mapped)) for _, index, key, mapped in question.results]
            case questions.CountUpstreams():
                for (_, index), delta in question.deltas.items():
                    self._counters[index] = summed(self._counters[index], delta)
                return [(key, self._counters[key[1]]) for key in question.deltas]
            case questions.CountIndexed():
                for key, within, inner in question.deltas:
                    self._indexed[key] = summed(self._indexed.get(key, UpstreamCounts(within)), inner)
                return [(key, self._indexed[key]) for key, _, _ in question.deltas]
            case questions.FindHeld():
                return frozenset()  # no run came before
            case _:
                raise TypeError(f"A run in memory has no answer to {question}.")

    def _length(self, source: UpstreamKey, *, mapped: bool) -> int | None:
        task_index, key = source
        task_id = self._spec.tasks[task_index].task_id
        if mapped:
            return sum(at[:2] == (task_id, key) for at in self._xcoms)
        stored = self._xcoms.get((task_id, key, UNMAPPED))
        return xcom.mapped_length(json.loads(stored)) if stored is not None else None


def _unfinished(instance: LocalInstance) -> Unfinished:
    """Returns what a scheduler would know of an instance. Here a killed process ends at once."""
    worker = 0 if instance.state is TaskState.RUNNING else None
    has_deferred, tries = instance.state is TaskState.DEFERRED, instance.try_number
    return Unfinished(*instance.key[1:], instance.state, 0, tries, worker, has_deferred=has_deferred, has_run=tries > 0)
