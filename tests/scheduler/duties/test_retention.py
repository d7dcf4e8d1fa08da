"""History goes when it is old, if it is to: runs that have ended, with all that there is of them, and never a live one."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from evenflow.core.limits import VERSIONS_KEPT
from evenflow.core.model import DagSpec, MapInput, Mapping, TaskSpec
from evenflow.scheduler.duties.retention import (
    LOOK_ANEW_S,
    RUNS_AT_ONCE,
    OldRuns,
    UnusedLimits,
    delete_old,
    delete_superseded,
    delete_unneeded,
)
from evenflow.store.db.connect import connect
from evenflow.store.db.sql import sql
from evenflow.store.scheduling import retention
from evenflow.store.scheduling.leases import report_lost_tries
from evenflow.store.scheduling.partitions import first_run_key
from evenflow.store.scheduling.retention import delete_garbage
from tests.scheduler.world import World
from tests.waiting import BLOCKED, wait_until
from tests.world import CODE_HASH

NOW = datetime.now(UTC)
DAY = timedelta(days=1)


def dag(dag_id: str = "d") -> DagSpec:
    first = TaskSpec(task_id="a", operator="python")
    mapped = TaskSpec(task_id="b", operator="python", upstream=(0,), mapping=Mapping(inputs=(MapInput(name="x", length=2),)))
    return DagSpec(dag_id=dag_id, tasks=(first, mapped))


def ended(world: World, age: timedelta) -> int:
    """A run that ended so long ago, shortly after it was made."""
    run = world.trigger("d", run_key=first_run_key(NOW - age - DAY / 24) + len(counts(world)))
    world.drain()
    world.conn.execute("update dag_run set ended_at = %s where run_key = %s", [NOW - age, run])
    return run


def counts(world: World) -> list[int]:
    return [run for (run,) in world.conn.execute("select run_key from dag_run order by run_key")]


def left_of(world: World, run: int) -> list[str]:
    """The tables that still know the run."""
    tables = world.conn.execute(
        "select table_name from information_schema.columns where column_name = 'run_key' and table_schema = current_schema()"
    ).fetchall()
    return [name for (name,) in tables if world.conn.execute(f"select 1 from {name} where run_key = %s", [run]).fetchone()]


def test_runs_that_ended_before_go_with_everything_of_theirs(world: World) -> None:
    world.add_dag(dag())
    old, young = ended(world, 10 * DAY), ended(world, 2 * DAY)
    world.conn.execute("insert into run_asset_event values (%s, 7)", [old])
    assert "task_event" in left_of(world, old)
    assert OldRuns().delete(world.conn, NOW - 5 * DAY) == 1
    assert left_of(world, old) == []
    assert counts(world) == [young]
    assert world.conn.execute("select dag_id from log_garbage").fetchall() == [("d",)]
    world.audit()


def test_a_live_run_stays_however_old_it_is(world: World) -> None:
    world.add_dag(dag())
    live = world.trigger("d", run_key=first_run_key(NOW - 100 * DAY))
    world.advance()
    world.claim()
    assert OldRuns().delete(world.conn, NOW - DAY) == 0
    assert world.run_state(live) == "running"


def test_a_transaction_deletes_a_bounded_number(world: World) -> None:
    world.add_dag(dag())
    world.conn.execute(
        "insert into dag_run (run_key, dag_id, run_id, version_key, run_type, state, ended_at)"
        " select n, 'd', n::text, version_key, 'manual', 'success', %s from generate_series(1, %s) n, dag where dag_id = 'd'",
        [NOW - 9 * DAY, RUNS_AT_ONCE + 3],
    )
    assert [OldRuns().delete(world.conn, NOW - DAY) for _ in range(3)] == [RUNS_AT_ONCE, 3, 0]


def test_nothing_goes_unless_the_setting_says_so(world: World) -> None:
    world.add_dag(dag())
    run = ended(world, 10 * DAY)
    delete_old(world.conn, OldRuns())
    assert counts(world) == [run]
    world.conn.execute("insert into setting (name, value, changed_by) values ('retention_days', '20', 'ann')")
    delete_old(world.conn, OldRuns())
    assert counts(world) == [run]
    world.conn.execute("update setting set value = '9'")
    delete_old(world.conn, OldRuns())
    assert counts(world) == []


def test_a_run_that_waits_for_one_that_goes_goes_on(world: World) -> None:
    world.add_dag(DagSpec(dag_id="d", tasks=(TaskSpec(task_id="a", operator="python", depends_on_past=True),)))
    columns: dict[str, Any] = {"logical_date": NOW - 10 * DAY}
    old = world.trigger("d", run_key=first_run_key(NOW - 10 * DAY), **columns)
    world.conn.execute("update dag_run set run_type = 'scheduled'")
    world.advance()
    world.report(world.claim(), "failed_for_good")
    world.advance()
    world.conn.execute("update dag_run set ended_at = %s where run_key = %s", [NOW - 9 * DAY, old])
    waiting = world.trigger("d", logical_date=NOW)
    world.conn.execute("update dag_run set run_type = 'scheduled'")
    world.advance()
    assert world.claim() == []
    assert OldRuns().delete(world.conn, NOW - DAY) == 1
    world.advance()
    assert [t.run_key for t in world.claim()] == [waiting]
    world.audit()


def test_old_events_of_assets_go_unless_somebody_waits_for_them(world: World) -> None:
    world.conn.execute(
        "insert into asset_event (asset, at, actor) select 'x', %s, 'ann' from generate_series(1, 3)", [NOW - 9 * DAY]
    )
    world.conn.execute("insert into asset_event (asset, actor) values ('x', 'ann')")
    first, second, _, young = [n for (n,) in world.conn.execute("select event_id from asset_event order by event_id")]
    world.conn.execute("insert into asset_queue values ('d', 'x', false, %s)", [first])
    world.conn.execute("insert into run_asset_event values (1, %s)", [second])
    retention.delete_asset_events(world.conn, before=NOW - DAY, limit=5)
    left = [n for (n,) in world.conn.execute("select event_id from asset_event order by event_id")]
    assert left == [first, second, young]


def past_runs(world: World, count: int, *, instances: int = 0) -> None:
    """Runs that ended long ago, each with so many task instances."""
    first = first_run_key(NOW - 10 * DAY)
    world.conn.execute(
        "insert into dag_run (run_key, dag_id, run_id, version_key, run_type, state, ended_at)"
        " select %s + n, 'd', n::text, version_key, 'manual', 'success', %s from generate_series(1, %s) n, dag where dag_id = 'd'",
        [first, NOW - 9 * DAY, count],
    )
    world.conn.execute(
        "insert into task_instance (run_key, task_index, state) select %s + n, t, 'success'"
        " from generate_series(1, %s) n, generate_series(1, %s) t",
        [first, count, instances],
    )


def test_a_transaction_is_bounded_by_what_its_runs_have(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-HA20: and always deletes one run."""
    monkeypatch.setattr("evenflow.scheduler.duties.retention.INSTANCES_AT_ONCE", 10)
    world.add_dag(dag())
    past_runs(world, 6, instances=4)
    assert [OldRuns().delete(world.conn, NOW - DAY) for _ in range(4)] == [2, 2, 2, 0]
    past_runs(world, 2, instances=30)
    assert [OldRuns().delete(world.conn, NOW - DAY) for _ in range(3)] == [1, 1, 0]


