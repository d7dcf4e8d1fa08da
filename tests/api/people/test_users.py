"""Users: who logs in with a password, what they may, and where they are logged in."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from evenflow.api import limits
from evenflow.api.refusals import Refused
from evenflow.api.rest import passwords
from evenflow.api.rest.passwords import Passwords, hashed
from evenflow.api.service import ApiService
from evenflow.client.rest import RestClient
from evenflow.core.people.roles import Role
from evenflow.errors import ApiRefused
from evenflow.runtime.users import make_first
from tests.api.people.test_sessions import SESSION, Browser, until_refused
from tests.api.world import World
from tests.apis import make_api
from tests.tokens import operator_token as new_operator_token
from tests.waiting import DEADLINE_S

PASSWORD = "correct horse battery"


@pytest.fixture(autouse=True)
def quick_passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    """As weak as Argon2id lets one be: with the parameters that count, each takes a tenth of a second of all processors."""
    monkeypatch.setattr(limits, "PASSWORD_MEMORY_KIB", 8)
    monkeypatch.setattr(limits, "PASSWORD_PASSES", 1)
    monkeypatch.setattr(limits, "PASSWORD_LANES", 1)
    passwords._hasher.cache_clear()


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session:
        yield session


@pytest.fixture
def browser(http: aiohttp.ClientSession, api_url: str) -> Browser:
    return Browser(http, api_url)


@pytest.fixture
async def admin(api_url: str, operator_token: str) -> AsyncIterator[RestClient]:
    """By a token; there is a user who is one, too."""
    async with RestClient(api_url, operator_token) as client:
        await client.add_user(name="root", role=Role.ADMIN, password=PASSWORD)
        yield client


@pytest.fixture
async def ada(admin: RestClient) -> str:
    """The name of an author."""
    await admin.add_user(name="ada", role=Role.AUTHOR, password=PASSWORD)
    return "ada"


async def until_status(browser: Browser, status: int, method: str, path: str, body: Any = None) -> None:
    """An API server hears of a change by a notification, a moment later."""
    async with asyncio.timeout(DEADLINE_S):
        while await browser.ask(method, path, body) != status:
            pass


async def test_a_name_and_its_password_log_in_with_the_role_of_the_user(browser: Browser, ada: str) -> None:
    """R-SE3"""
    assert await browser.log_in(name=ada, password=PASSWORD) == 200
    assert '"role":"author","scope":null,"by_password":true' in browser.said
    assert await browser.ask("GET", "/api/v1/dags") == 200
    assert await browser.ask("PUT", "/api/v1/pools/p", {"slots": 1}) == 403
    assert "This is for the role operator, and ada has the role author" in browser.said
    assert "evenflow users set-role ada operator" in browser.said


async def test_nobody_learns_which_names_there_are(
    browser: Browser, ada: str, admin: RestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-SE3: the same words, and the same work, for a wrong password, a name that is none, and who is disabled."""
    await admin.add_user(name="gone", role=Role.VIEWER, password=PASSWORD)
    await admin.change_user("gone", is_disabled=True)
    worked: list[str] = []
    verify = passwords.PasswordHasher.verify

    def counted(hasher: Any, stored: str, password: str) -> bool:
        worked.append(stored.split("$")[3])  # its parameters
        return verify(hasher, stored, password)

    monkeypatch.setattr(passwords.PasswordHasher, "verify", counted)
    said = set()
    for name, password in ((ada, "wrong"), ("nobody", PASSWORD), ("gone", PASSWORD), ("gone", "wrong")):
        assert await browser.log_in(name=name, password=password) == 401
        said.add(re.sub(r'"request_id":"\w+"', "", browser.said))
    assert len(said) == 1
    assert len(worked) == 4
    assert len(set(worked)) == 1


async def test_the_database_has_no_password(ada: str, world: World) -> None:
    """R-SE4: nor has a list of events one."""
    assert PASSWORD not in str(world.all("select u::text from user_account u") + world.all("select e::text from audit_event e"))
    assert world.one("select password from user_account where name = 'ada'").startswith("$argon2id$")


def test_passwords_are_kept_as_rfc_9106_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """R-SE4"""
    monkeypatch.undo()
    passwords._hasher.cache_clear()
    try:
        assert hashed(PASSWORD).startswith("$argon2id$v=19$m=65536,t=3,p=4$")
    finally:
        passwords._hasher.cache_clear()


async def test_whoever_guesses_passwords_is_held_up(browser: Browser, ada: str) -> None:
    """R-SE4: also many at one moment, of which none is known to be wrong yet."""
    guesses = [browser.log_in(name=ada, password=f"guess {n}") for n in range(limits.LOGIN_FAILURES_NAME + 4)]
    answers = await asyncio.gather(*guesses)
    assert answers.count(401) == limits.LOGIN_FAILURES_NAME
    assert answers.count(429) == 4
    assert await browser.log_in(name=ada, password=PASSWORD) == 429
    assert "Too many logins have failed" in browser.said


