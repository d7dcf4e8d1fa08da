"""Tokens are revoked, keys rotated and databases set back while an API runs."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import psycopg
import pytest

from evenflow.api import token_watch
from evenflow.api.service import ApiService
from evenflow.api.tokens import FleetToken, NotListed, OperatorToken, ServiceToken, mint
from evenflow.client.execution import ExecutionClient
from evenflow.client.rest import RestClient
from evenflow.core.limits import LEASE_S
from evenflow.errors import ApiRefused, DatabaseSetBack, DatabaseUnavailable
from evenflow.runtime import tokens
from evenflow.runtime.tokens import create_tokens, keep_tokens, revoke_tokens, rotate_keys
from evenflow.store.scheduling.incarnation import begin_incarnation
from evenflow.store.serving import tokens as stored
from evenflow.wire import messages as m
from tests.api.world import ClientOfAll, World, new_worker
from tests.apis import make_api
from tests.tokens import create_token, given_tokens, key_state, revoke
from tests.waiting import DEADLINE_S, until


def keys_in_use(api: ApiService) -> set[int]:
    claims = api._claims
    assert claims is not None
    return set(claims._tokens._state.keys)


def revoked_in_use(api: ApiService) -> frozenset[int]:
    claims = api._claims
    assert claims is not None
    return claims._tokens._state.revoked


async def test_a_revoked_token_is_refused_at_once_with_all_that_came_from_it(
    api: ApiService, api_url: str, database_url: str, world: World
) -> None:
    """The worker is told that it is not known: so it kills what it runs, tries to register, and learns why it may not."""
    client = ExecutionClient(api_url, (await create_token(database_url, api._vault, "worker", name="fleet", by="ada")).token)
    service = await new_worker(client)
    assert (await client.beat(service, m.Beat())).known
    (given,) = await given_tokens(database_url)
    assert (given.kind, given.name, given.state) == ("worker", "fleet", "good")
    began = time.monotonic()
    assert await revoke(database_url, given.token_id) == ("worker", "fleet")
    await until(lambda: revoked_in_use(api), "the API's knowledge")
    assert time.monotonic() - began < 3, "by notification"
    assert not (await client.beat(service, m.Beat())).known
    claim = m.Claim(service_id=service, request_key="k", slots=1, queues=["default"])
    assert (await client.claim(claim)).state == "lost"
    with pytest.raises(ApiRefused, match="was revoked"):
        await new_worker(client)
    await client.close()
    assert (await given_tokens(database_url))[0].state == "revoked"
    assert world.one("select actor from audit_event where action = 'token.revoke'") == "ada"
    assert await revoke(database_url, 999) is None


async def test_a_token_that_the_list_does_not_know_is_refused_and_told(
    api: ApiService, api_url: str, database_url: str, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-SE1: whoever has the keys makes no token of a person, a fleet or a service, by a good number neither. One that is listed
    costs no look, and one that was made a moment ago is good at its first request, though no API was told of it.
    """
    reads = list[int]()
    read = stored.read_keys

    async def counted(*args: Any, **names: Any) -> stored.KeyState:
        reads.append(1)
        return await read(*args, **names)

    monkeypatch.setattr(stored, "read_keys", counted)
    monkeypatch.setattr(token_watch, "KEYS_CHECK", 3600.0)
    world.conn.execute("notify tokens")
    await until(lambda: reads, "the API's last look by itself")
    given = await create_token(database_url, api._vault, "operator", name="bob", by="ada")
    fleet = await create_token(database_url, api._vault, "worker", name="fleet", by="ada")
    state = key_state(world.conn)
    numbers = (given.token_id, fleet.token_id, 999)
    forged = [mint(state, OperatorToken("eve", number), ttl=60) for number in numbers]
    stolen = [mint(state, FleetToken("worker", number), ttl=60) for number in numbers]
    async with RestClient(api_url, given.token) as bob:
        await bob.list_runs()
        looked = len(reads)
        for _ in range(5):
            await bob.list_runs()
    assert len(reads) == looked
    for text in forged:
        async with RestClient(api_url, text) as eve:
            with pytest.raises(ApiRefused, match="not in this Evenflow's list"):
                await eve.list_runs()
    for text in stolen:
        client = ExecutionClient(api_url, text)
        with pytest.raises(ApiRefused, match="not in this Evenflow's list"):
            await new_worker(client)
        await client.close()
    client = ExecutionClient(api_url, fleet.token)
    service = await new_worker(client)
    own = client._credential.own
    for number in numbers:
        client._credential.take(mint(state, ServiceToken("worker", service, number), ttl=60))
        assert not (await client.beat(service, m.Beat())).known
    client._credential.take(own)
    assert (await client.beat(service, m.Beat())).known
    await client.close()
    assert api._trail is not None
    await api._trail.flush()
    told = "select sum(times) from audit_event where action = 'login.refused' and detail ->> 'reason' like '%%not in this%%'"
    assert world.one(told) == 9


