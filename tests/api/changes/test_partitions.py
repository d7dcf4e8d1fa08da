"""Partitions of assets over REST: which there are, which are missing, and backfills of these."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from evenflow.client.rest import RestClient
from evenflow.core.model import AssetSpec, DagSpec, RunParamSpec, Schedule, TaskSpec
from evenflow.core.partitions import Partitions
from evenflow.errors import ApiRefused
from evenflow.scheduler.duties.schedules import make_backfill_runs
from evenflow.store.db.connect import connect
from evenflow.store.serving.assets import register
from tests.api.world import World
from tests.world import at_once

FIRST = datetime(2026, 3, 1, tzinfo=UTC)
ASSETS = (
    AssetSpec(name="days", uri="days", partitions=Partitions(every="day")),
    AssetSpec(name="lands", uri="lands", partitions=Partitions(param="country", keys=("de", "fr", "it"))),
    AssetSpec(name="plain", uri="plain"),
)
NAMES = tuple(asset.name for asset in ASSETS)


@pytest.fixture
async def rest(api_url: str, operator_token: str, world: World) -> AsyncIterator[RestClient]:
    world.add_dag(
        DagSpec(
            dag_id="make",
            tasks=(TaskSpec(task_id="only", operator="python", outlets=NAMES),),
            schedule=Schedule(kind="cron", cron="@daily", trigger=True),
            params={"country": RunParamSpec(default="de", schema={"type": "string", "minLength": 2})},
            assets=ASSETS,
        )
    )
    at_once(register(world.awaited, ASSETS, made=NAMES))
    async with RestClient(api_url, operator_token) as client:
        yield client


def span(days: int) -> dict[str, Any]:
    return {"from_date": FIRST, "to_date": FIRST + timedelta(days=days - 1)}


async def listed(rest: RestClient, asset: str, **query: Any) -> dict[str, bool]:
    page = await rest.list_asset_partitions(asset=asset, **query)
    return {each.partition: each.is_done for each in page.items}


async def test_the_partition_of_a_running_interval_is_listed_once_it_is_there(rest: RestClient) -> None:
    """R-SP1: and is not missing before."""
    today = datetime.now(UTC)
    names = [f"{today + timedelta(days=days):%Y-%m-%d}" for days in (-1, 0, 2)]
    for name in names[1:]:
        await rest.emit_asset_event(asset="days", partition=name)
    assert await listed(rest, "days") == dict.fromkeys(names[1:], True)
    await rest.emit_asset_event(asset="days", partition=names[0])
    assert await listed(rest, "days") == dict.fromkeys(names, True)
    assert await listed(rest, "days", from_date=today) == dict.fromkeys(names[1:], True)


async def test_what_is_done_and_what_is_missing_are_told_apart(rest: RestClient) -> None:
    """R-SP1."""
    assert await listed(rest, "days") == {}, "nobody has said what the first is"
    assert await listed(rest, "lands") == {"de": False, "fr": False, "it": False}
    await rest.emit_asset_event(asset="days", partition="2026-03-02")
    await rest.emit_asset_event(asset="lands", partition="fr")
    assert await listed(rest, "days", **span(3)) == {"2026-03-01": False, "2026-03-02": True, "2026-03-03": False}
    assert list(await listed(rest, "days", limit=2)) == ["2026-03-02", "2026-03-03"], "from the first that there is"
    assert await listed(rest, "lands", is_done=False) == {"de": False, "it": False}
    (event,) = (await rest.list_asset_events(asset="days")).items
    assert event.partition == "2026-03-02"
    for asset, partition, said in (
        ("days", "2026-3-2", "is no day"),
        ("lands", "xx", "de, fr, it"),
        ("plain", "x", "no partitions"),
    ):
        with pytest.raises(ApiRefused, match=said):
            await rest.emit_asset_event(asset=asset, partition=partition)
    with pytest.raises(ApiRefused, match="are keys, not times"):
        await listed(rest, "lands", **span(3))
    with pytest.raises(ApiRefused, match="There is no asset 'none'"):
        await listed(rest, "none")
    with pytest.raises(ApiRefused, match="more than 10,000 partitions"):
        await listed(rest, "days", from_date=datetime(1950, 1, 1, tzinfo=UTC))


async def test_a_backfill_over_times_makes_what_is_missing_and_runs_again_what_left_it_missing(
    rest: RestClient, world: World, database_url: str
) -> None:
    """R-SP1: what counts is the partition: a run that has ended without making it runs again."""
    key = world.one("select version_key from dag where dag_id = 'make'")
    for day, state in enumerate(("success", "success", "running")):
        world.run(key, f"old{day}", state=state, logical_date=FIRST + timedelta(days=day))
    await rest.emit_asset_event(asset="days", partition="2026-03-01")
    asked = {**span(4), "partitions_of": "days"}
    plan = await rest.create_backfill("make", **asked)
    assert [(run.partition, (run.passed_over or "")[:15]) for run in plan.runs] == [
        ("2026-03-01", "is there since "),
        ("2026-03-02", ""),
        ("2026-03-03", "has the run old"),
        ("2026-03-04", ""),
    ]
    with connect(database_url, name="other") as conn:
        make_backfill_runs(conn)
    shown = (await rest.list_backfill_runs(plan.backfill_id or 0)).items
    assert [run.run_id for run in shown] == [None, "old1", None, "backfill__2026-03-04T00:00:00+00:00"]
    assert world.one("select count(*) from report where kind = 'operate'") == 1
    await rest.cancel_backfill(plan.backfill_id or 0)
    again = await rest.create_backfill("make", **asked, reprocess="completed", dry_run=True)
    assert [run.partition for run in again.runs if run.passed_over is None] == ["2026-03-01", "2026-03-02"], "others run or wait"


async def test_a_backfill_over_keys_makes_a_run_for_each_that_is_missing(rest: RestClient, world: World, database_url: str) -> None:
    """R-SP1: the key is the parameter that the asset names."""
    await rest.emit_asset_event(asset="lands", partition="fr")
    plan = await rest.create_backfill("make", partitions_of="lands", max_active_runs=1)
    assert [run.partition for run in plan.runs if run.passed_over is None] == ["de", "it"]
    with connect(database_url, name="other") as conn:
        for _ in range(2):
            make_backfill_runs(conn)
            conn.execute("update dag_run set state = 'success' where backfill_id is not null")
    made = world.all("select params, logical_date from dag_run where backfill_id is not null order by run_key")
    assert made == [({"country": "de"}, None), ({"country": "it"}, None)]
    backfill = await rest.get_backfill(plan.backfill_id or 0)
    assert (backfill.partitions_of, backfill.from_date, backfill.waiting) == ("lands", None, 0)
    await rest.cancel_backfill(plan.backfill_id or 0)
    every = await rest.create_backfill("make", partitions_of="lands", reprocess="completed", reverse=True, dry_run=True)
    assert [run.partition for run in every.runs] == ["it", "fr", "de"]


async def test_an_asset_that_is_partitioned_in_another_way_now_has_those_of_that_way(rest: RestClient, world: World) -> None:
    """R-SP1: what there was before stays known, and is no partition by time."""
    await rest.emit_asset_event(asset="lands", partition="fr")
    await rest.emit_asset_event(asset="days", partition="2026-03-02")
    ways = {"lands": Partitions(every="hour"), "days": Partitions(every="month")}
    now = [AssetSpec(name=name, uri=name, partitions=way) for name, way in ways.items()]
    at_once(register(world.awaited, now, made=list(ways)))
    assert await listed(rest, "lands") == {}
    assert await listed(rest, "days") == {}
    await rest.emit_asset_event(asset="days", partition="2026-03")
    assert (await listed(rest, "days"))["2026-03"]
    world.conn.execute("update asset_partition set partition = '2026-99' where partition = '2026-03'")
    assert await listed(rest, "days") == {}


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({}, "say both"),
        ({"from_date": FIRST}, "say both"),
        ({"partitions_of": "days"}, "Say the first and the last date"),
        ({"partitions_of": "lands", **span(2)}, "are keys, not times"),
        ({"partitions_of": "lands", "params": {"country": "de"}}, "is the partition, which differs"),
        ({"partitions_of": "other"}, "No task of the DAG 'make' makes the asset 'other'"),
        ({"partitions_of": "plain", **span(2)}, "has no partitions"),
    ],
)
async def test_what_makes_no_sense_is_said(rest: RestClient, asked: dict[str, Any], said: str) -> None:
    with pytest.raises(ApiRefused, match=said):
        await rest.create_backfill("make", **asked)
