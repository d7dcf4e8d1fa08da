"""The auditor finds each kind of damage, and nothing else; the sweep repairs lost wake-ups, counts them, and finds none."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from evenflow.contracts.rest.audit import Finding
from evenflow.core.limits import FINDINGS
from evenflow.core.metrics import REPAIRS
from evenflow.core.model import DagSpec, MapInput, Mapping, TaskSpec
from evenflow.explaining.audit import audit, find_lost_wakeups
from evenflow.scheduler.advance import advance
from evenflow.scheduler.catalog import Catalog
from evenflow.scheduler.duties.audit import QUEUES_PER_SWEEP, START, Sweep
from evenflow.scheduler.starts import swap
from evenflow.scheduler.turn_metrics import TurnMetrics
from evenflow.store.db.connect import connect
from evenflow.store.scheduling import inbox
from tests.scheduler.world import World


def task(task_id: str, *upstream: int, **kw: Any) -> TaskSpec:
    return TaskSpec(task_id=task_id, operator="python", upstream=upstream, **kw)


SPEC = DagSpec(
    dag_id="d",
    tasks=(
        task("first", pool="p"),
        task("free", pool="p"),
        task("capped", pool="p", max_active_tis_per_dag=2, max_active_tis_per_dagrun=2),
        task("mapped", pool="p", mapping=Mapping(inputs=(MapInput(name="x", length=40),))),
        task("join", 0, 3, pool="p"),
    ),
    max_active_tasks=3,
)


@pytest.fixture
def busy(world: World) -> Any:
    """Three runs with tries that run, lanes that are open, parked and mapped, a task that has ended, and one that has failed."""
    world.pool("p", 7)
    world.add_dag(SPEC)
    for _ in range(3):
        world.trigger("d")
    world.advance()
    tries = world.claim()
    world.report([t for t in tries if t.task_id == "first"][:2])
    world.report(tries[-1:], "failed")
    world.advance()
    world.audit()
    return world


DAMAGE = {
    "used": ("limit", "update concurrency_limit set used = used + 1 where kind = 'run'"),
    "lost wake": ("limit", "insert into wake (limit_id, released) select limit_id, 1 from concurrency_limit where kind = 'pool'"),
    "run slot": ("limit", "update dag_run set slot_limit = null where run_key = (select min(run_key) from dag_run)"),
    "overdrawn": ("overdrawn", "update concurrency_limit set used = capacity + 1 where kind = 'pool' and name = 'p'"),
    "ready": ("lane", "update lane set ready = ready + 1"),
    "empty lane": ("lane", "update lane set ready = 0, next_map_index = end_map_index where task_index is not null"),
    "finished run": ("lane", "update dag_run set state = 'failed'"),
    "stranded": ("stranded", "update concurrency_limit set capacity = 100 where kind = 'run'"),
    "queue": ("stranded", "update lane set base_id = (select max(class_id) + 1 from limit_class)"),
    "no such limit": ("stranded", "update lane set parked_on = 999999"),
    "another's limit": (
        "stranded",
        "update lane l set parked_on = c.limit_id from concurrency_limit c where c.kind = 'run' and c.run_key <> l.run_key",
    ),
    "not paused": ("stranded", "update lane set parked_on = -1"),
    "still open": ("stranded", "update dag set is_paused = true, pause_applied = true"),
    "no lane": ("task", "delete from ready_task where ctid = (select min(ctid) from ready_task)"),
    "wrong range": ("task", "update lane set next_map_index = next_map_index + 1 where task_index is not null"),
    "not scheduled": ("task", "update task_instance set state = 'up_for_retry' where state = 'scheduled'"),
    "dispatch gone": ("dispatch", "delete from dispatch where epoch = (select min(epoch) from dispatch)"),
    "epoch": ("dispatch", "update task_instance set epoch = epoch + 1 where state = 'queued'"),
    "ended": ("dispatch", "update task_instance set state = 'success' where state = 'queued'"),
    "hold missing": ("holds", "update dispatch set holds = holds[1:2]"),
    "hold twice": ("holds", "update dispatch set holds = holds || holds[2:2]"),
    "weight": ("holds", "update dispatch set pool_slots = 2"),
    "unfinished": ("run", "update dag_run set unfinished = unfinished - 1"),
    "leaves": ("run", "update dag_run set failed_leaves = failed_leaves + 1"),
    "left over": ("run", "update dag_run set state = 'success'"),
    "counter": ("counter", "update upstream_counter set success = success + 1"),
    "total": ("counter", "update upstream_counter set total = total - 1"),
    "no counter": ("counter", "delete from upstream_counter"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_found(busy: Any, damage: str) -> None:
    kind, statement = DAMAGE[damage]
    assert busy.conn.execute(statement).rowcount > 0
    assert kind in {finding.kind for finding in audit(busy.conn)}


def test_a_finding_names_its_object_as_people_do(busy: Any) -> None:
    busy.conn.execute("update concurrency_limit set used = 5 where kind = 'pool' and name = 'p'")
    (finding,) = audit(busy.conn)
    assert finding == Finding(kind="limit", object="pool p", found="5 used", expected="7 used")
    assert len({f.object for f in audit(busy.conn)}) == 1


def test_a_teardown_waits_in_its_lane_while_its_run_is_cancelled_again(world: World) -> None:
    """The teardown has no room, and the second cancel is still in the inbox."""
    world.pool("p", 1)
    world.pool("shut", 0)
    setup = TaskSpec(task_id="a", operator="python", pool="p", setup=True)
    teardown = TaskSpec(task_id="b", operator="python", pool="shut", upstream=(0,), teardown=True)
    world.add_dag(DagSpec(dag_id="torn_down", tasks=(setup, teardown)))
    run = world.trigger("torn_down")
    world.advance()
    tries = world.claim()
    world.cancel(run)
    world.advance()
    world.report(tries)
    world.advance()
    assert world.states(run) == {"a": "success", "b": "scheduled"}
    world.cancel(run)
    world.audit()


def test_findings_are_bounded(busy: Any) -> None:
    busy.conn.execute(
        "insert into concurrency_limit (kind, name, capacity, used) select 'pool', 'x' || n, 9, 1 from generate_series(1, 300) n"
    )
    assert len(audit(busy.conn)) == FINDINGS


def test_a_limit_that_was_lowered_may_be_overdrawn_by_what_ran_before(busy: Any) -> None:
    """R-ST1: a lowered limit kills nothing; what starts above it is found."""
    busy.pool("p", 2)
    busy.audit()
    busy.conn.execute("update dispatch set created_at = now() + interval '1 minute'")
    assert {finding.kind for finding in audit(busy.conn)} == {"overdrawn"}


def test_a_limit_that_is_made_below_its_use_is_not_overdrawn_by_it(busy: Any) -> None:
    busy.conn.execute("delete from concurrency_limit where kind = 'dag_runs'")
    busy.conn.execute("insert into concurrency_limit (kind, name, capacity, used) values ('dag_runs', 'd', 1, 3)")
    assert "overdrawn" not in {finding.kind for finding in audit(busy.conn)}


def test_an_audit_sees_one_instant_and_leaves_the_connection_as_it_was(busy: Any) -> None:
    audit(busy.conn)
    assert busy.conn.execute("show transaction_isolation").fetchone() == ("read committed",)
    with busy.conn.transaction():
        assert busy.conn.execute("show transaction_read_only").fetchone() == ("off",)


def lose_a_wakeup(world: World) -> None:
    """A limit gets room, and nobody is told."""
    world.conn.execute("update concurrency_limit set capacity = 100 where kind in ('run', 'run_task')")


def test_the_sweep_repairs_a_lost_wakeup_and_counts_it(busy: Any) -> None:
    """R-ST2: no task waits for ever because of a lost wake-up."""
    busy.pool("p", 100)
    busy.advance()
    lose_a_wakeup(busy)
    turn_metrics = TurnMetrics()
    assert busy.advance().starts == 0
    Sweep(turn_metrics.meter).perform(busy.conn)
    repairs = turn_metrics.meter.value(REPAIRS)
    assert repairs > 0
    busy.audit()  # the wakes are there
    assert busy.advance().starts > 0 or busy.claim()
    Sweep(turn_metrics.meter).perform(busy.conn)
    assert turn_metrics.meter.value(REPAIRS) == repairs
    busy.audit()


def test_the_sweep_waits_for_a_round(busy: Any, database_url: str) -> None:
    """Under the executor's lock only: not got, it looks again at the same place a second later."""
    lose_a_wakeup(busy)
    turn_metrics = TurnMetrics()
    sweep = Sweep(turn_metrics.meter)
    with connect(database_url, name="round") as other:
        with other.transaction():
            assert inbox.try_executor(other).all()[0][0]
            sweep.perform(busy.conn)
            assert turn_metrics.meter.value(REPAIRS) == 0
        sweep.perform(busy.conn)
    assert turn_metrics.meter.value(REPAIRS) > 0


