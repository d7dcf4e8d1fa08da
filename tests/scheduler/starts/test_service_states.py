"""States of service (R-DQ7): what starts while a DAG, pool, queue, worker or the system is closed, what goes on, how drains end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from evenflow.core.callbacks import CALLBACK_DAG
from evenflow.core.model import DagSpec, Schedule, TaskSpec
from evenflow.core.service_states import DRAINED, GAVE_UP
from evenflow.core.trigger_rules import TriggerRule
from evenflow.explaining.audit import find_startable_heads
from evenflow.scheduler.advance import advance
from evenflow.scheduler.duties import end_drains
from evenflow.scheduler.duties.schedules import create_scheduled
from evenflow.store.db.connect import connect
from evenflow.store.scheduling import drains, inbox
from tests.scheduler.closing import CLOSED, set_state
from tests.scheduler.flow.test_callbacks import a_task
from tests.scheduler.world import World
from tests.waiting import wait_until

PLACES = [("pool", "p"), ("queue", "default"), ("system", "all")]
EVERYWHERE = [("dag", "d"), *PLACES]
NOTHING_STARTS = ("resume_only", "paused", "frozen")  # in all of these nothing starts anywhere
LANES = "select lane_id, xmin::text, ready, parked_on from lane order by lane_id"


def task(task_id: str, *upstream: int, pool: str = "p", **options: Any) -> TaskSpec:
    return TaskSpec(task_id=task_id, operator="python", upstream=upstream, pool=pool, **options)


def run_of(world: World, *tasks: TaskSpec, slots: int = 9, **options: Any) -> int:
    """A run of a DAG ``d`` of these tasks, in a pool ``p``, and a turn."""
    world.pool("p", slots)
    options = {"max_active_runs": None, "max_active_tasks": None, **options}
    world.add_dag(DagSpec(dag_id="d", tasks=tasks, **options))
    run_key = world.trigger("d")
    world.advance()
    return run_key


def claimed(world: World, **options: Any) -> list[str]:
    return [t.task_id for t in world.claim(**options)]


def make_resume(world: World) -> None:
    """The dispatches that wait become resumes."""
    world.conn.execute("update dispatch set class = 0 where worker_id is null")


def state_of(world: World, kind: str, name: str) -> tuple[str, str | None] | None:
    return world.conn.execute("select state, reason from service_state where kind = %s and name = %s", [kind, name]).fetchone()


def events(world: World) -> list[tuple[str, str]]:
    return world.conn.execute("select action, object from audit_event where actor = 'scheduler' order by event_id").fetchall()


# -- first starts ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "name"), EVERYWHERE)
@pytest.mark.parametrize("state", NOTHING_STARTS)
def test_nothing_starts_for_the_first_time(world: World, kind: str, name: str, state: str) -> None:
    """R-DQ7: what becomes ready waits, whatever its priority, what runs ends; open again, all of it starts."""
    run = run_of(world, task("a"), task("b", 0), task("c", 0))
    running = world.claim()
    set_state(world, kind, name, state)
    world.report(running)
    world.advance()
    assert claimed(world) == []
    assert world.states(run) == {"a": "success", "b": "scheduled", "c": "scheduled"}
    assert find_startable_heads(world.conn, limit_classes=10) == [], "the watchdog sees nothing that could start"
    world.audit()
    set_state(world, kind, name, "active")
    assert sorted(world.drain()) == ["b", "c"]
    assert world.run_state(run) == "success"
    world.audit()


@pytest.mark.parametrize(("kind", "name"), [("pool", "p"), ("queue", "default")])
def test_what_drains_starts_nothing_either(world: World, kind: str, name: str) -> None:
    run_of(world, task("a"), task("b", 0))
    running = world.claim()
    set_state(world, kind, name, "draining")
    world.report(running)
    world.advance()
    assert claimed(world) == []
    world.audit()


@pytest.mark.parametrize(("kind", "name"), PLACES)
def test_closing_and_opening_touch_no_lane(world: World, kind: str, name: str) -> None:
    """R-ST5: a backlog costs nothing, while it is closed and when it opens."""
    run_of(world, *(task(f"t{n}", priority_weight=n) for n in range(20)), slots=1)
    before = world.conn.execute(LANES).fetchall()
    set_state(world, kind, name, "paused")
    world.advance()
    world.conn.execute("insert into wake (limit_id, released) select limit_id, 0 from concurrency_limit")
    assert world.advance().starts == 0
    assert world.conn.execute(LANES).fetchall() == before
    set_state(world, kind, name, "active")
    assert world.advance().starts == 0  # one runs
    assert world.conn.execute(LANES).fetchall() == before


@pytest.mark.parametrize("state", CLOSED)
def test_others_go_on(world: World, state: str) -> None:
    """R-ST2: a closed pool or queue, however much waits there, hides nothing of the others."""
    world.pool("other", 9)
    run_of(
        world, *(task(f"a{n}", priority_weight=9) for n in range(3)), task("b", pool="other"), task("c", pool="other", queue="q")
    )
    assert sorted(claimed(world, queues=("default", "q"))) == ["a0", "a1", "a2", "b", "c"]
    set_state(world, "pool", "p", state)
    set_state(world, "queue", "q", state)
    world.trigger("d")
    world.advance()
    assert claimed(world, queues=("default", "q")) == ["b"]
    world.audit()


def test_a_pool_keeps_no_room_for_what_is_closed(world: World) -> None:
    """R-ST11: a big task of a strict pool whose queue is closed lets all others pass."""
    world.pool("p", 2)
    world.conn.execute("update concurrency_limit set patience_s = 0 where name = 'p'")
    set_state(world, "queue", "big", "paused")
    world.add_dag(DagSpec(dag_id="d", tasks=(task("big", queue="big", pool_slots=2, priority_weight=9), task("small"))))
    world.trigger("d")
    world.advance()
    assert claimed(world, queues=("default", "big")) == ["small"]
    world.audit()


def test_without_the_executors_lock_nothing_starts_there_either(world: World, database_url: str) -> None:
    """R-ST7, R-DQ7: a scheduler that has not the lock takes the room that it has made itself, but not in a closed pool."""
    run_of(world, task("a"), task("b", 0), task("c", 1))
    with connect(database_url, name="holder") as holder, holder.transaction():
        assert inbox.try_executor(holder).all() == [(True,)]
        for expected in (["b"], []):
            world.report(world.claim())
            reports = world.conn.execute("select count(*) from report").fetchone()
            assert reports == (1,)
            advance(world.conn, world.catalog, sweep=True)
            waiting = world.conn.execute(
                "select task_id from dispatch join dag_run using (run_key) join task using (version_key, task_index)"
            )
            assert [t for (t,) in waiting] == expected
            set_state(world, "pool", "p", "paused")
    world.advance()
    assert claimed(world) == []
    world.audit()


def test_room_above_a_lowered_limit_is_not_handed_on(world: World, database_url: str) -> None:
    """R-ST1: without the executor's lock, too, nothing starts while use is above capacity."""
    run_of(world, task("a"), task("x"), task("b", 0))
    world.pool("p", 1)
    running = [t for t in world.claim() if t.task_id == "a"]
    with connect(database_url, name="holder") as holder, holder.transaction():
        assert inbox.try_executor(holder).all() == [(True,)]
        world.report(running)
        assert advance(world.conn, world.catalog, sweep=True).starts == 0
    world.advance()
    assert claimed(world) == []
    world.audit()


