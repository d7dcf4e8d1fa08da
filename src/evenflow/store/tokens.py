"""Keys that sign tokens, and which tokens were given out. Their text is nowhere."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from psycopg import AsyncConnection
from psycopg.rows import args_row

from evenflow.store.events import recorded
from evenflow.store.sql import sql

Conn = AsyncConnection[Any]

KEY_BYTES = 32  # what HS256 asks for


@dataclass(frozen=True, slots=True)
class KeyState:
    """What decides whether a token is good, as of one moment."""

    keys: Mapping[int, bytes]  # at least one; the greatest number signs
    revoked: frozenset[int]  # numbers of tokens
    incarnation: int  # of the database: 0, or since when it has its state from a backup
    quiet_s: float  # until tries may be given to workers; not above 0: now


class GivenToken(NamedTuple):
    token_id: int
    kind: str
    name: str
    scope: list[str]  # queues, of a processor bundles; none: all
    created_at: datetime
    created_by: str
    expires_at: datetime
    revoked_at: datetime | None
    revoked_by: str | None
    key_id: int
    state: str  # good, revoked, expired, void: its key is gone


async def read_keys(conn: Conn, *, quiet_s: float) -> KeyState:
    """The first who asks makes a key. ``quiet_s``: how long no try is given out after a restore."""
    while True:
        row = await (await conn.execute(sql("tokens/read_keys"), {"quiet_s": quiet_s})).fetchone()
        assert row is not None
        keys, revoked, incarnation, left_s = row
        if keys:
            values = {int(number): bytes.fromhex(value) for number, value in keys.items()}
            return KeyState(values, frozenset(revoked), incarnation, left_s)
        await conn.execute(sql("tokens/make_key"), {"value": secrets.token_bytes(KEY_BYTES)})


async def add_key(conn: Conn, *, keep: bool, by: str) -> int:
    """The number of a new key. With ``keep`` the one before it stays, else all others go, and what they signed is void."""
    async with recorded(conn, by, "token.rotate", "keys", at_once=not keep) as detail:
        await conn.execute(sql("tokens/lock_keys"))
        names = {"keep": keep, "value": secrets.token_bytes(KEY_BYTES)}
        row = await (await conn.execute(sql("tokens/add_key"), names)).fetchone()
        assert row is not None
        detail["key"], detail["gone"] = row
        await conn.execute(sql("tokens/notify"))
    return int(row[0])


async def insert_token(conn: Conn, *, kind: str, name: str, scope: Sequence[str], by: str, ttl: float, key_id: int) -> int:
    """The number of a token that is good for ``ttl`` seconds."""
    names = {"kind": kind, "name": name, "scope": list(scope), "by": by, "ttl": ttl, "key_id": key_id}
    async with recorded(conn, by, "token.create", name, kind=kind, scope=list(scope)) as detail:
        row = await (await conn.execute(sql("tokens/insert_one"), names)).fetchone()
        assert row is not None
        detail["token"] = row[0]
    return int(row[0])


async def list_tokens(conn: Conn) -> list[GivenToken]:
    """The newest first."""
    return await (await conn.cursor(row_factory=args_row(GivenToken)).execute(sql("tokens/list_all"))).fetchall()


async def revoke_made_by(conn: Conn, by: str) -> None:
    """What ``by`` has made is refused by every API from now on."""
    async with conn.transaction():
        rows = await (await conn.execute(sql("tokens/revoke_made_by"), {"by": by})).fetchall()
        if rows:
            async with recorded(conn, by, "token.revoke", by, tokens=[token_id for (token_id,) in rows]):
                await conn.execute(sql("tokens/notify"))


async def revoke(conn: Conn, token_id: int, *, by: str) -> tuple[str, str] | None:
    """Kind and name of the token, which every API refuses from now on; None when there is none of this number."""
    async with conn.transaction():
        row = await (await conn.execute(sql("tokens/revoke"), {"token_id": token_id, "by": by})).fetchone()
        if row is None:
            return None
        async with recorded(conn, by, "token.revoke", row[1], kind=row[0], token=token_id):
            await conn.execute(sql("tokens/notify"))
    return str(row[0]), str(row[1])
