"""Command lines that are logged in by an answer in a browser: what is given out, and what whoever wants in gets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from evenflow.api import limits
from evenflow.client.rest import RestClient
from evenflow.contracts.rest.device_logins import DeviceLogin, DeviceToken
from evenflow.core.people.roles import Role
from evenflow.core.people.scopes import PersonScope
from evenflow.errors import ApiRefused
from tests.api.people.test_sessions import SESSION, Browser
from tests.api.people.test_users import PASSWORD, admin, browser, http, quick_passwords  # noqa: F401
from tests.api.world import World
from tests.waiting import DEADLINE_S

FIND, ANSWER = "/api/v1/device-logins/find", "/api/v1/device-logins/answer"


@pytest.fixture
async def command_line(api_url: str) -> AsyncIterator[RestClient]:
    """Without a token."""
    async with RestClient(api_url, "") as client:
        yield client


@pytest.fixture
async def asked(command_line: RestClient) -> DeviceLogin:
    return await command_line.begin_device_login(machine="laptop")


@pytest.fixture
async def ada(admin: RestClient, browser: Browser) -> Browser:  # noqa: F811
    """A user who is logged in in a browser."""
    scope = PersonScope(tags=("etl",))
    await admin.add_user(name="ada", role=Role.OPERATOR, scope=scope, password=PASSWORD)
    assert await browser.log_in(name="ada", password=PASSWORD) == 200
    return browser


async def answered(ada: Browser, asked: DeviceLogin, *, yes: bool = True, **more: Any) -> None:
    assert await ada.ask("POST", ANSWER, {"user_code": asked.user_code, "is_approved": yes, **more}) == 200, ada.said


async def taken(command_line: RestClient, asked: DeviceLogin) -> DeviceToken:
    return await command_line.take_device_token(device_code=asked.device_code)


async def refusal_of(ask: Callable[[], Awaitable[Any]]) -> ApiRefused:
    """An API server hears of a change a moment later."""
    async with asyncio.timeout(DEADLINE_S):
        while True:
            try:
                await ask()
            except ApiRefused as error:
                return error


async def test_who_says_yes_gives_a_token_of_their_own(
    command_line: RestClient, asked: DeviceLogin, ada: Browser, api_url: str, world: World
) -> None:
    """R-SE3: with the role and the scope that they have, and told in the events."""
    assert (await taken(command_line, asked)).token is None
    assert await ada.ask("POST", FIND, {"user_code": asked.user_code.lower().replace("-", " ")}) == 200
    assert '"machine":"laptop","address":"127.0.0.1","role":"operator","days":30' in ada.said
    await answered(ada, asked)
    given = await taken(command_line, asked)
    assert given.token is not None
    async with RestClient(api_url, given.token) as client:
        (session,) = [one for one in (await client.list_sessions()).items if one.by_command]
        assert (session.name, session.agent, session.address, session.is_this) == ("ada", "laptop", "127.0.0.1", True)
        assert (session.role, session.scope) == (Role.OPERATOR, PersonScope(tags=("etl",)))
        assert (await client.list_dags()).items == []
    assert world.all("select actor || ' ' || action from audit_event where object = 'laptop'") == ["ada login.approve"]
    assert (
        world.one("select role || ' ' || address from token where user_name = 'ada' and kind = 'operator'") == "operator 127.0.0.1"
    )


async def test_the_token_is_given_once(command_line: RestClient, asked: DeviceLogin, ada: Browser) -> None:
    """R-SE4: whoever has overheard the long code gets nothing after the command line."""
    await answered(ada, asked)
    assert (await taken(command_line, asked)).token
    with pytest.raises(ApiRefused, match=r"was used before\. Type again: evenflow login"):
        await taken(command_line, asked)


async def test_who_says_no_gives_nothing(command_line: RestClient, asked: DeviceLogin, ada: Browser, world: World) -> None:
    """R-SE5"""
    await answered(ada, asked, yes=False)
    with pytest.raises(ApiRefused, match="ada has said no"):
        await taken(command_line, asked)
    assert world.one("select action from audit_event where object = 'laptop'") == "login.deny"


async def test_nobody_gives_more_than_they_have(command_line: RestClient, ada: Browser, world: World, admin: RestClient) -> None:  # noqa: F811
    """R-SE3: neither by asking, nor by answering, nor after they have lost it."""
    asked = await command_line.begin_device_login(machine="laptop", role=Role.ADMIN)
    await answered(ada, asked, role="admin", days=7)
    given = await taken(command_line, asked)
    assert (given.role, given.token is not None) == (Role.OPERATOR, True)
    assert world.one("select (expires_at - created_at)::text from token where agent = 'laptop'") == "7 days"


async def test_a_token_may_no_more_than_its_user_from_now_on(
    command_line: RestClient,
    asked: DeviceLogin,
    ada: Browser,
    admin: RestClient,  # noqa: F811
    api_url: str,
) -> None:
    """R-SE3: who is made a viewer, or disabled, is so on the command line, too, and in a browser that this has logged in."""
    await answered(ada, asked)
    given = await taken(command_line, asked)
    async with RestClient(api_url, given.token or "") as client:
        assert await ada.log_in(code=(await client.make_login_code()).code) == 200
        await admin.change_user("ada", role=Role.VIEWER)
        assert "for the role operator" in str(await refusal_of(client.list_changes))
        assert await ada.ask("GET", SESSION) == 200
        assert '"role":"viewer","scope":{"tags":["etl"]' in ada.said
        await admin.change_user("ada", is_disabled=True)
        assert (await refusal_of(client.list_dags)).status == 401


async def test_logging_out_ends_the_token(command_line: RestClient, asked: DeviceLogin, ada: Browser, api_url: str) -> None:
    """R-SE4"""
    await answered(ada, asked)
    given = await taken(command_line, asked)
    async with RestClient(api_url, given.token or "") as client:
        await client.log_out()
        assert "revoked" in str(await refusal_of(client.list_dags))


async def test_the_database_has_neither_code(asked: DeviceLogin, world: World) -> None:
    """R-SE4: not even the digest of the short one, which could be guessed: it is keyed."""
    stored = str(world.all("select l::text from device_login l"))
    assert asked.device_code not in stored
    assert asked.user_code not in stored
    letters = asked.user_code.replace("-", "")
    assert world.one("select count(*) from device_login where user_digest = sha256(%s::bytea)", letters.encode()) == 0


async def test_a_code_is_good_for_minutes(command_line: RestClient, asked: DeviceLogin, ada: Browser, world: World) -> None:
    """R-SE4"""
    world.conn.execute("update device_login set expires_at = now() - interval '1 second'")
    assert await ada.ask("POST", ANSWER, {"user_code": asked.user_code, "is_approved": True}) == 404
    with pytest.raises(ApiRefused, match="Nobody has answered in time"):
        await taken(command_line, asked)


async def test_guesses_of_short_codes_are_held_up(ada: Browser) -> None:
    """R-SE4"""
    answers = [await ada.ask("POST", FIND, {"user_code": "BBBB-BBBB"}) for _ in range(limits.LOGIN_FAILURES + 1)]
    assert answers == [404] * limits.LOGIN_FAILURES + [429]


async def test_guesses_of_long_codes_do_not_reach_the_database(command_line: RestClient, asked: DeviceLogin, api: Any) -> None:
    """R-SE4: codes that browsers log in with are of another kind, too."""
    for guess in ("", "x" * 44, asked.device_code[:-1] + ("A" if asked.device_code[-1] != "A" else "B")):
        with pytest.raises(ApiRefused) as refused:
            await command_line.take_device_token(device_code=guess)
        assert refused.value.status == 401


async def test_so_many_may_wait(command_line: RestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-SE2"""
    monkeypatch.setattr(limits, "DEVICE_LOGINS_HERE", 2)
    for _ in range(2):
        await command_line.begin_device_login(machine="laptop")
    with pytest.raises(ApiRefused, match="Too many command lines wait to be logged in: 2 may of one address") as refused:
        await command_line.begin_device_login(machine="laptop")
    assert refused.value.status == 429


