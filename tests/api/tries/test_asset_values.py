"""R-AF1: what tasks keep with assets: for all runs, for tasks that name the asset alone, and closed to tries that are over."""

from __future__ import annotations

from typing import Any

import pytest

from evenflow.api import limits
from evenflow.client.execution import ExecutionClient
from evenflow.core.limits import ASSET_VALUE_DAYS, MAX_ONCE_BYTES
from evenflow.core.model import AssetSpec, DagSpec, TaskSpec
from evenflow.errors import ApiRefused, StaleEpoch
from evenflow.store.scheduling import retention
from evenflow.wire import questions as q
from tests.api.world import World

LOADING = DagSpec(
    dag_id="loading",
    tasks=(
        TaskSpec(task_id="load", operator="python", outlets=("orders",)),
        TaskSpec(task_id="read", operator="python", inlets=("orders", "daily")),
        TaskSpec(task_id="other", operator="python"),
    ),
    assets=(AssetSpec(name="orders", uri="s3://shop/orders"),),
)
LOAD, READ, OTHER = 0, 1, 2


@pytest.fixture
def run(world: World) -> int:
    return world.run(world.add_dag(LOADING))


def token_of(world: World, run: int, task: int, epoch: int) -> str:
    world.dispatch(run, epoch, task=task)
    return world.try_token(epoch)


async def put(
    client: ExecutionClient, token: str, value: Any, name: str = "until", asset: str = "orders", *, secret: bool = False
) -> None:
    await client.ask(
        token, "set_asset_value", q.SetAssetValue(asset=asset, name=name, kept=q.KeptValue(value=value, secret=secret))
    )


async def kept(client: ExecutionClient, token: str, name: str = "until", asset: str = "orders") -> q.KeptValue | None:
    answer = await client.ask(token, "asset_value", q.AskAssetValue(asset=asset, name=name))
    assert isinstance(answer, q.AssetValue)
    return answer.kept


async def forget(client: ExecutionClient, token: str, name: str | None = None) -> None:
    await client.ask(token, "forget_asset_values", q.ForgetAssetValues(asset="orders", name=name))


async def test_every_task_that_names_the_asset_has_its_values(client: ExecutionClient, world: World, run: int) -> None:
    load, read = token_of(world, run, LOAD, 7), token_of(world, run, READ, 8)
    assert await kept(client, load) is None
    for value in ({"day": 1}, {"day": 2}):
        await put(client, load, value)
    await put(client, read, None, "nothing")
    assert (await kept(client, read), await kept(client, load, "nothing")) == (q.KeptValue(value={"day": 2}), q.KeptValue())
    await forget(client, read, "until")
    assert (await kept(client, load), await kept(client, load, "nothing")) == (None, q.KeptValue())
    await forget(client, read)
    assert await kept(client, load, "nothing") is None


async def test_no_other_task_has_them(client: ExecutionClient, world: World, run: int) -> None:
    await put(client, token_of(world, run, LOAD, 7), 1)
    other = token_of(world, run, OTHER, 8)
    for call in (kept(client, other), put(client, other, 2), forget(client, other)):
        with pytest.raises(ApiRefused, match="'orders' is no inlet or outlet of task 'other' of DAG 'loading'"):
            await call


async def test_assets_that_an_alias_stands_for_count_as_named(client: ExecutionClient, world: World, run: int) -> None:
    world.conn.execute("insert into asset (name, uri) values ('found', 's3://found')")
    read = token_of(world, run, READ, 8)
    with pytest.raises(ApiRefused, match="'found' is no inlet"):
        await put(client, read, 1, asset="found")
    world.conn.execute("insert into asset_event (asset, alias, actor) values ('found', 'daily', 'a task')")
    await put(client, read, 1, asset="found")
    assert await kept(client, read, asset="found") == q.KeptValue(value=1)


async def test_what_cannot_be_kept_is_refused(
    client: ExecutionClient, world: World, run: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "ASSET_VALUES", 1)
    load = token_of(world, run, LOAD, 7)
    await put(client, load, 1)
    await put(client, load, 2)
    for value, name, secret, wanted in (
        ("open-sesame", "until", True, "holds a secret that this task was given"),
        ("x" * MAX_ONCE_BYTES, "until", False, "above the limit"),
        (1, "another", False, "above the limit of 1"),
        (1, "", False, "printable characters"),
        ("\0", "until", False, "cannot be stored"),
    ):
        with pytest.raises(ApiRefused, match=wanted):
            await put(client, load, value, name, secret=secret)
    assert await kept(client, load) == q.KeptValue(value=2)


async def test_a_try_that_is_over_changes_nothing(client: ExecutionClient, world: World, run: int) -> None:
    load = token_of(world, run, LOAD, 7)
    await put(client, load, 1)
    world.conn.execute("delete from dispatch")
    for call in (kept(client, load), put(client, load, 2), forget(client, load)):
        with pytest.raises(StaleEpoch):
            await call
    assert world.one("select value from asset_value") == 1


async def test_what_nobody_asks_for_goes_after_more_than_a_year(client: ExecutionClient, world: World, run: int) -> None:
    load = token_of(world, run, LOAD, 7)
    for name in ("read", "written", "left"):
        await put(client, load, 1, name)
    world.conn.execute("update asset_value set asked_on = current_date - %s", [ASSET_VALUE_DAYS + 1])
    await kept(client, load, "read")
    await put(client, load, 2, "written")
    assert retention.delete_asset_values(world.conn, unasked_days=ASSET_VALUE_DAYS, limit=10) == 1
    assert [await kept(client, load, name) for name in ("read", "written", "left")] == [
        q.KeptValue(value=1),
        q.KeptValue(value=2),
        None,
    ]
