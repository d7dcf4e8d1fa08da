"""Fair shares and aging on PostgreSQL: against a naive model turn by turn, with several schedulers, and behind a large backlog."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import pytest

from evenflow.core.model import DagSpec, MapInput, Mapping, TaskSpec
from evenflow.core.selection.shares import SharedHeads
from evenflow.scheduler import candidates
from evenflow.scheduler.advance import advance
from evenflow.store.db import rows
from evenflow.store.db.rows import execute
from evenflow.store.db.sql import sql
from tests.scheduler.game import Match, Naive, Unit, random_pools
from tests.scheduler.together import test_several
from tests.scheduler.workloads import random_dag
from tests.scheduler.world import Try, World


def share(world: World, kind: str, name: str, by: str | None = "dag", *, aging_s: int | None = None, **weights: int) -> None:
    """As the API says it."""
    world.conn.execute(
        "insert into sharing as s (limit_id, share_by, aging_s, weights, version)"
        " select limit_id, %(by)s, %(aging_s)s, %(weights)s::jsonb, (select coalesce(max(version), 0) + 1 from sharing)"
        " from concurrency_limit where kind = %(kind)s::limit_kind and name = %(name)s"
        " on conflict (limit_id) do update set share_by = excluded.share_by, aging_s = excluded.aging_s,"
        " weights = excluded.weights, version = excluded.version",
        {"kind": kind, "name": name, "by": by, "aging_s": aging_s, "weights": json.dumps(weights)},
    )


@dataclass
class FairNaive(Naive):
    """Of everything that could start, one task after the other; ``fair`` pools by DAG, with the weights of some."""

    fair: dict[str, dict[str, int]] = field(default_factory=dict)
    served: Counter[tuple[str, str]] = field(default_factory=Counter)
    times: Counter[str] = field(default_factory=Counter)

    def start(self) -> list[Unit]:
        """Rounds until one starts nothing: the one that keeps a pool may be blocked by its own run after a round."""
        started: list[Unit] = []
        while more := self._round():
            started += more
        return started

    def _round(self) -> list[Unit]:
        started: list[Unit] = []
        kept: set[str] = set()
        while (unit := self._next(kept)) is not None:
            task, dag_id = self.left[unit], self.specs[unit[0]].dag_id
            if any(self.room[limit] < n for limit, n in self.holds(unit[0], task).items()):
                kept.add(task.pool)  # only its slots are missing, and nothing may pass it
                continue
            for limit, n in self.holds(unit[0], task).items():
                self.room[limit] -= n
            if task.pool in self.fair:
                self.times[task.pool] = self._begin(task.pool, dag_id)
                cost = task.pool_slots * 1_000_000 // self.fair[task.pool].get(dag_id, 1)
                self.served[task.pool, dag_id] = self.times[task.pool] + cost
            self.running[unit] = self.left.pop(unit)
            started.append(unit)
        return started

    def _next(self, kept: set[str]) -> Unit | None:
        """Each fair pool goes in with whoever is next of it."""
        best: dict[str | None, tuple[Any, Unit]] = {}
        for unit, task in self.left.items():
            if self.specs[unit[0]].dag_id in self.paused or not self.ready(unit[0], task) or task.pool in (kept | self.shut):
                continue
            short = [limit for limit, n in self.holds(unit[0], task).items() if self.room[limit] < n]
            if short and (short != [("pool", task.pool)] or task.pool not in self.strict):
                continue
            order = (*self._rank(unit), unit[2])
            scope = task.pool if task.pool in self.fair else None
            key = (*self._share(task.pool, self.specs[unit[0]].dag_id), *order) if scope else order
            if scope not in best or key < best[scope][0]:
                best[scope] = (key, unit)
        return min((unit for _, unit in best.values()), key=lambda x: (*self._rank(x), x[2]), default=None)

    def _share(self, pool: str, dag_id: str) -> tuple[Fraction, int]:
        held = sum(t.pool_slots for u, t in self.running.items() if t.pool == pool and self.specs[u[0]].dag_id == dag_id)
        return Fraction(held, self.fair[pool].get(dag_id, 1)), self._begin(pool, dag_id)

    def _begin(self, pool: str, dag_id: str) -> int:
        return max(self.served[pool, dag_id], self.times[pool])


def play(world: World, seed: int) -> None:
    """A game of 30 turns, each against the naive model."""
    r = random.Random(seed)
    naive = FairNaive(random_pools(r))
    for name in r.choice([["p1"], ["p2"], ["p1", "p2"]]):
        naive.fair[name] = {f"d{i}": r.choice([1, 2, 5]) for i in range(r.randint(0, 3))}
    if r.random() < 0.4:
        naive.strict.add("p1")
    match = Match(world, naive, r, [random_dag(r, i) for i in range(4)])
    for name, weights in naive.fair.items():
        share(world, "pool", name, **weights)
    match.play(30, trigger=0.8, pause=0.1, close=0.1, resize=0.2, cancel=0.1)


@pytest.mark.parametrize("seed", [*range(2), *(pytest.param(n, marks=pytest.mark.system) for n in range(2, 12))])
def test_fair_shares_agree_with_a_naive_model(world: World, seed: int) -> None:
    """R-ST11, R-ST1, R-ST2: turn by turn the same tasks start, through pauses, cancels, retries, closed pools and other limits; and
    every share counts the slots that are held of it.
    """
    play(world, seed)
    assert world.conn.execute("select sum(l.used) from concurrency_limit l join tenant using (limit_id)").fetchone() in {
        (0,),
        (None,),
    }


def test_a_broken_share_is_noticed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is served counts as if nothing had been given to it."""
    monkeypatch.setattr(SharedHeads, "started", lambda *_: None)
    with pytest.raises(AssertionError):
        play(world, 0)


