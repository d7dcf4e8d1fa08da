"""Backfills make their runs in order, as many as they may."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from evenflow.core.model import AssetSpec, DagSpec, TaskSpec
from evenflow.core.partitions import Partitions
from evenflow.scheduler.duties.schedules import make_backfill_runs
from evenflow.store.db import rows
from evenflow.store.db.sql import sql
from evenflow.store.serving.assets import register
from tests.scheduler.world import World
from tests.world import at_once

FIRST = datetime(2026, 3, 1, tzinfo=UTC)
TASK = TaskSpec(task_id="a", operator="python")
LARGE = """
with b as (
    insert into backfill (dag_id, from_date, to_date, is_reversed, reprocess, max_active_runs, params, priority, created_by)
    values (%(dag_id)s, %(first)s, %(first)s, false, 'none', 2, '{}', -1, 'ada')
    returning backfill_id
)
insert into backfill_run (backfill_id, position, logical_date, data_interval_start, data_interval_end, run_after)
select backfill_id, n, at, at, at, at
from b, generate_series(1, %(size)s) as n, lateral (select %(first)s + n * interval '1 minute' as at) as x
"""


def backfill(world: World, days: list[int], *, at_once: int = 2, reprocess: str = "none") -> int:
    (key,) = world.conn.execute(
        "insert into backfill (dag_id, from_date, to_date, is_reversed, reprocess, max_active_runs, params, priority, created_by)"
        " values ('d', %s, %s, false, %s, %s, '{\"n\": 1}', -1, 'ada') returning backfill_id",
        [FIRST, FIRST, reprocess, at_once],
    ).fetchone()
    for position, day in enumerate(days, 1):
        at = FIRST + timedelta(days=day)
        world.conn.execute("insert into backfill_run values (%s, %s, %s, %s, %s, %s)", [key, position, at, at, at, at])
    return key


def days_made(world: World) -> list[int]:
    rows = world.conn.execute("select logical_date from dag_run where run_type = 'backfill' order by run_key")
    return [(row[0] - FIRST).days for row in rows]


def ended(world: World) -> bool:
    return world.conn.execute("select ended_at is not null from backfill").fetchone()[0]


def test_runs_are_made_in_order_as_there_is_room(world: World) -> None:
    world.add_dag(DagSpec(dag_id="d", tasks=(TASK,)))
    key = backfill(world, [4, 3, 2, 1, 0])
    make_backfill_runs(world.conn)
    make_backfill_runs(world.conn)
    assert days_made(world) == [4, 3]
    row = world.conn.execute("select run_id, params, priority, backfill_id from dag_run order by run_key").fetchone()
    assert row == ("backfill__2026-03-05T00:00:00+00:00", {"n": 1}, -1, key)
    world.advance()
    first, second = world.claim()
    world.report([first])
    world.advance()
    make_backfill_runs(world.conn)
    assert days_made(world) == [4, 3, 2]
    world.report([second])
    for _ in range(4):
        world.drain()
        make_backfill_runs(world.conn)
    assert days_made(world) == [4, 3, 2, 1, 0]
    assert ended(world)
    world.audit()


def test_scheduled_runs_go_first(world: World) -> None:
    world.add_dag(DagSpec(dag_id="d", tasks=(TASK,), max_active_runs=1))
    backfill(world, [0, 1])
    make_backfill_runs(world.conn)
    scheduled = world.trigger("d")
    world.advance()
    assert world.run_state(scheduled) == "running"


def test_a_paused_backfill_makes_nothing_and_goes_on(world: World) -> None:
    world.add_dag(DagSpec(dag_id="d", tasks=(TASK,)))
    backfill(world, [0])
    world.conn.execute("update backfill set is_paused = true")
    make_backfill_runs(world.conn)
    assert days_made(world) == []
    world.conn.execute("update backfill set is_paused = false")
    make_backfill_runs(world.conn)
    assert days_made(world) == [0]


def test_a_date_that_got_a_run_meanwhile_is_passed_over(world: World) -> None:
    world.add_dag(DagSpec(dag_id="d", tasks=(TASK,)))
    backfill(world, [0, 1])
    world.trigger("d", logical_date=FIRST, state="running")
    make_backfill_runs(world.conn)
    assert days_made(world) == [1]
    (reason,) = world.conn.execute("select passed_over from backfill_run where position = 1").fetchone()
    assert reason.startswith("has the run ")
    assert reason.endswith("which is running")


def test_failed_runs_run_again_where_it_is_wanted(world: World) -> None:
    world.add_dag(DagSpec(dag_id="d", tasks=(TASK,)))
    failed, good = world.trigger("d", logical_date=FIRST), world.trigger("d", logical_date=FIRST + timedelta(days=1))
    world.advance()
    for t in world.claim():
        world.report([t], "failed" if t.run_key == failed else "success")
    world.advance()
    key = backfill(world, [0, 1, 2], at_once=1, reprocess="failed")
    make_backfill_runs(world.conn)
    make_backfill_runs(world.conn)  # it counts although it has not begun yet
    assert days_made(world) == []
    world.drain()
    assert world.run_state(failed) == "success"
    assert world.conn.execute("select backfill_id from dag_run where run_key = %s", [failed]).fetchone() == (key,)
    for _ in range(4):
        make_backfill_runs(world.conn)
        world.drain()
    assert days_made(world) == [2]
    assert world.conn.execute("select backfill_id from dag_run where run_key = %s", [good]).fetchone() == (None,)
    make_backfill_runs(world.conn)
    assert ended(world)
    world.audit()


def test_one_that_waits_for_its_last_run_holds_up_no_other(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evenflow.scheduler.duties.schedules.BACKFILLS_PER_TURN", 1)
    world.add_dag(DagSpec(dag_id="d", tasks=(TASK,)))
    backfill(world, [0])
    make_backfill_runs(world.conn)
    backfill(world, [1])
    make_backfill_runs(world.conn)
    assert days_made(world) == [0, 1]


@pytest.mark.system
def test_one_of_a_hundred_thousand_runs_takes_nothing_but_its_slots(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-ST11, R-ST5: a scheduled run starts in its first turn, in the slot that the backfill leaves. What makes runs, and all turns
    meanwhile, send the same statements as beside a backfill of ten, and rounds read as much.
    """
    world.pool("p", 3)
    costs = []
    for number, size in enumerate((10, 10, 100_000)):  # the first meets what is new to the scheduler
        dag_id = f"d{number}"
        world.add_dag(DagSpec(dag_id=dag_id, tasks=(TaskSpec(task_id="a", operator="python", pool="p"),)))
        world.conn.execute(LARGE, {"dag_id": dag_id, "first": FIRST, "size": size})
        world.conn.execute("analyze backfill_run")
        sent: list[str] = []
        with monkeypatch.context() as patch:
            patch.setattr(rows, "sql", lambda name, sent=sent: sent.append(name) or sql(name))  # type: ignore[misc]
            make_backfill_runs(world.conn)
            while world.advance().again:
                pass
            scheduled = world.trigger(dag_id)
            outcome = world.advance()
        assert world.one("select count(*) from dag_run where dag_id = %s", dag_id) == 3, "two at a time, and the scheduled one"
        assert world.states(scheduled) == {"a": "queued"}
        costs.append((Counter(sent), outcome.started.rows_read, outcome.started.lanes_touched))
        world.drain()
        world.conn.execute("update backfill set ended_at = now()")
    assert costs[1] == costs[2]


