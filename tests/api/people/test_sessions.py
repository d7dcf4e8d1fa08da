"""Sessions of browsers, as somebody sees them who wants in: from another page, with what was overheard, or by guessing."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any

import aiohttp
import jwt
import pytest

from evenflow.api import limits
from evenflow.api.refusals import Forbidden, Refused
from evenflow.api.service import ApiService
from evenflow.api.sessions import LoginLimit, check_same_origin, read_cookie, set_cookie
from evenflow.client.rest import RestClient
from tests.api.world import World
from tests.apis import make_api
from tests.tokens import operator_token as new_operator_token
from tests.waiting import DEADLINE_S

SESSION = "/api/v1/session"
OURS = {"Sec-Fetch-Site": "same-origin"}


class Browser:
    """Asks as a page of the API's own origin does, unless told otherwise; keeps the cookie."""

    def __init__(self, http: aiohttp.ClientSession, api_url: str) -> None:
        self._http, self._url, self.cookie, self.said = http, api_url, "", ""

    async def ask(self, method: str, path: str, body: Any = None, **headers: str) -> int:
        shown = {"Sec-Fetch-Site": "same-origin", **({"Cookie": self.cookie} if self.cookie else {}), **headers}
        async with self._http.request(method, f"{self._url}{path}", json=body, headers=shown) as answer:
            self.said, self.set_cookie = await answer.text(), answer.headers.get("Set-Cookie", "")
            self.headers = answer.headers
            return answer.status

    async def log_in(self, **shown: str) -> int:
        status = await self.ask("POST", SESSION, shown)
        if status == 200:
            ((name, morsel),) = SimpleCookie(self.set_cookie).items()
            self.cookie = f"{name}={morsel.value}"
        return status


async def until_refused(browser: Browser) -> None:
    """Another API server may hear of it a moment later."""
    async with asyncio.timeout(DEADLINE_S):
        while await browser.ask("GET", SESSION) != 401:
            pass


@pytest.fixture
async def browser(api_url: str) -> AsyncIterator[Browser]:
    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as http:
        yield Browser(http, api_url)


@pytest.fixture
async def code(api_url: str, operator_token: str) -> str:
    async with RestClient(api_url, operator_token) as client:
        return (await client.make_login_code()).code


async def test_a_code_logs_in_once(browser: Browser, code: str) -> None:
    """R-SE4: who reads it in a history or over a shoulder afterwards gets nothing."""
    assert await browser.log_in(code=code) == 200
    assert await browser.ask("GET", "/api/v1/dags") == 200
    assert await browser.log_in(code=code) == 401
    assert "used before" in browser.said


async def test_of_two_that_show_a_code_at_one_moment_one_gets_in(browser: Browser, code: str) -> None:
    """R-SE4"""
    answers = await asyncio.gather(*(browser.ask("POST", SESSION, {"code": code}) for _ in range(8)))
    assert sorted(answers)[:2] == [200, 401]


async def test_a_code_is_good_for_minutes(browser: Browser, code: str, world: World) -> None:
    """R-SE4"""
    world.conn.execute("update login_code set expires_at = now() - interval '1 second'")
    assert await browser.log_in(code=code) == 401


async def test_the_database_has_no_code(code: str, world: World) -> None:
    """R-SE4: who reads it logs nobody in."""
    assert code not in str(world.all("select l::text from login_code l"))


async def test_an_operators_token_logs_in_and_the_cookie_is_not_that_token(browser: Browser, operator_token: str) -> None:
    assert await browser.log_in(token=operator_token) == 200
    assert operator_token not in browser.cookie
    assert await browser.ask("GET", SESSION) == 200
    assert '"name":"ada"' in browser.said


async def test_no_script_reads_the_cookie_and_no_other_site_sends_it(browser: Browser, code: str) -> None:
    """R-SE4"""
    await browser.log_in(code=code)
    assert re.search(r"^evenflow-[-\w]+=\S+; Path=/; HttpOnly; SameSite=Strict; Max-Age=3\d{3}$", browser.set_cookie)
    assert "Domain" not in browser.set_cookie