AGING_S = 600
AGES = (0, 650, 1_300, 2_600, 7_000)


@dataclass
class AgedNaive(FairNaive):
    """Both pools age. What was ready in an earlier step of the clock has so much more priority."""

    said_at: dict[int, float] = field(default_factory=dict)  # by run: when the last was said that makes its tasks ready
    steps: dict[Unit, int] = field(default_factory=dict)  # in which step what waits, or has waited, was ready

    def start(self) -> list[Unit]:
        for unit, task in self.left.items():
            if unit not in self.steps and self.ready(unit[0], task):
                self.steps[unit] = int(self.said_at[unit[0]] // AGING_S)
        return super().start()

    def _rank(self, unit: Unit) -> tuple[int, int, float]:
        priority, weight, run_after = super()._rank(unit)
        return priority + self.steps[unit], weight, run_after

    def lane(self, unit: Unit) -> Any:
        return (*super().lane(unit), self.steps[unit])


class AgedMatch(Match):
    """What is said in a turn of a run was said a while ago, and a run was triggered a while ago."""

    naive: AgedNaive

    def trigger(self) -> None:
        super().trigger()
        for run in self.naive.specs.keys() - self.naive.said_at.keys():
            query = (
                "update dag_run set created_at = created_at - make_interval(secs => %s) where run_key = %s"
                " returning extract(epoch from created_at)::float8"
            )
            self.naive.said_at[run] = self.world.one(query, self.r.choice(AGES), run)

    def report(self, share: float) -> None:
        ages: dict[int, int] = {}
        said = self.world._report

        def late(t: Try, kind: str, payload: dict[str, Any] | None) -> dict[str, Any]:
            return {**said(t, kind, payload), "age_s": ages.setdefault(t.run_key, self.r.choice(AGES))}

        self.world._report = late  # type: ignore[method-assign]
        super().report(share)
        del self.world._report
        self.naive.said_at.update(
            self.world.conn.execute("select run_key, extract(epoch from max(at))::float8 from report group by 1").fetchall()
        )


def play_aged(world: World, seed: int) -> None:
    r = random.Random(seed)
    naive = AgedNaive(random_pools(r))
    if r.random() < 0.5:
        naive.fair["p1"] = {f"d{i}": r.choice([1, 2, 5]) for i in range(r.randint(0, 3))}
    if r.random() < 0.4:
        naive.strict.add("p2")
    specs = [random_dag(r, i) for i in range(4)]
    specs = [replace(spec, tasks=tuple(replace(task, retries=0) for task in spec.tasks)) for spec in specs]
    match = AgedMatch(world, naive, r, specs)
    for name in ("p1", "p2"):
        share(world, "pool", name, "dag" if name in naive.fair else None, aging_s=AGING_S, **naive.fair.get(name, {}))
    match.play(30, trigger=0.9, pause=0.03, close=0.03, resize=0.1, cancel=0.05)


@pytest.mark.parametrize("seed", [1, *(pytest.param(n, marks=pytest.mark.system) for n in range(2, 10))])
def test_what_ages_agrees_with_a_naive_model(world: World, seed: int) -> None:
    """R-ST11, R-ST1, R-ST2: turn by turn the same tasks start, whatever waited for how long, in pools that are shared and not."""
    play_aged(world, seed)


def test_a_broken_age_is_noticed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """What has waited counts as what has not."""
    monkeypatch.setattr(candidates, "aged", lambda run_priority, *_: run_priority)
    with pytest.raises(AssertionError):
        play_aged(world, 1)


TASK = TaskSpec(task_id="t", operator="python", pool="p", mapping=Mapping(inputs=(MapInput(name="x", length=40),)))


def dag(dag_id: str) -> DagSpec:
    return DagSpec(dag_id=dag_id, tasks=(TASK,), max_active_tasks=None, max_active_runs=None)


def running(world: World) -> Counter[str]:
    """Tries that hold slots, by DAG."""
    return Counter(dag_id for (dag_id,) in world.conn.execute("select dag_id from dispatch join dag_run using (run_key)"))


@pytest.mark.parametrize("kind", ["pool", "executor"])
def test_a_backfill_delays_others_by_nothing_but_the_slots_that_it_holds(world: World, kind: str) -> None:
    """R-ST11: what came first holds all slots; as they are given back, what came later has half of them before it gets another."""
    world.pool("p", 6)
    share(world, kind, {"pool": "p", "executor": "worker"}[kind])
    for name in ("backfill", "scheduled"):
        world.add_dag(dag(name))
    world.trigger("backfill", priority=9)
    world.advance()
    assert running(world) == {"backfill": 6}
    world.trigger("scheduled")
    tries = world.claim()
    for n in range(1, 4):
        world.report([tries.pop()])
        world.advance()
        assert running(world) == {"backfill": 6 - n, "scheduled": n}
    world.report([tries.pop()])
    world.advance()
    assert running(world) == {"backfill": 3, "scheduled": 3}, "each gets back what it gives"
    world.audit()


def test_what_is_said_counts_from_the_next_turn_on(world: World) -> None:
    """R-ST11: what waited already is a tenant of its own; nothing changes where nobody shares any more."""
    world.pool("p", 2)
    for name in ("a", "b", "c"):
        world.add_dag(dag(name))
    world.trigger("a", priority=9)
    world.advance()
    share(world, "pool", "p")
    world.trigger("b", priority=5)
    world.trigger("c")
    world.advance()
    for _ in range(4):
        world.report(world.claim())
        world.advance()
    assert running(world) == {"a": 2}, "tasks without a tenant follow the order, as before"
    world.conn.execute("update concurrency_limit set capacity = 6 where name = 'p'")
    world.conn.execute("insert into wake (limit_id, released) select limit_id, 0 from concurrency_limit where name = 'p'")
    world.advance()
    assert running(world)["a"] == 6
    world.audit()


def test_tasks_that_have_waited_go_before_those_of_higher_priority(world: World) -> None:
    """R-ST11: in steps of ten minutes, 65 minutes of waiting are worth six or seven priorities of a run, and no key changes."""
    world.pool("p", 1)
    share(world, "pool", "p", None, aging_s=600)
    after = TaskSpec(task_id="after", operator="python", pool="p", upstream=(0,))
    world.add_dag(DagSpec(dag_id="old", tasks=(TaskSpec(task_id="first", operator="python"), after)))
    world.trigger("old")
    world.advance()
    (first,) = world.claim()
    for priority in (9, 8, 5):
        task = TaskSpec(task_id=f"of_{priority}", operator="python", pool="p")
        world.add_dag(DagSpec(dag_id=f"new_{priority}", tasks=(task,)))
        world.trigger(f"new_{priority}", priority=priority)
    world.advance()
    report = world._report(first, "exit", {"outcome": "success", "ran_s": 0.01})
    execute(world.conn, "dispatch/insert_reports", {"reports": json.dumps([{**report, "age_s": 3_900.0}])})
    assert world.drain() == ["of_9", "of_8", "after", "of_5"]
    world.audit()


FAR = """
insert into lane
select (jsonb_populate_record(l, jsonb_build_object('lane_id', 1000000000 + n))).*
from lane l, generate_series(1, %s) n
where l.lane_id = (select max(lane_id) from lane)
"""
KEYS = "update lane set order_key = substring(order_key for 16) || set_byte(int8send(lane_id), 0, 128) where lane_id > 1000000000"


def cost(world: World, monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], int, int]:
    """The statements of the next turn, the rows that its round read and the lanes that it touched."""
    sent: list[str] = []
    with monkeypatch.context() as patch:
        patch.setattr(rows, "sql", lambda name: sent.append(name) or sql(name))  # type: ignore[func-returns-value]
        outcome = advance(world.conn, world.catalog)
    sent = [name for name in sent if name != "selection/reserve"]  # a thousand numbers at a time
    return sent, outcome.started.rows_read, outcome.started.lanes_touched


