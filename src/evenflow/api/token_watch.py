"""Keeps what an API process knows of keys and revoked tokens as the database has it: at once when one is changed, and every few
seconds what was missed.
"""

from __future__ import annotations

import asyncio
import contextlib

from evenflow.api import observations as seen
from evenflow.api.limits import KEYS_CHECK
from evenflow.api.server_watch import SET_BACK
from evenflow.api.tokens import Tokens
from evenflow.api.vault import Vault
from evenflow.core.limits import LEASE_S
from evenflow.errors import DatabaseSetBack
from evenflow.store.db.connect import AsyncConn, AsyncPool
from evenflow.store.serving import tokens as stored
from evenflow.store.serving.tokens import KeyState
from evenflow.telemetry.observing import observe


async def read_keys(conn: AsyncConn, vault: Vault) -> KeyState:
    """Workers from before a restore have stopped all that they ran when their last lease is over; no try is given out earlier
    (R-CS7).
    """
    return await stored.read_keys(conn, vault, quiet_s=LEASE_S)


class TokenWatch:
    """``state`` is what ``tokens`` was made with; it looks for tokens that these do not know."""

    def __init__(self, pool: AsyncPool, vault: Vault, tokens: Tokens, state: KeyState) -> None:
        self._pool, self._vault, self._tokens, self._used, self._incarnation = pool, vault, tokens, state, state.incarnation
        self._signal = asyncio.Event()
        self._looking, self._looks = asyncio.Lock(), 0  # that have begun
        tokens.look = self.look

    def wake(self) -> None:
        """Something was changed."""
        self._signal.set()

    async def look(self) -> None:
        """When it returns, what the database had when it was called counts. One looks at a time, for all who came meanwhile."""
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
        """Raises :class:`DatabaseSetBack` when the database is another one than this process has begun with: what it remembers of
        versions and runs may be wrong.
        """
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(KEYS_CHECK):
                    await self._signal.wait()
            self._signal.clear()
            async with self._looking:
                try:
                    state = await self._read()
                except Exception as error:  # the next look may be luckier; nothing else can be asked of the database either
                    observe(seen.keys_not_read(str(error)))
                    continue
                if state.incarnation != self._incarnation:
                    raise DatabaseSetBack(SET_BACK)
                self._use(state)
