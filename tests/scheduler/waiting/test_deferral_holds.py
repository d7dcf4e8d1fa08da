"""What deferred tasks hold and take again, in the database, with the executor's lock and without (R-DQ2, R-DQ3, R-DQ5, R-ST1)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from evenflow.core.metrics import ORDINARY_RESUMES, RESUME_SECONDS
from evenflow.core.model import DagSpec, TaskSpec
from evenflow.core.selection.order import DispatchClass
from evenflow.scheduler import deferrals
from evenflow.scheduler.advance import advance
from evenflow.scheduler.turn_metrics import TurnMetrics
from evenflow.store.db.connect import connect
from evenflow.store.scheduling import inbox
from tests.scheduler.world import Try, World


def task(task_id: str, **options: Any) -> TaskSpec:
    return TaskSpec(task_id=task_id, operator="python", **options)


def dag(*tasks: TaskSpec, dag_id: str = "d", **options: Any) -> DagSpec:
    return DagSpec(dag_id=dag_id, tasks=tasks, **options)


def start(world: World, spec: DagSpec, **columns: Any) -> int:
    world.add_dag(spec)
    run = world.trigger(spec.dag_id, **columns)
    world.advance()
    return run


def defer(world: World, tries: list[Try]) -> None:
    world.defer(tries)
    world.advance()
    world.audit()


def set_setting(world: World, name: str, value: Any) -> None:
    world.conn.execute(
        "insert into setting (name, value, changed_by) values (%s, %s, 'test')",
        [name, json.dumps(value)],
    )


@contextmanager
def another_leads(world: World, database_url: str) -> Iterator[None]:
    """Meanwhile somebody else has the executor's lock."""
    with connect(database_url, name="holder") as holder, holder.transaction():
        assert inbox.try_executor(holder).all() == [(True,)]
        yield


LIMITED = task("t", pool="people", pool_slots=2, max_active_tis_per_dag=1, max_active_tis_per_dagrun=1)
KINDS = {"pool": 2, "dag_task": 1, "run_task": 1, "run": 1, "executor": 1}


def held(world: World) -> dict[str, int]:
    return {kind: world.used(kind) for kind in KINDS}


@pytest.mark.parametrize(
    ("setting", "policy", "wishes", "kept"),
    [
        (None, "hold", None, {"pool", "dag_task", "run_task"}),
        (None, "release", None, {"dag_task", "run_task"}),
        (None, "hold", {"pool": "release", "run": "hold"}, {"dag_task", "run_task", "run"}),
        (None, "release", {"pool": "hold", "task_limits": "release", "executor": "hold"}, {"pool", "executor"}),
        (("deferred_keep_task_limits", False), "hold", None, {"pool"}),
        (("deferred_keep_run_cap", True), "hold", None, {"pool", "dag_task", "run_task", "run"}),
        (("deferred_keep_executor_slot", True), "hold", None, {"pool", "dag_task", "run_task", "executor"}),
        (("deferred_keep_executor_slot", True), "hold", {"executor": "release"}, {"pool", "dag_task", "run_task"}),
    ],
)
@pytest.mark.parametrize("leads", [True, False])
def test_each_line_of_the_table(
    world: World, database_url: str, setting: Any, policy: str, wishes: Any, kept: set[str], leads: bool
) -> None:
    world.pool("people", 2)
    world.conn.execute("update pool set while_deferred = %s where name = 'people'", [policy])
    if setting:
        set_setting(world, *setting)
    run = start(world, dag(replace(LIMITED, while_deferred=wishes)))
    assert held(world) == KINDS
    world.defer(world.claim())
    turn(world, database_url, leads)
    world.advance()
    assert held(world) == {kind: used if kind in kept else 0 for kind, used in KINDS.items()}
    told = world.conn.execute("select detail -> 'keeps' from task_event where event = 'defer'").fetchone()
    assert told == (sorted(kept),)
    world.audit()
    world.fire(run)
    turn(world, database_url, leads)
    world.advance()
    assert held(world) == KINDS, "all of it"
    world.audit()
    assert world.drain() == ["t"]
    assert held(world) == dict.fromkeys(KINDS, 0)
    world.audit()