@pytest.mark.parametrize("now", [None, Partitions(every="day")])
def test_one_over_keys_that_its_asset_has_no_more_is_set_aside_and_goes_on_when_they_are_there_again(
    world: World, now: Partitions | None
) -> None:
    """R-SP1: no run is made without the parameter that says what it is to make, and no other backfill suffers."""
    keys = Partitions(param="country", keys=("de", "fr"))

    def declare(partitions: Partitions | None) -> None:
        at_once(register(world.awaited, [AssetSpec(name="lands", uri="lands", partitions=partitions)], made=["lands"]))

    world.add_dag(DagSpec(dag_id="d", tasks=(TASK,)))
    declare(keys)
    world.add_dag(DagSpec(dag_id="d2", tasks=(TASK,)))
    over_keys = backfill(world, [])
    world.conn.execute("update backfill set dag_id = 'd2', partitions_of = 'lands' where backfill_id = %s", [over_keys])
    world.conn.execute("insert into backfill_run (backfill_id, position, partition) values (%s, 1, 'de')", [over_keys])
    backfill(world, [0])
    declare(now)
    for _ in range(2):
        make_backfill_runs(world.conn)
    assert days_made(world) == [0]
    assert world.conn.execute("select kind, object from quarantine").fetchall() == [("backfill", str(over_keys))]
    declare(keys)
    world.conn.execute(sql("quarantine/delete_one"), {"kind": "backfill", "object": str(over_keys)})
    make_backfill_runs(world.conn)
    assert world.conn.execute("select params from dag_run where dag_id = 'd2'").fetchall() == [({"n": 1, "country": "de"},)]