@pytest.mark.parametrize(
    "scheme", [{"scheme": "https", "headers": []}, {"scheme": "http", "headers": [(b"origin", b"https://e.example")]}]
)
def test_over_tls_the_cookie_is_for_this_host_alone(scheme: dict[str, Any]) -> None:
    """R-SE4: also where a proxy before the API ends TLS."""
    said = set_cookie({"type": "http", **scheme}, "here", "text", age_s=43200.0)
    assert said == "__Host-evenflow-here=text; Path=/; HttpOnly; SameSite=Strict; Max-Age=43200; Secure"


@pytest.mark.parametrize("made_by", ["cross-site", "same-site", "none", "garbage"])
@pytest.mark.parametrize(("method", "path"), [("GET", "/api/v1/dags"), ("POST", "/api/v1/login-codes"), ("DELETE", SESSION)])
async def test_another_page_gets_nothing_by_the_cookie(browser: Browser, code: str, made_by: str, method: str, path: str) -> None:
    """R-SE4: a page of another port of this host is of the same site, and its requests bring the cookie."""
    await browser.log_in(code=code)
    assert await browser.ask(method, path, **{"Sec-Fetch-Site": made_by}) == 403
    assert "another origin" in browser.said
    assert await browser.ask("GET", SESSION) == 200


async def test_another_page_logs_nobody_in(browser: Browser, code: str) -> None:
    """R-SE4: else who visits it would work in a session of its author."""
    assert await browser.ask("POST", SESSION, {"code": code}, **{"Sec-Fetch-Site": "cross-site"}) == 403
    assert await browser.log_in(code=code) == 200


def scope(method: str, **headers: str) -> dict[str, Any]:
    return {"method": method, "headers": [(k.replace("_", "-").encode(), v.encode()) for k, v in headers.items()]}


def test_a_browser_that_does_not_say_which_page_asks_says_whence_it_is() -> None:
    """R-SE4: over plain HTTP to another host than its own no browser says more."""
    check_same_origin(scope("POST", host="ours:1", origin="http://ours:1"))
    check_same_origin(scope("GET", host="ours:1"))
    for refused in (
        scope("POST", host="ours:1"),
        scope("POST", host="ours:1", origin="http://ours:2"),
        scope("POST", host="ours:1", origin="null"),
        scope("POST", origin="null"),
        scope("POST", host="", origin="null"),
        scope("GET", host="ours:1", origin="http://evil.example"),
        scope("POST", host="ours:1", origin="http://ours:1", sec_fetch_site="cross-site"),
    ):
        with pytest.raises(Forbidden):
            check_same_origin(refused)


async def test_after_logging_out_a_copy_of_the_cookie_is_worth_nothing(browser: Browser, code: str) -> None:
    """R-SE4"""
    await browser.log_in(code=code)
    assert await browser.ask("DELETE", SESSION) == 200
    assert "Max-Age=0" in browser.set_cookie

    await until_refused(browser)


async def test_a_session_ends_with_the_token_that_it_came_from(browser: Browser, world: World, api_url: str) -> None:
    """R-SE4: of an `evenflow up` that is over, or of a person who may not any more."""
    shown = new_operator_token(world.conn, name="bob")
    await browser.log_in(token=shown)
    assert await browser.ask("GET", SESSION) == 200
    world.conn.execute("update token set revoked_at = now(), revoked_by = 'a test' where name = 'bob' and kind = 'operator'")
    world.conn.execute("select pg_notify('tokens', '')")

    await until_refused(browser)
    assert "Log in again" in browser.said


async def test_a_session_is_good_for_no_longer_than_the_token_that_it_came_from(browser: Browser, world: World) -> None:
    """R-SE4: one that expires is not revoked."""
    shown = new_operator_token(world.conn, name="bob")
    world.conn.execute("update token set expires_at = now() + interval '9 minutes' where name = 'bob'")
    await browser.log_in(token=shown)
    ends = "select expires_at from token where name = 'bob' order by token_id"
    by_token, by_session = world.all(ends)
    assert by_session == by_token
    text = browser.cookie.partition("=")[2]
    assert jwt.decode(text, options={"verify_signature": False})["exp"] == pytest.approx(by_token.timestamp(), abs=2)
    assert 500 < int(browser.set_cookie.partition("Max-Age=")[2]) <= 540


