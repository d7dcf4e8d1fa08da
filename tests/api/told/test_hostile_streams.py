"""Streams that one person opens by the hundred, or that are not read."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from unittest.mock import Mock
from urllib.parse import urlsplit

import aiohttp
import pytest
import uvicorn

from evenflow.api import limits
from evenflow.api.edge.web import BoundedHttp
from evenflow.api.service import ApiService
from evenflow.client.execution import ExecutionClient
from evenflow.core.people.roles import Role
from tests.api.streams import reading
from tests.api.told.test_log_streams import PATH, Talking
from tests.api.world import World
from tests.tokens import operator_token as new_token
from tests.waiting import until


@asynccontextmanager
async def deaf(url: str, path: str, token: str) -> AsyncIterator[asyncio.StreamReader]:
    """A connection on which a request is made, and as good as nothing is read: with little room for what comes."""
    at, loop = urlsplit(url), asyncio.get_running_loop()
    with socket.socket() as narrow:
        narrow.setblocking(False)
        narrow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        await loop.sock_connect(narrow, (at.hostname, at.port))
        reader, writer = await asyncio.open_connection(sock=narrow, limit=4096)
        writer.write(f"GET {path} HTTP/1.1\r\nHost: {at.netloc}\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
        await writer.drain()
        yield reader
        writer.transport.abort()


async def test_who_takes_nothing_of_an_answer_is_hung_up_on(
    api: ApiService, api_url: str, world: World, client: ExecutionClient, operator_token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-SE2: a stream that waits for its reader asks no more whether that may hear it, so it would outlast its session, and hold
    its place and its part of a log in memory for ever.
    """
    monkeypatch.setattr(limits, "STALLED", 0.3)
    talking = Talking(world, client)
    for _ in range(32):
        await talking.say(b"x" * 2**18)
    streams = api._streams.open
    async with deaf(api_url, PATH, operator_token):
        await until(lambda: streams._open, "its stream")
        await until(lambda: not streams._open, "the end of its stream")


@pytest.mark.parametrize(("left", "hung_up"), [([300_000, 200_000, 100_000, 0], False), ([300_000, 299_000, 0], True)])
async def test_a_slow_reader_that_goes_on_is_not_hung_up_on(
    monkeypatch: pytest.MonkeyPatch, left: list[int], hung_up: bool
) -> None:
    """However long the whole answer takes."""
    monkeypatch.setattr(limits, "STALLED", 0.01)
    config = uvicorn.Config(Mock(), http=BoundedHttp, lifespan="off", log_config=None)
    config.load()
    protocol = BoundedHttp(config=config, server_state=uvicorn.server.ServerState(), app_state={})
    sizes, over = iter(left), asyncio.Event()

    def size() -> int:
        found = next(sizes)
        if not found:
            over.set()
        return found

    transport = Mock(get_write_buffer_size=size, abort=over.set, get_extra_info=lambda name, default=None: default)
    protocol.connection_made(transport)
    protocol.pause_writing()
    async with asyncio.timeout(30):
        await over.wait()
    assert (next(sizes, None) == 0) is hung_up
    protocol.resume_writing()
    assert protocol._stalled is None
    protocol.connection_lost(None)


async def test_a_person_has_so_many_streams_with_however_many_tokens(
    api_url: str, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-SE2: two tokens of one person took all that an API process has."""
    monkeypatch.setattr(limits, "LIVE_STREAMS_EACH", 1)
    first, second = (new_token(world.conn, name="eve", role=Role.VIEWER) for _ in range(2))
    other = new_token(world.conn, name="bob", role=Role.VIEWER)
    url = f"{api_url}/api/v1/live"
    async with aiohttp.ClientSession() as http, reading(http, url, first):
        async with asyncio.timeout(10), http.get(url, headers={"Authorization": f"Bearer {second}"}) as answer:
            assert (answer.status, "eve has 1 streams open" in await answer.text()) == (429, True)
        async with reading(http, url, other):
            pass
