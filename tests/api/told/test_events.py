"""Who changed what: an event in the transaction of each change, and nothing secret in it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from evenflow.client.execution import ExecutionClient
from evenflow.client.rest import RestClient
from evenflow.errors import ApiRefused
from evenflow.wire import questions as q
from tests.api.world import World

SECRET = "open-sesame"


async def told(rest: RestClient, name: str | None = None, action: str | None = None) -> list[tuple[str, str]]:
    """(action, object), the oldest first."""
    page = await rest.list_changes(object=name, action=action)
    assert all(event.actor == "ada" for event in page.items)
    return [(event.action, event.object) for event in page.items][::-1]


async def test_each_change_is_an_event(rest: RestClient, world: World) -> None:
    before = datetime.now(UTC)
    await rest.set_connection("warehouse", uri=f"postgresql://me:{SECRET}@db/x", dags=["sales"])
    await rest.delete_connection("warehouse")
    await rest.set_variable("db_password", value=SECRET)
    await rest.delete_variable("db_password")
    await rest.rotate_secrets()
    await rest.set_pool("gpu", slots=4)
    await rest.delete_pool("gpu")
    await rest.set_setting("fast_follow", value=False)
    assert await told(rest) == [
        ("connection.set", "warehouse"),
        ("connection.delete", "warehouse"),
        ("variable.set", "db_password"),
        ("variable.delete", "db_password"),
        ("secrets.rotate", "all"),
        ("pool.set", "gpu"),
        ("pool.delete", "gpu"),
        ("setting.set", "fast_follow"),
    ]
    events = {event.action: event for event in (await rest.list_changes()).items}
    assert events["connection.set"].detail == {"value": "set", "dags": ["sales"]}
    assert events["pool.set"].detail == {"slots": 4}
    assert events["setting.set"].detail == {"value": False}
    assert before <= events["setting.set"].at.astimezone(UTC)
    assert SECRET not in world.one("select string_agg(e::text, ' ') from audit_event e")


async def test_what_happens_to_a_dag(rest: RestClient, world: World) -> None:
    world.run(world.add_dag(), "r1", state="success")
    await rest.set_paused("sales", is_paused=True)
    await rest.set_paused("sales", is_paused=False)
    await rest.trigger_run("sales", run_id="mine")
    await rest.cancel_run("sales", "mine")
    await rest.delete_run("sales", "r1")
    expected = [
        ("dag.pause", "sales"),
        ("dag.unpause", "sales"),
        ("run.trigger", "sales/mine"),
        ("run.cancel", "sales/mine"),
        ("run.delete", "sales/r1"),
    ]
    assert await told(rest, "sales") == expected
    assert await told(rest, "sales", "run") == expected[2:]
    assert await told(rest, "sales/mine", "run.cancel") == [("run.cancel", "sales/mine")]
    assert await told(rest, "sale") == []


async def test_what_is_refused_is_no_event(rest: RestClient) -> None:
    for refused in (
        rest.emit_asset_event(asset="none"),
        rest.delete_pool("default_pool"),
        rest.set_setting("fast_follow", value="off"),
    ):
        with pytest.raises(ApiRefused):
            await refused
    assert await told(rest) == []


async def test_a_task_that_sets_a_variable_is_named(rest: RestClient, client: ExecutionClient, world: World) -> None:
    world.dispatch(world.run(world.add_dag()), 1)
    await client.ask(world.try_token(1), "set_variable", q.SetVariable(name="seen", text=SECRET))
    (event,) = (await rest.list_changes(actor="task sales.extract")).items
    assert (event.action, event.object, event.detail) == ("variable.set", "seen", None)


async def test_pages_and_filters(rest: RestClient) -> None:
    for slots in range(5):
        await rest.set_pool("gpu", slots=slots)
    first = await rest.list_changes(object="gpu", limit=1)
    page = await rest.list_changes(object="gpu", limit=2, cursor=first.next)
    assert ([event.detail for event in page.items], page.more) == ([{"slots": 3}, {"slots": 2}], True)
