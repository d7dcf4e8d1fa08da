"""Tokens for the workers of one try each, which launchers put beside pods. Who makes them has the keys, as an API has."""

from __future__ import annotations

import asyncio
import socket
import time

from evenflow.api.keys import check_keys
from evenflow.api.token_watch import read_keys
from evenflow.api.tokens import TRY_TTL_S, FleetToken, mint
from evenflow.api.vault import Vault
from evenflow.store.db.connect import connect_async
from evenflow.store.serving.tokens import KeyState

FRESH_S = 10.0  # keys are read anew: a key that is gone makes tokens that are void, and pods that do not start


class LaunchTokens:
    """Implements :class:`evenflow.launcher.executor.TryTokens`. Methods raise :class:`SecretsError` without the right keys."""

    def __init__(self, database_url: str, vault: Vault) -> None:
        self._url, self._vault = database_url, vault
        self._state: KeyState | None = None
        self._read_at = 0.0
        self._reading = asyncio.Lock()

    async def installation(self) -> str:
        return (await self._keys()).installation

    async def for_worker_of(self, epoch: int, queue: str) -> str:
        return mint(await self._keys(), FleetToken("worker", scope=(queue,), epoch=epoch), ttl=TRY_TTL_S)

    async def _keys(self) -> KeyState:
        async with self._reading:
            if self._state is None or time.monotonic() - self._read_at > FRESH_S:
                async with await connect_async(self._url, name="launch tokens") as conn:
                    if self._state is None:
                        await check_keys(conn, self._vault, host=socket.gethostname())
                    self._state, self._read_at = await read_keys(conn, self._vault), time.monotonic()
            return self._state
