"""The stream of capacity: pools, executors, queues and what waits for them, as the polled routes have it."""

from __future__ import annotations

import json
from typing import Any

import aiohttp
import pytest

from evenflow.api import limits
from evenflow.api.service import ApiService
from evenflow.api.streams.capacity import CapacityStream
from evenflow.client.rest import RestClient
from evenflow.core.people.roles import Role
from evenflow.core.people.scopes import PersonScope
from evenflow.store.db.notify import INBOX
from tests.api.people.test_person_scopes import spec
from tests.api.streams import reading
from tests.api.world import World
from tests.tokens import operator_token as new_token
from tests.waiting import until

PATH = "/api/v1/capacity/live"


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LIVE_CAPACITY_PAUSE", 0.05)
    monkeypatch.setattr(limits, "LIVE_CAPACITY_SWEEP", 0.1)


def slots(news: dict[str, Any]) -> dict[str, int]:
    return {pool["name"]: pool["slots"] for pool in news["pools"]}


async def test_a_page_hears_how_it_is_and_then_what_has_changed(
    world: World, api_url: str, http: aiohttp.ClientSession, operator_token: str
) -> None:
    """It is what the polled routes answer."""
    world.pool("etl", 3)
    run = world.run(world.add_dag())
    world.dispatch(run, 1)
    async with reading(http, f"{api_url}{PATH}", operator_token) as reader, RestClient(api_url, operator_token) as rest:
        first = await reader.event()
        assert first.kind == "capacity"
        for name, page in (("pools", await rest.list_pools()), ("executors", await rest.list_executors())):
            assert first.news[name] == [one.model_dump(mode="json") for one in page.items]
        status = await rest.get_status()
        waits = {"oldest_waiting_s"}
        assert [{key: queue[key] for key in queue.keys() - waits} for queue in first.news["queues"]] == [
            queue.model_dump(mode="json", exclude=waits) for queue in status.queues
        ]
        assert first.news["plan"].keys() >= {"starting", "starts", "blocked", "waiting"}
        world.pool("etl", 4)
        while slots((told := await reader.event()).news)["etl"] != 4:
            pass
        assert told.cursor != first.cursor


async def test_who_comes_back_hears_only_what_is_new(
    world: World, api_url: str, http: aiohttp.ClientSession, operator_token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The id of an event stands for all that it tells."""
    url = f"{api_url}{PATH}"
    async with reading(http, url, operator_token) as reader:
        first = await reader.event()
    monkeypatch.setattr(limits, "LIVE_BEAT", 0.3)
    async with reading(http, url, operator_token, **{"Last-Event-ID": first.cursor}) as reader:
        silence = await reader.comment()
        assert silence == "", "nothing has changed, and nothing is told"
        world.pool("new", 7)
        assert slots((await reader.event()).news)["new"] == 7
    async with reading(http, url, operator_token, **{"Last-Event-ID": first.cursor}) as reader:
        assert slots((await reader.event()).news)["new"] == 7, "what was changed while it was away is told at once"


@pytest.mark.parametrize("cursor", ["", "x", "1:2", "A" * 32, "0" * 31])
async def test_what_is_no_cursor_is_refused(api_url: str, http: aiohttp.ClientSession, operator_token: str, cursor: str) -> None:
    shown = {"Authorization": f"Bearer {operator_token}", "Last-Event-ID": cursor}
    async with http.get(f"{api_url}{PATH}", headers=shown) as answer:
        assert (answer.status, "Last-Event-ID" in await answer.text()) == (422, True)


async def test_nothing_of_what_is_beyond_the_scope_is_told(world: World, api_url: str, http: aiohttp.ClientSession) -> None:
    """R-SE3, with a page of somebody whose role counts everywhere beside it."""
    for of, tag in (("mine", "etl"), ("theirs", "hr")):
        world.pool(of, 3)
        version = world.add_dag(spec(of, tag), file=f"{of}.py", files={f"{of}.py": b""})
        world.dispatch(world.run(version, f"{of}_run"), next(world.epochs), queue=of)
    scope = PersonScope(tags=("etl",), pools=("mine",), queues=("mine",))
    limited, free = (new_token(world.conn, role=Role.VIEWER, scope=one) for one in (scope, None))
    async with reading(http, f"{api_url}{PATH}", free) as all_of_it, reading(http, f"{api_url}{PATH}", limited) as reader:
        told, everything = [json.dumps((await one.event()).news) for one in (reader, all_of_it)]
    assert ("mine" in told, "theirs" in told, "theirs" in everything) == (True, False, True)


async def test_all_pages_hear_one_reading_and_without_them_nothing_is_read(
    world: World, api: ApiService, api_url: str, http: aiohttp.ClientSession, operator_token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ADR 0081: what it costs does not grow with them. The sweep would come in an hour: a notification causes the reading."""
    monkeypatch.setattr(limits, "LIVE_CAPACITY_SWEEP", 3600.0)
    readers = [reading(http, f"{api_url}{PATH}", operator_token) for _ in range(10)]
    opened = [await one.__aenter__() for one in readers]
    assert len({(await one.event()).cursor for one in opened}) == 1
    world.pool("new", 7)
    world.notify(INBOX)
    assert [slots((await one.event()).news)["new"] for one in opened] == [7] * 10
    for one in readers:
        await one.__aexit__(None, None, None)
    capacity = api._streams.capacity
    await until(lambda: not capacity._streams)
    capacity.wake()
    assert not capacity._signal.is_set(), "nobody looks, so nothing is read"


async def test_of_several_messages_a_slow_page_hears_the_newest() -> None:
    stream = CapacityStream(None, "a")
    for digest in ("a", "b", "c"):
        stream.tell(digest, digest.encode())
    assert await stream.heard() == b"c"


async def test_an_api_server_that_is_drained_ends_its_streams(
    api: ApiService, api_url: str, http: aiohttp.ClientSession, operator_token: str
) -> None:
    async with reading(http, f"{api_url}{PATH}", operator_token) as reader:
        await reader.event()
        api._streams.open.close()
        with pytest.raises(EOFError):
            await reader.event()