def test_the_sweep_finds_nothing_where_nothing_was_lost(busy: Any) -> None:
    """A pause, a release that waits to be folded and a raised limit are no lost wake-ups."""
    turn_metrics = TurnMetrics()
    busy.conn.execute("update dag set is_paused = true")
    Sweep(turn_metrics.meter).perform(busy.conn)
    busy.advance()
    Sweep(turn_metrics.meter).perform(busy.conn)
    lose_a_wakeup(busy)  # of lanes that are paused
    Sweep(turn_metrics.meter).perform(busy.conn)
    assert turn_metrics.meter.value(REPAIRS) == 0


def parked_lanes(conn: psycopg.Connection[Any], count: int) -> None:
    """Runs at their limits, each with a lane: their limits have no room."""
    conn.execute(
        "insert into concurrency_limit (kind, run_key, name, capacity, used)"
        " select 'run', n, '', 1, 1 from generate_series(1, %s) n",
        [count],
    )
    conn.execute("insert into limit_class (pool_limit, executor_limit, queue, weight, base_id) values (1, 2, 'default', 1, 1)")
    conn.execute(
        "insert into lane (lane_id, class_id, run_key, run_priority, priority, order_key, locals, parked_on, ready, base_id)"
        " select -limit_id, (select max(class_id) from limit_class), run_key, 0, 1, int8send(limit_id), array[limit_id],"
        "   limit_id, 1, (select max(class_id) from limit_class)"
        " from concurrency_limit where run_key > 0"
    )