async def test_who_logs_in_rightly_is_never_held_up_by_that(browser: Browser, ada: str) -> None:
    for _ in range(limits.LOGIN_FAILURES_NAME + 2):
        assert await browser.log_in(name=ada, password=PASSWORD) == 200


async def test_too_many_passwords_at_one_moment_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each takes memory and a processor."""
    monkeypatch.setattr(limits, "PASSWORDS_AT_ONCE", 1)
    monkeypatch.setattr(limits, "PASSWORDS_WAITING", 2)
    checks = Passwords()
    answers = await asyncio.gather(*(checks.check("p", None) for _ in range(5)), return_exceptions=True)
    assert [isinstance(answer, Refused) for answer in answers] == [False] * 3 + [True] * 2
    assert not (await checks.check("p", None)).is_right


async def test_a_password_of_older_parameters_is_stored_anew(
    browser: Browser, ada: str, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-SE4: when they are raised, by and by all are."""
    monkeypatch.setattr(limits, "PASSWORD_PASSES", 2)
    passwords._hasher.cache_clear()
    assert await browser.log_in(name=ada, password=PASSWORD) == 200
    assert "t=2" in world.one("select password from user_account where name = 'ada'")
    assert await browser.log_in(name=ada, password=PASSWORD) == 200


async def test_a_role_that_is_taken_back_is_gone_in_sessions_that_are_open(browser: Browser, ada: str, admin: RestClient) -> None:
    """R-SE3"""
    await browser.log_in(name=ada, password=PASSWORD)
    assert await browser.ask("POST", "/api/v1/assets/events", {"asset": "a"}) == 404
    await admin.change_user(ada, role=Role.VIEWER)
    await until_status(browser, 403, "POST", "/api/v1/assets/events", {"asset": "a"})


async def test_who_is_disabled_is_logged_out_and_stays_out(browser: Browser, ada: str, admin: RestClient) -> None:
    """R-SE3"""
    await browser.log_in(name=ada, password=PASSWORD)
    await admin.change_user(ada, is_disabled=True)
    await until_refused(browser)
    assert await browser.log_in(name=ada, password=PASSWORD) == 401
    await admin.change_user(ada, is_disabled=False)
    assert await browser.log_in(name=ada, password=PASSWORD) == 200


async def test_a_session_whose_user_a_restore_does_not_know_is_over(
    browser: Browser, ada: str, world: World, database_url: str, api: ApiService, tmp_path: Path
) -> None:
    """R-SE3: sessions outlive a restore, as tokens do; it stops nobody else, nor an API server that starts then."""
    await browser.log_in(name=ada, password=PASSWORD)
    world.conn.execute("delete from user_account where name = 'ada'")
    world.conn.execute("select pg_notify('tokens', '')")
    await until_refused(browser)
    other = make_api(database_url, tmp_path, name="other", vault=api._vault)
    await other.start()
    await other.stop()


async def test_a_session_whose_token_is_forgotten_is_over(browser: Browser, world: World) -> None:
    """R-SE3: it has no role of its own."""
    await browser.log_in(token=new_operator_token(world.conn, name="eve", role=Role.ADMIN))
    world.conn.execute("delete from token where name = 'eve' and kind = 'operator'")
    world.conn.execute("select pg_notify('tokens', '')")
    await until_refused(browser)


async def test_somebody_remains_who_says_who_may_what(admin: RestClient) -> None:
    """R-SE3: of two who take each other's role at one moment, one keeps it."""
    for change in ({"role": Role.VIEWER}, {"is_disabled": True}):
        with pytest.raises(ApiRefused, match="root is the last admin"):
            await admin.change_user("root", **change)
    await admin.add_user(name="second", role=Role.ADMIN, password=PASSWORD)
    both = (admin.change_user(name, role=Role.VIEWER) for name in ("root", "second"))
    answers = await asyncio.gather(*both, return_exceptions=True)
    assert sorted(isinstance(answer, ApiRefused) for answer in answers) == [False, True]


async def test_a_user_changes_their_password_and_is_logged_out_elsewhere(
    http: aiohttp.ClientSession, api_url: str, browser: Browser, ada: str
) -> None:
    """R-SE4"""
    elsewhere = Browser(http, api_url)
    await browser.log_in(name=ada, password=PASSWORD)
    await elsewhere.log_in(name=ada, password=PASSWORD)
    change = f"{SESSION}/password"
    assert await browser.ask("PUT", change, {"old": "wrong", "new": "another one of mine"}) == 422
    assert "The old password is wrong" in browser.said
    assert await browser.ask("PUT", change, {"old": PASSWORD, "new": "short"}) == 422
    assert await browser.ask("PUT", change, {"old": PASSWORD, "new": "another one of mine"}) == 200
    await until_refused(elsewhere)
    assert await browser.ask("GET", SESSION) == 200
    assert await elsewhere.log_in(name=ada, password=PASSWORD) == 401
    assert await elsewhere.log_in(name=ada, password="another one of mine") == 200


