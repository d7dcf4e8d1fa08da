"""History goes when it is old, if it is to: runs that have ended, with all that there is of them, and never a live one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from evenflow.core.model import DagSpec, MapInput, Mapping, TaskSpec
from evenflow.scheduler.retention import RUNS_AT_ONCE, delete_before, delete_old
from evenflow.store.partitions import first_run_key
from evenflow.store.retention import delete_garbage
from tests.scheduler.conftest import World

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
    assert delete_before(world.conn, NOW - 5 * DAY) == 1
    assert left_of(world, old) == []
    assert counts(world) == [young]
    assert world.conn.execute("select dag_id from log_garbage").fetchall() == [("d",)]
    world.audit()


def test_a_live_run_stays_however_old_it_is(world: World) -> None:
    world.add_dag(dag())
    live = world.trigger("d", run_key=first_run_key(NOW - 100 * DAY))
    world.advance()
    world.claim()
    assert delete_before(world.conn, NOW - DAY) == 0
    assert world.run_state(live) == "running"


def test_a_transaction_deletes_a_bounded_number(world: World) -> None:
    world.add_dag(dag())
    world.conn.execute(
        "insert into dag_run (run_key, dag_id, run_id, version_key, run_type, state, ended_at)"
        " select n, 'd', n::text, version_key, 'manual', 'success', %s from generate_series(1, %s) n, dag where dag_id = 'd'",
        [NOW - 9 * DAY, RUNS_AT_ONCE + 3],
    )
    assert [delete_before(world.conn, NOW - DAY) for _ in range(3)] == [RUNS_AT_ONCE, 3, 0]


def test_nothing_goes_unless_the_setting_says_so(world: World) -> None:
    world.add_dag(dag())
    run = ended(world, 10 * DAY)
    delete_old(world.conn)
    assert counts(world) == [run]
    world.conn.execute("insert into setting (name, value, changed_by) values ('retention_days', '20', 'ann')")
    delete_old(world.conn)
    assert counts(world) == [run]
    world.conn.execute("update setting set value = '9'")
    delete_old(world.conn)
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
    assert delete_before(world.conn, NOW - DAY) == 1
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
    delete_before(world.conn, NOW - DAY)
    left = [n for (n,) in world.conn.execute("select event_id from asset_event order by event_id")]
    assert left == [first, second, young]


def test_a_large_run_goes_in_parts(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-HA11: no transaction grows with a run."""
    monkeypatch.setattr("evenflow.store.retention.DELETED_AT_ONCE", 4)
    world.add_dag(DagSpec(dag_id="d", tasks=tuple(TaskSpec(task_id=f"t{i}", operator="python") for i in range(10))))
    large, kept = ended(world, 10 * DAY), ended(world, 2 * DAY)
    events = world.conn.execute("select count(*) from task_event").fetchone()
    assert delete_before(world.conn, NOW - 5 * DAY) == 1
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
    delete_old(world.conn)
    assert world.conn.execute("select count(*) from audit_event").fetchone() == (2,)
    world.conn.execute("insert into setting (name, value, changed_by) values ('audit_retention_days', '5', 'ann')")
    delete_old(world.conn)
    assert world.conn.execute("select object from audit_event").fetchall() == [("new",)]
