"""Three schedulers at once on one database, in threads with connections of their own, while an auditor looks at every moment."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from evenflow.core.metrics import REPAIRS
from evenflow.core.model import DagSpec, TaskSpec
from evenflow.explaining.audit import Finding, audit
from evenflow.scheduler.advance import TurnOutcome, advance
from evenflow.scheduler.catalog import Catalog
from evenflow.scheduler.duties.audit import Sweep
from evenflow.scheduler.turn_metrics import TurnMetrics
from evenflow.store.db.connect import Timeouts, connect
from tests.scheduler.workloads import random_dag
from tests.scheduler.world import World

SCHEDULERS = 3


@dataclass(frozen=True, slots=True)
class Turn:
    """One transaction: when it began and had ended, what it did."""

    began: float
    ended: float
    progress: TurnOutcome

    @property
    def idle(self) -> bool:
        p = self.progress
        return not (p.again or p.reports or p.moves or p.starts)


@dataclass
class Crew:
    """Schedulers that take turns until told to stop; what they did, and what the auditor found meanwhile."""

    url: str
    stop: threading.Event = field(default_factory=threading.Event)
    turns: list[list[Turn]] = field(default_factory=lambda: [[] for _ in range(SCHEDULERS)])
    findings: list[Finding] = field(default_factory=list)
    audits: int = 0
    turn_metrics: TurnMetrics = field(default_factory=TurnMetrics)
    errors: list[BaseException] = field(default_factory=list)

    def schedule(self, number: int) -> None:
        catalog = Catalog()
        with connect(self.url, name=f"s{number}") as conn:
            while not self.stop.is_set():
                began = time.monotonic()
                turn = Turn(began, 0.0, advance(conn, catalog))
                self.turns[number].append(Turn(began, time.monotonic(), turn.progress))
                if turn.idle:
                    self.stop.wait(0.001)

    def look(self) -> None:
        sweep = Sweep(self.turn_metrics)
        # On a busy machine this thread may wait for its turn in the middle of an audit for longer than a client may hang.
        with connect(self.url, name="auditor", timeouts=Timeouts(idle_in_transaction=0)) as conn:
            while not self.stop.is_set():
                self.findings += audit(conn)
                sweep.perform(conn)
                self.audits += 1

    def rest(self, world: World) -> None:
        """Returns when nobody has anything left to do."""
        deadline = time.monotonic() + 30
        tables = ("report", "wake", "run_wake", "timer")
        waits = " + ".join(f"(select count(*) from {table})" for table in tables)
        while True:
            assert time.monotonic() < deadline, "they do not come to rest"
            assert not self.errors, self.errors
            since = [len(turns) for turns in self.turns]
            idle = all(self._idle_after(turns, n) for turns, n in zip(self.turns, since, strict=True))
            if idle and world.conn.execute(f"select {waits}").fetchone() == (0,):
                return

    def _idle_after(self, turns: list[Turn], count: int) -> bool:
        """Whether the second whole turn from now is idle, as the first may have begun before."""
        while len(turns) < count + 2 and not self.errors:
            time.sleep(0)
        return bool(self.errors) or turns[-1].idle


@contextmanager
def crew(url: str) -> Iterator[Crew]:
    hands = Crew(url)

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            hands.errors.append(error)
            hands.stop.set()

    works: list[Callable[[], None]] = [lambda n=n: hands.schedule(n) for n in range(SCHEDULERS)]  # type: ignore[misc]
    threads = [threading.Thread(target=guarded, args=[work]) for work in [*works, hands.look]]
    for thread in threads:
        thread.start()
    try:
        yield hands
    finally:
        hands.stop.set()
        for thread in threads:
            thread.join()
    assert hands.errors == []


@pytest.mark.system
@pytest.mark.parametrize("seed", range(3))
def test_limits_hold_at_every_moment_and_nothing_startable_is_left(world: World, database_url: str, seed: int) -> None:
    """R-ST1, R-ST2, R-HA1, R-HA3: every committed state satisfies the auditor, and when they come to rest, nothing could start;
    not one wake-up was lost.
    """
    r = random.Random(seed)
    for name in ("p1", "p2"):
        world.pool(name, r.randint(2, 6))
    specs = [random_dag(r, i) for i in range(3)]
    for spec in specs:
        world.add_dag(spec)
    runs: list[int] = []
    with crew(database_url) as hands:
        for step in range(25):
            if step < 15:
                runs += [world.trigger(r.choice(specs).dag_id, priority=r.choice([0, 0, 1])) for _ in range(3)]
            match r.randrange(6) if step < 20 else None:
                case 0:
                    world.pool(r.choice(["p1", "p2"]), r.randint(1, 8))
                case 1:
                    world.cancel(r.choice(runs))
                case 2:
                    limited = [f"{s.dag_id}/{t.task_id}" for s in specs for t in s.tasks if t.max_active_tis_per_dag]
                    if limited:
                        world.resize("dag_task", r.choice(limited), r.randint(1, 3))
            for t in world.claim(r.choice([3, 1000])):
                world.report([t], "failed" if r.random() < 0.1 else "success")
            if step % 5 == 4:
                hands.rest(world)
                assert world.startable() == []
        for name in ("p1", "p2"):
            world.pool(name, 8)  # room for every weight
        hands.rest(world)
        while tries := world.claim():
            world.report(tries)
            hands.rest(world)
            assert world.startable() == []
    assert hands.audits >= 5
    assert hands.findings == []
    assert hands.turn_metrics.meter.value(REPAIRS) == 0
    assert {world.run_state(run) for run in runs} <= {"success", "failed"}
    assert all(any(turn.progress.starts for turn in turns) for turns in hands.turns), "each started something"
    world.audit()


@pytest.mark.system
def test_no_inversion_but_between_rounds_that_overlap(world: World, database_url: str) -> None:
    """R-ST3. The tolerance: a task may start before a better one of its pool only where the better one was not yet ready when that
    round began, or is started by a round that overlaps it.
    """
    r = random.Random(1)
    world.pool("p", 4)
    chain = [TaskSpec(task_id=f"t{i}", operator="python", pool="p", upstream=(i - 5,) if i >= 5 else ()) for i in range(15)]
    world.add_dag(DagSpec(dag_id="d", tasks=tuple(chain), max_active_runs=None, max_active_tasks=None))
    with crew(database_url) as hands:
        priority = {world.trigger("d", priority=r.randrange(10)): 0 for _ in range(20)}
        hands.rest(world)
        while tries := world.claim():
            for t in r.sample(tries, len(tries)):
                world.report([t])
            hands.rest(world)
            assert world.startable() == []
        assert world.conn.execute("select count(*) from dispatch").fetchone() == (0,), "the worker was given all there was"
    assert hands.turn_metrics.meter.value(REPAIRS) == 0
    priority.update(world.conn.execute("select run_key, priority from dag_run").fetchall())
    assert hands.findings == []
    rounds = sorted((turn for turns in hands.turns for turn in turns), key=lambda turn: turn.began)
    ready = {run: turn.ended for turn in rounds for run, of in turn.progress.started.facts.runs.items() if of.new}
    started = [(turn, d.run_key, d.task_index) for turn in rounds for d in turn.progress.started.dispatches.sent]
    assert len(started) == 20 * len(chain)
    roots = [(turn, run) for turn, run, task in started if task < 5]
    for turn, run, _ in started:
        passed = [
            other
            for later, other in roots
            if priority[other] > priority[run] and ready[other] < turn.began and later.began > turn.ended
        ]
        assert passed == [], (turn.began, run)
