"""Keys that sign tokens, and which tokens were given out. Keys are sealed, so the database alone is not enough to make a token;
the text of a token is stored nowhere.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Any, NamedTuple, cast

import psycopg
from psycopg.rows import args_row

from evenflow.core.people.roles import Role
from evenflow.core.people.scopes import PersonScope, Rights, scope_text
from evenflow.core.service import TokenState
from evenflow.errors import SecretsError
from evenflow.store.db.connect import AsyncConn, Row
from evenflow.store.db.instant import read
from evenflow.store.db.sql import sql
from evenflow.store.serving.events import recorded
from evenflow.store.serving.sealed import Seals

KEY_BYTES = 32  # what HS256 asks for
KEY = "token key"  # the kind that a key is sealed as, under its number


@dataclass(frozen=True, slots=True)
class KeyState:
    """What decides whether a token is good, as of one moment."""

    installation: str  # that tokens are of
    keys: Mapping[int, bytes]  # opened; at least one; the greatest number signs
    revoked: frozenset[int]  # numbers of tokens
    listed: Mapping[int, bytes]  # those that are good, with their digests
    incarnation: int  # of the database: 0, or since when it has its state from a backup
    quiet_s: float  # until tries may be given to workers; not above 0: now
    lapsed: frozenset[int] = frozenset()  # numbers of tokens whose maker has not renewed them for long
    rights: Mapping[int, Rights] = field(default_factory=dict)  # of people's tokens and sessions, as they are now

    def agrees(self, other: KeyState) -> bool:
        """Whether it says the same of every token."""
        return replace(self, quiet_s=0.0) == replace(other, quiet_s=0.0)


class NeglectedToken(NamedTuple):
    token_id: int
    kind: str
    name: str
    is_long: bool
    expires_at: date
    is_unused: bool


async def read_keys(conn: AsyncConn, seals: Seals, *, quiet_s: float) -> KeyState:
    """The first caller makes a key. ``quiet_s``: how long no try is given out after a restore. Raises :class:`SecretsError`."""
    while True:
        row = await (await conn.execute(sql("tokens/read_keys"), {"quiet_s": quiet_s})).fetchone()
        assert row is not None
        if row[0]:
            return key_state(row, seals)
        await conn.execute(sql("tokens/make_key"), {"value": _new_key(seals, 1)})


def key_state(row: Sequence[Any], seals: Seals) -> KeyState:
    """Of a row of tokens/read_keys."""
    sealed, revoked, lapsed, listed, rights, incarnation, left_s, installation = row
    keys = {int(number): _opened(seals, int(number), bytes.fromhex(value)) for number, value in sealed.items()}
    digests = {int(number): bytes.fromhex(value) for number, value in listed.items()}
    may = {
        int(number): Rights(Role(of["role"]), PersonScope.read(of["scope"]), of["is_vouched"], of["is_personal"])
        for number, of in rights.items()
    }
    return KeyState(installation, keys, frozenset(revoked), digests, incarnation, left_s, frozenset(lapsed), may)


def digest_of(jti: str) -> bytes:
    """The digest in the list of a token's own name, which it does not reveal."""
    return hashlib.sha256(jti.encode()).digest()


async def keys_fit(conn: AsyncConn, seals: Seals) -> bool:
    """Whether all keys that are there can be opened."""
    try:
        for number, value in await (await conn.execute(sql("tokens/list_keys"))).fetchall():
            _opened(seals, number, bytes(value))
    except SecretsError:
        return False
    return True


async def reseal_keys(conn: AsyncConn, seals: Seals) -> None:
    """In the transaction of the caller."""
    await conn.execute(sql("tokens/lock_keys"))
    for number, value in await (await conn.execute(sql("tokens/list_keys"))).fetchall():
        resealed = seals.reseal(KEY, str(number), bytes(value), what=_what(number))
        await conn.execute(sql("tokens/reseal_key"), {"key_id": number, "value": resealed})


def _new_key(seals: Seals, number: int) -> bytes:
    return seals.seal(KEY, str(number), secrets.token_hex(KEY_BYTES))


def _opened(seals: Seals, number: int, sealed: bytes) -> bytes:
    return bytes.fromhex(seals.open(KEY, str(number), sealed, what=_what(number)))


def _what(number: int) -> str:
    return f"The key {number} that signs tokens"


async def add_key(conn: AsyncConn, seals: Seals, *, keep: bool, by: str) -> int:
    """Returns the number of a new key. With ``keep`` the one before it stays; otherwise all others go, and what they signed is
    void.
    """
    async with recorded(conn, by, "token.rotate", "keys", at_once=not keep) as detail:
        await conn.execute(sql("tokens/lock_keys"))
        found = await (await conn.execute(sql("tokens/find_next_key"))).fetchone()
        assert found is not None
        names = {"keep": keep, "key_id": found[0], "value": _new_key(seals, found[0])}
        row = await (await conn.execute(sql("tokens/add_key"), names)).fetchone()
        assert row is not None
        detail["key"], detail["gone"] = row
        await conn.execute(sql("tokens/notify"))
    return int(row[0])


