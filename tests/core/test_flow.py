"""The flow against the model, driven as a scheduler drives it, with dicts for tables: each step knows only what it asks for."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import pytest

from evenflow.core.asking import Asking, Question
from evenflow.core.flow import questions
from evenflow.core.flow.branches import apply_skips
from evenflow.core.flow.cancel import Fate, Unfinished, end, end_virtual, fate_of, waiting_for_killed
from evenflow.core.flow.indexes import begin_groups
from evenflow.core.flow.level import summed
from evenflow.core.flow.questions import Touched
from evenflow.core.flow.readiness import propagate, settle
from evenflow.core.flow.state import Flow, InstanceKey, MappedTask, RunFacts
from evenflow.core.graph import Graph
from evenflow.core.model import UNMAPPED, DagSpec
from evenflow.core.states import FINISHED, Ender, RunState, TaskEvent, TaskState, move
from evenflow.core.trigger_rules import UpstreamCounts, Verdict
from tests.core.naive_run import NaiveRun
from tests.core.random_groups import check_ends, random_spec
from tests.core.random_runs import OUTCOMES, random_dag, random_skips

RUN = 7
EVENTS = {"success": TaskEvent.SUCCEED, "skipped": TaskEvent.SKIP, "failed": TaskEvent.FAIL, "failed_for_good": TaskEvent.FAIL}


@dataclass
class Row:
    run_key: int
    task_index: int
    map_index: int
    state: TaskState = TaskState.NONE
    try_number: int = 0

    @property
    def key(self) -> InstanceKey:
        return self.run_key, self.task_index, self.map_index


@dataclass
class Tables:
    """What is left of one step for the next."""

    instances: dict[InstanceKey, TaskState] = field(default_factory=dict)
    mapped: dict[int, tuple[int, TaskState]] = field(default_factory=dict)
    counters: dict[int, UpstreamCounts] = field(default_factory=dict)
    indexed: dict[InstanceKey, UpstreamCounts] = field(default_factory=dict)
    results: dict[int, dict[int, int]] = field(default_factory=dict)  # lengths, by task and map index
    failed_leaves: int = 0
    unfinished: int = 0
    cancelled: bool = False

    def states(self) -> dict[tuple[int, int], TaskState]:
        found = {(index, i): state for index, (length, state) in self.mapped.items() for i in range(length)}
        return found | {key[1:]: state for key, state in self.instances.items()}


class Step:
    """One transaction."""

    def __init__(self, graph: Graph, tables: Tables) -> None:
        self.items: dict[InstanceKey, Row] = {}
        self.wave: list[Row] = []
        self.gone: set[InstanceKey] = set()
        by = "somebody" if tables.cancelled else None
        self.run = RunFacts(run_key=RUN, graph=graph, cancelled=tables.cancelled, cancelled_by=by)
        self.flow: Flow[Row] = Flow({RUN: self.run}, self)
        self.tables = tables

    def new_item(self, run_key: int, task_index: int, map_index: int = UNMAPPED) -> Row:
        item = self.items[run_key, task_index, map_index] = Row(run_key, task_index, map_index)
        return item

    def apply(self, item: Row, event: TaskEvent, detail: dict[str, Any] | None = None) -> None:
        item.state = move(item.state, event)
        if item.state in FINISHED:
            self.wave.append(item)

    def explain(self, item: Row, reason: str, ended_by: Ender | None = None) -> None:
        pass

    def load(self, key: InstanceKey) -> Row:
        """Of a virtual instance, a row: as a scheduler gives it one when it starts it."""
        if key not in self.tables.instances:
            assert self.tables.mapped[key[1]][1] is TaskState.SCHEDULED
            self.tables.instances[key] = TaskState.SCHEDULED
        return self.items.setdefault(key, Row(*key, self.tables.instances[key]))

    def decide(self, rule: Asking[Any]) -> None:
        for asked in rule:
            assert asked, "a set without a question costs a round trip"
            for question in random.sample(asked, len(asked)):
                question.answer = self._answer(question)

    def _answer(self, question: Question[Any]) -> Any:
        tables = self.tables
        match question:
            case questions.FindInstances():
                for key in question.keys:
                    assert key not in self.items
                    if key in tables.instances:
                        self.load(key)
                return None
            case questions.FindMapped():
                found = [key for key in question.tasks if key[1] in tables.mapped]
                return [MappedTask(*key, *tables.mapped[key[1]]) for key in found]
            case questions.FindTouched():
                keys = {k for k in (*tables.instances, *tables.indexed) if k[:2] in question.tasks and k[2] != UNMAPPED}
                for key in keys & tables.instances.keys():
                    self.load(key)
                return [Touched(key, tables.indexed.get(key), tables.instances.get(key)) for key in keys]
            case questions.CountUpstreams():
                for (_, index), delta in question.deltas.items():
                    tables.counters[index] = summed(tables.counters[index], delta)
                return [(key, tables.counters[key[1]]) for key in question.deltas]
            case questions.CountIndexed():
                for key, within, inner in question.deltas:
                    tables.indexed[key] = summed(tables.indexed.get(key, UpstreamCounts(within)), inner)
                return [(key, tables.indexed[key]) for key, _, _ in question.deltas]
            case questions.MeasureResults():
                found = {index: tables.results.get(index, {}) for _, index, _, _ in question.results}
                return [(*of, len(found[of[1]]) if mapped else found[of[1]].get(UNMAPPED)) for *of, mapped in question.results]
            case _:
                raise AssertionError(question)

    def write(self) -> None:
        for item in self.flow.ready:
            self.apply(item, TaskEvent.READY)
        self.tables.instances.update({key: item.state for key, item in self.items.items()})
        for key in self.gone:
            del self.tables.instances[key]
        for mapped in self.flow.mapped.changed:
            self.tables.mapped[mapped.task_index] = mapped.length, mapped.virtual_state
        finished, failed = self.flow.finished.get(RUN, (0, 0))
        self.tables.unfinished -= finished
        self.tables.failed_leaves += failed


def unfinished(key: InstanceKey, state: TaskState) -> Unfinished:
    """As a worker has it, if it may run."""
    runs = state is TaskState.SCHEDULED
    return Unfinished(key[1], key[2], "running" if runs else state, 0, 0, worker_id=1 if runs else None, has_run=runs)


def cancel(graph: Graph, tables: Tables) -> list[InstanceKey]:
    """One transaction ends what waits; answers what is killed."""
    tables.cancelled = True
    step = Step(graph, tables)
    for index, (length, state) in tables.mapped.items():
        for key in [(RUN, index, i) for i in range(length)] if state is TaskState.SCHEDULED else ():
            step.load(key)  # what may run does
    rows = [unfinished(key, state) for key, state in tables.instances.items() if state not in FINISHED]
    waits = waiting_for_killed(step.run, rows)
    killed: list[InstanceKey] = []
    for row in rows:
        item = step.load((RUN, row.task_index, row.map_index))
        match fate_of(step.run, row, TaskState(row.state), waits):
            case Fate.KILL:
                killed.append(item.key)
            case Fate.END:
                end(step.flow, item, has_run=False)
    step.decide(end_virtual(step.flow, step.run, list(tables.mapped), waits))
    step.decide(propagate(step.flow))
    step.write()
    return killed


def begun(graph: Graph) -> Tables:
    tables = Tables(counters={index: UpstreamCounts(total) for index, total in graph.counters}, unfinished=graph.n)
    step = Step(graph, tables)
    items = [step.new_item(RUN, index) for index in range(graph.n)]
    for index in graph.roots:
        settle(step.flow, items[index], Verdict.READY)
    begin_groups(step.flow, RUN)
    step.decide(propagate(step.flow))
    step.write()
    return tables


@pytest.mark.parametrize("seed", range(200))
def test_it_goes_on_as_in_the_model(seed: int) -> None:
    """In whatever order things end, and whenever the run is cancelled, the states are those of the model after each step, and
    so are the counts by which it ends.
    """
    rng = random.Random(seed)
    spec, lengths = random_dag(rng)
    spec = DagSpec(dag_id="d", tasks=spec.tasks)
    graph, naive = Graph.of(spec), NaiveRun(spec, lengths)
    tables = begun(graph)
    assert tables.states() == naive.states
    while may_run := sorted(naive.may_run()):
        if not naive.cancelled and rng.random() < 0.1:
            naive.cancel()
            killed = cancel(graph, tables)
            step = Step(graph, tables)
            for key in killed:
                item = step.load(key)
                step.apply(item, TaskEvent.GRANT)
                end(step.flow, item, has_run=True)
        else:
            index, map_index = rng.choice(may_run)
            outcome, skipped = rng.choice(OUTCOMES), random_skips(rng, spec, index)
            naive.end(index, map_index, outcome, skipped)
            if naive.states[index, map_index] is TaskState.SCHEDULED:
                continue  # it is tried again
            step = Step(graph, tables)
            item = step.load((RUN, index, map_index))
            step.apply(item, TaskEvent.GRANT)
            step.apply(item, EVENTS[outcome])
            if outcome == "success" and skipped:
                step.decide(apply_skips(step.flow, [(item, skipped)]))
        step.decide(propagate(step.flow))
        step.write()
        assert tables.states() == naive.states
    check_end(naive, tables)


def check_end(naive: NaiveRun, tables: Tables) -> None:
    assert tables.unfinished == 0
    assert (naive.state is RunState.FAILED) == (tables.cancelled or tables.failed_leaves > 0)


@pytest.mark.parametrize("seed", range(300))
def test_it_goes_on_index_by_index(seed: int) -> None:
    """With mapped groups and tasks that follow mapped tasks, several ending in a step, each ends as its trigger rule says."""
    rng = random.Random(seed)
    spec = random_spec(rng)
    graph = Graph.of(spec)
    tables = begun(graph)
    while may_run := [key for key, state in tables.states().items() if state is TaskState.SCHEDULED]:
        step = Step(graph, tables)
        for index, map_index in rng.sample(may_run, rng.randint(1, len(may_run))):
            outcome = rng.choices(["success", "failed", "skipped"], [8, 1, 1])[0]
            if outcome == "success" and rng.random() < 0.9:
                tables.results.setdefault(index, {})[map_index] = rng.randint(0, 3)
            item = step.load((RUN, index, map_index))
            step.apply(item, TaskEvent.GRANT)
            step.apply(item, EVENTS[outcome])
        step.decide(propagate(step.flow))
        step.write()
    ends: dict[int, dict[int, TaskState]] = {index: {} for index in range(graph.n)}
    for (index, map_index), state in tables.states().items():
        ends[index][map_index] = state
    check_ends(spec, ends, {index: length for index, (length, _) in tables.mapped.items()})
    assert tables.unfinished == 0
