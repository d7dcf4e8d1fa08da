"""Polling an HTTP service: what its answers mean, which connection it takes, and that no message shows a secret."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from typing import Any

import pytest

from evenflow.errors import BadArgument
from evenflow.triggers import limits, web
from evenflow.triggers.http import HttpTrigger
from tests.triggers.conftest import Certificate, Server, serving
from tests.triggers.firing import ControlPlane, event_of

SECRET = "hunter2-hunter2"


def of(server: Server, extra: str = "") -> ControlPlane:
    return ControlPlane({"http_default": f"http://user:{SECRET}@127.0.0.1:{server.port}/base{extra}"})


async def fired(server: Server, *replies: tuple[int, Any], **arguments: Any) -> dict[str, Any]:
    server.replies = list(replies)
    return await event_of(HttpTrigger(endpoint="/jobs/7?full=1", **{"poll_interval": 0.1, **arguments}), of(server))


async def test_status(server: Server) -> None:
    assert await fired(server, (404, {}), (404, {}), (200, {})) == {"status": "success", "code": 200}
    assert [asked.path for asked in server.asked] == ["/base/jobs/7?full=1"] * 3
    assert await fired(server, (202, {}), (204, {}), wait_statuses=[202]) == {"status": "success", "code": 204}


async def test_field(server: Server) -> None:
    replies = [(200, {"job": {"state": state}}) for state in ("queued", "running", "done")]
    event = await fired(server, *replies, field="job.state", values=["done"], failed_values=["failed"])
    assert event == {"status": "success", "code": 200, "value": "done"}
    event = await fired(server, (200, {"job": {}}), (200, {"job": {"parts": [{"ready": True}]}}), field="job.parts.0.ready")
    assert event == {"status": "success", "code": 200, "value": True}
    event = await fired(server, (200, {"job": {"state": "failed"}}), field="job.state", values=["done"], failed_values=["failed"])
    assert event["status"] == "failed"
    assert event["message"].endswith("(connection 'http_default', GET /jobs/7) says job.state = 'failed'.")


async def test_what_is_sent(server: Server) -> None:
    server.replies = [(200, {})]
    trigger = HttpTrigger(method="post", endpoint="search", params={"a": "1"}, headers={"X-One": "1"}, body={"q": "x"})
    await event_of(trigger, of(server, "?X-Two=2"))
    (asked,) = server.asked
    assert (asked.method, asked.path, asked.body) == ("POST", "/base/search?a=1", b'{"q": "x"}')
    assert asked.headers["X-One"] == "1"
    assert asked.headers["X-Two"] == "2"
    assert asked.headers["Authorization"].startswith("Basic ")


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ((401, {}), "answered with status 401. Check login and headers of the connection: evenflow connections set http_default"),
        ((409, {}), "answered with status 409. If that means 'not yet', say so: wait_statuses=[409]"),
        ((200, b"<html>"), "answered with status 200 and no JSON: '<html>'. Check that the path is that of an API."),
        ((200, b"x" * (limits.MOST_BYTES + 1)), "answered with more than 1,048,576 bytes. Ask it for less: a status, not data."),
    ],
)
async def test_refusals(server: Server, reply: tuple[int, Any], said: str) -> None:
    event = await fired(server, reply, field="state")
    assert event["status"] == "failed"
    assert event["message"].endswith(said)
    assert event["message"].startswith(f"127.0.0.1:{server.port} (connection 'http_default', GET /jobs/7) ")
    assert SECRET not in event["message"]


async def test_a_server_that_is_away_for_a_while(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    """5xx and 429 are borne with; the password stands in no line of the log."""
    assert await fired(server, (503, {}), (429, {}), (200, {})) == {"status": "success", "code": 200}
    said = capsys.readouterr().out
    assert "answered with status 503. Looking again for 600 s." in said
    assert SECRET not in said


async def test_busy_may_be_what_is_waited_out(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    """Then it has no end by itself, and stands in no log."""
    event = await fired(server, (503, {}), (503, {}), (200, {}), wait_statuses=[503], patience=0.0)
    assert event == {"status": "success", "code": 200}
    assert capsys.readouterr().out == ""


async def test_nobody_there() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        plane = ControlPlane({"http_default": f"http://u:{SECRET}@127.0.0.1:{port}"})
        event = await event_of(HttpTrigger(endpoint="x", poll_interval=0.1, patience=0.0), plane)
    assert event["status"] == "failed"
    assert "does not answer (" in event["message"]
    assert SECRET not in event["message"]


@pytest.mark.parametrize(
    ("uri", "said"),
    [
        (None, "Connection 'api' is not defined"),
        ("ftp://x", "has the scheme 'ftp'. Write https://HOST:PORT or http://HOST:PORT."),
        ("http://", "names no host"),
    ],
)
async def test_wrong_connections(uri: str | None, said: str) -> None:
    plane = ControlPlane({"api": uri} if uri else {})
    event = await event_of(HttpTrigger(http_conn_id="api"), plane)
    assert event["status"] == "failed"
    assert said in event["message"]


async def test_a_misspelt_connection_says_what_was_meant(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the database, and of the triggerer's host."""
    monkeypatch.setenv("EVENFLOW_CONN_LAKEHOUSE", "http://h")
    plane = ControlPlane({"warehouse": "http://h"})
    for misspelt, meant in (("warehose", "warehouse"), ("lakehuose", "lakehouse")):
        event = await event_of(HttpTrigger(http_conn_id=misspelt), plane)
        assert event["status"] == "failed"
        assert f"Did you mean {meant!r}?" in event["message"]


