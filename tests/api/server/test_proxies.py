"""What a proxy before the API says of a request counts where that proxy is named, and nowhere else (R-SE4)."""

from __future__ import annotations

import aiohttp
import pytest
from starlette.types import Receive, Scope, Send

from evenflow.api.edge.web import WebServer
from evenflow.wire.tls import Tls


async def whence(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers whence it takes a request to come, and how."""
    body = f"{scope['scheme']} {scope['client'][0]}".encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})


@pytest.mark.parametrize(
    ("proxies", "told"),
    [
        ("", "http 127.0.0.1"),
        ("10.0.0.0/8", "http 127.0.0.1"),
        ("127.0.0.1", "https 10.1.2.3"),
        ("10.0.0.0/8, 127.0.0.1", "https 203.0.113.9"),
    ],
    ids=["none", "another", "this one", "two in a row"],
)
async def test_whence_a_request_came_is_said_by_proxies_that_are_named(proxies: str, told: str) -> None:
    """What the caller itself has put before counts for nothing: proxies add to it at the end."""
    server = WebServer(whence, host="127.0.0.1", port=0, tls=Tls(), proxies=proxies)
    await server.start()
    said = {"X-Forwarded-For": "192.0.2.1, 203.0.113.9, 10.1.2.3", "X-Forwarded-Proto": "https"}
    async with aiohttp.ClientSession() as client, client.get(f"http://127.0.0.1:{server.port}/", headers=said) as answer:
        assert await answer.text() == told
    await server.stop()