def turn(world: World, database_url: str, leads: bool) -> None:
    if leads:
        advance(world.conn, world.catalog)
        return
    with another_leads(world, database_url):
        assert not advance(world.conn, world.catalog).selected
        world.audit()


def test_a_pool_of_people_is_used_constantly(world: World) -> None:
    """R-DQ2: from the start to the end of a try, whatever waits for the pool."""
    world.pool("people", 1)
    run = start(world, dag(task("t", pool="people"), task("next", pool="people")))
    (t,) = world.claim()
    used = [world.used("pool", "people")]
    for step in ("defer", "resume"):
        world.defer([t]) if step == "defer" else world.fire(run)
        world.advance()
        used.append(world.used("pool", "people"))
        assert [x.task_id for x in world.claim()] == ([] if step == "defer" else ["t"])
    assert used == [1, 1, 1]


def test_a_sensor_and_what_it_waits_for_in_one_small_pool(world: World) -> None:
    """No deadlock: the pool of one slot is the sensor's only while it looks."""
    world.pool("small", 1)
    run = start(world, dag(task("sensor", pool="small", while_deferred={"pool": "release"}), task("makes_it", pool="small")))
    (t,) = world.claim()
    assert t.task_id == "sensor"
    defer(world, [t])
    (makes_it,) = world.claim()
    assert makes_it.task_id == "makes_it"
    world.report([makes_it])
    world.fire(run)
    world.advance()
    assert world.drain() == ["sensor"]
    assert world.run_state(run) == "success"
    world.audit()


@pytest.mark.parametrize("leads", [True, False])
def test_a_resume_overdraws_and_then_no_first_start_comes(world: World, database_url: str, leads: bool) -> None:
    """R-ST1: by at most the deferred tasks of the limit; what is above it blocks first starts, also of who has not the lock."""
    world.pool("default_pool", 1)
    tasks = [task("t", priority_weight=3), task("first", priority_weight=2), task("last")]
    run = start(world, dag(*tasks))
    (t,) = world.claim()
    defer(world, [t])
    (first,) = world.claim()
    world.fire(run)
    turn(world, database_url, leads)
    (again,) = world.claim()
    assert again.task_id == "t", "it is not refused"
    world.audit()
    world.report([first])
    turn(world, database_url, leads)
    assert world.claim() == [], "the slot that came free was one too much"
    world.advance()
    assert world.claim() == []
    assert world.used("pool", "default_pool") == 1
    world.audit()
    world.report([again])
    world.advance()
    assert [x.task_id for x in world.claim()] == ["last"]
    world.audit()


def test_the_deferral_makes_room_in_the_same_transaction(world: World) -> None:
    world.pool("default_pool", 1)
    start(world, dag(task("t", priority_weight=2), task("next")))
    world.defer(world.claim())
    assert advance(world.conn, world.catalog).starts == 1
    assert [t.task_id for t in world.claim()] == ["next"]


def test_and_without_the_executors_lock(world: World, database_url: str) -> None:
    world.pool("default_pool", 1)
    run = start(world, dag(task("t"), dag_id="one"))
    (t,) = world.claim()
    world.defer([t])
    with another_leads(world, database_url):
        advance(world.conn, world.catalog)
        world.audit()
        world.fire(run)
        advance(world.conn, world.catalog)
        assert [x.task_id for x in world.claim()] == ["t"]
        world.audit()
        assert world.conn.execute("select sum(released) from wake").fetchone() == (0,), "what was released was taken again"
    world.advance()
    assert world.used("pool") == 1
    world.audit()


# -- the ordinary way ----------------------------------------------------------------------------------------------------


def events(world: World, run: int) -> list[str]:
    rows = world.conn.execute("select event from task_event where run_key = %s and task_index = 0 order by at", [run])
    return [event for (event,) in rows]


