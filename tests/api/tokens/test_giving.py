"""Tokens are given, listed and taken back over REST."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import aiohttp
import pytest

from evenflow.client.execution import ExecutionClient
from evenflow.client.rest import RestClient
from evenflow.core.people.roles import Role
from evenflow.core.people.scopes import PersonScope
from evenflow.errors import ApiRefused
from evenflow.wire import messages as m
from tests.api.world import World
from tests.tokens import given_tokens
from tests.waiting import DEADLINE_S


@pytest.fixture
async def admin(api_url: str, operator_token: str) -> AsyncIterator[RestClient]:
    async with RestClient(api_url, operator_token) as client:
        yield client


async def test_a_tools_token_has_the_role_and_scope_that_it_was_given(admin: RestClient, api_url: str, world: World) -> None:
    """R-SE3, R-SE5: its text is told once; the list and the trail say who made it, and what it may."""
    etl = PersonScope(tags=("etl",))
    given = await admin.create_token(kind="operator", name="grafana", role=Role.VIEWER, scope=etl, days=1)
    async with RestClient(api_url, given.token) as grafana:
        assert (await grafana.list_dags()).items == []
        with pytest.raises(ApiRefused, match="role admin, and the token of grafana has the role viewer"):
            await grafana.list_tokens()
    (listed,) = [one for one in (await admin.list_tokens(kind="operator")).items if one.token_id == given.token_id]
    assert (listed.name, listed.role, listed.scope, listed.state) == ("grafana", "viewer", etl, "good")
    assert listed.created_by == "ada"
    assert "token" not in listed.model_dump()
    (told,) = (await admin.list_changes(action="token.create", object="grafana")).items
    assert told.detail == {"kind": "operator", "role": "viewer", "tags": ["etl"], "token": given.token_id}


async def test_a_fleets_token_registers_until_it_is_revoked(admin: RestClient, api_url: str, database_url: str) -> None:
    """R-SE1, R-SE5: at once, in every API."""
    given = await admin.create_token(kind="worker", name="gpus", serves=["gpu"])
    (listed, *_) = await given_tokens(database_url)
    assert (listed.kind, listed.serves, listed.role) == ("worker", ["gpu"], None)
    client = ExecutionClient(api_url, given.token)
    message = m.Register(kind="worker", name="w", host="h", pid=1, version="0", detail={"slots": 4, "queues": ["gpu"]})
    try:
        await client.register(message)
        revoked = await admin.revoke_token(given.token_id)
        assert (revoked.kind, revoked.name) == ("worker", "gpus")
        assert "The token was revoked" in str(await first_refusal(client, message))
    finally:
        await client.close()
    assert [one.token_id for one in (await admin.list_tokens(state="revoked")).items] == [given.token_id]
    (told,) = (await admin.list_changes(action="token.revoke")).items
    assert (told.actor, told.object) == ("ada", "gpus")


async def first_refusal(client: ExecutionClient, message: m.Register) -> ApiRefused:
    """An API hears of a change by a notification, a moment later."""
    async with asyncio.timeout(DEADLINE_S):
        while True:
            try:
                await client.register(message)
            except ApiRefused as refused:
                return refused


async def test_a_list_is_told_in_parts(admin: RestClient) -> None:
    made = [(await admin.create_token(kind="processor", name=f"p{number}")).token_id for number in range(3)]
    first = await admin.list_tokens(kind="processor", limit=2)
    assert ([one.token_id for one in first.items], first.more) == (made[:0:-1], True)


@pytest.mark.parametrize(
    ("asked", "refusal"),
    [
        ({"kind": "worker", "role": Role.VIEWER}, "a token for a worker has no role and no scope"),
        ({"kind": "operator", "serves": ["gpu"]}, "a token for a person or tool serves nothing"),
        ({"kind": "operator", "name": "Scheduler"}, "'Scheduler' is what events call a part of Evenflow"),
        ({"kind": "operator", "role": Role.ADMIN, "scope": PersonScope(tags=("etl",))}, "An admin has no scope"),
        ({"kind": "operator", "days": 4000}, "days is at most 3,650"),
    ],
)
async def test_what_does_not_fit_its_kind_is_refused(
    api_url: str, operator_token: str, asked: dict[str, object], refusal: str
) -> None:
    """R-SE3: by the API too, whatever a client lets through."""
    body = {**asked, **({"scope": {"tags": ["etl"]}} if "scope" in asked else {})}
    shown = {"Authorization": f"Bearer {operator_token}"}
    async with aiohttp.ClientSession(headers=shown) as http, http.post(f"{api_url}/api/v1/tokens", json=body) as answer:
        assert answer.status == 422
        assert refusal in await answer.text()


async def test_a_token_that_is_not_there_cannot_be_revoked(admin: RestClient) -> None:
    with pytest.raises(ApiRefused, match="There is no token 999"):
        await admin.revoke_token(999)
