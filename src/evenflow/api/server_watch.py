"""The server behind each new connection, looked at before anything else is asked of it (R-HA18).

What an API process remembers of versions, runs and tokens is of one incarnation of the database. When it meets another it uses no
connection any more, and begins anew.
"""

from __future__ import annotations

import asyncio
from typing import Any

import psycopg

from evenflow.api import observations as seen
from evenflow.errors import DatabaseSetBack
from evenflow.store.db.connect import connect
from evenflow.store.scheduling.incarnation import find_server_async, notice_server
from evenflow.telemetry.observing import observe

SET_BACK = (
    "The database may have been set back while this API ran: a standby took over, or a backup was restored. The API begins anew."
)


class ServerWatch:
    def __init__(self, url: str, name: str) -> None:
        self._url, self._name = url, name
        self._incarnation: int | None = None  # that this process began with
        self._set_back = asyncio.Event()

    @property
    def is_set_back(self) -> bool:
        return self._set_back.is_set()

    async def look(self, conn: psycopg.AsyncConnection[Any]) -> None:
        """Raises :class:`DatabaseSetBack` when this process has begun with another incarnation."""
        found = await find_server_async(conn)
        if found.is_new:
            await asyncio.to_thread(self._notice)
            found = await find_server_async(conn)
        if self._incarnation is None:
            self._incarnation = found.incarnation
        if found.incarnation != self._incarnation:
            self._set_back.set()
            raise DatabaseSetBack(SET_BACK)

    async def run(self) -> None:
        """Raises :class:`DatabaseSetBack` as soon as a connection has met it."""
        await self._set_back.wait()
        raise DatabaseSetBack(SET_BACK)

    def _notice(self) -> None:
        with connect(self._url, name=self._name) as conn:
            found = notice_server(conn, by=self._name)
        if found is not None:
            observe(seen.server_changed(str(found)))
