"""Keeps an API process's keys and revoked tokens equal to those in the database: at once after a change, and within seconds after a
missed notification. The server behind each new connection is checked before its first other use (R-HA18).
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import psycopg

from evenflow.api import observations as seen
from evenflow.api.limits import KEYS_CHECK
from evenflow.api.tokens import Tokens
from evenflow.api.vault import Vault
from evenflow.core.limits import LEASE_S
from evenflow.errors import DatabaseSetBack
from evenflow.store.db.connect import AsyncConn, AsyncPool, connect
from evenflow.store.scheduling.incarnation import find_server_async, notice_server
from evenflow.store.serving import tokens as stored
from evenflow.store.serving.tokens import KeyState
from evenflow.telemetry.observing import observe


async def read_keys(conn: AsyncConn, vault: Vault) -> KeyState:
    """Reads the keys. Workers from before a restore stop all tries by the end of their last lease; no try is given out earlier
    (R-CS7).
    """
    return await stored.read_keys(conn, vault, quiet_s=LEASE_S)


class TokenWatch:
    """``state`` is the state with which ``tokens`` was made. ``tokens`` has this object look for tokens that it does not know."""

    def __init__(self, pool: AsyncPool, vault: Vault, tokens: Tokens, state: KeyState) -> None:
        self._pool, self._vault, self._tokens, self._used, self._incarnation = pool, vault, tokens, state, state.incarnation
        self._signal = asyncio.Event()
        self._looking, self._looks = asyncio.Lock(), 0  # the number of looks that have begun
        tokens.look = self.look

    def wake(self) -> None:
        """Says that keys or tokens changed."""
        self._signal.set()

    async def look(self) -> None:
        """Returns when what the database had at the time of the call is in use. One look at a time serves all callers that arrived
        meanwhile.
        """
        begun = self._looks
        async with self._looking:
            if self._looks == begun:
                self._looks += 1
                self._use(await self._read())

    async def _read(self) -> KeyState:
        async with self._pool.connection() as conn:
            return await read_keys(conn, self._vault)

    def _use(self, state: KeyState) -> None:
        if not state.agrees(self._used):
            keys = ", ".join(map(str, sorted(state.keys)))
            observe(seen.keys_read(keys, len(state.listed), len(state.revoked), len(state.lapsed)))
            self._tokens.use(state)
            self._used = state

    async def run(self) -> None:
        """Raises :class:`DatabaseSetBack` when the database is not the one that this process began with: what the process remembers
        of versions and runs may be wrong.
        """
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(KEYS_CHECK):
                    await self._signal.wait()
            self._signal.clear()
            async with self._looking:
                try:
                    state = await self._read()
                except Exception as error:  # a later look may succeed; other reads fail now, too
                    observe(seen.keys_not_read(str(error)))
                    continue
                if state.incarnation != self._incarnation:
                    raise DatabaseSetBack(SET_BACK)
                self._use(state)


SET_BACK = (
    "The database may have been set back while this API ran: a standby took over, or a backup was restored. The API begins anew."
)


class ServerWatch:
    """An API process remembers versions, runs and tokens of one incarnation of the database. When it meets another incarnation, it
    uses no connection any more, and starts anew.
    """

    def __init__(self, url: str, name: str) -> None:
        self._url, self._name = url, name
        self._incarnation: int | None = None  # with which this process began
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
        """Raises :class:`DatabaseSetBack` once a connection has met another incarnation."""
        await self._set_back.wait()
        raise DatabaseSetBack(SET_BACK)

    def _notice(self) -> None:
        with connect(self._url, name=self._name) as conn:
            found = notice_server(conn, by=self._name)
        if found is not None:
            observe(seen.server_changed(str(found)))
