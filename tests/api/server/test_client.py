"""The HTTP client of services and of the command line, beside API servers that come and go."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from evenflow.client.http import HttpClient
from evenflow.errors import ApiUnavailable
from tests.waiting import until


class Server:
    """Answers with its name, or not at all."""

    def __init__(self, name: str) -> None:
        self.name, self.hangs, self.status, self.asked = name, False, 200, 0
        self.headers: dict[str, str] = {}

    async def answer(self, request: web.Request) -> web.Response:
        self.asked += 1
        if self.hangs:
            await asyncio.Event().wait()
        return web.Response(status=self.status, text=self.name, headers=self.headers)


@asynccontextmanager
async def serving(*servers: Server) -> AsyncIterator[list[str]]:
    """Their URLs."""
    runners = []
    for server in servers:
        app = web.Application()
        app.router.add_get("/", server.answer)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        runners.append(runner)
    yield [f"http://127.0.0.1:{runner.addresses[0][1]}" for runner in runners]
    for runner in runners:
        await runner.cleanup()


async def ask(client: HttpClient) -> str:
    return (await client.request("GET", "/")).body.decode()


async def test_who_does_not_answer_is_left_for_the_next() -> None:
    """R-HA1: several API servers without a load balancer."""
    one, two = Server("one"), Server("two")
    async with serving(one, two) as urls:
        client = HttpClient(", ".join(["http://127.0.0.1:1", *urls]), "token")
        try:
            first = one if await ask(client) == "one" else two
            assert await ask(client) == first.name, "it stays with who answers"
            first.status = 503
            other = two if first is one else one
            assert await ask(client) == other.name
            first.status, other.hangs = 200, True
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(ask(client), 0.2)
            assert await ask(client) == first.name, "it remembers who hung, also when it was the caller who gave up"
        finally:
            await client.close()


async def test_who_cannot_store_is_left_for_the_next() -> None:
    """That is an answer, for the caller to try again; another server may have room."""
    one, two = Server("one"), Server("two")
    async with serving(one, two) as urls:
        client = HttpClient(", ".join(urls), "token")
        try:
            first, other = (one, two) if await ask(client) == "one" else (two, one)
            first.status = 507
            assert (await client.request("GET", "/")).status == 507
            assert await ask(client) == other.name
            assert first.asked == 2
        finally:
            await client.close()


async def test_requests_that_fail_together_leave_a_server_once() -> None:
    """Of two servers, an even number of leaves would lead back to the one that is gone."""
    alive = Server("alive")
    async with serving(alive) as urls:
        client = HttpClient(f"http://127.0.0.1:1,{urls[0]}", "token")
        try:
            assert await asyncio.gather(*(ask(client) for _ in range(8))) == ["alive"] * 8
        finally:
            await client.close()


async def test_a_client_without_patience_asks_each_server() -> None:
    """A command fails at once where no API is, and not because one of several is gone. Which is asked first is chance."""
    alive = Server("alive")
    async with serving(alive) as urls:
        for _ in range(5):
            client = HttpClient(",".join([*(f"http://127.0.0.1:{port}" for port in (1, 2, 3)), *urls]), "token", patience_s=0.0)
            try:
                assert await ask(client) == "alive"
            finally:
                await client.close()


async def test_none_of_several_answers() -> None:
    client = HttpClient("http://127.0.0.1:1,http://127.0.0.1:2", "token", patience_s=0.0)
    try:
        with pytest.raises(ApiUnavailable, match=r"at http://127.0.0.1:1, http://127.0.0.1:2 cannot be reached"):
            await client.request("GET", "/")
    finally:
        await client.close()


@pytest.mark.parametrize("status", [408, 429, 503])
async def test_who_asks_for_a_pause_gets_it(status: int) -> None:
    """One that is longer than this client has patience ends its attempts; that of one server does not keep it from another."""
    one, two = Server("one"), Server("two")
    one.status, one.headers = status, {"Retry-After": "3600"}
    async with serving(one, two) as urls:
        client, both = HttpClient(urls[0], "token"), HttpClient(",".join(urls), "token")
        try:
            assert (await client.request("GET", "/")).status == status
            assert one.asked == 1
            assert await ask(both) == "two"
            one.headers = {"Retry-After": "Wed, 21 Oct 2099 07:28:00 GMT"}
            asking = asyncio.create_task(ask(client))
            await until(lambda: one.asked > 3, "several attempts")
            one.status = 200
            assert await asking == "one"
        finally:
            await client.close()
            await both.close()
