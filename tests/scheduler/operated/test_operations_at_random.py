"""Whatever operators, workers and schedulers do in whatever order, and in however small slices it is applied: each operation
changes what it is about and nothing else, in the order in which they were asked for; after each step what is counted is what it
counts, and states are such as their upstreams allow; nothing starts once a run is cancelled; and in the end every run ends.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from evenflow.core.graph import Graph
from evenflow.core.model import DagSpec, GroupSpec, MapInput, Mapping, TaskSpec
from evenflow.core.operations import Only, Operation
from evenflow.core.states import TaskEvent
from evenflow.core.trigger_rules import TriggerRule, UpstreamCounts, Verdict, contribution, evaluate
from evenflow.scheduler.advance import advance
from evenflow.scheduler.catalog import Catalog
from evenflow.store.db.connect import connect
from evenflow.store.db.rows import execute
from tests.core.naive_run import NaiveRun
from tests.scheduler.naive_operations import Operators
from tests.scheduler.world import World

FIRST = datetime(2026, 3, 1, tzinfo=UTC)
EVENTS = [TaskEvent.CLEAR, TaskEvent.CLEAR, TaskEvent.MARK_SUCCESS, TaskEvent.MARK_FAILED, TaskEvent.MARK_SKIPPED]
OUTCOMES = ["success", "success", "success", "failed", "skipped", "deferred", "deferred", "lost"]
WAITS = [None, None, {"pool": "release"}, {"run": "hold", "task_limits": "release"}]
SLICES = [1, 2, 500]  # instances that one transaction changes or judges: fewer than most runs have, or all
ENDED = {"success": (1, 0, 0), "failed": (0, 1, 0), "upstream_failed": (0, 1, 0), "skipped": (0, 0, 1)}
RULES = [TriggerRule.ALL_SUCCESS, TriggerRule.ALL_DONE, TriggerRule.ONE_SUCCESS, TriggerRule.NONE_FAILED_MIN_ONE_SUCCESS]


def random_dag(r: random.Random, name: str) -> DagSpec:
    """A DAG of plain, mapped, following and grouped tasks, in which some are setups, teardowns, branches or depend on the past."""
    size = r.randint(1, 6)
    grouped = set(r.sample(range(size), r.randint(0, min(size, 4)))) if r.random() < 0.6 else set()
    over = r.choice([None, *range(min(grouped, default=0))])  # what the group maps over; None: a literal
    tasks: list[TaskSpec] = []
    for i in range(size):
        upstream = set(r.sample(range(i), r.randint(0, min(i, 2))))
        if i in grouped and over is not None and not upstream & grouped:
            upstream.add(over)
        mapping = None if i in grouped else random_mapping(r, tasks, upstream)
        if mapping is not None and mapping.kind == "each":
            upstream = {u for u in (mapping.inputs[0].task,) if u is not None}
        teardown = bool(upstream) and mapping is None and r.randint(0, 5) == 0
        rule = r.choice(RULES) if upstream else TriggerRule.ALL_SUCCESS
        tasks.append(
            TaskSpec(
                task_id=f"t{i}",
                operator="python",
                upstream=tuple(sorted(upstream)),
                trigger_rule=TriggerRule.ALL_DONE_SETUP_SUCCESS if teardown else rule,
                teardown=teardown,
                setup=not teardown and r.randint(0, 3) == 0,
                pool="p",
                mapping=mapping,
                group=0 if i in grouped else None,
                retries=r.choice([0, 1]),
                retry_delay=0.0,
                depends_on_past=r.randint(0, 5) == 0,
                max_active_tis_per_dagrun=r.choice([None, None, 1]),
                cleans_up=r.random() < 0.5,
                while_deferred=r.choice(WAITS),
            )
        )
    inputs = (MapInput(name="x", task=over) if over is not None else MapInput(name="x", length=r.choice([1, 3, 5])),)
    return DagSpec(
        dag_id=name,
        tasks=tuple(tasks),
        groups=(GroupSpec(group_id="g", mapping=Mapping(inputs=inputs)),) if grouped else (),
        max_active_tasks=r.choice([None, 2]),
        max_active_runs=r.choice([None, 1]),
    )


def random_mapping(r: random.Random, tasks: list[TaskSpec], upstream: set[int]) -> Mapping | None:
    heads = [u for u in upstream if tasks[u].mapping is not None]
    if heads and r.random() < 0.5:
        return Mapping(inputs=(MapInput(name="x", task=heads[0]),), kind="each")
    literal = r.choice([None, None, 1, 5])
    if literal is None:
        return None
    sources = [u for u in upstream if tasks[u].mapping is None]
    source = sources[0] if sources and r.random() < 0.5 else None
    return Mapping(inputs=(MapInput(name="x", task=source) if source is not None else MapInput(name="x", length=literal),))


OF_RUNS = [
    "task_instance",
    "upstream_counter",
    "mapped_task",
    "dispatch",
    "deferral",
    "report",
    "timer",
    "lane",
    "ready_task",
    "wake",
    "xcom",
    "branch_decision",
    "past_gate",
    "past_hold",
    "past_watch",
    "dag_run",
]
FRESH = (
    *(f"delete from {table}" for table in OF_RUNS),  # few rows each: quicker than a truncate, which makes all files anew
    "delete from concurrency_limit where run_key <> 0",
    "update concurrency_limit set used = 0",
    "update service set beat_at = now()",
)


SWITCH = """
insert into setting (name, value, changed_by) values ('direct_resume', %s, 'test')
on conflict (name) do update set value = excluded.value
"""


class Play:
    """One DAG with some runs in a world that others have used before; ``schedulers`` are connections that take turns by chance."""

    def __init__(
        self, world: World, spec: DagSpec, schedulers: list[tuple[Any, Catalog]], r: random.Random, *, at_once: bool
    ) -> None:
        self.world, self.spec, self.schedulers, self.r, self.at_once = world, spec, schedulers, r, at_once
        self.graph = Graph.of(spec)
        world.add_dag(spec)
        self.days = 0
        self.runs = [self.trigger() for _ in range(2)]
        self.claimed: list[Any] = []
        self.operators = Operators(world.conn, self.graph)

    def trigger(self) -> int:
        self.days += 1
        run: int = self.world.trigger(self.spec.dag_id, logical_date=FIRST + timedelta(days=self.days))
        self.world.conn.execute("update dag_run set run_type = 'scheduled' where run_key = %s", [run])
        return run

    def step(self) -> None:
        work = [self.turn] * 4 + [self.claim] * 2 + [self.report] * 4
        events = [self.operate] * 3 + [self.cancel, self.pause, self.delete, self.fire, self.fire, self.let_pass, self.switch]
        self.r.choice(work + events)()
        self.check()

    def turn(self) -> None:
        most = self.r.choice([1, 200])
        if self.at_once:
            with ThreadPoolExecutor(len(self.schedulers)) as threads:
                for done in [threads.submit(advance, *scheduler, max_runs=most) for scheduler in self.schedulers]:
                    done.result()
        else:
            before = self.operators.look()
            advance(*self.r.choice(self.schedulers), max_runs=most)
            self.operators.check_applied(before)

    def claim(self) -> None:
        self.claimed += self.world.claim(self.r.randint(1, 3))

    def report(self) -> None:
        if self.claimed:
            chosen = self.claimed.pop(self.r.randint(0, len(self.claimed) - 1))
            outcome = self.r.choice(OUTCOMES)
            if self.exists(chosen.run_key) and self.r.random() < 0.5:
                self.world.report([chosen], started=True)
            more: dict[str, Any] = {}
            if outcome == "success":
                more["result"] = list(range(self.r.randint(0, 4)))
                downstream = self.graph.downstream[int(chosen.task_id[1:])]
                choices = [i for i in downstream if not self.graph.teardown[i]]
                more["skip"] = [i for i in choices if self.r.random() < 0.25]
            if self.exists(chosen.run_key) and outcome == "deferred":
                self.world.defer([chosen], timeout_s=1000.0)
            elif self.exists(chosen.run_key):
                self.world.report([chosen], outcome, **more)

    def fire(self) -> None:
        """A trigger fires, perhaps for the second time."""
        run = self.r.choice(self.runs)
        if waiting := sorted(self.world.waiting(run)):
            self.world.fire(run, *self.r.choice(waiting))

    def let_pass(self) -> None:
        """All timeouts of what waits are over."""
        self.world.conn.execute("update timer set due_at = now() where kind = 'trigger_timeout'")

    def switch(self) -> None:
        """Whether resumes are direct."""
        self.world.conn.execute(SWITCH, [json.dumps(self.r.random() < 0.5)])

    def operate(self) -> None:
        event = self.r.choice(EVENTS)
        tasks = self.r.choice([None, *[(t.task_id,) for t in self.spec.tasks] * 2])
        indexes = None
        if tasks and self.graph.mapped[int(tasks[0][1:])]:
            indexes = self.r.choice([None, (0,), (2,), (1, 3)])
        operation = Operation(
            event=event,
            actor=self.operators.new(),
            tasks=tasks,
            map_indexes=indexes,
            upstream=self.r.random() < 0.5,
            downstream=self.r.random() < 0.5,
            only=self.r.choice([None, None, *Only]) if event is TaskEvent.CLEAR else None,
        )
        self.operators.ask(self.r.choice([[run] for run in self.runs] * 2 + [self.runs]), operation)

    def cancel(self) -> None:
        if self.r.random() < 0.5:
            self.world.cancel(self.r.choice(self.runs))

    def delete(self) -> None:
        """A run goes, if it has ended, and there is a new one."""
        run = self.r.choice(self.runs)
        deleted = {"run_keys": [run], "whole": 10_000, "history": True}
        if self.r.randint(0, 2) == 0 and execute(self.world.conn, "operations/delete_runs", deleted).fetchall():
            self.runs = [*(other for other in self.runs if other != run), self.trigger()]

    def exists(self, run: int) -> bool:
        return run in self.runs

    def pause(self) -> None:
        paused = self.r.random() < 0.25
        self.world.conn.execute("update dag set is_paused = %s where dag_id = %s", [paused, self.spec.dag_id])

    def finish(self) -> None:
        """Everything that is claimed ends well, everything else runs: all runs end, but for those that wait for what never ended
        well in the run before; these are cancelled.
        """
        self.world.conn.execute("update dag set is_paused = false where dag_id = %s", [self.spec.dag_id])
        self.world.report([found for found in self.claimed if self.exists(found.run_key)])
        for _ in range(40):
            self.let_pass()
            if not self.world.drain():
                live = [run for run in self.runs if self.world.run_state(run) not in ("success", "failed")]
                held = [run for run in live if self.waits_for_past(run)]
                for run in held:
                    self.world.cancel(run)
                if not live:
                    break
        self.check()
        assert {self.world.run_state(run) for run in self.runs} <= {"success", "failed"}, self.unfinished()

    def waits_for_past(self, run: int) -> bool:
        found = self.world.conn.execute(
            "select exists (select from past_gate where run_key = %s and missing > 0)", [run]
        ).fetchone()
        return bool(found[0])

    def unfinished(self) -> list[Any]:
        return [(self.world.run_state(run), self.world.states(run)) for run in self.runs]

    # -- the naive model: everything from scratch ------------------------------------------------------------------------

    def check(self) -> None:
        self.world.audit()
        self.operators.check_intents()
        for run in self.runs:
            state, cancelled, reason = self.world.conn.execute(
                "select state::text, cancelled_by is not null, reason from dag_run where run_key = %s", [run]
            ).fetchone()
            if state == "running" and cancelled:
                self.operators.check_ending(run, self.instances(run))
            else:
                self.operators.ended(run)
            if state == "running" and not cancelled:
                self.check_waiting(run)
            elif state in ("success", "failed"):
                self.check_end(run, state, cancelled or (reason or "").startswith("marked failed"))

    def check_end(self, run: int, state: str, failed_anyhow: bool) -> None:
        """A run has failed if a task that decides it has, or a cancel ended something that was neither run nor marked since."""
        states = self.instances(run)
        deciding = NaiveRun(self.spec, dict.fromkeys(range(self.graph.n), 1)).leaves()
        failed = any(ended in ("failed", "upstream_failed") for (i, _), ended in states.items() if i in deciding)
        failed = failed or self.cancel_has_left_something(run)
        assert state == ("failed" if failed or failed_anyhow else "success"), states
        assert set(states.values()) <= ENDED.keys(), states

    def cancel_has_left_something(self, run: int) -> bool:
        """By the reasons that people read."""
        rows = self.world.conn.execute(
            "select state::text, reason from task_instance where run_key = %s union all"
            " select m.virtual_state::text, m.virtual_reason from mapped_task m where run_key = %s and length >"
            " (select count(*) from task_instance t where t.run_key = m.run_key and t.task_index = m.task_index)",
            [run, run],
        )
        return any(state in ("failed", "skipped") and (reason or "").startswith("The run was cancelled") for state, reason in rows)

    def check_waiting(self, run: int) -> None:
        """Nothing waits for its upstreams that they allow to go on, but for what a later slice is to judge."""
        states = self.instances(run)
        asked = self.world.conn.execute("select payload -> 'after' from report where run_key = %s and kind = 'settle'", [run])
        judged = min((tuple(after) for (after,) in asked.fetchall()), default=(self.graph.n, 0))
        closed = {
            i for (i,) in self.world.conn.execute("select task_index from past_gate where run_key = %s and missing > 0", [run])
        }
        expands_anew = {
            i
            for (i,) in self.world.conn.execute(
                "select task_index from mapped_task where run_key = %s and virtual_state = 'removed'", [run]
            )
        }
        for (i, index), state in states.items():
            if state == "none" and i not in closed | expands_anew and (i, index) <= judged:
                verdict = self.judged(i, index, states)
                assert verdict is Verdict.WAIT, (self.spec.tasks[i].task_id, index, verdict, states)

    def instances(self, run: int) -> dict[tuple[int, int], str]:
        """The states of all instances, whether they have a row or not."""
        conn = self.world.conn
        rows = conn.execute("select task_index, map_index, state::text from task_instance where run_key = %s", [run]).fetchall()
        states = {(i, index): state for i, index, state in rows}
        mapped = conn.execute(
            "select task_index, length, virtual_state::text from mapped_task where run_key = %s", [run]
        ).fetchall()
        for i, length, virtual_state in mapped:
            for index in range(length):
                states.setdefault((i, index), {"removed": "none"}.get(virtual_state, virtual_state))
        return states

    def judged(self, i: int, index: int, states: dict[tuple[int, int], str]) -> Verdict:
        """By all upstreams; inside a region those of the same index. The tasks of a group wait until it is expanded."""
        graph = self.graph
        if index < 0 and graph.grouped(i):
            sources = graph.regions[graph.region_of[i]].gated_by
            ended = all(state in ENDED for (u, _), state in states.items() if u in sources)
            return Verdict.READY if ended else Verdict.WAIT
        total = UpstreamCounts(0)
        for upstream in graph.upstream[i]:
            inside = graph.same_region(upstream, i)
            of_it = [state for (u, n), state in states.items() if u == upstream and (n == index or not inside)]
            counted = tuple(map(sum, zip((0, 0, 0), *(ENDED.get(state, (0, 0, 0)) for state in of_it), strict=True)))
            given = contribution(graph.rules[i], counted, setup=graph.setup[upstream])  # type: ignore[arg-type]
            total = UpstreamCounts(*map(sum, zip(total, (len(of_it) + given.total, *given[1:]), strict=True)))
        return evaluate(graph.rules[i], total)


@pytest.fixture
def others(database_url: str) -> Iterator[list[tuple[Any, Catalog]]]:
    """A second scheduler."""
    with connect(database_url, name="second") as conn:
        yield [(conn, Catalog())]


@contextmanager
def in_slices(instances: int) -> Iterator[None]:
    """No transaction changes or judges more of a run."""
    with pytest.MonkeyPatch.context() as patch:
        for limit in (
            "scheduler.cancel.CHANGED_PER_TURN",
            "store.scheduling.inbox.CHANGED_PER_TURN",
            "scheduler.recount.SETTLED_PER_TURN",
        ):
            patch.setattr(f"evenflow.{limit}", instances)
        yield


def play_often(world: World, others: list[tuple[Any, Catalog]], *, seeds: range, steps: int, at_once: bool = False) -> None:
    world.pool("p", 3)
    for seed in seeds:
        for statement in FRESH:
            world.conn.execute(statement)
        r = random.Random(seed)
        try:
            with in_slices(r.choice(SLICES)):
                game = Play(world, random_dag(r, f"d{seed}"), [(world.conn, world.catalog), *others], r, at_once=at_once)
                for _ in range(steps):
                    game.step()
                game.finish()
        except Exception as error:
            error.add_note(f"in the game of seed {seed}")
            raise


@pytest.mark.system
def test_with_one_scheduler(world: World) -> None:
    """R-CS8"""
    play_often(world, [], seeds=range(13), steps=40)


@pytest.mark.system
def test_with_two_schedulers(world: World, others: list[tuple[Any, Catalog]]) -> None:
    """R-CS8"""
    play_often(world, others, seeds=range(13, 27), steps=40)


@pytest.mark.system
def test_with_two_schedulers_at_once(world: World, others: list[tuple[Any, Catalog]]) -> None:
    """R-CS8, R-HA1"""
    play_often(world, others, seeds=range(27, 40), steps=40, at_once=True)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_for_long(world: World, others: list[tuple[Any, Catalog]]) -> None:
    """R-CS8"""
    play_often(world, others, seeds=range(40, 340), steps=80)
