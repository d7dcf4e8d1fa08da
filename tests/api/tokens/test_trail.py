"""What is told of requests that change nothing: those that were refused, and tasks' questions for secrets."""

from __future__ import annotations

import re
from datetime import datetime, tzinfo
from typing import Any

import aiohttp
import psycopg
import pytest

from evenflow.api import limits, trail
from evenflow.api.service import ApiService
from evenflow.api.tokens import OperatorToken, mint
from evenflow.api.trail import OTHERS
from evenflow.client.execution import ExecutionClient
from evenflow.client.rest import RestClient
from evenflow.errors import ApiRefused
from evenflow.store.serving.events import Origin
from evenflow.wire import questions as q
from tests.api.world import World, new_worker
from tests.tokens import create_token, key_state


async def flushed(api: ApiService) -> None:
    assert api._trail is not None
    await api._trail.flush()


@pytest.fixture
def in_one_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock of the trail stands."""

    class Standing(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:
            return datetime(2026, 3, 1, 12, 30, tzinfo=tz)

    monkeypatch.setattr(trail, "datetime", Standing)


@pytest.mark.usefixtures("in_one_minute")
async def test_refused_logins_are_told_once_a_minute_for_each_address_and_reason(
    api: ApiService, api_url: str, world: World, operator_token: str
) -> None:
    """R-SE5: with a count, however many there are; the token itself is nowhere."""
    expired = mint(key_state(world.conn), OperatorToken("eve", 9), ttl=-5)
    async with aiohttp.ClientSession() as session:
        for token in ("guess", "guess", "guess", expired):
            headers = {"Authorization": f"Bearer {token}"}
            async with session.get(f"{api_url}/api/v1/dags", headers=headers) as answer:
                assert answer.status == 401
        async with session.post(f"{api_url}/execution/v1/claim") as answer:
            assert answer.status == 401
    await flushed(api)
    await flushed(api)
    rows = world.all("select object, times, detail ->> 'reason' from audit_event where action = 'login.refused' order by 3")
    assert [(address, times, re.split(r"[.:]", reason)[0]) for address, times, reason in rows] == [
        ("127.0.0.1", 1, "The request has no token (header Authorization"),
        ("127.0.0.1", 1, "The token has expired"),
        ("127.0.0.1", 3, "The token is not one of this Evenflow's"),
    ]
    assert "guess" not in world.one("select string_agg(e::text, ' ') from audit_event e")
    async with RestClient(api_url, operator_token) as client:
        assert sorted((e.times, e.address) for e in (await client.list_changes(action="login")).items) == [
            (1, "127.0.0.1"),
            (1, "127.0.0.1"),
            (3, "127.0.0.1"),
        ]


@pytest.mark.usefixtures("in_one_minute")
async def test_who_invents_reasons_gets_few_rows(api: ApiService, world: World) -> None:
    """R-SE5: a trail that anybody can fill is none."""
    assert api._trail is not None
    for number in range(5 * limits.REFUSALS_TOLD):
        api._trail.refused(Origin(address="203.0.113.9"), 401, f"\0 reason {number}")
    await flushed(api)
    rows, times = world.one("select count(*), sum(times) from audit_event where action = 'login.refused'")
    assert (rows, times) == (limits.REFUSALS_TOLD + 1, 5 * limits.REFUSALS_TOLD)
    assert world.one("select times from audit_event where object = %s", OTHERS) == 4 * limits.REFUSALS_TOLD


async def test_which_dag_asked_for_which_secret_is_one_row_a_day(
    api: ApiService, api_url: str, operator_token: str, client: ExecutionClient, world: World
) -> None:
    """R-SE5: with a count and the last try, and never a value."""
    async with RestClient(api_url, operator_token) as rest:
        await rest.set_connection("c", uri="http://me:open-sesame@host")
        run = world.run(world.add_dag())
        world.dispatch(run, 1)
        for _ in range(3):
            await client.ask(world.try_token(1), "connection", q.AskNamed(name="c"))
        await client.ask(world.try_token(1), "connection", q.AskNamed(name="there is none"))
        await flushed(api)
        await client.ask(world.try_token(1), "connection", q.AskNamed(name="c"))
        await flushed(api)
        (event,) = (await rest.list_changes(action="connection.ask")).items
    assert (event.object, event.times) == ("c", 4)
    assert event.actor.startswith("DAG ")
    assert f"of run {run}" in event.detail["last_try"]  # type: ignore[index]
    assert event.last_at is not None
    assert "open-sesame" not in world.one("select string_agg(e::text, ' ') from audit_event e")


async def test_no_secret_is_answered_before_it_is_told(
    api: ApiService, api_url: str, operator_token: str, client: ExecutionClient, world: World
) -> None:
    """R-SE5: an API that is killed, or cannot write, has told nobody a secret that events do not know of."""
    async with RestClient(api_url, operator_token) as rest:
        await rest.set_connection("c", uri="http://host")
    world.dispatch(world.run(world.add_dag()), 1)
    world.conn.execute("alter table audit_event add constraint refuse check (action <> 'connection.ask') not valid")
    with pytest.raises(ApiRefused):
        await client.ask(world.try_token(1), "connection", q.AskNamed(name="c"))
    world.conn.execute("alter table audit_event drop constraint refuse")
    await client.ask(world.try_token(1), "connection", q.AskNamed(name="c"))
    asked = "select times from audit_event where action = 'connection.ask'"
    assert world.all(asked) == [1], "without any flush"
    await client.ask(world.try_token(1), "connection", q.AskNamed(name="c"))
    await flushed(api)
    assert world.all(asked) == [2]


async def test_an_event_says_with_which_token_and_from_where(
    api: ApiService, api_url: str, database_url: str, client: ExecutionClient, world: World
) -> None:
    """R-SE5: two events of one request have its number; services that register are told, too."""
    token = (await create_token(database_url, api._vault, "operator", name="bob", by="ada")).token
    number = world.one("select token_id from token where name = 'bob'")
    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {token}", "X-Request-ID": "mine-7"}) as session:
        async with session.put(f"{api_url}/api/v1/pools/gpu", json={"slots": 4}) as answer:
            assert answer.status == 200
        async with session.put(f"{api_url}/api/v1/pools/gpu", json={"slots": 5}, headers={"X-Request-ID": "x" * 99}) as answer:
            assert answer.status == 200
    first, second = world.all("select token_id, address, request_id from audit_event where action = 'pool.set' order by event_id")
    assert first == (number, "127.0.0.1", "mine-7")
    assert (second[2] != first[2], len(second[2])) == (True, 16)
    service = await new_worker(client)
    told = world.one("select object, detail ->> 'service_id', address from audit_event where action = 'service.register'")
    assert told[1:] == (str(service), "127.0.0.1")
    assert world.all("select token_id from audit_event where action = 'token.create' and address is null") == [None]


async def test_what_could_not_be_stored_is_told_later(api: ApiService, db: psycopg.Connection[Any]) -> None:
    """R-SE5"""
    assert api._trail is not None
    api._trail.refused(Origin(address="203.0.113.9"), 403, "not for you")
    db.execute("alter table audit_event add constraint refuse check (action <> 'login.refused') not valid")
    with pytest.raises(psycopg.errors.CheckViolation):
        await api._trail.flush()
    db.execute("alter table audit_event drop constraint refuse")
    api._trail.refused(Origin(address="203.0.113.9"), 403, "not for you")
    await api._trail.flush()
    assert db.execute("select sum(times) from audit_event where object = '203.0.113.9'").fetchall() == [(2,)]
