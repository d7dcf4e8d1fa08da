"""Logging in by a provider of identities: a real one, in a process of its own."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qs, urljoin, urlsplit

import aiohttp
import pytest

from evenflow.api import limits
from evenflow.api.service import ApiService
from evenflow.api.sessions import CookieKind, read_cookie, set_cookie
from evenflow.client.rest import RestClient
from evenflow.core.people.identities import IdentityProvider, rights_from
from evenflow.core.people.roles import Role
from evenflow.core.people.scopes import PersonScope, Rights
from tests.api.tokens.test_trail import flushed
from tests.api.world import World
from tests.apis import make_api
from tests.identity_providers import LIBRARY, running_provider
from tests.ports import lasting_port
from tests.tokens import operator_token

GROUPS = {"ops": "operator", "etl": {"role": "author", "tags": ["etl"]}, "hr": {"role": "author", "bundles": ["hr"]}}

pytest.importorskip("authlib")

pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason="the web UI is not set up here: scripts/setup says how")


@pytest.fixture(scope="module")
def port() -> int:
    return lasting_port()


@pytest.fixture(scope="module")
def issuer(port: int) -> Iterator[str]:
    """The address of the provider."""
    with running_provider(port) as address:
        yield address


def provider_at(issuer: str, port: int, groups: dict[str, object] | None = None) -> IdentityProvider:
    secret = "a secret of the client"
    url = f"http://127.0.0.1:{port}"
    return IdentityProvider(
        issuer=issuer, client_id="evenflow", client_secret=secret, url=url, groups=GROUPS if groups is None else groups
    )


class Person:
    """In a browser of their own."""

    def __init__(self, http: aiohttp.ClientSession, url: str) -> None:
        self.http, self.url = http, url

    async def get(self, address: str) -> tuple[int, str, str]:
        """Status, where it leads, text."""
        async with self.http.get(urljoin(self.url, address), allow_redirects=False) as answer:
            return answer.status, answer.headers.get("Location", ""), await answer.text()

    async def leads_back(self, name: str, then: str = "/") -> str:
        """The address of Evenflow to which the provider leads ``name``."""
        _, at, _ = await self.get(f"/api/v1/identity/login?then={then}")
        while not at.startswith(self.url):
            status, to, page = await self.get(at)
            if status == 200:  # the provider asks: who one is, then whether that may be told
                form = re.search(r'<form[^>]*action="([^"]+)"', page)
                assert form, page
                prompt = "login" if 'name="login"' in page else "consent"
                given = {"prompt": prompt, "login": name, "password": "any"}
                async with self.http.post(urljoin(at, form[1]), data=given, allow_redirects=False) as answer:
                    to = answer.headers["Location"]
            at = urljoin(at, to)
        return at

    async def refusal(self, back: str) -> str:
        """What the page where one logs in says after this."""
        status, to, text = await self.get(back)
        assert (status, to) == (303, "/login"), text
        async with self.http.get(f"{self.url}/api/v1/identity") as answer:
            return str((await answer.json())["refused"])

    async def session(self) -> dict[str, object]:
        async with self.http.get(f"{self.url}/api/v1/session", headers={"Sec-Fetch-Site": "same-origin"}) as answer:
            return dict(await answer.json())


@pytest.fixture
async def api(database_url: str, tmp_path: Path, issuer: str, port: int) -> AsyncIterator[ApiService]:
    api = make_api(database_url, tmp_path, port=port, provider=provider_at(issuer, port))
    await api.start()
    yield api
    await api.stop()


@pytest.fixture
def url(api: ApiService, port: int) -> str:
    return f"http://127.0.0.1:{port}"


@pytest.fixture
async def person(url: str) -> AsyncIterator[Person]:
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as http:
        yield Person(http, url)


async def test_a_person_logs_in_as_who_the_provider_says(person: Person, db: object, url: str) -> None:
    """R-SE3: the groups say what they may, at each login; they are a user from then on, without a password."""
    assert (await person.get("/api/v1/identity"))[2] == '{"name":"127.0.0.1","refused":null}'
    back = await person.leads_back("ada", then="/runs")
    status, to, _ = await person.get(back)
    assert (status, to) == (303, "/runs")
    session = await person.session()
    told = ("name", "role", "scope", "by_password", "by_provider")
    assert [session[name] for name in told] == ["ada.of.provider", "operator", None, False, True]
    world = World(db)  # type: ignore[arg-type]
    assert world.one("select name, role, password, created_by from user_account") == (
        "ada.of.provider",
        "operator",
        "",
        "identity provider",
    )
    assert "not begun in this browser" in await person.refusal(back), "the cookie of that login is gone"
    status, to, _ = await person.get("/api/v1/identity/logout")
    assert status == 303
    assert urlsplit(to).path == "/session/end"
    assert parse_qs(urlsplit(to).query)["post_logout_redirect_uri"] == [f"{url}/login"]


async def test_groups_have_scopes(person: Person, db: object) -> None:
    """R-SE3: several groups of one role have what each has."""
    assert (await person.get(await person.leads_back("eva")))[0] == 303
    session = await person.session()
    assert (session["role"], session["scope"]) == ("author", {"tags": ["etl"], "bundles": ["hr"], "pools": [], "queues": []})


async def test_who_is_in_no_group_that_may_is_not_let_in(person: Person, api: ApiService, db: object) -> None:
    """R-SE5: they read why on the page where one logs in, and events tell it as every refusal."""
    assert "bob.of.provider is in no group of 127.0.0.1 that may log in here" in await person.refusal(
        await person.leads_back("bob")
    )
    await flushed(api)
    world = World(db)  # type: ignore[arg-type]
    detail = world.one("select detail from audit_event where action = 'login.refused'")
    assert (detail["status"], "bob.of.provider is in no group" in detail["reason"]) == (401, True)
    person.http.cookie_jar.clear(lambda cookie: not cookie.key.startswith("evenflow"))  # the provider takes them for bob
    assert (await person.get(await person.leads_back("ada")))[:2] == (303, "/")
    assert (await person.get("/api/v1/identity"))[2] == '{"name":"127.0.0.1","refused":null}', "who is let in is told of it no more"


@pytest.mark.parametrize("who", ["nil", "number", "object", "mixed"])
async def test_groups_that_are_no_list_of_names_let_nobody_in(person: Person, who: str) -> None:
    assert "(claim 'groups')" in (told := await person.refusal(await person.leads_back(who)))
    assert "which is no list of names. Have it tell a list of texts there, or EVENFLOW_IDENTITY_GROUPS_CLAIM" in told


@pytest.mark.parametrize(
    ("who", "flaw"),
    [
        ("slash", "no slash, and no space but single ones inside"),
        ("turned", "1 to 250 printable characters"),
        ("own", "'Scheduler' is what events call a part of Evenflow"),
        ("role", "names that begin with 'role:' are those of roles"),
    ],
)
async def test_a_provider_names_people_by_the_rule_of_all_users(person: Person, db: object, who: str, flaw: str) -> None:
    """R-SE3: names stand in addresses and in events, beside those of what acts by itself."""
    told = await person.refusal(await person.leads_back(who))
    assert flaw in told
    assert "Change it there, or have EVENFLOW_IDENTITY_NAME_CLAIM name another claim." in told
    assert World(db).one("select count(*) from user_account") == 0  # type: ignore[arg-type]


async def test_a_login_that_this_browser_has_not_begun_ends_nowhere(person: Person, url: str) -> None:
    """R-SE3: somebody may lead a browser to the end of a login of theirs. Nobody is held up by that, however often."""
    back = await person.leads_back("ada")
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as other:
        stranger = Person(other, url)
        assert "was not begun in this browser" in await stranger.refusal(back)
        await stranger.get("/api/v1/identity/login")
        for _ in range(limits.LOGIN_FAILURES + 1):
            assert "was not begun in this browser" in await stranger.refusal(back)
    for state in ("x", "%C3%BC"):
        assert "was not begun in this browser" in await person.refusal(back.replace("state=", f"state={state}"))
    assert (await person.get(back))[:2] == (303, "/")


async def test_who_guesses_codes_is_held_up(person: Person) -> None:
    """R-SE3: as who guesses passwords."""
    back = await person.leads_back("ada")
    guess = back.replace("code=", "code=x")
    for _ in range(limits.LOGIN_FAILURES):
        assert "127.0.0.1 has given nobody this code" in await person.refusal(guess)
    assert "Too many logins have failed" in await person.refusal(guess)


async def test_a_provider_that_does_not_know_evenflow_is_told_of(database_url: str, tmp_path: Path, issuer: str, port: int) -> None:
    """It holds nobody up."""
    provider = replace(provider_at(issuer, port), client_secret="another one")
    api = make_api(database_url, tmp_path, port=port, provider=provider)
    await api.start()
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as http:
        ada = Person(http, f"http://127.0.0.1:{port}")
        assert "EVENFLOW_IDENTITY_CLIENT_ID and _SECRET" in await ada.refusal(await ada.leads_back("ada"))
    await api.stop()


async def test_a_person_whose_provider_is_away_reads_it(database_url: str, tmp_path: Path, port: int) -> None:
    silent = provider_at(f"http://127.0.0.1:{lasting_port()}", port)
    api = make_api(database_url, tmp_path, port=port, provider=silent)
    await api.start()
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as http:
        told = await Person(http, f"http://127.0.0.1:{port}").refusal("/api/v1/identity/login")
        assert "cannot be asked: ClientConnectorError" in told
    await api.stop()


def test_cookies_of_a_login_are_for_this_host_alone() -> None:
    """R-SE4: another host of the domain, or who is on the way, could else have a browser end a login of theirs."""
    scope = {"type": "http", "scheme": "http", "headers": []}  # as behind a proxy that ends TLS
    said = set_cookie(scope, "here", "text", CookieKind.LOGIN, age_s=600.0, is_secure=True)
    assert said == "__Host-evenflow-here-login=text; Path=/; HttpOnly; SameSite=Lax; Max-Age=600; Secure"
    planted = {**scope, "headers": [(b"cookie", b"evenflow-here-login=theirs")]}
    assert read_cookie(planted, "here", CookieKind.LOGIN, is_secure=True) is None
    assert read_cookie(planted, "here", CookieKind.LOGIN) == "theirs"


async def test_nobody_becomes_a_user_who_has_a_password_by_a_name(person: Person, url: str, db: object) -> None:
    """R-SE3: names are the provider's to give, and users are not."""
    async with RestClient(url, operator_token(World(db).conn)) as admin:  # type: ignore[arg-type]
        await admin.add_user(name="ada.of.provider", role=Role.ADMIN, password="correct horse battery")
    assert "Another user is called 'ada.of.provider' here" in await person.refusal(await person.leads_back("ada"))