async def test_a_token_has_no_password(api_url: str, operator_token: str, http: aiohttp.ClientSession) -> None:
    shown = {"Authorization": f"Bearer {operator_token}"}
    async with http.put(f"{api_url}{SESSION}/password", json={"old": "x", "new": PASSWORD}, headers=shown) as answer:
        assert answer.status == 403


async def test_a_password_that_is_made_is_told_once(admin: RestClient, browser: Browser, ada: str) -> None:
    given = await admin.set_user_password(ada)
    assert given.password is not None
    assert len(given.password) == 20
    assert await browser.log_in(name=ada, password=PASSWORD) == 401
    assert await browser.log_in(name=ada, password=given.password) == 200


async def test_one_sees_and_ends_ones_own_sessions_and_an_admin_all(
    http: aiohttp.ClientSession, api_url: str, admin: RestClient, ada: str, world: World
) -> None:
    """R-SE3: whether one began with a password or with a token."""
    await admin.add_user(name="bob", role=Role.AUTHOR, password=PASSWORD)
    token = new_operator_token(world.conn, name="ada", role=Role.VIEWER)  # called as the user is
    browsers = {name: Browser(http, api_url) for name in ("ada", "bob", "by token")}
    for name in ("ada", "bob"):
        await browsers[name].log_in(name=name, password=PASSWORD)
    await browsers["by token"].log_in(token=token)
    by_name = {(one.name, one.by_password): one.session_id for one in (await admin.list_sessions()).items}
    assert sorted(by_name) == [("ada", False), ("ada", True), ("bob", True)]
    for name, own in (("ada", ("ada", True)), ("bob", ("bob", True)), ("by token", ("ada", False))):
        assert await browsers[name].ask("GET", "/api/v1/sessions") == 200
        seen = browsers[name].said
        assert [f'"session_id":{number},' in seen for number in by_name.values()] == [key == own for key in by_name]
        assert '"is_this":true' in seen
    assert await browsers["ada"].ask("DELETE", f"/api/v1/sessions/{by_name['bob', True]}") == 404
    assert await browsers["ada"].ask("DELETE", f"/api/v1/sessions/{by_name['ada', False]}") == 404
    assert (await admin.end_session(by_name["bob", True])).name == "bob"
    await until_refused(browsers["bob"])
    assert await browsers["ada"].ask("DELETE", f"/api/v1/sessions/{by_name['ada', True]}") == 200
    await until_refused(browsers["ada"])


async def test_a_session_says_whence_and_in_what_it_was_begun(browser: Browser, ada: str, admin: RestClient) -> None:
    """R-SE5: what a browser says of itself is a text that it chose."""
    said = {"name": ada, "password": PASSWORD}
    assert await browser.ask("POST", SESSION, said, **{"User-Agent": "Sail\x9bor" + "x" * 300}) == 200
    (session,) = (await admin.list_sessions()).items
    assert session.address == "127.0.0.1"
    assert session.agent is not None
    assert session.agent.isprintable()
    assert len(session.agent) == limits.BROWSER_CHARS


async def test_a_session_by_a_token_has_that_tokens_role(browser: Browser, world: World) -> None:
    """R-SE3"""
    await browser.log_in(token=new_operator_token(world.conn, name="eve", role=Role.VIEWER))
    assert '"role":"viewer","scope":null,"by_password":false' in browser.said
    assert await browser.ask("GET", "/api/v1/users") == 403
    assert "evenflow tokens create operator --role admin" in browser.said


async def test_the_first_user_is_made_once(database_url: str, browser: Browser, world: World) -> None:
    """R-SE3: of two `evenflow up` on one database that is empty, one makes it."""
    first, second = await asyncio.gather(*(make_first(database_url, by="evenflow up") for _ in range(2)))
    (password,) = [one for one in (first, second) if one is not None]
    assert await browser.log_in(name="admin", password=password) == 200
    assert '"role":"admin"' in browser.said
    assert await make_first(database_url, by="evenflow up") is None


