"""Makes tokens for people, for fleets and for the workers of single tries. It needs access to the database and the keys that open
the signing keys, but no API.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from types import MappingProxyType
from typing import NoReturn

import psycopg

from evenflow.api.keys import check_keys
from evenflow.api.token_making import LASTS_S, TokenMaker
from evenflow.api.token_watch import read_keys
from evenflow.api.tokens import (
    LEASED_S,
    LEASED_TTL_S,
    RENEW_S,
    TRY_TTL_S,
    FleetToken,
    mint,
)
from evenflow.api.vault import Vault
from evenflow.contracts.rest.tokens import TokenSummary
from evenflow.core.people.roles import Role
from evenflow.core.people.scopes import Rights
from evenflow.core.service import TokenKind
from evenflow.errors import EvenflowError
from evenflow.forking.boot_clock import boot_time
from evenflow.runtime.service_settings import SECRETS_FILE
from evenflow.runtime.settings import Settings
from evenflow.store.db.connect import AsyncConn, connect_async
from evenflow.store.serving import tokens as stored
from evenflow.store.serving.tokens import KeyState

LOOK_S = 5.0  # how often it checks whether tokens must be renewed: after a clock jump of an hour, they are void for this long
NO_SCOPES: Mapping[TokenKind, Sequence[str]] = MappingProxyType({})


def vault_of(settings: Settings) -> Vault:
    """Returns the vault with the keys of a setting, or of the file in the home."""
    keys = settings.secret_keys.get_secret_value() if settings.secret_keys else ""
    return Vault(settings.home / SECRETS_FILE, keys)


@asynccontextmanager
async def token_maker(database_url: str, vault: Vault) -> AsyncIterator[TokenMaker]:
    """Yields what makes tokens of this database while the context lasts. A leased token is valid while :func:`keep_tokens` runs.
    Raises :class:`SecretsError`.
    """
    async with await connect_async(database_url, name="tokens") as conn:
        yield TokenMaker(conn, await _keys(conn, vault))


async def create_tokens(
    database_url: str, vault: Vault, *, name: str, by: str = "evenflow up", scopes: Mapping[TokenKind, Sequence[str]] = NO_SCOPES
) -> dict[str, str]:
    """Makes one of each kind for an ``evenflow up``, which restarts services while it runs, and keeps their tokens by
    :func:`keep_tokens`. Earlier tokens of ``by`` become void.
    """
    async with token_maker(database_url, vault) as maker:
        await stored.revoke_made_by(maker.conn, by)
        lent = partial(maker.make, name=name, by=by, rights=Rights(Role.ADMIN), ttl=LEASED_TTL_S, leased=True)
        made = [await lent(kind, serves=scopes.get(kind, ())) for kind in LASTS_S]
        return {given.kind: given.token for given in made}


async def keep_tokens(database_url: str, *, by: str, say: Callable[[str], None]) -> NoReturn:
    """Renews the leased tokens of ``by`` until it is cancelled, so that a killed process leaves no token that is valid for long.
    The text stays the same, so no service needs an update. The database's clock decides when, because tokens expire by it: it may
    step, and runs while this host is suspended.
    """
    looked, failed = boot_time(), False
    while True:
        try:
            async with await connect_async(database_url, name="tokens") as conn:
                while True:
                    await asyncio.sleep(LOOK_S)
                    await stored.renew_made_by(conn, by, lease=LEASED_S, every=RENEW_S)
                    looked, failed = boot_time(), False
        except (EvenflowError, psycopg.Error, OSError) as error:
            if not failed and boot_time() - looked >= RENEW_S:
                say(f"tokens are not renewed, and will be good for nothing {LEASED_S / 60:g} minutes after they were: {error}")
                failed = True
        await asyncio.sleep(LOOK_S)


async def revoke_tokens(database_url: str, *, by: str) -> None:
    """Revokes the tokens that ``by`` has made."""
    async with await connect_async(database_url, name="tokens") as conn:
        await stored.revoke_made_by(conn, by)


async def _keys(conn: AsyncConn, vault: Vault) -> KeyState:
    """Returns the keys. Raises :class:`SecretsError`, which says whose keys would fit."""
    await check_keys(conn, vault, host=socket.gethostname())
    return await read_keys(conn, vault)


async def rotate_keys(database_url: str, vault: Vault, *, at_once: bool, by: str) -> tuple[int, Sequence[TokenSummary]]:
    """Makes a new key. Returns its number, and the valid tokens that became void because their key was removed."""
    async with await connect_async(database_url, name="tokens") as conn:
        await _keys(conn, vault)
        before = {row["token_id"] for row in await stored.list_tokens(conn, state="good")}
        key = await stored.add_key(conn, vault, keep=not at_once, by=by)
        void = [row for row in await stored.list_tokens(conn, state="void") if row["token_id"] in before]
        return key, [TokenSummary.model_validate(row) for row in void]


FRESH_S = 10.0  # how often keys are read: a removed key makes void tokens, and pods that do not start


class LaunchTokens:
    """Makes tokens for workers that launchers put beside pods. Implements :class:`evenflow.launcher.executor.TryTokens`; methods
    raise :class:`SecretsError` without the right keys.
    """

    def __init__(self, database_url: str, vault: Vault) -> None:
        self._url, self._vault = database_url, vault
        self._state: KeyState | None = None
        self._read_at = 0.0
        self._reading = asyncio.Lock()

    async def installation(self) -> str:
        return (await self._keys()).installation

    async def for_worker_of(self, epoch: int, queue: str, name: str) -> str:
        return mint(await self._keys(), FleetToken("worker", scope=(queue,), epoch=epoch, worker=name), ttl=TRY_TTL_S)

    async def _keys(self) -> KeyState:
        async with self._reading:
            if self._state is None or time.monotonic() - self._read_at > FRESH_S:
                async with await connect_async(self._url, name="launch tokens") as conn:
                    if self._state is None:
                        await check_keys(conn, self._vault, host=socket.gethostname())
                    self._state, self._read_at = await read_keys(conn, self._vault), time.monotonic()
            return self._state