async def test_a_connection_that_the_dag_may_not_use() -> None:
    event = await event_of(HttpTrigger(http_conn_id="forbidden"))
    assert event == {"status": "failed", "message": "Connection 'forbidden' may not be used by DAG 'd'."}


async def test_a_connection_of_the_triggerers_host(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then the control plane is not asked."""
    monkeypatch.setenv("EVENFLOW_CONN_MINE", server.url)
    plane = ControlPlane()
    assert (await event_of(HttpTrigger(http_conn_id="mine"), plane))["status"] == "success"
    assert plane.asked == []


def test_airflows_ways_to_write_a_connection() -> None:
    from evenflow.sdk.secrets.connections import Connection

    for uri in ("https://h:8443", "http://h:8443/https", '{"conn_type": "http", "host": "https://h", "port": 8443}'):
        assert web.base_url(Connection.parse("c", uri)) == "https://h:8443"


async def test_many_share_one_client(server: Server) -> None:
    """Sockets are used again, and all are closed when the last trigger has fired."""
    server.replies = [(404, {})] * 30 + [(200, {})]
    await asyncio.gather(*(event_of(HttpTrigger(endpoint="x", poll_interval=0.1), of(server)) for _ in range(30)))
    assert len(web._clients) == 0


async def test_certificates(certificate: Certificate) -> None:
    with serving(lambda asked: (200, {}), certificate) as port:
        url = f"https://127.0.0.1:{port}"
        event = await event_of(HttpTrigger(), ControlPlane({"http_default": url}))
        assert event["status"] == "failed"
        assert "shows a certificate that is not trusted: " in event["message"]
        assert (await event_of(HttpTrigger(), ControlPlane({"http_default": f"{url}?verify=false"})))["status"] == "success"


async def test_a_dead_server_holds_up_no_other(server: Server) -> None:
    """One that accepts connections and says nothing, asked by more triggers than there are requests at once."""
    with socket.create_server(("127.0.0.1", 0), backlog=300) as silent:
        dead = ControlPlane({"http_default": f"http://127.0.0.1:{silent.getsockname()[1]}"})
        stuck = [asyncio.create_task(event_of(HttpTrigger(endpoint="x"), dead)) for _ in range(limits.REQUESTS_AT_ONCE + 50)]
        await asyncio.sleep(0)
        assert (await event_of(HttpTrigger(endpoint="x"), of(server), within_s=10))["status"] == "success"
        assert not any(task.done() for task in stuck)
        for task in stuck:
            task.cancel()
        await asyncio.gather(*stuck, return_exceptions=True)


def test_arguments_are_checked() -> None:
    with pytest.raises(BadArgument, match="field='state'"):
        HttpTrigger(values=["done"])


IMPORTS = """
import asyncio, contextlib, sys, threading
from evenflow.errors import LookUnanswered
from evenflow.triggers import web

begun, gate = threading.Event(), threading.Event()

class Finder:
    def find_spec(self, name, path, target=None):
        if name == "aiohttp":
            begun.set()
            assert gate.wait(20), "the loop stood still"

async def look():
    looking = asyncio.create_task(web.fetch(web.WebRequest(url="http://127.0.0.1:1", who="it")))
    await asyncio.to_thread(begun.wait)
    gate.set()
    with contextlib.suppress(LookUnanswered):
        await looking

sys.meta_path.insert(0, Finder())
asyncio.run(look())
"""


def test_the_client_is_imported_beside_the_event_loop() -> None:
    """R-DQ1: others run while it is, which takes seconds on a busy machine, and no task's log says that its trigger blocks."""
    done = subprocess.run([sys.executable, "-c", IMPORTS], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
