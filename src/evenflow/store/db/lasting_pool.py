"""A pool of connections that outlives its server: working again as soon as that is, however long it was away."""

from __future__ import annotations

import asyncio
import select
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg
from psycopg_pool import AsyncConnectionPool
from psycopg_pool.pool_async import AddConnection

RECONNECT_S = 0.5  # between attempts; the library would look ever more rarely, in the end once in minutes
FOR_EVER_S = 1e9


class LastingPool(AsyncConnectionPool[psycopg.AsyncConnection[Any]]):
    """Connections that died are found before anyone gets them; the first one that is found has all others looked at."""

    def __init__(self, url: str, **options: Any) -> None:
        super().__init__(url, reconnect_timeout=FOR_EVER_S, check=self._check_if_it_speaks, open=False, **options)
        self._checking: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def connection(self, timeout: float | None = None) -> AsyncIterator[psycopg.AsyncConnection[Any]]:  # noqa: ASYNC109 as the library has it
        """One that turns out to be read-only is of a server that was demoted: the next one leads to another."""
        async with super().connection(timeout) as conn:
            try:
                yield conn
            except psycopg.errors.ReadOnlySqlTransaction:
                await conn.close()
                raise

    async def schedule_task(self, task: Any, delay: float) -> None:
        await super().schedule_task(task, min(delay, RECONNECT_S) if isinstance(task, AddConnection) else delay)

    async def _check_if_it_speaks(self, conn: psycopg.AsyncConnection[Any]) -> None:
        """An idle connection has nothing to read; one that has was closed, or is about to be. Asking the server each time costs a
        round trip.
        """
        socket = select.poll()
        socket.register(conn.fileno(), select.POLLIN)
        if socket.poll(0):
            try:
                await self.check_connection(conn)
            except psycopg.Error:
                if self._checking is None or self._checking.done():
                    self._checking = asyncio.create_task(self.check(), name=f"check {self.name}")
                raise
