"""Who may see names of services and pools, and where Prometheus is sent."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from evenflow.api.refusals import Forbidden
from evenflow.api.service import ApiService
from evenflow.api.tokens import FleetToken, OperatorToken, Tokens, mint
from evenflow.api.watching import WATCHED, Watchers, checked_detail
from evenflow.client.execution import ExecutionClient
from evenflow.errors import NotAllowed
from evenflow.store.serving.tokens import KeyState
from evenflow.wire import messages as m
from tests.api.world import World
from tests.tokens import JTI, LISTED, VIEWERS

KEYS = KeyState("here", {1: b"k" * 32}, frozenset(), LISTED, 0, 0.0, rights=VIEWERS)
SECRET = "shown-by-scrapers"


def scope(caller: str, token: str | None = None, **more: str) -> dict[str, Any]:
    headers = [(name.replace("_", "-").encode(), value.encode()) for name, value in more.items()]
    headers += [] if token is None else [(b"authorization", f"Bearer {token}".encode())]
    return {"type": "http", "client": (caller, 4711), "headers": headers}


@pytest.mark.parametrize("caller", ["127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1"])
async def test_this_host_needs_no_token_until_there_is_one(caller: str) -> None:
    """R-SE4"""
    await Watchers(Tokens(KEYS), "").check(scope(caller))
    with pytest.raises(NotAllowed, match="EVENFLOW_METRICS_TOKEN"):
        await Watchers(Tokens(KEYS), SECRET).check(scope(caller))


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8974", "127.0.0.1.evil.example", "localhost.evil.example", "["])
async def test_a_page_whose_name_was_made_to_mean_this_host_is_told_nothing(host: str) -> None:
    """R-SE4: DNS rebinding. The browser of somebody who works here asks, and the page of somebody else reads the answer."""
    with pytest.raises(NotAllowed):
        await Watchers(Tokens(KEYS), "").check(scope("127.0.0.1", host=host))
    await Watchers(Tokens(KEYS), SECRET).check(scope("127.0.0.1", SECRET, host=host))


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:8974", "127.0.0.1:1", "[::1]:8974", "a.localhost:8974", "192.0.2.7", socket.gethostname()]
)
async def test_who_names_this_host_needs_no_token(host: str) -> None:
    """R-SE4: nobody else can have a browser go here by one of these names."""
    await Watchers(Tokens(KEYS), "").check(scope("127.0.0.1", host=host))


@pytest.mark.parametrize("said", ["forwarded", "via", "x_forwarded_for", "x_real_ip"])
async def test_a_proxy_here_that_asks_for_others_is_not_this_host(said: str) -> None:
    """R-SE4"""
    with pytest.raises(NotAllowed):
        await Watchers(Tokens(KEYS), "").check(scope("127.0.0.1", host="127.0.0.1:8974", **{said: "192.0.2.7"}))


@pytest.mark.parametrize("caller", ["192.0.2.7", "2001:db8::7", "::ffff:192.0.2.7"])
async def test_others_show_one(caller: str) -> None:
    """R-SE4"""
    operator, fleet = (mint(KEYS, token, ttl=60, jti=JTI) for token in (OperatorToken("me"), FleetToken("worker")))
    for secret in ("", SECRET):
        watchers = Watchers(Tokens(KEYS), secret)
        await watchers.check(scope(caller, operator))
        with pytest.raises(NotAllowed, match="live and /health/ready"):
            await watchers.check(scope(caller))
        with pytest.raises(NotAllowed):
            await watchers.check(scope(caller, "guessed"))
        with pytest.raises(Forbidden):
            await watchers.check(scope(caller, fleet))
    await Watchers(Tokens(KEYS), SECRET).check(scope(caller, SECRET))


async def test_the_application_asks_for_it(api: ApiService) -> None:
    """R-SE4: of what tells names; a probe from elsewhere needs nothing."""
    assert api._web is not None
    application = api._web._server.config.app

    async def ask(path: str, caller: str) -> int:
        told: list[int] = []

        async def send(message: Any) -> None:
            told.append(message.get("status", 0))

        async def receive() -> Any:
            return {"type": "http.request", "body": b""}

        asked = scope(caller) | {"method": "GET", "path": path, "raw_path": path.encode(), "query_string": b"", "root_path": ""}
        await application(asked, receive, send)
        return told[0]

    assert {path: await ask(path, "192.0.2.7") for path in WATCHED} == dict.fromkeys(WATCHED, 401)
    assert [await ask(path, "192.0.2.7") for path in ("/health/live", "/health/ready")] == [200, 200]
    assert 401 not in [await ask(path, "127.0.0.1") for path in WATCHED]


@pytest.mark.parametrize(
    ("told", "caller", "asked"),
    [
        ("metadata.internal:80", "192.0.2.7", "192.0.2.7:80"),
        ("worker-1:9464", "2001:db8::7", "[2001:db8::7]:9464"),
        ("worker-1:9464", "::ffff:192.0.2.7", "192.0.2.7:9464"),
        ("127.0.0.1:9464", "127.0.0.1", "127.0.0.1:9464"),
        ("[::1]:9464", "127.0.0.1", "[::1]:9464"),
        ("metadata.internal:80", "127.0.0.1", f"{socket.gethostname()}:80"),
        ("127.0.0.1:5432", "192.0.2.7", None),
        ("192.0.2.7:0", "192.0.2.7", None),
        ("192.0.2.7:80/path", "192.0.2.7", None),
        ("no port", "192.0.2.7", None),
        (f"{'h' * 300}:80", "192.0.2.7", None),
        (["192.0.2.7:80"], "192.0.2.7", None),
        ("worker-1:9464", None, None),
    ],
)
def test_prometheus_is_sent_to_who_calls_and_nowhere_else(told: Any, caller: str | None, asked: str | None) -> None:
    """R-SE2: whatever a service says of itself."""
    wanted = {"slots": 4} if asked is None else {"slots": 4, "metrics": asked}
    assert checked_detail({"slots": 4, "metrics": told}, caller) == wanted


def test_who_answers_with_a_certificate_has_its_name() -> None:
    told = {"metrics": "worker-1.example:9464", "scheme": "https"}
    assert checked_detail(told, "192.0.2.7") == told
    assert checked_detail({"metrics": "w:1", "scheme": "gopher"}, "192.0.2.7") == {"metrics": "192.0.2.7:1"}


async def test_both_its_registration_and_its_beats_are_checked(client: ExecutionClient, world: World) -> None:
    """R-SE2"""
    detail = {"metrics": "metadata.internal:80", "slots": 1}
    registered = await client.register(m.Register(kind="worker", name="w", host="h", pid=1, version="0", detail=detail))
    stored = "select detail from service where service_id = %s"
    here = {"metrics": f"{socket.gethostname()}:80", "slots": 1}
    assert world.one(stored, registered.service_id) == here
    await client.beat(registered.service_id, m.Beat(detail={**detail, "slots": 2}))
    assert world.one(stored, registered.service_id) == {**here, "slots": 2}