# -- what goes on ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "name"), EVERYWHERE)
@pytest.mark.parametrize("state", ["active", "draining", "resume_only", "paused", "frozen"])
def test_resumes_go_on_unless_frozen(world: World, kind: str, name: str, state: str) -> None:
    """R-DQ7: what has started before gets a worker in every state but that of those who froze it on purpose."""
    run_of(world, task("t"))
    make_resume(world)
    set_state(world, kind, name, state)
    assert claimed(world) == ([] if state == "frozen" else ["t"])
    set_state(world, kind, name, "active")
    assert claimed(world) == (["t"] if state == "frozen" else [])


@pytest.mark.parametrize(("kind", "name"), [("dag", "e"), ("pool", "other"), ("queue", "q")])
def test_what_is_frozen_keeps_nobody_else_from_a_worker(world: World, kind: str, name: str) -> None:
    world.pool("other", 9)
    run_of(world, task("t"))
    world.add_dag(DagSpec(dag_id="e", tasks=(task("frozen", pool="other", queue="q", priority_weight=99),)))
    world.trigger("e")
    world.advance()
    set_state(world, kind, name, "frozen")
    assert claimed(world, slots=1, queues=("q", "default")) == ["t"]
    set_state(world, kind, name, "active")
    assert claimed(world, slots=1, queues=("q", "default")) == ["frozen"]