async def test_what_is_no_user_is_told_so(admin: RestClient, ada: str) -> None:
    with pytest.raises(ApiRefused, match="There is a user 'ada'"):
        await admin.add_user(name="ada", role=Role.VIEWER)
    with pytest.raises(ApiRefused, match="There is no user 'eve'"):
        await admin.change_user("eve", role=Role.VIEWER)
    with pytest.raises(ApiRefused, match="There is no user 'eve'"):
        await admin.set_user_password("eve")
    with pytest.raises(ApiRefused, match="at least 12 characters"):
        await admin.add_user(name="eve", role=Role.VIEWER, password="short")


async def test_changes_of_users_are_told_with_who_made_them(admin: RestClient, ada: str, world: World) -> None:
    """R-SE5"""
    await admin.change_user(ada, role=Role.VIEWER)
    await admin.set_user_password(ada)
    told = world.all(
        "select actor, action, object, detail ->> 'role' from audit_event where action like 'user.%%' order by event_id"
    )
    assert [tuple(row) for row in told][1:] == [
        ("ada", "user.create", "ada", "author"),
        ("ada", "user.change", "ada", "viewer"),
        ("ada", "user.set_password", "ada", None),
    ]


# -- at one moment ---------------------------------------------------------------------------------------------------------


class HeldUp:
    """The first look at a password, which has been checked already."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reached, self.go_on, self._holds = asyncio.Event(), asyncio.Event(), True
        real = Passwords.check

        async def check(this: Passwords, *shown: Any) -> Any:
            checked = await real(this, *shown)
            if self._holds:
                self._holds = False
                self.reached.set()
                await self.go_on.wait()
            return checked

        monkeypatch.setattr(Passwords, "check", check)


NEW = "another one of mine"


@pytest.mark.parametrize("renews", [False, True])
async def test_a_login_under_way_ends_with_its_password(
    renews: bool,
    browser: Browser,
    ada: str,
    admin: RestClient,
    monkeypatch: pytest.MonkeyPatch,
    http: aiohttp.ClientSession,
    api_url: str,
) -> None:
    """R-SE3: after a password was set no session begins with the one before, and that one is not stored again."""
    if renews:
        monkeypatch.setattr(limits, "PASSWORD_PASSES", 2)
        passwords._hasher.cache_clear()
    held = HeldUp(monkeypatch)
    login = asyncio.create_task(browser.log_in(name=ada, password=PASSWORD))
    await held.reached.wait()
    await admin.set_user_password(ada, password=NEW)
    held.go_on.set()
    assert await login == 401
    other = Browser(http, api_url)
    assert (await other.log_in(name=ada, password=PASSWORD), await other.log_in(name=ada, password=NEW)) == (401, 200)


async def test_who_changes_a_password_does_not_undo_what_an_admin_has_set(
    browser: Browser, ada: str, admin: RestClient, monkeypatch: pytest.MonkeyPatch, http: aiohttp.ClientSession, api_url: str
) -> None:
    await browser.log_in(name=ada, password=PASSWORD)
    held = HeldUp(monkeypatch)
    change = asyncio.create_task(browser.ask("PUT", f"{SESSION}/password", {"old": PASSWORD, "new": "thief thief thief"}))
    await held.reached.wait()
    await admin.set_user_password(ada, password=NEW)
    held.go_on.set()
    assert await change in (401, 409)
    other = Browser(http, api_url)
    assert (await other.log_in(name=ada, password="thief thief thief"), await other.log_in(name=ada, password=NEW)) == (401, 200)


async def test_what_was_no_guess_is_not_counted(browser: Browser, ada: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-SE3: too many at one moment lock nobody out who has the right password."""
    with monkeypatch.context() as crowded:
        crowded.setattr(limits, "PASSWORDS_AT_ONCE", 0)
        crowded.setattr(limits, "PASSWORDS_WAITING", 0)
        assert {await browser.log_in(name=ada, password=PASSWORD) for _ in range(limits.LOGIN_FAILURES_NAME)} == {503}
    assert await browser.log_in(name=ada, password=PASSWORD) == 200


async def test_sessions_are_bounded_and_forgotten(
    browser: Browser, ada: str, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All API servers read the list of all."""
    monkeypatch.setattr(limits, "SESSIONS_EACH", 3)
    for _ in range(5):
        assert await browser.log_in(name=ada, password=PASSWORD) == 200
    alive = "select count(*) from token where kind = 'session' and revoked_at is null"
    assert world.one(alive) == 3
    world.conn.execute(
        "update token set expires_at = now() - interval '2 days', created_at = now() - interval '3 days' where kind = 'session'"
    )
    assert await browser.log_in(name=ada, password=PASSWORD) == 200
    assert world.one("select count(*) from token where kind = 'session'") == 1


async def test_nobody_is_named_as_a_role(admin: RestClient) -> None:
    with pytest.raises(ApiRefused, match="names that begin with 'role:' are those of roles"):
        await admin.add_user(name="role:operator", role=Role.VIEWER, password=PASSWORD)