async def insert_token(
    conn: AsyncConn,
    *,
    kind: str,
    name: str,
    scope: Sequence[str],
    role: Role | None,
    limited_to: PersonScope | None = None,
    by: str,
    ttl: float,
    lease: float | None = None,
    key_id: int,
    digest: bytes,
    user: str | None = None,
    address: str | None = None,
    agent: str | None = None,
) -> tuple[int, datetime]:
    """Returns the number of a token that is good for ``ttl`` seconds, and when that ends. With a ``lease`` it is good for that many
    seconds, and again when it is renewed. ``role`` is that of a person's token, and counts in ``limited_to`` alone. A token of a
    ``user`` never allows more than the user may at that moment; this machine (``agent``) asked for it from this ``address``.
    """
    given = {"kind": kind, "name": name, "scope": list(scope), "role": role}
    names = {
        **given,
        "limited_to": scope_text(limited_to),
        "user": user,
        "address": address,
        "agent": agent,
        "by": by,
        "ttl": ttl,
        "lease": lease,
        "key_id": key_id,
        "digest": digest,
    }
    told: dict[str, Any] = (
        {"role": role, **(limited_to.named if limited_to else {})} if role is not None else {"scope": list(scope)}
    )
    async with recorded(conn, by, "token.create", name, kind=kind, **told) as detail:
        row = await (await conn.execute(sql("tokens/insert_one"), names)).fetchone()
        assert row is not None
        token_id, expires_at = row
        detail["token"] = token_id
    return token_id, expires_at


async def insert_login_code(conn: AsyncConn, code: str, *, name: str, token_id: int, ttl: float) -> datetime:
    """Until when the code is good."""
    names = {"digest": digest_of(code), "name": name, "token_id": token_id, "ttl": ttl}
    row = await (await conn.execute(sql("tokens/insert_login_code"), names)).fetchone()
    assert row is not None
    return cast(datetime, row[0])


async def take_login_code(conn: AsyncConn, code: str) -> tuple[str, int] | None:
    """Returns the person of a code, and the number of the token that asked for it; from now on the code is void. None: it was taken
    before, its time or that token is over, or it never existed.
    """
    row = await (await conn.execute(sql("tokens/take_login_code"), {"digest": digest_of(code)})).fetchone()
    return (row[0], row[1]) if row is not None and row[2] else None


async def list_tokens(
    conn: AsyncConn, *, kind: str | None = None, state: TokenState | None = None, limit: int | None = None, after: str | None = None
) -> list[Row]:
    """Of one kind or in one state, or all; the newest first."""
    names = {"kind": kind, "state": state, "limit": limit, "after": after}
    return await read(conn, "tokens/list_all", names)


async def renew_made_by(conn: AsyncConn, by: str, *, lease: float, every: float) -> None:
    """Renews what ``by`` has made on a lease, for ``lease`` seconds from now, unless that happened within the last ``every``."""
    async with conn.transaction():
        rows = await (await conn.execute(sql("tokens/renew_made_by"), {"by": by, "lease": lease, "every": every})).fetchall()
        if any(had_lapsed for (had_lapsed,) in rows):
            await conn.execute(sql("tokens/notify"))


async def mark_used(conn: AsyncConn, token_ids: Collection[int]) -> None:
    await conn.execute(sql("tokens/mark_used"), {"token_ids": list(token_ids)})


def list_neglected(conn: psycopg.Connection[Any], *, long_days: int, unused_days: int, limit: int) -> list[NeglectedToken]:
    names = {"long_days": long_days, "unused_days": unused_days, "limit": limit}
    return conn.cursor(row_factory=args_row(NeglectedToken)).execute(sql("tokens/list_neglected"), names).fetchall()


async def revoke_made_by(conn: AsyncConn, by: str) -> None:
    """What ``by`` has made is refused by every API from now on."""
    async with conn.transaction():
        rows = await (await conn.execute(sql("tokens/revoke_made_by"), {"by": by})).fetchall()
        if rows:
            async with recorded(conn, by, "token.revoke", by, tokens=[token_id for (token_id,) in rows]):
                await conn.execute(sql("tokens/notify"))


async def revoke(conn: AsyncConn, token_id: int, *, by: str) -> tuple[str, str] | None:
    """Returns the kind and name of the token, which every API refuses from now on; None when no token has this number."""
    async with conn.transaction():
        row = await (await conn.execute(sql("tokens/revoke"), {"token_id": token_id, "by": by})).fetchone()
        if row is None:
            return None
        async with recorded(conn, by, "token.revoke", row[1], kind=row[0], token=token_id):
            await conn.execute(sql("tokens/notify"))
    return str(row[0]), str(row[1])
