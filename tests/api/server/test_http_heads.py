"""Callers without a token cannot fill the API's memory, nor hold a connection for nothing (R-SE2)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest
from starlette.types import Receive, Scope, Send

from evenflow.api import limits
from evenflow.api.edge.web import WebServer
from evenflow.wire.tls import Tls


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    size = 0
    while (message := await receive())["type"] == "http.request":
        size += len(message["body"])
        if not message["more_body"]:
            break
    body = str(size).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})


@pytest.fixture
async def port() -> AsyncIterator[int]:
    server = WebServer(echo, host="127.0.0.1", port=0, tls=Tls())
    await server.start()
    yield server.port
    await server.stop()


BEGUN = b"GET / HTTP/1.1\r\nx: "


async def test_a_head_that_is_too_long_is_refused_with_its_bound(port: int) -> None:
    async with asyncio.timeout(30):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(BEGUN + b"y" * (limits.HEAD + 1 - len(BEGUN)))
        answer = await reader.read()
        writer.close()
    assert answer.startswith(b"HTTP/1.1 400")
    assert b"at most 32,768 bytes" in answer


async def test_a_head_without_end_is_hung_up_on(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of a caller that does not listen; and not because its time is over."""
    monkeypatch.setattr(limits, "HEAD_TIME", 600)
    sent = 0
    async with asyncio.timeout(30):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(BEGUN)
        with contextlib.suppress(ConnectionError):
            while sent < 64 * 2**20:
                writer.write(b"y" * 65_536)
                sent += 65_536
                await writer.drain()
    assert sent < 64 * 2**20, "what the kernel has room for"


async def test_one_that_never_comes_is_not_waited_for(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "HEAD_TIME", 0.05)
    async with asyncio.timeout(30):
        for begun in (b"", b"GET / HTTP/1.1\r\nhost: x\r\n"):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(begun)
            assert b"is complete within 0.05 s" in await reader.read()
            writer.close()


async def test_honest_requests_one_after_the_other(port: int) -> None:
    async with asyncio.timeout(30):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for size in (0, 5, 10 * limits.HEAD):
            head = f"POST / HTTP/1.1\r\nhost: x\r\nlong: {'y' * 20_000}\r\ncontent-length: {size}\r\n\r\n"
            writer.write(head.encode() + b"z" * size)
            await writer.drain()
            answer = await reader.readuntil(b"\r\n\r\n")
            assert b"200 OK" in answer
            assert await reader.readexactly(len(str(size))) == str(size).encode()
        writer.close()
