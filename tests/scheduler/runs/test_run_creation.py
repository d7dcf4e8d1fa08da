"""Queued runs begin when something lets them: whoever makes room or takes a reason to wait away wakes their DAG, and nobody else is
looked at.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from evenflow.core.graph import creation_line
from evenflow.core.limits import NEW_INSTANCES_PER_TURN, NEW_RUNS_BESIDE_TRIES, NEW_RUNS_PER_TURN
from evenflow.core.metrics import REPAIRS
from evenflow.core.model import DagSpec, TaskSpec
from evenflow.core.operations import Operation
from evenflow.core.states import TaskEvent
from evenflow.explaining.audit import audit
from evenflow.scheduler.advance import advance
from evenflow.scheduler.duties.audit import DAGS_PER_SWEEP, Sweep
from evenflow.scheduler.turn_metrics import TurnMetrics
from evenflow.store.db.rows import execute
from evenflow.store.scheduling.operations import request
from tests.scheduler.closing import set_state
from tests.scheduler.together.test_several import crew
from tests.scheduler.world import World

TASKS = (TaskSpec(task_id="t", operator="python"),)
COULD_BEGIN = """
    select r.dag_id, r.run_id from dag_run r
    join dag d on d.dag_id = r.dag_id and not d.is_paused
    left join concurrency_limit l on l.kind = 'dag_runs' and l.name = r.dag_id
    where r.state = 'queued' and (l.limit_id is null or l.used < l.capacity)
      and not exists (select from service_state s where s.kind = 'dag' and s.name = r.dag_id or s.kind = 'system')"""


def add_dags(world: World, count: int, **settings: Any) -> list[str]:
    names = [f"d{n}" for n in range(count)]
    for name in names:
        world.add_dag(DagSpec(dag_id=name, tasks=TASKS, **settings))
    return names


@pytest.fixture
def full(world: World) -> Any:
    """A DAG with a run that runs and one that waits for its end."""
    add_dags(world, 1, max_active_runs=1)
    for _ in range(2):
        world.trigger("d0")
    for _ in range(2):  # what has begun one is looked at once more
        world.advance()
    assert states(world) == ["queued", "running"]
    assert world.conn.execute("select count(*) from run_wake").fetchone() == (0,)
    return world


def states(world: World) -> list[str]:
    return [state for (state,) in world.conn.execute("select state::text from dag_run order by 1").fetchall()]


def end(world: World) -> None:
    world.report(world.claim())


def raise_limit(world: World) -> None:
    world.resize("dag_runs", "d0", 2)


def resume(kind: str, name: str, state: str) -> Callable[[Any], None]:
    def act(world: World) -> None:
        set_state(world, kind, name, state)
        raise_limit(world)
        world.advance()
        assert states(world) == ["queued", "running"]
        set_state(world, kind, name, "active")

    return act


def put_aside(world: World) -> None:
    """Into quarantine, and out again."""
    world.conn.execute("update dag_run set quarantined_at = now() where state = 'queued'")
    raise_limit(world)
    world.advance()
    assert states(world) == ["queued", "running"]
    world.conn.execute("update dag_run set quarantined_at = null")


ROOM = {
    "end": end,
    "limit": raise_limit,
    "unlimited": lambda world: world.conn.execute("delete from concurrency_limit where kind = 'dag_runs'"),
    "unpause": resume("dag", "d0", "paused"),
    "drained": resume("dag", "d0", "draining"),
    "resume": resume("system", "all", "paused"),
    "release": put_aside,
}


@pytest.mark.parametrize("what", ROOM)
def test_a_run_begins_when_something_lets_it(full: Any, what: str) -> None:
    """R-HA20: without a sweep."""
    ROOM[what](full)
    full.advance()
    assert "queued" not in states(full)
    full.conn.execute("update concurrency_limit set capacity = 2 where kind = 'dag_runs'")
    full.audit()


def test_a_run_that_is_made_ahead_of_its_time_begins_then(world: World) -> None:
    add_dags(world, 1)
    world.trigger("d0", run_after="2200-01-01")
    world.advance()
    assert states(world) == ["queued"]
    assert not advance(world.conn, world.catalog).again, "nothing is looked at before"
    world.conn.execute("update run_wake set due_at = now()")
    world.conn.execute("update dag_run set run_after = now()")
    world.advance()
    assert states(world) == ["running"]


@pytest.mark.system
def test_dags_of_higher_priority_go_first_also_below_the_ordinary_one(world: World) -> None:
    """R-ST3, R-ST4: whatever waits, and however many DAGs have wakes."""
    names = add_dags(world, 4 * NEW_RUNS_PER_TURN)
    for name in names:
        world.trigger(name, priority=-5)
    late = [world.trigger(names[-1], priority=-1), world.trigger(names[0], priority=3)]
    advance(world.conn, world.catalog)
    assert [world.run_state(run) for run in late] == ["running", "running"]
    assert states(world).count("running") == NEW_RUNS_PER_TURN
    world.advance()
    assert set(states(world)) == {"running"}
    world.audit()


def add_backlog(world: World, pool: str, dags: int, tasks: int = 1, **columns: Any) -> list[int]:
    """A run of each of so many new DAGs whose tasks all go to ``pool``, in the order in which they are triggered."""
    world.pool(pool, 1_000)
    names = [f"{pool}{n:03}" for n in range(dags)]
    for name in names:
        world.add_dag(
            DagSpec(dag_id=name, tasks=tuple(TaskSpec(task_id=f"t{n}", operator="python", pool=pool) for n in range(tasks)))
        )
    return [world.trigger(name, **columns) for name in names]


def begun(world: World, runs: list[int]) -> int:
    return [world.run_state(run) for run in runs].count("running")


@pytest.mark.system
def test_a_backlog_for_one_pool_holds_up_no_run_for_another(world: World) -> None:
    """R-ST4: the last of many runs begins in the first transaction, where it has slots of its own; each line in its order."""
    narrow = add_backlog(world, "narrow", 3 * NEW_RUNS_PER_TURN)
    wide = add_backlog(world, "wide", NEW_RUNS_PER_TURN)
    (last,) = add_backlog(world, "own", 1)
    advance(world.conn, world.catalog)
    assert world.run_state(last) == "running"
    share = begun(world, wide)
    assert begun(world, narrow) + share + 1 == NEW_RUNS_PER_TURN
    assert abs(begun(world, narrow) - share) <= 1, "they take turns"
    for runs in (narrow, wide):
        assert begun(world, runs[: begun(world, runs)]) == begun(world, runs), "who came first begins first"
    world.advance()
    assert set(states(world)) == {"running"}
    world.audit()


@pytest.mark.system
def test_lines_do_not_go_before_priority(world: World) -> None:
    """R-ST3: lines take turns among runs of one priority."""
    urgent = add_backlog(world, "narrow", NEW_RUNS_PER_TURN, priority=1)
    others = add_backlog(world, "wide", 5)
    advance(world.conn, world.catalog)
    assert (begun(world, urgent), begun(world, others)) == (NEW_RUNS_PER_TURN, 0)
    advance(world.conn, world.catalog)
    assert begun(world, others) == 5


def test_ends_of_tasks_wait_for_a_small_slice_of_creation_at_most(world: World) -> None:
    """R-ST4: and what has become ready by them starts in the same transaction."""
    chain = (TaskSpec(task_id="a", operator="python"), TaskSpec(task_id="b", operator="python", upstream=(0,)))
    world.add_dag(DagSpec(dag_id="chain", tasks=chain))
    world.trigger("chain")
    world.advance()
    runs = add_backlog(world, "narrow", 3 * NEW_RUNS_BESIDE_TRIES)
    world.report(world.claim())
    progress = advance(world.conn, world.catalog)
    assert progress.again
    assert begun(world, runs) == NEW_RUNS_BESIDE_TRIES
    assert "b" in [t.task_id for t in world.claim()]
    world.advance()
    assert begun(world, runs) == len(runs)
    world.audit()


@pytest.mark.system
def test_a_transaction_that_hears_of_many_runs_creates_as_many(world: World) -> None:
    """R-HA10: else a burst of runs, whose tasks end all the while, would be created ten by ten."""
    several = 3 * NEW_RUNS_BESIDE_TRIES
    add_backlog(world, "early", several)
    world.advance()
    runs = add_backlog(world, "narrow", 2 * several)
    world.report(world.claim())
    advance(world.conn, world.catalog)
    assert begun(world, runs) == several
    world.advance()
    world.audit()


def test_a_run_that_is_too_large_for_the_rest_of_a_slice_keeps_its_place(world: World) -> None:
    """R-ST4: whoever came first begins first, also where a transaction creates one run only."""
    world.add_dag(DagSpec(dag_id="busy", tasks=TASKS))
    world.trigger("busy")
    world.advance()
    runs = add_backlog(world, "narrow", 4, tasks=NEW_INSTANCES_PER_TURN)
    for n in range(1, 5):
        advance(world.conn, world.catalog)
        assert begun(world, runs) == begun(world, runs[:n]) == n
    world.audit()


def test_what_is_left_of_a_dag_of_which_something_has_begun_goes_behind_the_others(world: World) -> None:
    """R-ST4: so that a DAG with a great many large runs lets others in."""
    world.add_dag(DagSpec(dag_id="busy", tasks=TASKS))
    world.trigger("busy")
    world.advance()
    first, second = add_backlog(world, "narrow", 2, tasks=NEW_INSTANCES_PER_TURN)
    again = world.trigger("narrow000")
    for runs in ([first], [first, second], [first, second, again]):
        advance(world.conn, world.catalog)
        assert begun(world, [first, second, again]) == begun(world, runs) == len(runs)
    world.audit()


def test_a_dag_of_which_all_has_begun_is_not_looked_at_again(world: World) -> None:
    """R-ST5: a wake costs a look; one that is known to find nothing is not left."""
    add_backlog(world, "narrow", 3)
    advance(world.conn, world.catalog)
    assert world.conn.execute("select count(*) from run_wake").fetchone() == (0,)


def test_the_line_of_a_dag_is_where_its_first_tasks_go() -> None:
    def line(*tasks: tuple[str, tuple[int, ...]]) -> int:
        specs = (TaskSpec(task_id=str(n), operator="python", pool=pool, upstream=up) for n, (pool, up) in enumerate(tasks))
        return creation_line(DagSpec(dag_id="d", tasks=tuple(specs)))

    a, b = ("a", ()), ("b", ())
    assert line(a) == line(a, a) == line(a, ("b", (0,)))
    assert line(a, b) == line(b, a)
    assert len({line(a), line(b), line(a, b)}) == 3


def test_a_lost_wake_up_is_repaired_and_counted(full: Any) -> None:
    """R-HA20: the sweep looks at so many DAGs and goes on where it stopped."""
    full.conn.execute(
        "insert into dag (dag_id, version_key, bundle, file)"
        " select 'a' || n, version_key, 'b', 'x.py' from dag, generate_series(1, %s) n where dag_id = 'd0'",
        [DAGS_PER_SWEEP],
    )
    full.conn.execute(
        "insert into dag_run (dag_id, run_id, version_key, run_type)"
        " select dag_id, 'r', version_key, 'manual' from dag where dag_id like 'a%'"
    )
    full.conn.execute("update dag set is_paused = true where dag_id like 'a%'")
    full.advance()
    raise_limit(full)
    full.conn.execute("delete from run_wake")
    assert {finding.kind for finding in audit(full.conn)} == {"forgotten"}
    full.advance()
    turn_metrics = TurnMetrics()
    sweep = Sweep(turn_metrics.meter)
    sweep.perform(full.conn)
    assert turn_metrics.meter.value(REPAIRS) == 0
    sweep.perform(full.conn)
    assert turn_metrics.meter.value(REPAIRS) == 1
    full.advance()
    assert full.conn.execute("select count(*) from dag_run where dag_id = 'd0' and state = 'running'").fetchone() == (2,)
    sweep.perform(full.conn)
    assert turn_metrics.meter.value(REPAIRS) == 1
    full.audit()


class Operators:
    """What people and tasks do to DAGs and runs."""

    def __init__(self, world: World, r: random.Random, dags: list[str]) -> None:
        self.world, self.r, self.dags = world, r, dags

    def act(self) -> None:
        often, seldom = [self.trigger, self.end], [self.limit, self.pause, self.drain, self.close, self.cancel, self.clear]
        self.r.choice([*often, *often, *seldom])()

    def trigger(self) -> None:
        self.world.trigger(self.r.choice(self.dags), priority=self.r.choice([-1, 0, 0, 2]))

    def end(self) -> None:
        self.world.report(self.world.claim(self.r.choice([1, 3])), self.r.choice(["success", "failed"]))

    def limit(self) -> None:
        self.world.resize("dag_runs", self.r.choice(self.dags), self.r.randint(0, 3))

    def pause(self) -> None:
        set_state(self.world, "dag", self.r.choice(self.dags), self.r.choice(["paused", "active", "active"]))

    def drain(self) -> None:
        set_state(self.world, "dag", self.r.choice(self.dags), self.r.choice(["draining", "active", "active"]))

    def close(self) -> None:
        set_state(self.world, "system", "all", self.r.choice(["draining", "paused", "active", "active", "active"]))

    def cancel(self) -> None:
        if (run := self._some("queued", "running")) is not None:
            self.world.cancel(run)

    def clear(self) -> None:
        if (run := self._some("success", "failed")) is not None:
            request(self.world.conn, [run], Operation(event=TaskEvent.CLEAR, actor="ada"))

    def restore(self) -> None:
        """Nothing holds anything up any more."""
        for dag in self.dags:
            set_state(self.world, "dag", dag, "active")
            self.world.resize("dag_runs", dag, 9)
        set_state(self.world, "system", "all", "active")

    def _some(self, *states: str) -> int | None:
        query = "select run_key from dag_run where state::text = any(%s)"
        runs = [run for (run,) in self.world.conn.execute(query, [list(states)]).fetchall()]
        return self.r.choice(runs) if runs else None


@pytest.mark.system
@pytest.mark.parametrize("seed", range(4))
def test_no_run_that_could_begin_waits_when_nothing_is_left_to_do(world: World, database_url: str, seed: int) -> None:
    """R-ST4, R-HA1, R-HA20: several schedulers, and not one wake-up is lost in any committed state."""
    r = random.Random(seed)
    dags = add_dags(world, 5, max_active_runs=1)
    with crew(database_url) as hands:
        operators = Operators(world, r, dags)
        for step in range(120):
            operators.act()
            if step % 15 == 14:
                hands.rest(world)
                assert world.conn.execute(COULD_BEGIN).fetchall() == []
        operators.restore()
        hands.rest(world)
        while tries := world.claim():
            world.report(tries)
            hands.rest(world)
            assert world.conn.execute(COULD_BEGIN).fetchall() == []
    assert hands.findings == []
    assert hands.turn_metrics.meter.value(REPAIRS) == 0
    assert set(states(world)) <= {"success", "failed"}
    world.audit()


@pytest.mark.system
def test_turns_in_one_process_find_every_run_at_once(world: World) -> None:
    """The same with one scheduler: after each of its rests, and without any sweep."""
    r = random.Random(7)
    operators = Operators(world, r, add_dags(world, 4, max_active_runs=1))
    for _ in range(300):
        operators.act()
        world.advance()
        assert world.conn.execute(COULD_BEGIN).fetchall() == []
    turn_metrics = TurnMetrics()
    Sweep(turn_metrics.meter).perform(world.conn)
    assert turn_metrics.meter.value(REPAIRS) == 0
    execute(world.conn, "runs/wake", {"dag_ids": ["d0", "unknown"]})
    world.advance()
    world.audit()