def test_direct_resume_off(world: World) -> None:
    """R-DQ5: it gives back what it kept and waits, but before the first starts of its DAG."""
    set_setting(world, "direct_resume", False)
    world.pool("people", 1)
    low = task("t", pool="people", priority_weight=1)
    run = start(world, dag(low, *(task(f"x{i}", pool="people", priority_weight=9) for i in range(2))))
    (other,) = world.claim()
    assert other.task_id == "x0"
    world.report([other])
    world.advance()
    (other,) = world.claim()
    world.report([other])
    world.advance()
    (t,) = world.claim()
    assert t.task_id == "t"
    world.defer([t])
    world.advance()
    second = world.trigger("d")
    world.advance()
    world.pool("people", 0)
    world.fire(run)
    progress = world.advance()
    assert world.states(run)["t"] == "scheduled"
    assert world.used("pool", "people") == 0, "what it kept is given back"
    world.audit()
    world.pool("people", 1)
    world.advance()
    (again,) = world.claim()
    assert (again.run_key, again.task_id, again.try_number) == (run, "t", 1), "before all first starts of its DAG"
    assert world.conn.execute("select class from dispatch where epoch = %s", [again.epoch]).fetchone() == (DispatchClass.RESUME,)
    assert progress.ordinary_resumes == 1
    world.audit()
    world.report([again])
    world.advance()
    assert world.run_state(run) == "success"
    assert world.waiting(run) == {}
    assert events(world, run)[-4:] == ["defer", "ordinary_resume", "grant", "succeed"]
    world.drain()
    assert world.run_state(second) == "success"
    world.audit()


def queued_one_by_one(world: World, run: int, order: Sequence[int]) -> None:
    """As if the tasks had been queued in this order, a microsecond after each other."""
    for position, task_index in enumerate(order):
        world.conn.execute(
            "update deferral set ready_at = timestamptz '2026-01-01 00:00:00.123456 UTC' + %s * interval '1 us'"
            " where run_key = %s and task_index = %s",
            [position, run, task_index],
        )


def one_by_one(world: World) -> list[tuple[int, str, int]]:
    """Run, task and class of what starts, while one may run at a time."""
    order = []
    world.pool("people", 1)
    world.advance()
    while tries := world.claim():
        (t,) = tries
        (its_class,) = world.conn.execute("select class from dispatch where epoch = %s", [t.epoch]).fetchone()
        order.append((t.run_key, t.task_id, its_class))
        world.audit()
        world.report([t])
        world.advance()
    return order


@pytest.mark.parametrize("lock", [True, False])
@pytest.mark.parametrize("own_limit", [None, 2])
def test_those_that_were_ready_first_resume_first(world: World, database_url: str, lock: bool, own_limit: int | None) -> None:
    """R-DQ5: each keeps its place, whichever trigger fires first, in one lane or several, together or one by one."""
    set_setting(world, "direct_resume", False)
    world.pool("people", 5)
    tasks = [task(f"t{i}", pool="people", max_active_tis_per_dagrun=own_limit) for i in range(5)]
    run = start(world, dag(*tasks))
    world.defer(world.claim())
    world.advance()
    queued_one_by_one(world, run, (3, 1, 4, 2, 0))
    world.pool("people", 0)
    for fired in ((2,), (0, 4), (1, 3)):
        for i in fired:
            world.fire(run, i)
        turn(world, database_url, lock)
        world.advance()
    assert world.conn.execute("select count(*), sum(ready)::int from lane").fetchone() == (5, 5)
    world.audit()
    assert one_by_one(world) == [(run, f"t{i}", DispatchClass.RESUME) for i in (3, 1, 4, 2, 0)]
    assert world.run_state(run) == "success"
    world.audit()


def test_resumes_come_before_first_starts_of_older_runs(world: World) -> None:
    """R-DQ5: of all runs of the DAG, those for dates in the remote past included."""
    set_setting(world, "direct_resume", False)
    world.pool("people", 1)
    new = start(world, dag(*(task(f"t{i}", pool="people") for i in range(2)), max_active_runs=None), run_after="2026-01-02 UTC")
    (t,) = world.claim()
    world.defer([t])
    world.advance()
    world.pool("people", 0)
    old = [world.trigger("d", run_after=date) for date in ("2026-01-01 UTC", "0001-01-01 UTC")]
    world.advance()
    world.fire(new)
    world.advance()
    world.audit()
    assert one_by_one(world) == [
        (new, "t0", DispatchClass.RESUME),
        *((run, f"t{i}", DispatchClass.FIRST_START) for run in (old[1], old[0]) for i in range(2)),
        (new, "t1", DispatchClass.FIRST_START),
    ]
    world.audit()