async def test_a_service_stays_while_it_beats_when_the_token_that_it_came_with_is_over(
    api: ApiService, api_url: str, database_url: str, world: World
) -> None:
    """R-SE1: the list knows that token for as long as something that came with it is used, and then no more."""
    assert api._claims is not None
    assert api._trail is not None
    look = api._claims._tokens.look
    assert look is not None
    client = ExecutionClient(api_url, (await create_token(database_url, api._vault, "worker", name="fleet", by="ada")).token)
    service = await new_worker(client)
    await api._trail.flush()
    world.conn.execute("update token set created_at = now() - interval '9 days', expires_at = now() - interval '3 days'")
    for used, there in (("now()", True), ("now() - interval '3 days'", False)):
        world.conn.execute(f"update token set used_at = {used} where name = 'fleet'")
        await create_token(database_url, api._vault, "worker", name="other", by="ada")
        await look()
        assert (
            "fleet" in {token.name for token in await given_tokens(database_url)},
            (await client.beat(service, m.Beat())).known,
        ) == (
            there,
            there,
        )
    await client.close()


async def test_those_who_come_at_once_look_once(api: ApiService, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-SE4: whoever has the keys and floods the API has one look in hand at a time."""
    assert api._claims is not None
    tokens, reads, go = api._claims._tokens, list[int](), asyncio.Event()
    read = stored.read_keys

    async def held(*args: Any, **names: Any) -> stored.KeyState:
        reads.append(1)
        await go.wait()
        return await read(*args, **names)

    monkeypatch.setattr(stored, "read_keys", held)
    text = mint(tokens._state, OperatorToken("eve", 999), ttl=60)
    asking = [asyncio.create_task(tokens.admit(text)) for _ in range(50)]
    await until(lambda: reads, "the first look")
    go.set()
    refused = await asyncio.gather(*asking, return_exceptions=True)
    assert {type(error) for error in refused} == {NotListed}
    assert len(reads) <= 3, "one of the service itself, one, and one for all who came meanwhile"


async def test_an_operators_token_is_revoked(api: ApiService, api_url: str, database_url: str) -> None:
    async with RestClient(api_url, (await create_token(database_url, api._vault, "operator", name="bob", by="ada")).token) as bob:
        await bob.list_runs()
        await revoke(database_url, (await given_tokens(database_url))[0].token_id)
        await until(lambda: revoked_in_use(api), "the API's knowledge")
        with pytest.raises(ApiRefused, match="was revoked"):
            await bob.list_runs()


def lapsed_in_use(api: ApiService) -> frozenset[int]:
    assert api._claims is not None
    return api._claims._tokens._state.lapsed


@pytest.fixture
def frequent_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of an API that starts after it."""
    monkeypatch.setattr(token_watch, "KEYS_CHECK", 0.1)


@pytest.mark.usefixtures("frequent_looks")
async def test_what_nobody_renews_is_good_for_nothing(
    api: ApiService, api_url: str, database_url: str, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-SE1: a killed `evenflow up` leaves no good token behind; its services go on, and its next word makes all good again."""
    given = await create_tokens(database_url, api._vault, name="me", by="up here")
    other = await create_tokens(database_url, api._vault, name="me", by="up there")
    assert {(token.state, token.is_renewed) for token in await given_tokens(database_url)} == {("good", True)}
    worker, operator = ExecutionClient(api_url, given["worker"]), RestClient(api_url, given["operator"])
    service = await new_worker(worker)
    await operator.list_runs()
    world.conn.execute("update token set good_until = now() - interval '1 second' where created_by = 'up here'")
    await until(lambda: len(lapsed_in_use(api)) == 4, "the API's knowledge")
    assert sorted(token.state for token in await given_tokens(database_url)) == ["expired"] * 4 + ["good"] * 4
    for refused in (operator.list_runs(), new_worker(worker)):
        with pytest.raises(ApiRefused, match="that made the token has gone"):
            await refused
    assert (await worker.beat(service, m.Beat())).known
    async with RestClient(api_url, other["operator"]) as there:
        await there.list_runs()
    monkeypatch.setattr(tokens, "LOOK_S", 0.01)
    monkeypatch.setattr(tokens, "RENEW_S", 0.0)
    keeping = asyncio.create_task(keep_tokens(database_url, by="up here", say=pytest.fail))
    await until(lambda: not lapsed_in_use(api), "by notification")
    await operator.list_runs()
    assert await new_worker(worker)
    keeping.cancel()
    await revoke_tokens(database_url, by="up here")
    world.conn.execute("update token set revoked_at = now() where created_by = 'up here'")
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as conn:
        await stored.renew_made_by(conn, "up here", lease=60.0, every=0.0)
    assert sorted(token.state for token in await given_tokens(database_url)) == ["good"] * 4 + ["revoked"] * 4
    await worker.close()
    await operator.close()


@pytest.mark.parametrize("step", ["-61 minutes", "-11 minutes", "1 day"])
async def test_a_step_of_the_databases_clock_voids_nothing_for_long(
    api: ApiService, database_url: str, world: World, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Forward, or back, which would leave tokens behind that are good for long. What is as it should be is not written."""
    await create_tokens(database_url, api._vault, name="up", by="up here")
    monkeypatch.setattr(tokens, "LOOK_S", 0.01)
    keeping = asyncio.create_task(keep_tokens(database_url, by="up here", say=pytest.fail))
    world.conn.execute(f"update token set good_until = good_until + interval '{step}'")
    wrong = "good_until not between now() + interval '59 minutes' and now() + interval '1 hour'"
    await until(lambda: world.one(f"select count(*) from token where {wrong}") == 0, "their renewal")
    written = world.one("select array_agg(xmin::text order by token_id) from token")
    looks, renew = list[str](), stored.renew_made_by

    async def counted(conn: stored.AsyncConn, by: str, *, lease: float, every: float) -> None:
        await renew(conn, by, lease=lease, every=every)
        looks.append(by)

    monkeypatch.setattr(stored, "renew_made_by", counted)
    await until(lambda: len(looks) >= 3, "some looks")
    assert world.one("select array_agg(xmin::text order by token_id) from token") == written
    keeping.cancel()


async def test_who_cannot_renew_says_so_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "LOOK_S", 0.001)
    monkeypatch.setattr(tokens, "RENEW_S", 0.0)
    tried, said = 0, list[str]()

    async def away(*_: object, **__: object) -> object:
        nonlocal tried
        tried += 1
        raise DatabaseUnavailable("away")

    monkeypatch.setattr(tokens, "connect_async", away)
    keeping = asyncio.create_task(keep_tokens("", by="up", say=said.append))
    await until(lambda: tried >= 3, "it tries again")
    keeping.cancel()
    (told,) = said
    assert "not renewed" in told


async def test_it_is_known_when_a_token_was_used(api: ApiService, api_url: str, database_url: str, world: World) -> None:
    """R-SE5: by itself, or by a service that came with it; written once an hour."""
    assert api._trail is not None
    client = ExecutionClient(api_url, (await create_token(database_url, api._vault, "worker", name="fleet", by="ada")).token)
    await create_token(database_url, api._vault, "worker", name="idle", by="ada")
    service = await new_worker(client)
    await api._trail.flush()
    assert {token.name: token.used_at is not None for token in await given_tokens(database_url)} == {"fleet": True, "idle": False}
    world.conn.execute("update token set used_at = now() - interval '2 hours'")
    monday = world.one("select used_at from token where name = 'fleet'")
    await client.beat(service, m.Beat())
    await api._trail.flush()
    assert world.one("select used_at from token where name = 'fleet'") == monday, "it was told within the hour"
    api._trail._used.clear()
    await client.beat(service, m.Beat())
    await api._trail.flush()
    assert world.one("select used_at > now() - interval '1 minute' from token where name = 'fleet'")
    await client.close()


async def test_keys_are_rotated_while_a_worker_beats(api: ApiService, api_url: str, database_url: str, world: World) -> None:
    client = ExecutionClient(api_url, (await create_token(database_url, api._vault, "worker", name="fleet", by="ada")).token)
    service = await new_worker(client)
    assert await rotate_keys(database_url, api._vault, at_once=False, by="ada") == (2, [])
    await until(lambda: keys_in_use(api) == {1, 2}, "two keys")
    before = client._credential.own
    assert (await client.beat(service, m.Beat())).known
    assert client._credential.own != before, "it has one of the new key"
    key, void = await rotate_keys(database_url, api._vault, at_once=False, by="ada")
    assert (key, [token.name for token in void]) == (3, ["fleet"])
    await until(lambda: keys_in_use(api) == {2, 3}, "the newest two")
    assert (await client.beat(service, m.Beat())).known, "its own token outlives that of its fleet"
    await rotate_keys(database_url, api._vault, at_once=True, by="ada")
    await until(lambda: keys_in_use(api) == {4}, "one key")
    assert not (await client.beat(service, m.Beat())).known
    with pytest.raises(ApiRefused, match="signed with a key that is not in use"):
        await new_worker(client)
    await client.close()


async def test_an_api_ends_when_the_database_was_set_back(api: ApiService, world: World) -> None:
    """What it remembers of versions and runs may be wrong; whoever watches it starts it again."""
    begin_incarnation(world.conn, reason="fenced", by="ada")
    with pytest.raises(DatabaseSetBack):
        raise await asyncio.wait_for(api.failed(), DEADLINE_S)


async def test_no_try_is_given_out_before_the_leases_of_before_are_over(
    database_url: str, db: psycopg.Connection[Any], tmp_path: Path
) -> None:
    """R-CS7: a worker that cannot be reached has stopped by then."""
    begin_incarnation(db, reason="fenced", by="ada")
    api = make_api(database_url, tmp_path)
    await api.start()
    world = World(db)
    client = ClientOfAll(f"http://127.0.0.1:{api.port}", db, "worker")
    try:
        claim = m.Claim(service_id=await new_worker(client), request_key="k", slots=1, queues=["default"])
        world.dispatch(world.run(world.add_dag()), 1)
        assert (await client.claim(claim)).assignments == []
        claims = api._claims
        assert claims is not None
        assert 0 < claims._held_until - asyncio.get_running_loop().time() <= LEASE_S
        claims.hold(0.0)
        assert len((await client.claim(claim)).assignments) == 1
    finally:
        await client.close()
        await api.stop()


async def test_tokens_of_before_a_restore_are_refused(api: ApiService, client: ExecutionClient, world: World, api_url: str) -> None:
    """A service must register anew, and a try is void, whatever its epoch."""
    service = await new_worker(client)
    world.dispatch(world.run(world.add_dag()), 1)
    token, own = world.try_token(1), client._credential.own
    begin_incarnation(world.conn, reason="fenced", by="ada")
    claims = api._claims
    assert claims is not None
    claims._tokens.use(key_state(world.conn))
    lost = ExecutionClient(api_url, "no fleet")
    lost._credential.take(own)
    assert not (await lost.beat(service, m.Beat())).known
    with pytest.raises(ApiRefused, match="before the database was set back"):
        await lost.push_xcom(token, m.XComPush(key="k", value=b"1"))
    await lost.close()


async def test_what_one_maker_has_given_out_is_taken_back_together(
    api: ApiService, api_url: str, database_url: str, world: World
) -> None:
    """R-SE1: as those of an `evenflow up` that ends, or that starts again after it was killed; R-SE5: and events tell it."""
    await create_tokens(database_url, api._vault, name="me", by="evenflow up on h: /a", scopes={"worker": ["etl"]})
    await create_tokens(database_url, api._vault, name="me", by="evenflow up on h: /b")
    second = await create_tokens(database_url, api._vault, name="me", by="evenflow up on h: /a")
    states = [(token.created_by[-2:], token.state) for token in await given_tokens(database_url)]
    assert states == [("/a", "good")] * 4 + [("/b", "good")] * 4 + [("/a", "revoked")] * 4
    await revoke_tokens(database_url, by="evenflow up on h: /a")
    assert {token.created_by[-2:] for token in await given_tokens(database_url) if token.state == "good"} == {"/b"}
    await until(lambda: revoked_in_use(api), "the API's knowledge")
    async with RestClient(api_url, second["operator"]) as gone:
        with pytest.raises(ApiRefused, match="revoked"):
            await gone.list_runs()
    told = world.all("select detail from audit_event where action = 'token.create' order by event_id")
    assert len(told) == 12
    assert told[1] == {"kind": "worker", "scope": ["etl"], "token": 2}
    assert world.all("select detail from audit_event where action = 'token.revoke'")[1] == {"tokens": [9, 10, 11, 12]}
