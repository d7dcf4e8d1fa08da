"""Whatever operators, workers and schedulers do in whatever order: after each step what is counted is what it counts, states are
such as their upstreams allow, and in the end every run ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evenflow.core.graph import Graph
from evenflow.core.model import DagSpec, MapInput, Mapping, TaskSpec
from evenflow.core.operations import Only, Operation
from evenflow.core.states import TaskEvent
from evenflow.core.trigger_rules import TriggerRule, UpstreamCounts, Verdict, contribution, evaluate
from evenflow.scheduler.advance import advance
from evenflow.scheduler.catalog import Catalog
from evenflow.store.connect import connect
from evenflow.store.operations import request

EVENTS = [TaskEvent.CLEAR, TaskEvent.CLEAR, TaskEvent.MARK_SUCCESS, TaskEvent.MARK_FAILED, TaskEvent.MARK_SKIPPED]
OUTCOMES = ["success", "success", "success", "failed", "skipped"]
ENDED = {"success": (1, 0, 0), "failed": (0, 1, 0), "upstream_failed": (0, 1, 0), "skipped": (0, 0, 1)}
RULES = [TriggerRule.ALL_SUCCESS, TriggerRule.ALL_DONE, TriggerRule.ONE_SUCCESS, TriggerRule.NONE_FAILED_MIN_ONE_SUCCESS]


@st.composite
def dags(draw: st.DrawFn, name: str) -> DagSpec:
    tasks: list[TaskSpec] = []
    for i in range(draw(st.integers(1, 5))):
        upstream = tuple(sorted(draw(st.sets(st.integers(0, i - 1), max_size=2)))) if i else ()
        literal = draw(st.sampled_from([None, None, 1, 4]))
        sources = [u for u in upstream if tasks[u].mapping is None]
        inputs = None
        if literal is not None:
            inputs = MapInput(name="x", task=sources[0]) if sources and draw(st.booleans()) else MapInput(name="x", length=literal)
        tasks.append(
            TaskSpec(
                task_id=f"t{i}",
                operator="python",
                upstream=upstream,
                trigger_rule=draw(st.sampled_from(RULES)) if upstream else TriggerRule.ALL_SUCCESS,
                pool="p",
                mapping=Mapping(inputs=(inputs,)) if inputs else None,
                retries=draw(st.sampled_from([0, 1])),
                retry_delay=0.0,
                max_active_tis_per_dagrun=draw(st.sampled_from([None, None, 1])),
            )
        )
    return DagSpec(
        dag_id=name,
        tasks=tuple(tasks),
        max_active_tasks=draw(st.sampled_from([None, 2])),
        max_active_runs=draw(st.sampled_from([None, 1])),
    )


FRESH = (
    "truncate dag_run, task_instance, upstream_counter, mapped_task, dispatch, report, timer, lane, ready_task, wake, xcom cascade",
    "delete from concurrency_limit where run_key <> 0",
    "update concurrency_limit set used = 0",
)


class Play:
    """One DAG with some runs in a world that others have used before; ``schedulers`` are connections that take turns by chance."""

    def __init__(self, world: Any, spec: DagSpec, schedulers: list[tuple[Any, Catalog]], draw: Any) -> None:
        self.world, self.spec, self.schedulers, self.draw = world, spec, schedulers, draw
        self.graph = Graph.of(spec)
        world.add_dag(spec)
        self.runs = [world.trigger(spec.dag_id) for _ in range(2)]
        self.claimed: list[Any] = []

    def step(self) -> None:
        actions = [self.turn, self.claim, self.report, self.report, self.operate, self.operate, self.turn, self.cancel, self.pause]
        self.draw(st.sampled_from(actions))()
        self.check()

    def turn(self) -> None:
        conn, catalog = self.draw(st.sampled_from(self.schedulers))
        advance(conn, catalog, max_runs=self.draw(st.sampled_from([1, 200])))

    def claim(self) -> None:
        self.claimed += self.world.claim(self.draw(st.integers(1, 3)))

    def report(self) -> None:
        if self.claimed:
            chosen = self.claimed.pop(self.draw(st.integers(0, len(self.claimed) - 1)))
            outcome = self.draw(st.sampled_from(OUTCOMES))
            if self.draw(st.booleans()):
                self.world.report([chosen], started=True)
            more = {"result": list(range(self.draw(st.integers(0, 4))))} if outcome == "success" else {}
            self.world.report([chosen], outcome, **more)

    def operate(self) -> None:
        event = self.draw(st.sampled_from(EVENTS))
        tasks = self.draw(st.sampled_from([None, *[(t.task_id,) for t in self.spec.tasks] * 2]))
        indexes = None
        if tasks and self.graph.mapped[int(tasks[0][1:])]:
            indexes = self.draw(st.sampled_from([None, (0,), (2,), (1, 3)]))
        operation = Operation(
            event=event,
            actor="ann",
            tasks=tasks,
            map_indexes=indexes,
            upstream=self.draw(st.booleans()),
            downstream=self.draw(st.booleans()),
            only=self.draw(st.sampled_from([None, None, *Only])) if event is TaskEvent.CLEAR else None,
        )
        request(self.world.conn, [self.draw(st.sampled_from(self.runs))], operation)

    def cancel(self) -> None:
        if self.draw(st.integers(0, 3)) == 0:
            self.world.cancel(self.draw(st.sampled_from(self.runs)))

    def pause(self) -> None:
        paused = self.draw(st.booleans())
        self.world.conn.execute("update dag set is_paused = %s where dag_id = %s", [paused, self.spec.dag_id])

    def finish(self) -> None:
        """Everything that is claimed ends well, everything else runs: all runs end."""
        self.world.conn.execute("update dag set is_paused = false where dag_id = %s", [self.spec.dag_id])
        self.world.report(self.claimed)
        for _ in range(40):
            if not self.world.drain() and all(self.world.run_state(run) in ("success", "failed") for run in self.runs):
                break
        self.check()
        assert {self.world.run_state(run) for run in self.runs} <= {"success", "failed"}, self.unfinished()

    def unfinished(self) -> list[Any]:
        return [(self.world.run_state(run), self.world.states(run)) for run in self.runs]

    # -- the naive model: everything from scratch ------------------------------------------------------------------------

    def check(self) -> None:
        self.world.audit()
        for run in self.runs:
            (state, cancelled) = self.world.conn.execute(
                "select state::text, cancelled_by is not null from dag_run where run_key = %s", [run]
            ).fetchone()
            if state == "running" and not cancelled:
                self.check_waiting(run)

    def check_waiting(self, run: int) -> None:
        """Nothing waits for its upstreams that they allow to go on."""
        counts = self.counts(run)
        waiting = self.world.conn.execute(
            "select task_index, map_index from task_instance where run_key = %s and state = 'none'", [run]
        )
        for task_index, map_index in waiting.fetchall():
            verdict = evaluate(self.graph.rules[task_index], self.judged(task_index, counts))
            assert verdict is Verdict.WAIT, (self.spec.tasks[task_index].task_id, map_index, verdict, self.world.states(run))

    def counts(self, run: int) -> dict[int, tuple[int, tuple[int, int, int]]]:
        """Of each task, how many instances it has, and how they have ended."""
        out: dict[int, tuple[int, tuple[int, int, int]]] = {}
        mapped = {
            row[0]: row[1:]
            for row in self.world.conn.execute("select task_index, length, rest::text from mapped_task where run_key = %s", [run])
        }
        states = self.world.conn.execute("select task_index, state::text from task_instance where run_key = %s", [run]).fetchall()
        for task_index in range(self.graph.n):
            own = [state for index, state in states if index == task_index]
            length, rest = mapped.get(task_index, (1, "none"))
            own += [rest] * (length - len(own))
            ended = [ENDED.get(state, (0, 0, 0)) for state in own]
            out[task_index] = (length, tuple(map(sum, zip(*ended, strict=True))))  # type: ignore[assignment]
        return out

    def judged(self, task_index: int, counts: dict[int, tuple[int, tuple[int, int, int]]]) -> UpstreamCounts:
        total = UpstreamCounts(0)
        for upstream in self.graph.upstream[task_index]:
            length, ended = counts[upstream]
            given = contribution(self.graph.rules[task_index], ended, setup=self.graph.setup[upstream])
            total = UpstreamCounts(*map(sum, zip(total, (length + given.total, *given[1:]), strict=True)))
        return total


@pytest.fixture
def others(database_url: str) -> Iterator[list[tuple[Any, Catalog]]]:
    """A second scheduler."""
    with connect(database_url, name="second") as conn:
        yield [(conn, Catalog())]


def play_often(world: Any, others: list[tuple[Any, Catalog]], *, examples: int, steps: int) -> None:
    world.set_limit("pool", "p", 3)
    played = 0

    @settings(max_examples=examples, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def run(data: st.DataObject) -> None:
        nonlocal played
        played += 1
        for statement in FRESH:
            world.conn.execute(statement)
        spec = data.draw(dags(f"d{played}"))
        game = Play(world, spec, [(world.conn, world.catalog), *others], data.draw)
        for _ in range(data.draw(st.integers(1, steps))):
            game.step()
        game.finish()

    run()


def test_with_one_scheduler(world: Any) -> None:
    """R-CS8"""
    play_often(world, [], examples=40, steps=40)


def test_with_two_schedulers(world: Any, others: list[tuple[Any, Catalog]]) -> None:
    """R-CS8"""
    play_often(world, others, examples=40, steps=40)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_for_long(world: Any, others: list[tuple[Any, Catalog]]) -> None:
    """R-CS8"""
    play_often(world, others, examples=1500, steps=80)