async def test_who_is_disabled_stays_out(person: Person, url: str, db: object) -> None:
    assert (await person.get(await person.leads_back("ada")))[0] == 303
    async with RestClient(url, operator_token(World(db).conn)) as admin:  # type: ignore[arg-type]
        await admin.change_user("ada.of.provider", is_disabled=True)
    assert "may not log in" in await person.refusal(await person.leads_back("ada"))


@pytest.mark.parametrize(
    "then", ["//evil.example", "https://evil.example", "/\\evil.example", "/%09/evil.example", "/%0a/evil.example"]
)
async def test_a_login_leads_to_pages_of_evenflow_alone(person: Person, then: str) -> None:
    assert (await person.get(f"/api/v1/identity/login?then={then}"))[0] == 422


def test_groups_are_read_or_refused() -> None:
    assert rights_from("viewer") == Rights(Role.VIEWER)
    assert rights_from({"role": "author", "pools": ["p"]}) == Rights(Role.AUTHOR, PersonScope(pools=("p",)))
    for wrong in ("boss", {"role": "author", "dags": ["d"]}, {"tags": ["x"]}, 3, {"role": "admin", "tags": ["x"]}):
        with pytest.raises(ValueError, match=r"a group has a role|an admin has no scope"):
            rights_from(wrong)


def test_the_highest_role_of_somebodys_groups_counts() -> None:
    provider = provider_at(
        "https://login.example.com", 1, {"a": "viewer", "b": {"role": "operator", "pools": ["p"]}, "c": "operator"}
    )
    assert provider.rights_of(["a", "b"]) == Rights(Role.OPERATOR, PersonScope(pools=("p",)))
    assert provider.rights_of(["b", "c"]) == Rights(Role.OPERATOR)
    assert provider.rights_of(["x"]) is None


def test_groups_together_give_no_more_than_each() -> None:
    """R-SE3: one is limited in DAGs, one in queues; who has both is limited all the same."""
    groups = {"etl": {"role": "operator", "tags": ["etl"]}, "gpu": {"role": "operator", "queues": ["gpu"]}}
    together = provider_at("https://login.example.com", 1, groups).rights_of(["etl", "gpu"])
    assert together == Rights(Role.OPERATOR, PersonScope(tags=("etl",), queues=("gpu",)))