@pytest.mark.system
@pytest.mark.parametrize("aging_s", [None, AGING_S])
def test_the_backlog_of_a_tenant_costs_the_others_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch, aging_s: int | None
) -> None:
    """R-ST11, R-ST5: a hundred thousand lanes wait; a turn sends the same statements, and reads as many rows, as with a hundred,
    and the task of another tenant starts at once.
    """
    world.pool("p", 5)
    share(world, "pool", "p", aging_s=aging_s)
    world.add_dag(dag("backfill"))
    world.trigger("backfill", priority=9)
    world.advance()
    tries = world.claim()
    costs = []
    for waiting in (10, 100, 100_000):  # by the second the scheduler knows what it remembers
        world.conn.execute("delete from lane where lane_id > 1000000000")
        world.conn.execute(FAR, [waiting])
        world.conn.execute(KEYS)
        world.conn.execute("analyze lane")
        task = TaskSpec(task_id=f"beside_{waiting}", operator="python", pool="p")
        world.add_dag(DagSpec(dag_id=f"d{waiting}", tasks=(task,)))
        world.trigger(f"d{waiting}")
        world.report([tries.pop()])
        costs.append(cost(world, monkeypatch))
        assert [t.task_id for t in world.claim()] == [task.task_id]
    assert costs[1] == costs[2]