TEARDOWN = (
    task("make", setup=True),
    task("work", 0, priority_weight=9),
    task("later", 1, priority_weight=9),
    task("tear", 0, 1, teardown=True, trigger_rule=TriggerRule.ALL_DONE_SETUP_SUCCESS),
)


@pytest.mark.parametrize(("kind", "name"), EVERYWHERE)
@pytest.mark.parametrize("cap", [None, 1])
def test_teardowns_whose_setup_ran_are_clean_up(world: World, kind: str, name: str, cap: int | None) -> None:
    """R-DQ7: they start, also where the limit of their run lets another task pass first that may not start."""
    run = run_of(world, *TEARDOWN, max_active_tasks=cap)
    world.report(world.claim())
    world.advance()
    running = world.claim()
    assert [t.task_id for t in running] == ["work"]
    set_state(world, kind, name, "paused")
    world.report(running)
    world.advance()
    assert claimed(world) == ["tear"]
    assert world.states(run) == {"make": "success", "work": "success", "later": "scheduled", "tear": "queued"}
    world.audit()
    set_state(world, kind, name, "active")


@pytest.mark.parametrize(("kind", "name"), PLACES)
def test_clean_up_respects_limits(world: World, kind: str, name: str) -> None:
    """R-ST1: a closed pool has no more room than it had; what waits there starts as soon as there is some."""
    world.add_dag(DagSpec(dag_id="e", tasks=(task("long"),)))
    run_of(world, *TEARDOWN, slots=1)
    world.report(world.claim())
    world.advance()
    running = world.claim()
    world.trigger("e", priority=9)
    world.report(running)
    world.advance()
    long = world.claim()
    assert [t.task_id for t in long] == ["long"]
    set_state(world, kind, name, "resume_only")
    world.advance()
    assert claimed(world) == []
    world.report(long)
    world.advance()
    assert claimed(world) == ["tear"]
    world.audit()


@pytest.mark.parametrize("state", ["draining", *NOTHING_STARTS])
def test_callbacks_run_while_the_system_is_closed(world: World, state: str) -> None:
    """R-DQ7, R-CS4: their runs begin, too; frozen, they wait for a worker like all others."""
    world.pool("p", 9)
    world.add_dag(DagSpec(dag_id="d", tasks=(a_task("t", "on_success_callback"),), max_active_runs=None))
    world.trigger("d")
    world.advance()
    running = world.claim()
    set_state(world, "system", "all", state)
    world.trigger("d")
    world.report(running)
    world.advance()
    assert claimed(world) == ([] if state == "frozen" else ["callback"])
    assert world.conn.execute(
        "select dag_id, state::text from dag_run where state in ('queued', 'running') order by 1"
    ).fetchall() == [
        ("d", "queued"),
        (CALLBACK_DAG, "running"),
    ]
    world.audit()


# -- runs and drains ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "name"), [("dag", "d"), ("system", "all")])
def test_runs_that_have_begun_run_to_their_end(world: World, kind: str, name: str) -> None:
    """R-DQ7: a drain lets them, begins no others, and ends by itself when they have ended."""
    run = run_of(world, task("a"), task("b", 0))
    set_state(world, kind, name, "draining")
    waits = world.trigger("d")
    world.report(world.claim())
    world.advance()
    assert world.drain() == ["b"]
    end_drains(world.conn)
    assert world.run_state(waits) == "queued"
    assert world.run_state(run) == "success"
    world.advance()
    if kind == "dag":
        assert world.conn.execute("select is_paused, paused_reason from dag where dag_id = 'd'").fetchone() == (True, DRAINED)
        assert state_of(world, kind, name) is None
    else:
        assert state_of(world, kind, name) == ("paused", DRAINED)
    assert events(world) == [(f"{kind}.drained", name)]
    set_state(world, kind, name, "active")
    assert world.drain() == ["a", "b"]
    assert world.run_state(waits) == "success"
    world.audit()