async def test_a_code_ends_with_the_token_that_asked_for_it(browser: Browser, code: str, world: World) -> None:
    """R-SE4"""
    world.conn.execute("update token set revoked_at = now(), revoked_by = 'a test' where kind = 'operator'")
    assert await browser.log_in(code=code) == 401


def test_over_tls_a_cookie_that_was_set_without_it_counts_for_nothing() -> None:
    """R-SE4: whoever is on the way, or has another port or name below the same one, can set that."""
    cookie = [(b"cookie", b"evenflow-here=theirs; __Host-evenflow-there=others")]
    assert read_cookie({"scheme": "https", "headers": cookie}, "here") is None
    assert read_cookie({"scheme": "http", "headers": cookie}, "here") == "theirs"
    both = [(b"cookie", b"__Host-evenflow-here=ours; evenflow-here=theirs")]
    assert read_cookie({"scheme": "http", "headers": both}, "here") == "ours"


async def test_a_session_makes_no_session(browser: Browser, code: str) -> None:
    """R-SE4: else who has copied a cookie would never lose it, and logging out would leave the others."""
    await browser.log_in(code=code)
    assert await browser.ask("POST", "/api/v1/login-codes") == 403


async def test_whoever_guesses_locks_nobody_out(browser: Browser, code: str, operator_token: str) -> None:
    """R-SE4: of those behind one proxy, on one host, or anywhere, when the guesses come from everywhere."""
    for guess in range(limits.LOGIN_FAILURES):
        assert await browser.log_in(code=f"guess {guess}") == 401
    assert await browser.log_in(code="guess") == 429
    assert browser.headers["Retry-After"] == "60"
    assert await browser.log_in(token="guess") == 429
    assert await browser.log_in(code=code) == 200
    assert await browser.log_in(token=operator_token) == 200


async def test_a_session_is_good_on_every_api_server(
    api: ApiService, browser: Browser, code: str, database_url: str, tmp_path: Path
) -> None:
    """R-HA1: whichever a balancer chooses."""
    await browser.log_in(code=code)
    other = make_api(database_url, tmp_path, name="other", vault=api._vault)
    await other.start()
    try:
        browser._url = f"http://127.0.0.1:{other.port}"
        assert await browser.ask("GET", SESSION) == 200
    finally:
        await other.stop()


async def test_a_session_is_no_token_and_a_token_no_session(browser: Browser, code: str, operator_token: str) -> None:
    """R-SE4: what was made for a browser is refused elsewhere, and a cookie that somebody has set counts for nothing."""
    await browser.log_in(code=code)
    name, _, text = browser.cookie.partition("=")
    browser.cookie = ""
    assert await browser.ask("GET", "/api/v1/dags", Authorization=f"Bearer {text}") == 403
    assert await browser.ask("POST", SESSION, {"token": text}) == 403
    browser.cookie = f"{name}={operator_token}"
    assert await browser.ask("GET", "/api/v1/dags") == 403


def test_the_limit_counts_each_address_and_all() -> None:
    now = 0.0
    limit = LoginLimit(lambda: now)
    for _ in range(limits.LOGIN_FAILURES):
        limit.check("a")
        limit.failed("a")
    with pytest.raises(Refused, match="10 may in 60 s"):
        limit.check("a")
    limit.check("b")
    for number in range(limits.LOGIN_FAILURES_ALL - limits.LOGIN_FAILURES):
        limit.failed(f"of many {number}")
    with pytest.raises(Refused):
        limit.check("b")
    now = limits.LOGIN_WINDOW + 1
    limit.check("a")


@pytest.mark.parametrize("body", [{}, {"code": "a", "token": "b"}, {"code": "x" * 101}])
async def test_what_is_no_login_is_told_so(browser: Browser, body: dict[str, str]) -> None:
    assert await browser.ask("POST", SESSION, body) == 422


async def test_what_a_session_does_is_told_by_its_persons_name(browser: Browser, code: str, world: World) -> None:
    """R-SE5: the login, and what is done then."""
    await browser.log_in(code=code)
    assert await browser.ask("PUT", "/api/v1/pools/p", {"slots": 1}) == 200
    told = world.all(
        "select actor, action, detail ->> 'kind' from audit_event where action in ('token.create', 'pool.set') order by event_id"
    )
    assert [tuple(row) for row in told][-2:] == [("ada", "token.create", "session"), ("ada", "pool.set", None)]
