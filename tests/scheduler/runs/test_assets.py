"""Events of assets and the runs that they make: each event in exactly one run of each DAG that waits."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from evenflow.core.assets import leaves
from evenflow.core.model import AssetSpec, DagSpec, Schedule, TaskSpec
from evenflow.core.partitions import Partitions
from evenflow.scheduler.advance import advance
from evenflow.scheduler.assets import create_asset_runs
from evenflow.scheduler.catalog import Catalog
from evenflow.store.db.connect import connect
from evenflow.store.serving.assets import register
from tests.scheduler.world import World
from tests.waiting import wait_until
from tests.world import at_once

Task = dict[str, Any]


def add_producer(world: World, dag_id: str = "make", **task: Any) -> None:
    world.add_dag(DagSpec(dag_id=dag_id, tasks=(TaskSpec(task_id="t", operator="python", **task),), assets=ASSETS))
    for asset in ASSETS:
        world.conn.execute("insert into asset (name, uri) values (%s, %s) on conflict do nothing", [asset.name, asset.uri])


ASSETS = (AssetSpec(name="a", uri="s3://a"), AssetSpec(name="b", uri="b"))


def add_consumer(world: World, dag_id: str, condition: Any) -> None:
    spec = DagSpec(
        dag_id=dag_id,
        tasks=(TaskSpec(task_id="t", operator="python"),),
        schedule=Schedule(kind="assets", assets=condition),
        max_active_runs=None,
    )
    world.add_dag(spec)
    for leaf in leaves(condition):
        world.conn.execute("insert into asset_consumer (dag_id, name, is_alias) values (%s, %s, %s)", [dag_id, *leaf])


def succeed(world: World, dag_id: str = "make", **payload: Any) -> None:
    """A run of the DAG, to its end."""
    run = world.trigger(dag_id)
    world.advance()
    (t,) = (t for t in world.claim() if t.run_key == run)
    world.report([t], **payload)
    world.advance()
    assert world.run_state(run) == "success"


def events_of_runs(world: World, dag_id: str) -> list[list[int]]:
    rows = world.conn.execute(
        "select array_agg(event_id order by event_id) from run_asset_event join dag_run using (run_key)"
        " where dag_id = %s group by run_key order by run_key",
        [dag_id],
    )
    return [ids for (ids,) in rows.fetchall()]


def test_a_success_makes_a_run(world: World) -> None:
    add_producer(world, outlets=("a",))
    add_consumer(world, "use", "a")
    succeed(world, produced=[{"asset": "a", "uri": "s3://a", "extra": {"rows": 3}}])
    create_asset_runs(world.conn)
    create_asset_runs(world.conn)
    (run,) = world.conn.execute("select run_key, run_type, state::text, logical_date from dag_run where dag_id = 'use'").fetchall()
    assert run[1:] == ("asset_triggered", "queued", None)
    event = world.conn.execute("select asset, extra, dag_id, task_id, map_index from asset_event").fetchall()
    assert event == [("a", {"rows": 3}, "make", "t", -1)]
    assert len(events_of_runs(world, "use")) == 1
    assert world.drain() == ["t"]
    world.audit()


def test_without_a_word_about_it(world: World) -> None:
    """An outlet is an event also when the report says nothing of it; no other outcome is one."""
    add_producer(world, outlets=("a", "b"), retries=1)
    run = world.trigger("make")
    world.advance()
    (t,) = world.claim()
    world.report([t], "failed")
    world.advance()
    assert world.conn.execute("select count(*) from asset_event").fetchone() == (0,)
    world.conn.execute("update timer set due_at = now()")
    world.advance()
    world.report(world.claim())
    world.advance()
    assert world.run_state(run) == "success"
    assert world.conn.execute("select asset, extra from asset_event order by 1").fetchall() == [("a", {}), ("b", {})]


def test_all_any_and_combinations(world: World) -> None:
    add_producer(world, "make_a", outlets=("a",))
    add_producer(world, "make_b", outlets=("b",))
    add_consumer(world, "all", {"all": ["a", "b"]})
    add_consumer(world, "any", {"any": ["a", "b"]})
    add_consumer(world, "both", {"all": ["b", {"any": ["a", "c"]}]})
    counts = {}
    for dag_id in ("make_a", "make_a", "make_b"):
        succeed(world, dag_id)
        create_asset_runs(world.conn)
        counts = {name: len(events_of_runs(world, name)) for name in ("all", "any", "both")}
        world.drain()
        if dag_id == "make_a":
            assert (counts["all"], counts["both"]) == (0, 0)
    assert counts == {"all": 1, "any": 3, "both": 1}
    assert len(events_of_runs(world, "all")[0]) == 3, "all events that came together are passed on"
    assert world.conn.execute("select count(*) from asset_queue").fetchone() == (0,)


def test_alias(world: World) -> None:
    add_producer(world, outlet_aliases=("daily",))
    add_consumer(world, "use", {"alias": "daily"})
    add_consumer(world, "direct", "s3://new")
    told = [
        {"asset": "s3://new", "uri": "s3://new", "alias": "daily"},
        {"asset": "a", "uri": "a", "alias": "not mine"},
        {"asset": "b", "uri": "b"},
    ]
    succeed(world, produced=told)
    assert world.conn.execute("select asset, alias from asset_event").fetchall() == [("s3://new", "daily")]
    create_asset_runs(world.conn)
    assert len(events_of_runs(world, "use")) == len(events_of_runs(world, "direct")) == 1


def test_paused(world: World) -> None:
    """As in Airflow: what happens while a DAG is paused makes no run of it, then or later."""
    add_producer(world, outlets=("a",))
    add_consumer(world, "use", "a")
    world.conn.execute("update dag set is_paused = true, pause_applied = true where dag_id = 'use'")
    succeed(world)
    world.conn.execute("update dag set is_paused = false, pause_applied = false where dag_id = 'use'")
    create_asset_runs(world.conn)
    assert events_of_runs(world, "use") == []
    succeed(world)
    create_asset_runs(world.conn)
    assert len(events_of_runs(world, "use")) == 1


def test_two_schedulers_lose_nothing_and_double_nothing(world: World, database_url: str) -> None:
    """R-HA3: producers and makers of runs on several connections; every event is in exactly one run."""
    successes, producers = 30, 2
    add_producer(world, outlets=("a",))
    add_consumer(world, "use", "a")
    world.conn.execute("update concurrency_limit set capacity = 1000")
    for _ in range(successes):
        world.trigger("make")
    world.advance()
    tries = world.claim()
    assert len(tries) == successes
    done = threading.Event()
    failed: list[BaseException] = []

    def guarded(work: Any) -> None:
        try:
            with connect(database_url, name="other") as conn:
                work(conn)
        except BaseException as error:  # told to the test below
            failed.append(error)

    def apply(conn: Any) -> None:
        catalog = Catalog()
        while not done.is_set():
            advance(conn, catalog, max_runs=3)

    def make(conn: Any) -> None:
        while not done.is_set():
            create_asset_runs(conn)
        create_asset_runs(conn)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in [apply] * producers + [make] * 2]
    for thread in threads:
        thread.start()
    for t in tries:
        world.report([t])
    applied = "select count(*) from asset_event"
    wait_until(lambda: failed or world.conn.execute(applied).fetchone() == (successes,), "every success is applied", within_s=60)
    done.set()
    for thread in threads:
        thread.join()
    assert failed == []
    passed_on = [event for ids in events_of_runs(world, "use") for event in ids]
    assert len(passed_on) == len(set(passed_on)) == successes
    assert world.conn.execute("select count(*) from asset_queue").fetchone() == (0,)


PARTITIONED = (
    AssetSpec(name="days", uri="days", partitions=Partitions(every="day")),
    AssetSpec(name="lands", uri="lands", partitions=Partitions(param="country", keys=("de", "fr"))),
    AssetSpec(name="plain", uri="plain"),
)


def add_partitioned(world: World) -> None:
    outlets = tuple(asset.name for asset in PARTITIONED)
    task = TaskSpec(task_id="t", operator="python", outlets=outlets)
    world.add_dag(DagSpec(dag_id="make", tasks=(task,), assets=PARTITIONED))
    at_once(register(world.awaited, PARTITIONED, made=outlets))


def partitions(world: World) -> list[tuple[str, str]]:
    return world.conn.execute("select asset, partition from asset_partition order by 1, 2").fetchall()


def test_a_run_makes_the_partition_of_its_date_and_of_its_parameter(world: World) -> None:
    """R-SP1: as the asset is declared; twice the same is one partition, of which the newest event is known."""
    add_partitioned(world)
    late = datetime(2026, 1, 31, 1, tzinfo=timezone(timedelta(hours=3)))  # the day before in UTC
    for _ in range(2):
        run_partitioned(world, logical_date=late, params={"country": "de"})
        late += timedelta(minutes=1)  # a logical date has one run
    assert partitions(world) == [("days", "2026-01-30"), ("lands", "de")]
    events = world.conn.execute("select asset, partition, count(*) from asset_event group by 1, 2 order by 1").fetchall()
    assert events == [("days", "2026-01-30", 2), ("lands", "de", 2), ("plain", None, 2)]
    newest = (
        "select count(*) from asset_partition p where event_id = (select max(event_id) from asset_event e where e.asset = p.asset)"
    )
    assert world.conn.execute(newest).fetchone() == (2,)
    world.audit()


def test_a_run_without_date_or_key_makes_none_but_those_that_its_task_names(world: World) -> None:
    add_partitioned(world)
    run_partitioned(world, params={"country": "xx"})
    assert partitions(world) == []
    named = [{"asset": "days", "uri": "days", "partition": day} for day in ("2026-01-02", "2026-01-01")]
    run_partitioned(world, payload={"produced": named})
    assert partitions(world) == [("days", "2026-01-01"), ("days", "2026-01-02")]
    assert world.conn.execute("select count(*) from asset_event where asset = 'days'").fetchone() == (3,)


def test_what_a_partition_is_called_is_the_same_to_the_database_and_to_python(world: World) -> None:
    at = datetime(1999, 12, 31, 23, 59, tzinfo=UTC)
    for every in ("hour", "day", "month"):
        for days in (0, 1, 59, 366):
            moment = at + timedelta(days=days)
            query = "select partition_of(jsonb_build_object('every', %s::text), %s, '{}')"
            assert world.conn.execute(query, [every, moment]).fetchone() == (Partitions(every=every).of(moment),)


def test_two_schedulers_that_make_one_partition_do_not_wait_for_each_other(world: World, database_url: str) -> None:
    add_partitioned(world)
    day = datetime(2026, 1, 30, tzinfo=UTC)
    run_partitioned(world, logical_date=day, params={})
    with connect(database_url, name="other") as other, other.transaction():
        other.execute("select from asset_partition for update")
        world.conn.execute("set lock_timeout = '2s'")
        run_partitioned(world, logical_date=day + timedelta(hours=1), params={})
    assert partitions(world) == [("days", "2026-01-30")]


def run_partitioned(world: World, *, payload: dict[str, Any] | None = None, **columns: Any) -> None:
    run = world.trigger("make", **columns)
    world.advance()
    (t,) = (t for t in world.claim() if t.run_key == run)
    world.report([t], **(payload or {}))
    world.advance()
    assert world.run_state(run) == "success"
