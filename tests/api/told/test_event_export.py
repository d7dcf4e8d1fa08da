"""Events as a stream: for who keeps them where nobody here can change them."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientPayloadError

from evenflow.api import limits
from evenflow.cli.commands.events import _export_by_api
from evenflow.client.rest import RestClient
from evenflow.core.people.roles import Role
from evenflow.errors import ApiRefused, BadValue
from evenflow.runtime import event_file
from evenflow.store.scheduling.incarnation import begin_incarnation
from tests.api.world import World
from tests.tokens import operator_token as new_operator_token
from tests.waiting import DEADLINE_S


@pytest.fixture
def pools(world: World) -> list[str]:
    """Fifty events, each of a transaction of its own."""
    world.conn.execute("delete from audit_event")
    for number in range(50):
        world.conn.execute("insert into audit_event (actor, action, object) values ('ada', 'pool.set', %s)", [f"p{number}"])
    return [f"p{number}" for number in range(50)]


async def exported(rest: RestClient, **asked: Any) -> list[dict[str, Any]]:
    async with rest.export_events(**asked) as (_, lines):
        return [json.loads(line) async for line in lines]


async def settled(rest: RestClient, count: int, **asked: Any) -> list[dict[str, Any]]:
    """So many: they come when no transaction of before is under way, those of other tests on this server neither."""
    async with asyncio.timeout(DEADLINE_S):
        while len(found := await exported(rest, **asked)) < count:
            pass
    return found


async def test_all_are_told_in_order_and_on_behind_a_line(
    rest: RestClient, pools: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-SE5: page by page, so that one in the middle neither lacks nor comes twice."""
    monkeypatch.setattr(limits, "EXPORTED_AT_ONCE", 7)
    found = await settled(rest, 50)
    assert [event["object"] for event in found] == pools
    last = found[29]
    behind = await exported(rest, after=f"{last['xact']}.{last['event_id']}")
    assert [event["object"] for event in behind] == pools[30:]


async def test_a_time_can_be_asked_for(rest: RestClient, pools: list[str], world: World) -> None:
    """R-SE5"""
    world.conn.execute("update audit_event set at = now() - interval '1 day' where object = any(%s)", [pools[:20]])
    hour = datetime.now(UTC) - timedelta(hours=1)
    assert len(await settled(rest, 30, since=hour)) == 30
    assert {event["object"] for event in await settled(rest, 20, until=hour)} == set(pools[:20])


async def test_it_is_for_admins(rest: RestClient, api_url: str, world: World) -> None:
    """R-SE3: whoever may read all of what everybody did."""
    async with RestClient(api_url, new_operator_token(world.conn, role=Role.OPERATOR)) as client:
        with pytest.raises(ApiRefused, match="for the role admin"):
            await exported(client)


async def test_it_ends_with_the_token(api_url: str, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-SE4: between two pages; what is cut off is told from what is at its end."""
    monkeypatch.setattr(limits, "EXPORTED_AT_ONCE", 1)
    many = "insert into audit_event (actor, action, object) select 'ada', 'pool.set', 'p' || n from generate_series(1, 20000) n"
    world.conn.execute(many)
    async with RestClient(api_url, new_operator_token(world.conn)) as client, client.export_events() as (_, lines):
        await anext(lines)
        world.conn.execute("update token set revoked_at = now(), revoked_by = 'a test'")
        world.conn.execute("notify tokens")
        with pytest.raises(ClientPayloadError):
            [line async for line in lines]


async def test_so_many_exports_go_on_at_once(rest: RestClient, pools: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """R-SE2"""
    monkeypatch.setattr(limits, "EXPORTS", 0)
    with pytest.raises(ApiRefused, match="sends 0 exports of events") as refused:
        await exported(rest)
    assert refused.value.status == 429


async def test_a_file_grows_by_either_way(
    rest: RestClient,
    pools: list[str],
    world: World,
    tmp_path: Path,
    api_url: str,
    operator_token: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """R-SE5: its chain is the same, so the database and the API may take turns."""
    monkeypatch.setenv("EVENFLOW_API_URL", api_url)
    monkeypatch.setenv("EVENFLOW_TOKEN", operator_token)
    monkeypatch.setattr(event_file, "AT_ONCE", 8)
    await settled(rest, 50)
    by_api, by_database = tmp_path / "a.jsonl", tmp_path / "d.jsonl"
    assert (await _export_by_api(by_api)).events == 50
    event_file.export(world.conn, by_database)
    assert by_api.read_bytes() == by_database.read_bytes()
    world.conn.execute("insert into audit_event (actor, action, object) values ('ada', 'pool.set', 'last')")
    await settled(rest, 51)
    assert (await _export_by_api(by_api)).events == 1
    event_file.export(world.conn, by_database)
    assert by_api.read_bytes() == by_database.read_bytes()
    assert event_file.compare(world.conn, by_api).wrong == []
    begin_incarnation(world.conn, reason="a test", by="ada")
    with pytest.raises(BadValue, match="was set back"):
        await _export_by_api(by_api)