@pytest.mark.parametrize(("kind", "name"), [*EVERYWHERE, ("worker", "w")])
def test_a_drain_waits_for_what_is_in_flight(world: World, kind: str, name: str) -> None:
    """R-DQ7: a try that runs, and nothing that only wants to start."""
    run_of(world, task("a"), task("b", 0))
    running = world.claim()
    set_state(world, kind, name, "draining")
    end_drains(world.conn)
    assert state_of(world, kind, name) == ("draining", None)
    world.report(running)
    world.advance()
    if kind in ("dag", "system"):
        world.drain()
    end_drains(world.conn)
    assert events(world) == [(f"{kind}.drained", name)]
    assert (state_of(world, kind, name) or ("paused", DRAINED)) == ("paused", DRAINED)


@pytest.mark.parametrize(("kind", "name"), [*EVERYWHERE, ("worker", "w")])
def test_a_drain_gives_up_at_its_deadline(world: World, kind: str, name: str) -> None:
    """R-DQ7: it becomes a pause, and what runs is left alone."""
    run_of(world, task("a"))
    running = world.claim()
    set_state(world, kind, name, "draining", within_s=3600)
    end_drains(world.conn)
    assert state_of(world, kind, name) == ("draining", None)
    set_state(world, kind, name, "draining", within_s=0)
    end_drains(world.conn)
    if kind == "dag":
        assert world.conn.execute("select is_paused, paused_reason from dag where dag_id = 'd'").fetchone() == (True, GAVE_UP)
    else:
        assert state_of(world, kind, name) == ("paused", GAVE_UP)
    world.report(running)
    world.advance()
    assert set(world.states(running[0].run_key).values()) == {"success"}
    world.audit()


@pytest.mark.parametrize(("kind", "name"), EVERYWHERE)
@pytest.mark.parametrize("policy", ["hold", "release"])
def test_a_drain_waits_for_what_is_deferred(world: World, kind: str, name: str, policy: str) -> None:
    """R-DQ7: also where the deferred task holds nothing: it comes back there."""
    run = run_of(world, task("a"))
    world.conn.execute("update pool set while_deferred = %s", [policy])
    world.defer(world.claim())
    world.advance()
    assert world.used("pool", "p") == (1 if policy == "hold" else 0)
    set_state(world, kind, name, "draining")
    end_drains(world.conn)
    assert state_of(world, kind, name) == ("draining", None)
    world.fire(run)
    world.advance()
    end_drains(world.conn)
    assert state_of(world, kind, name) == ("draining", None), "it is on its way back"
    world.report(world.claim())
    world.advance()
    assert world.run_state(run) == "success"
    end_drains(world.conn)
    assert events(world) == [(f"{kind}.drained", name)]
    world.audit()


@pytest.mark.parametrize(("kind", "name"), EVERYWHERE)
@pytest.mark.parametrize("policy", ["hold", "release"])
def test_a_drain_holds_up_no_starts(world: World, database_url: str, kind: str, name: str, policy: str) -> None:
    """R-ST5: the executor's lock is not asked for while something is in flight."""
    run = run_of(world, task("a"))
    world.conn.execute("update pool set while_deferred = %s", [policy])
    world.defer(world.claim())
    world.advance()
    set_state(world, kind, name, "draining")
    world.conn.execute("set lock_timeout = '100ms'")
    with connect(database_url, name="turn") as turn, turn.transaction():
        assert inbox.try_executor(turn).all() == [(True,)]
        end_drains(world.conn)
    world.fire(run)
    world.drain()
    end_drains(world.conn)
    assert events(world) == [(f"{kind}.drained", name)]


@pytest.mark.parametrize(("kind", "name"), EVERYWHERE)
def test_a_drain_is_judged_again_under_the_lock(world: World, monkeypatch: pytest.MonkeyPatch, kind: str, name: str) -> None:
    """What has started since the look keeps it."""
    run = run_of(world, task("a"))
    world.defer(world.claim())
    world.advance()
    set_state(world, kind, name, "draining")
    monkeypatch.setattr(drains, "find_drained", lambda _: [(kind, name, False)])
    end_drains(world.conn)
    assert state_of(world, kind, name) == ("draining", None)
    world.fire(run)
    world.drain()
    end_drains(world.conn)
    assert events(world) == [(f"{kind}.drained", name)]