def test_the_sweep_looks_at_so_many_queues_and_goes_on_where_it_stopped(db: psycopg.Connection[Any]) -> None:
    """R-ST5: its cost does not grow with the backlog."""
    parked_lanes(db, 2 * QUEUES_PER_SWEEP + 10)
    db.execute("update concurrency_limit set capacity = 2 where limit_id = (select max(limit_id) from concurrency_limit)")
    turn_metrics, found = TurnMetrics(), []
    sweep = Sweep(turn_metrics.meter)
    for _ in range(4):
        sweep.perform(db)
        found.append(turn_metrics.meter.value(REPAIRS))
    assert found == [0, 0, 1, 1]
    first = find_lost_wakeups(db, after=START, most=10).all()
    assert [(queue.lost, queue.last) for queue in first] == [(False, True)]


def test_a_pause_reaches_lanes_that_are_being_stored(world: World, database_url: str, monkeypatch: Any) -> None:
    """R-DQ7: a scheduler without the executor's lock stores a lane just while another one applies the pause of its DAG."""
    world.pool("p", 1)
    world.add_dag(DagSpec(dag_id="d", tasks=(task("a", pool="p"), task("b", 0, pool="p"), task("c", 0, pool="p"))))
    world.trigger("d")
    world.advance()
    world.report(world.claim())
    with connect(database_url, name="holder") as holder, connect(database_url, name="leader") as leader:

        def pause_first(*args: Any) -> None:
            holder.execute("rollback")
            leader.execute("update dag set is_paused = true")
            advance(leader, Catalog())
            swap(*args)

        monkeypatch.setattr("evenflow.scheduler.advance.swap", pause_first)
        holder.execute("begin")
        assert inbox.try_executor(holder).all()[0][0]
        assert not advance(world.conn, world.catalog).selected
        monkeypatch.undo()
    world.advance()
    world.audit()


def test_an_audit_whose_connection_is_ended_says_why(db: psycopg.Connection[Any], database_url: str) -> None:
    with connect(database_url, name="auditor") as conn:
        db.execute("select pg_terminate_backend(%s, 5000)", [conn.info.backend_pid])
        with pytest.raises(psycopg.OperationalError, match=r"terminating connection|closed the connection"):
            audit(conn)
