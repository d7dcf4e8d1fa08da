"""Keeps what an API process knows of keys and revoked tokens as the database has it: at once when one is changed, and every few
seconds what was missed.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging

from evenflow.api.limits import KEYS_CHECK
from evenflow.api.server_watch import SET_BACK
from evenflow.api.tokens import Tokens
from evenflow.api.vault import Vault
from evenflow.core.limits import LEASE_S
from evenflow.errors import DatabaseSetBack
from evenflow.store import tokens as stored
from evenflow.store.connect import AsyncPool
from evenflow.store.tokens import Conn, KeyState

log = logging.getLogger(__name__)


async def read_keys(conn: Conn, vault: Vault) -> KeyState:
    """Workers from before a restore have stopped all that they ran when their last lease is over; no try is given out earlier
    (R-CS7).
    """
    return await stored.read_keys(conn, vault, quiet_s=LEASE_S)


class TokenWatch:
    """``state`` is what ``tokens`` was made with."""

    def __init__(self, pool: AsyncPool, vault: Vault, tokens: Tokens, state: KeyState) -> None:
        self._pool, self._vault, self._tokens, self._state = pool, vault, tokens, state
        self._signal = asyncio.Event()

    def wake(self) -> None:
        """Something was changed."""
        self._signal.set()

    async def run(self) -> None:
        """Raises :class:`DatabaseSetBack` when the database is another one than this process has begun with: what it remembers of
        versions and runs may be wrong.
        """
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(KEYS_CHECK):
                    await self._signal.wait()
            self._signal.clear()
            try:
                async with self._pool.connection() as conn:
                    state = await read_keys(conn, self._vault)
            except Exception as error:  # the next look may be luckier; nothing else can be asked of the database either
                log.warning("keys of tokens not read: %s", error)
                continue
            if state.incarnation != self._state.incarnation:
                raise DatabaseSetBack(SET_BACK)
            known = self._state
            if (state.keys, state.revoked, state.lapsed) != (known.keys, known.revoked, known.lapsed):
                log.info("tokens: keys %s, %d revoked, %d lapsed", sorted(state.keys), len(state.revoked), len(state.lapsed))
                self._tokens.use(state)
            self._state = state