@pytest.mark.parametrize(("kind", "name"), EVERYWHERE)
@pytest.mark.parametrize("direct", ["true", "false"])
@pytest.mark.parametrize("state", NOTHING_STARTS)
def test_what_was_deferred_resumes(world: World, kind: str, name: str, direct: str, state: str) -> None:
    """R-DQ7, R-DQ5: directly and in the ordinary way. Turning something off never strands work in flight."""
    world.conn.execute("insert into setting (name, value, changed_by) values ('direct_resume', %s::jsonb, 'ada')", [direct])
    run = run_of(world, task("a"))
    world.defer(world.claim())
    world.advance()
    set_state(world, kind, name, state)
    world.advance()
    world.fire(run)
    world.advance()
    resumed = world.claim()
    assert len(resumed) == (0 if state == "frozen" else 1)
    set_state(world, kind, name, "paused")
    world.report(resumed or world.claim())
    world.advance()
    assert world.run_state(run) == "success"
    world.audit()


@pytest.mark.parametrize(("kind", "name"), [("dag", "d"), ("system", "all")])
def test_no_run_is_scheduled_for_what_drains(world: World, kind: str, name: str) -> None:
    """R-DQ7: and it is when that is active again."""
    schedule = Schedule(kind="cron", cron="@hourly", trigger=True)
    world.add_dag(DagSpec(dag_id="d", tasks=(task("a", pool="default_pool"),), schedule=schedule))
    is_due = "select next_run_at < now() from dag where dag_id = 'd'"
    make_due = "update dag set next_run_at = now() - interval '1 minute' where dag_id = 'd'"
    for state, is_left in (("draining", True), ("active", False)):
        set_state(world, kind, name, state)
        world.conn.execute(make_due)
        create_scheduled(world.conn)
        assert world.conn.execute(is_due).fetchone() == (is_left,)


# -- workers -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", CLOSED)
def test_a_worker_takes_no_first_starts(world: World, state: str) -> None:
    """R-DQ7: resumes it takes unless it is frozen; another worker has the rest, and so has this one when it is active again."""
    run_of(world, task("a"), task("b"))
    world.conn.execute("update dispatch set class = 0 where task_index = 0")
    set_state(world, "worker", "w", state)
    assert claimed(world) == ([] if state == "frozen" else ["a"])
    mine, world.worker = world.worker, world.service(name="other")
    assert claimed(world) == (["a", "b"] if state == "frozen" else ["b"])
    world.trigger("d")
    world.advance()
    world.worker = mine
    assert claimed(world) == []
    set_state(world, "worker", "w", "active")
    assert sorted(claimed(world)) == ["a", "b"]


# -- several schedulers ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("crew", [1, 3])
def test_drains_with_several_schedulers(world: World, schedulers: Any, crew: int) -> None:
    """R-HA1, R-DQ7: real processes; after the pool is closed nothing new starts in it, its drain ends, and open again all ends."""
    world.pool("p", 4)
    world.pool("other", 4)
    world.add_dag(DagSpec(dag_id="d", tasks=(task("a"), task("b", 0), task("c", pool="other"), task("x", 2, pool="other"))))
    for _ in range(12):
        world.trigger("d")
    schedulers.become(crew)
    finish: Callable[[], None] = lambda: world.report(world.claim())  # noqa: E731
    wait_until(lambda: finish() or _ended(world, "a") > 3)
    set_state(world, "pool", "p", "draining")
    wait_until(lambda: finish() or state_of(world, "pool", "p") == ("paused", DRAINED))
    begun = _ended(world, "a", "b")
    wait_until(lambda: finish() or _ended(world, "x") == 12)
    assert _ended(world, "a", "b") == begun, "nothing started in the pool"
    set_state(world, "pool", "p", "active")
    world.conn.execute("notify inbox")
    wait_until(lambda: finish() or world.conn.execute("select count(*) from dag_run where state = 'success'").fetchone() == (12,))
    schedulers.become(0)
    world.audit()


def _ended(world: World, *names: str) -> int:
    (n,) = world.conn.execute(
        "select count(*) from task_instance join dag_run using (run_key) join task using (version_key, task_index)"
        " where task_instance.state = 'success' and task_id = any(%s)",
        [list(names)],
    ).fetchone()
    return n