def test_schedulers_delete_side_by_side(world: World, database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-HA20: none waits for another."""
    monkeypatch.setattr("evenflow.scheduler.duties.retention.RUNS_AT_ONCE", 3)
    world.add_dag(dag())
    past_runs(world, 5)
    with connect(database_url, name="other") as other, other.transaction():
        assert OldRuns().delete(other, NOW - DAY) == 3
        world.conn.execute("set lock_timeout = '1ms'")
        assert OldRuns().delete(world.conn, NOW - DAY) == 2
    assert counts(world) == []


def test_live_runs_that_are_old_are_passed_over_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-HA20: a paused DAG with very many queued runs costs a part of a look, and no other look until all is looked at anew."""
    monkeypatch.setattr("evenflow.scheduler.duties.retention.LOOKED_AT_ONCE", 10)
    now = 0.0
    world.add_dag(dag())
    past_runs(world, 40)
    world.conn.execute("update dag_run set state = 'queued', ended_at = null where run_id::int <= 30")
    old_runs = OldRuns(clock=lambda: now)
    before = NOW - DAY
    assert [old_runs.delete(world.conn, before) for _ in range(6)] == [1, 1, 1, 10, 0, 0], "three looks at live ones"
    read = "select coalesce(sum(seq_tup_read + idx_tup_fetch), 0) from pg_stat_xact_user_tables where relname = 'dag_run'"
    with world.conn.transaction():
        earlier = world.conn.execute(read).fetchone()
        assert old_runs.delete(world.conn, before) == 0
        assert world.conn.execute(read).fetchone() == earlier, "not one of them is read again"
    world.conn.execute("update dag_run set state = 'success', ended_at = %s where run_id = '7'", [NOW - 2 * DAY])
    assert old_runs.delete(world.conn, before) == 0
    now = LOOK_ANEW_S
    assert [old_runs.delete(world.conn, before) for _ in range(5)] == [1, 1, 1, 0, 0], (
        "it ended meanwhile, and goes in the first of these looks"
    )
    assert len(counts(world)) == 29


def test_retention_goes_on_until_its_time_is_over(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-HA20: it keeps up with what is created."""
    monkeypatch.setattr("evenflow.scheduler.duties.retention.RUNS_AT_ONCE", 10)
    world.add_dag(dag())
    world.conn.execute("insert into setting (name, value, changed_by) values ('retention_days', '5', 'ann')")
    past_runs(world, 35)
    monkeypatch.setattr("evenflow.scheduler.duties.retention.RETENTION_SLICE_S", 0.0)
    assert delete_old(world.conn, OldRuns()) is not None, "there is more"
    assert len(counts(world)) == 25
    monkeypatch.setattr("evenflow.scheduler.duties.retention.RETENTION_SLICE_S", 60.0)
    assert delete_old(world.conn, OldRuns()) is None
    assert counts(world) == []


def test_many_values_of_one_task_go_in_parts(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-HA20: a run's deletion is bounded, whatever it has much of."""
    monkeypatch.setattr("evenflow.store.scheduling.retention.DELETED_AT_ONCE", 4)
    world.add_dag(dag())
    past_runs(world, 1, instances=1)
    (run,) = counts(world)
    world.conn.execute(
        "insert into xcom (run_key, task_index, key, value, epoch) select %s, 1, n::text, '1', 1 from generate_series(1, 10) n",
        [run],
    )
    assert OldRuns().delete(world.conn, NOW - DAY) == 1
    assert [delete_garbage(world.conn, limit=4) for _ in range(4)] == [4, 4, 2, 0]
    assert left_of(world, run) == []


def test_timers_of_what_has_ended_go(world: World) -> None:
    """R-HA20: a default timeout of days leaves nothing."""
    spec = TaskSpec(task_id="a", operator="python", execution_timeout=86_400.0)
    world.add_dag(DagSpec(dag_id="d", tasks=(spec, TaskSpec(task_id="b", operator="python")), dagrun_timeout=86_400.0))
    run = world.trigger("d")
    world.advance()
    a, b = sorted(world.claim(), key=lambda t: t.task_id)
    world.defer([a], timeout_s=3600.0)
    world.advance()
    kinds = "select kind from timer order by kind"
    assert [k for (k,) in world.conn.execute(kinds)] == ["execution_timeout", "run_timeout", "trigger_timeout"]
    world.fire(run)
    world.advance()
    world.report(world.claim())
    world.advance()
    assert [k for (k,) in world.conn.execute(kinds)] == ["run_timeout"]
    world.report([b])
    world.advance()
    assert world.run_state(run) == "success"
    assert world.conn.execute(kinds).fetchall() == []


def test_superseded_versions_go_with_their_code(world: World) -> None:
    """R-HA20: what no run names, but for the newest; and code of which a DAG was refused, unless it came a moment ago."""
    version = world.add_dag(dag())
    world.conn.execute(
        "insert into code select 'c' || n, 'x' from generate_series(2, 30) n; insert into code values ('refused', 'x');"
        "insert into dag_version (dag_id, version_number, spec, spec_hash, code_hash, file)"
        " select 'd', n, '{}', n::text, 'c' || n, 'x.py' from generate_series(2, 30) n;"
        "insert into task select version_key, 0, 'a', 'python' from dag_version where version_number > 1 and dag_id = 'd'"
    )
    (named,) = world.conn.execute("select version_key from dag_version where version_number = 5").fetchone()  # type: ignore[misc]
    run = world.trigger("d")
    world.conn.execute("update dag_run set version_key = %s where run_key = %s", [named, run])
    world.conn.execute("update code set created_at = now() - interval '2 hours' where code_hash <> 'c7'")
    assert delete_superseded(world.conn, UnusedLimits()) is None
    left = [n for (n,) in world.conn.execute("select version_number from dag_version where dag_id = 'd' order by 1")]
    assert left == [1, 5, *range(31 - VERSIONS_KEPT, 31)], "the one that it has now, the one of a run, and the newest"
    assert world.conn.execute("select version_key from dag where dag_id = 'd'").fetchone() == (version,)
    codes = {code for (code,) in world.conn.execute("select code_hash from code")}
    assert codes == {"", CODE_HASH, "c5", "c7", *(f"c{n}" for n in range(31 - VERSIONS_KEPT, 31))}
    orphans = "select count(*) from task where not exists (select from dag_version v where v.version_key = task.version_key)"
    assert world.conn.execute(orphans).fetchone() == (0,)


def test_code_that_comes_again_while_it_is_to_be_deleted_stays(world: World, database_url: str) -> None:
    """R-HA20: a file that is as it was long ago has no version yet, and its code is not sent again."""
    world.conn.execute("insert into code values ('old', 'x', now() - interval '1 day')")
    with connect(database_url, name="other") as other, connect(database_url, name="eye") as eye, ThreadPoolExecutor(1) as pool:
        with world.conn.transaction():
            world.conn.execute(sql("dags/has_code"), {"code_hash": "old"})
            deleting = pool.submit(retention.delete_code, other, limit=10)
            wait_until(lambda: deleting.done() or eye.execute(BLOCKED).fetchone() != (0,))
        assert deleting.result() == 0
    assert retention.delete_code(world.conn, limit=10) == 0


def test_events_behind_many_that_are_waited_for_go_too(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-HA20: and a DAG waits with so many of one asset."""
    monkeypatch.setattr("evenflow.scheduler.duties.retention.ROWS_AT_ONCE", 5)
    monkeypatch.setattr("evenflow.scheduler.duties.retention.ASSET_EVENTS_WAITING", 3)
    world.add_dag(dag())
    world.conn.execute(
        "insert into asset_event (asset, at, actor) select 'x', %s, 'ann' from generate_series(1, 12) n;", [NOW - 9 * DAY]
    )
    world.conn.execute(
        "insert into asset_event (asset, at, actor) select 'y', %s, 'ann' from generate_series(1, 2)", [NOW - 9 * DAY]
    )
    world.conn.execute("insert into asset_consumer values ('d', 'x', false)")
    world.conn.execute("insert into asset_queue select 'd', 'x', false, event_id from asset_event where asset = 'x'")
    retention.delete_asset_events(world.conn, before=NOW - DAY, limit=5)
    assert world.conn.execute("select count(*) from asset_event where asset = 'y'").fetchone() == (0,)
    assert delete_unneeded(world.conn) is None
    waiting = [n for (n,) in world.conn.execute("select event_id from asset_queue order by 1")]
    newest = [n for (n,) in world.conn.execute("select event_id from asset_event where asset = 'x' order by 1")][-3:]
    assert waiting == newest
    while retention.delete_asset_events(world.conn, before=NOW - DAY, limit=5):
        pass
    assert [n for (n,) in world.conn.execute("select event_id from asset_event order by 1")] == newest


def test_old_backfills_go(world: World) -> None:
    """R-HA20."""
    world.add_dag(dag())
    backfill = (
        "insert into backfill (dag_id, from_date, to_date, is_reversed, reprocess, max_active_runs, params, priority, created_by,"
        " ended_at) values ('d', now(), now(), false, 'none', 1, '{}', 0, 'ann', %s) returning backfill_id"
    )
    ids = [world.conn.execute(backfill, [at]).fetchone()[0] for at in (NOW - 9 * DAY, NOW, None)]  # type: ignore[index]
    world.conn.execute(
        "insert into backfill_run (backfill_id, position, logical_date, data_interval_start, data_interval_end, run_after)"
        " select b, n, now(), now(), now(), now() from unnest(%s::bigint[]) b, generate_series(1, 5) n",
        [ids],
    )
    steps = [retention.delete_backfills(world.conn, before=NOW - DAY, limit=2) for _ in range(5)]
    assert steps == [2, 2, 1, 1, 0]
    assert [i for (i,) in world.conn.execute("select backfill_id from backfill order by 1")] == ids[1:]
    assert world.conn.execute("select count(*) from backfill_run").fetchone() == (10,)


def test_services_that_have_gone_are_looked_at_until_nothing_is_left_of_them(world: World) -> None:
    """R-HA20: a fleet that is renewed every minute makes no look slower."""
    world.add_dag(dag())
    run = world.trigger("d")
    world.advance()
    world.claim()
    world.conn.execute(
        "insert into service (kind, name, host, pid, version, state, beat_at)"
        " select 'worker', n::text, 'h', 1, '0', 'lost', now() - interval '5 minutes' from generate_series(1, 50) n"
    )
    world.conn.execute(
        "update service set state = 'lost', beat_at = now() - interval '5 minutes' where service_id = %s", [world.worker]
    )
    unsettled = "select count(*) from service where not settled"
    world.conn.execute("update lease_clock set ticked_at = now(), counted_from = now() - interval '1 hour'")
    delete_unneeded(world.conn)
    assert world.conn.execute(unsettled).fetchone() == (1,), "the one that has a try"
    assert [report_lost_tries(world.conn), report_lost_tries(world.conn)] == [1, 0]
    world.advance()
    delete_unneeded(world.conn)
    assert world.conn.execute(unsettled).fetchone() == (0,)
    assert world.states(run)["a"] == "queued"
    (plan,) = world.conn.execute("explain (format json) " + SETTLED).fetchone()  # type: ignore[misc]
    assert "service_unsettled" in str(plan)


def test_a_loss_is_reported_by_one_scheduler(world: World, database_url: str) -> None:
    """R-HA20: while it is at it, the others do not do the same."""
    world.add_dag(dag())
    world.trigger("d")
    world.advance()
    world.claim()
    world.lose_worker()
    with connect(database_url, name="other") as other:
        with other.transaction():
            assert report_lost_tries(other) == 1
            assert report_lost_tries(world.conn) == 0
        assert report_lost_tries(world.conn) == 0


def test_a_success_whose_result_was_dropped_is_none(world: World, database_url: str) -> None:
    """R-CS3: its dispatch was being deleted, by who rolled back afterwards."""
    world.add_dag(DagSpec(dag_id="d", tasks=(TaskSpec(task_id="a", operator="python"),)))
    run = world.trigger("d")
    world.advance()
    (first,) = world.claim()
    with connect(database_url, name="turn") as turn, turn.transaction(force_rollback=True):
        turn.execute("delete from dispatch where epoch = %s", [first.epoch])
        world.report([first], result=[1, 2])
    world.advance()
    assert world.states(run) == {"a": "queued"}, "sent again"
    (second,) = world.claim()
    assert second.epoch > first.epoch
    world.report([second], result=[1, 2])
    world.advance()
    assert world.run_state(run) == "success"
    assert world.conn.execute("select value, epoch from xcom").fetchall() == [([1, 2], second.epoch)]
    world.audit()


def test_a_copy_of_a_success_whose_result_is_stored_is_one(world: World, database_url: str) -> None:
    """R-CS3: the answer to the first was lost, and it came again while a turn was at it."""
    world.add_dag(DagSpec(dag_id="d", tasks=(TaskSpec(task_id="a", operator="python"),)))
    run = world.trigger("d")
    world.advance()
    tries = world.claim()
    world.report(tries, result=5)
    with connect(database_url, name="turn") as turn, turn.transaction(force_rollback=True):
        turn.execute("delete from dispatch")
        world.report(tries, result=5)
    world.advance()
    assert world.run_state(run) == "success"
    assert world.conn.execute("select value, epoch from xcom").fetchall() == [(5, tries[0].epoch)]


def test_what_a_lost_try_may_have_stored_is_looked_for(world: World) -> None:
    world.add_dag(dag())
    world.trigger("d")
    world.advance()
    (lost,) = world.claim()
    world.lose_worker()
    assert report_lost_tries(world.conn) == 1
    (row,) = world.conn.execute("select object, at > now() + interval '59 minutes' from xcom_garbage").fetchall()
    assert row == (f"{lost.epoch}-*", True), "when its process has surely ended"


SETTLED = "select service_id from service where kind = 'worker' and state in ('lost', 'stopped') and not settled"


def test_a_large_run_goes_in_parts(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-HA11: no transaction grows with a run."""
    monkeypatch.setattr("evenflow.store.scheduling.retention.DELETED_AT_ONCE", 4)
    world.add_dag(DagSpec(dag_id="d", tasks=tuple(TaskSpec(task_id=f"t{i}", operator="python") for i in range(10))))
    large, kept = ended(world, 10 * DAY), ended(world, 2 * DAY)
    events = world.conn.execute("select count(*) from task_event").fetchone()
    assert OldRuns().delete(world.conn, NOW - 5 * DAY) == 1
    assert counts(world) == [kept]
    assert sorted(left_of(world, large)) == ["run_garbage", "task_event", "task_event_default", "task_instance"]
    parts = [delete_garbage(world.conn, limit=4) for _ in range(5)]
    assert parts == [4, 4, 2, 0, 0]
    assert left_of(world, large) == []
    assert world.conn.execute("select 2 * count(*) from task_event").fetchone() == events
    world.audit()


def test_the_record_of_who_changed_what_has_an_age_of_its_own(world: World) -> None:
    world.conn.execute(
        "insert into audit_event (at, actor, action, object) values (%s, 'ada', 'pool.set', 'old')", [NOW - 10 * DAY]
    )
    world.conn.execute("insert into audit_event (at, actor, action, object) values (%s, 'ada', 'pool.set', 'new')", [NOW - 2 * DAY])
    world.conn.execute("insert into setting (name, value, changed_by) values ('retention_days', '1', 'ann')")
    delete_old(world.conn, OldRuns())
    assert world.conn.execute("select count(*) from audit_event").fetchone() == (2,)
    world.conn.execute("insert into setting (name, value, changed_by) values ('audit_retention_days', '5', 'ann')")
    delete_old(world.conn, OldRuns())
    assert world.conn.execute("select object from audit_event").fetchall() == [("new",)]


def test_only_what_is_exported_goes_where_retention_awaits_exports(world: World) -> None:
    """R-SP4: nothing before the first export; then what was written before it, whatever its age; a late event keeps its run."""
    world.add_dag(dag())
    world.conn.execute("insert into setting (name, value, changed_by) values ('retention_days', '5', 'test')")
    world.conn.execute("insert into setting (name, value, changed_by) values ('retention_awaits_export', 'true', 'test')")
    first, late = ended(world, 10 * DAY), ended(world, 9 * DAY)
    delete_old(world.conn, OldRuns())
    assert counts(world) == [first, late], "nothing is exported yet"
    past = world.one("select pg_current_xact_id()::text::bigint")
    world.conn.execute("insert into exported (past, at) values (%s, %s)", [past, NOW])
    world.conn.execute(
        "insert into task_event (run_key, task_index, map_index, epoch, try_number, event, state)"
        " values (%s, 0, -1, 1, 1, 'x', 'success')",
        [late],
    )
    newer = ended(world, 8 * DAY)
    delete_old(world.conn, OldRuns())
    assert counts(world) == [late, newer], "what was written after the export stays"
    world.conn.execute("update exported set past = pg_current_xact_id()::text::bigint, at = %s", [NOW - 8.5 * DAY])
    delete_old(world.conn, OldRuns())
    assert counts(world) == [newer], "what ended after the export stays"
    world.conn.execute("update setting set value = 'false' where name = 'retention_awaits_export'")
    delete_old(world.conn, OldRuns())
    assert counts(world) == []