@pytest.mark.parametrize("leads", [True, False])
def test_the_ordinary_way_without_the_lock(world: World, database_url: str, leads: bool) -> None:
    set_setting(world, "direct_resume", False)
    run = start(world, dag(task("t")))
    world.defer(world.claim())
    world.advance()
    world.conn.execute("update dag set is_paused = true")
    world.advance()
    world.fire(run)
    turn(world, database_url, leads)
    world.audit()
    world.advance()
    assert world.drain() == ["t"], "a paused DAG holds no resume back"
    assert world.run_state(run) == "success"
    world.audit()


def test_a_broken_direct_path_leads_to_the_ordinary_way(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-DQ5: on any error."""
    run = start(world, dag(task("t")))
    world.defer(world.claim())
    world.advance()
    world.fire(run, event="ZXZlbnQ=")
    turn_metrics = TurnMetrics()
    with monkeypatch.context() as broken:

        def fail(*_: Any) -> None:
            raise ZeroDivisionError

        broken.setattr(deferrals, "_resume_directly", fail)
        progress = advance(world.conn, world.catalog)
    turn_metrics.add(progress, 0.0)
    assert (progress.ordinary_resumes, list(progress.direct_resumes)) == (1, [])
    assert turn_metrics.meter.value(ORDINARY_RESUMES) == 1
    (found,) = world.conn.execute("select detail from task_event where event = 'ordinary_resume'").fetchone()
    assert found["not_direct"] == "the direct resume failed: ZeroDivisionError"
    world.advance()
    world.audit()
    (t,) = world.claim()
    assert (t.task_id, t.try_number) == ("t", 1)
    assert world.conn.execute("select event from deferral").fetchone() == (b"event",)
    world.report([t])
    world.advance()
    assert world.run_state(run) == "success"
    world.audit()


def test_what_resumes_directly_is_measured(world: World) -> None:
    run = start(world, dag(task("t")))
    world.defer(world.claim())
    world.advance()
    world.fire(run)
    progress = advance(world.conn, world.catalog)
    turn_metrics = TurnMetrics()
    turn_metrics.add(progress, 0.25)
    assert len(progress.direct_resumes) == 1
    assert turn_metrics.meter.value(ORDINARY_RESUMES) == 0
    assert RESUME_SECONDS.name == "evenflow_task_resume_seconds"


@pytest.mark.parametrize("cleans_up", [True, False])
@pytest.mark.parametrize("how", ["cancel", "mark", "clear"])
def test_ends_from_outside_while_it_waits_in_a_lane(world: World, how: str, cleans_up: bool) -> None:
    set_setting(world, "direct_resume", False)
    world.pool("people", 1)
    run = start(world, dag(task("t", pool="people", cleans_up=cleans_up)))
    world.defer(world.claim())
    world.advance()
    world.pool("people", 0)
    world.fire(run)
    world.advance()
    assert world.states(run) == {"t": "scheduled"}
    if how == "cancel":
        world.cancel(run)
    else:
        event = "mark_success" if how == "mark" else "clear"
        payload = json.dumps({"event": event, "actor": "ann", "tasks": ["t"]})
        world.conn.execute("insert into report (run_key, kind, epoch, payload) values (%s, 'operate', 0, %s)", [run, payload])
    world.advance()
    world.audit()
    if cleans_up:
        assert world.conn.execute("select purpose from deferral").fetchone() == ("clean_up",)
        (t,) = world.claim()
        assert world.used("pool", "people") == 1
        world.report([t], "failed")
        world.advance()
    assert world.waiting(run) == {}
    assert world.states(run) == {"t": {"cancel": "failed", "mark": "success", "clear": "scheduled"}[how]}
    world.audit()
