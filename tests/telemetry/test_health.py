"""Health by a service's own account: loops that turn, needs that are there, and what is said over HTTP."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
import urllib.error
import urllib.request

import pytest

from evenflow.core.service import ServiceKind
from evenflow.errors import SettingsError
from evenflow.runtime import observing
from evenflow.telemetry import health as health_module
from evenflow.telemetry import listener as listening
from evenflow.telemetry.health import HealthMonitor
from evenflow.telemetry.listener import HttpAnswer, Listener, advertised


def get(url: str) -> tuple[int, bytes]:
    try:
        with urllib.request.urlopen(url, timeout=20) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


def test_it_is_ready_when_all_that_it_needs_was_there_lately() -> None:
    health = HealthMonitor(ServiceKind.WORKER, "w")
    assert not health.ready().ok, "it has not started"
    lease = health.lease(15.0)
    assert [finding.reason for finding in health.ready().findings] == ["its last answered beat: not yet"]
    lease.beat()
    assert health.ready().ok
    lease.stop("the control plane has given it up")
    assert health.ready().as_json() == {
        "status": "not ready",
        "checks": {"lease": {"ok": False, "reason": "the control plane has given it up"}},
    }
    lease.beat()
    health.draining = True
    assert not health.ready().ok
    assert health.live().ok, "nobody should restart it for that"


def test_a_need_that_was_not_met_for_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    health = HealthMonitor(ServiceKind.WORKER, "w")
    health.lease(15.0).beat()
    now = time.monotonic()
    monkeypatch.setattr(health_module.time, "monotonic", lambda: now + 16.0)
    (finding,) = health.ready().findings
    assert not finding.ok
    assert finding.reason == "its last answered beat: 16.0 s ago, at most 15 s is right"


async def test_a_blocked_event_loop_is_noticed_while_it_is_blocked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who asks gets an answer, though the loop gives none: the listener does not live in it."""
    monkeypatch.setattr(HealthMonitor.loop, "__defaults__", (0.5,))
    monkeypatch.setattr(observing, "LOOK_S", 0.01)
    health = HealthMonitor(ServiceKind.WORKER, "w")
    watching = asyncio.create_task(observing._watch_loop(health))
    listener = Listener("127.0.0.1", 0, observing._pages(health))
    listener.start()
    url = f"http://127.0.0.1:{listener.port}/health/live"
    assert (await asyncio.to_thread(get, url))[0] == 200
    answers: list[tuple[int, bytes]] = []

    def ask() -> None:
        while not answers or answers[-1][0] == 200:
            answers.append(get(url))

    asker = threading.Thread(target=ask)
    asker.start()
    asker.join(20)  # here: nothing else runs in this loop meanwhile
    status, body = answers[-1]
    assert status == 503
    verdict = json.loads(body)
    assert verdict["status"] == "hung"
    assert "at most 0.5 s is right" in verdict["checks"]["event loop"]["reason"]
    watching.cancel()
    await asyncio.to_thread(listener.stop)


def test_what_is_not_there_says_what_is() -> None:
    listener = Listener("127.0.0.1", 0, {"/x": lambda: HttpAnswer(200, "text/plain", b"yes")})
    listener.start()
    url = f"http://127.0.0.1:{listener.port}"
    assert get(f"{url}/x?y=1") == (200, b"yes")
    status, body = get(f"{url}/y")
    assert (status, b"/health/live" in body) == (404, True)
    listener.stop()


def test_a_page_may_ask_for_a_token() -> None:
    """R-SE4: metrics hold names; probes are for everybody."""
    pages = {path: lambda: HttpAnswer(200, "text/plain", b"well") for path in ("/metrics", "/health/live")}
    listener = Listener("127.0.0.1", 0, pages, shown={"/metrics": "a-token-of-scrapers"})
    listener.start()
    url = f"http://127.0.0.1:{listener.port}"
    for token in ("", "another", "a-token-of-scraper", "ä"):
        request = urllib.request.Request(f"{url}/metrics", headers={"Authorization": f"Bearer {token}"} if token else {})
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request, timeout=20)
        assert refused.value.code == 401
        assert b"EVENFLOW_METRICS_TOKEN" in refused.value.read()
    request = urllib.request.Request(f"{url}/metrics", headers={"Authorization": "Bearer a-token-of-scrapers"})
    assert urllib.request.urlopen(request, timeout=20).read() == b"well"
    assert get(f"{url}/health/live") == (200, b"well")
    listener.stop()


def test_those_who_hang_on_cannot_keep_others_out_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """More connections than ``AT_ONCE`` are closed at once; those that say nothing are closed after a while."""
    monkeypatch.setattr(listening._PageHandler, "timeout", 0.5)
    listener = Listener("127.0.0.1", 0, {"/x": lambda: HttpAnswer(200, "text/plain", b"yes")})
    listener.start()
    silent = [socket.create_connection(("127.0.0.1", listener.port), timeout=20) for _ in range(listening.AT_ONCE + 4)]
    assert [s.recv(1) for s in silent] == [b""] * len(silent)
    assert get(f"http://127.0.0.1:{listener.port}/x") == (200, b"yes")
    for s in silent:
        s.close()
    listener.stop()


def test_a_port_that_is_taken_is_named() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(SettingsError, match=rf"cannot listen on 127.0.0.1:{port}.*EVENFLOW_METRICS_PORT"):
            Listener("127.0.0.1", port, {})


def test_who_listens_everywhere_is_found_by_name() -> None:
    assert advertised("127.0.0.1", 1) == "127.0.0.1:1"
    assert advertised("0.0.0.0", 1) == f"{socket.gethostname()}:1"
    assert advertised("::1", 1) == "[::1]:1"