@pytest.mark.system
@pytest.mark.parametrize("schedulers", [1, 3])
def test_several_schedulers_keep_the_shares(
    world: World, database_url: str, schedulers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-ST11, R-ST1, R-HA1: whenever all come to rest each tenant has exactly its part, whatever has ended meanwhile, as long as it
    has tasks that wait; and at the end nothing is held of any share.
    """
    monkeypatch.setattr(test_several, "SCHEDULERS", schedulers)
    r = random.Random(schedulers)
    world.pool("p", 6)
    share(world, "pool", "p", "dag", a=1, b=2, c=3)
    for dag_id in ("a", "b", "c"):
        world.add_dag(dag(dag_id))
        world.trigger(dag_id, priority=r.randint(0, 5))
    with test_several.crew(database_url) as crew:
        tries: list[Try] = []
        for _ in range(12):
            crew.rest(world)
            assert running(world) == {"a": 1, "b": 2, "c": 3}
            tries += world.claim()
            r.shuffle(tries)
            ended = [tries.pop() for _ in range(r.randint(1, 4))]
            for one in ended:
                world.report([one])
        while tries:
            world.report(tries)
            crew.rest(world)
            tries = world.claim()
    assert crew.findings == []
    assert world.used("share") == 0
    world.audit()


@pytest.mark.parametrize("while_deferred", ["hold", "release"])
def test_a_deferred_task_keeps_of_its_share_what_it_keeps_of_its_pool(world: World, while_deferred: str) -> None:
    """R-ST11: and takes it again when it resumes."""
    world.pool("p", 4)
    world.conn.execute("update pool set while_deferred = %s where name = 'p'", [while_deferred])
    share(world, "pool", "p")
    task = TaskSpec(task_id="t", operator="python", pool="p", pool_slots=2)
    world.add_dag(DagSpec(dag_id="d", tasks=(task,)))
    run = world.trigger("d")
    world.advance()
    tries = world.claim()
    assert world.used("share") == 2
    world.defer(tries)
    world.advance()
    assert world.used("share") == {"hold": 2, "release": 0}[while_deferred]
    world.audit()
    world.fire(run)
    world.advance()
    assert world.used("share") == 2
    world.audit()
    world.report(world.claim())
    world.advance()
    assert (world.used("share"), world.run_state(run)) == (0, "success")
    world.audit()
