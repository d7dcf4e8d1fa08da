"""A proxy between workers and the API that knows HTTP: what it repeats, delays and drops are whole requests.

Reports and claims come twice, late, out of order, and their answers get lost, as on a network with a load balancer that retries.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable, Sequence

import aiohttp
from aiohttp import web

from tests.chaos.wires import Wires

MEDDLED = ("/reports", "/claim", "/beat")
LATE_S = 1.0
TWICE, LATE, LOST = 0.3, 0.3, 0.15  # chances of a request


class Meddler:
    """Leads to one of the ports that ``upstreams`` names."""

    def __init__(self, wires: Wires, upstreams: Callable[[], Sequence[int]], rng: random.Random) -> None:
        self._wires, self._upstreams, self._rng = wires, upstreams, rng
        self.meddles = False
        self.did: dict[str, int] = {"twice": 0, "late": 0, "lost": 0}
        self.port = 0
        wires.run(self._open())

    async def _open(self) -> None:
        self._session = aiohttp.ClientSession(auto_decompress=False)
        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_route("*", "/{path:.*}", self._serve)
        self._runner = web.AppRunner(app, handler_cancellation=True, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.port = self._runner.addresses[0][1]
        self._behind: set[asyncio.Task[object]] = set()

    def close(self) -> None:
        self._wires.run(self._close())

    async def _close(self) -> None:
        for task in self._behind:
            task.cancel()
        await self._session.close()
        await self._runner.cleanup()

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        if self.meddles and request.path.endswith(MEDDLED):
            if self._rng.random() < TWICE:
                self._note("twice")
                self._later(request, body, self._rng.uniform(0.0, 2 * LATE_S))
            if self._rng.random() < LATE:
                self._note("late")
                await asyncio.sleep(self._rng.uniform(0.0, LATE_S))
            if self._rng.random() < LOST:
                self._note("lost")
                with contextlib.suppress(aiohttp.ClientError):
                    await self._pass_on(request, body)
                assert request.transport is not None
                request.transport.abort()
                return web.Response(status=502)
        try:
            status, headers, answer = await self._pass_on(request, body)
        except aiohttp.ClientError:
            return web.Response(status=502)
        return web.Response(status=status, headers=headers, body=answer)

    async def _pass_on(self, request: web.Request, body: bytes) -> tuple[int, dict[str, str], bytes]:
        ports = list(self._upstreams())
        if not ports:
            raise aiohttp.ClientConnectionError
        url = f"http://127.0.0.1:{self._rng.choice(ports)}{request.path_qs}"
        headers = {name: value for name, value in request.headers.items() if name in ("Authorization", "Content-Type")}
        async with self._session.request(request.method, url, data=body, headers=headers) as answer:
            kept = {name: value for name, value in answer.headers.items() if name in ("Content-Type", "WWW-Authenticate")}
            return answer.status, kept, await answer.read()

    def _later(self, request: web.Request, body: bytes, seconds: float) -> None:
        """The same request once more, of which nobody hears the answer."""

        async def again() -> None:
            await asyncio.sleep(seconds)
            with contextlib.suppress(aiohttp.ClientError):
                await self._pass_on(request, body)

        task: asyncio.Task[object] = asyncio.create_task(again())
        self._behind.add(task)
        task.add_done_callback(self._behind.discard)

    def _note(self, what: str) -> None:
        self.did[what] += 1