async def test_who_asks_too_often_is_told_to_ask_less(command_line: RestClient, asked: DeviceLogin, world: World) -> None:
    """R-SE2"""
    assert (await taken(command_line, asked)).interval_s == limits.DEVICE_POLL
    assert (await taken(command_line, asked)).interval_s == 2 * limits.DEVICE_POLL
    world.conn.execute("update device_login set polled_at = now() - interval '5 seconds'")
    assert (await taken(command_line, asked)).interval_s == limits.DEVICE_POLL


async def test_another_page_answers_nothing_by_the_cookie(asked: DeviceLogin, ada: Browser, command_line: RestClient) -> None:
    """R-SE4"""
    body = {"user_code": asked.user_code, "is_approved": True}
    assert await ada.ask("POST", ANSWER, body, **{"Sec-Fetch-Site": "cross-site"}) == 403
    assert (await taken(command_line, asked)).token is None


async def test_a_token_answers_nothing(asked: DeviceLogin, admin: RestClient, browser: Browser) -> None:  # noqa: F811
    """R-SE4: neither does a session that was begun with one: what is given out would outlive it."""
    with pytest.raises(ApiRefused, match="Only a user who has logged in in a browser"):
        await admin.answer_device_login(user_code=asked.user_code, is_approved=True)
    await browser.log_in(code=(await admin.make_login_code()).code)
    assert await browser.ask("POST", FIND, {"user_code": asked.user_code}) == 403


async def test_of_many_tokens_of_one_user_the_oldest_end(
    command_line: RestClient, ada: Browser, monkeypatch: pytest.MonkeyPatch, world: World
) -> None:
    """R-SE4"""
    monkeypatch.setattr(limits, "DEVICE_TOKENS_EACH", 2)
    for number in range(3):
        asked = await command_line.begin_device_login(machine=f"laptop {number}")
        await answered(ada, asked)
        assert (await taken(command_line, asked)).token
    good = world.all(
        "select agent from token where kind = 'operator' and user_name = 'ada' and revoked_at is null order by token_id"
    )
    assert good == ["laptop 1", "laptop 2"]
