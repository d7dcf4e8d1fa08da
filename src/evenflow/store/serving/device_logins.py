"""Command lines that ask to be logged in, and what people answer. Of both codes only digests are kept."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple, cast

from psycopg.rows import args_row, dict_row

from evenflow.core.people.roles import Role
from evenflow.store.db.connect import AsyncConn, Row
from evenflow.store.db.sql import sql
from evenflow.store.serving import tokens
from evenflow.store.serving.events import recorded
from evenflow.store.serving.tokens import digest_of


class Polled(NamedTuple):
    is_approved: bool | None  # None: not answered yet
    answered_by: str
    machine: str
    address: str
    role: str
    days: int
    polled_s: float | None  # how long ago it was asked before; None: never


async def begin(
    conn: AsyncConn,
    *,
    code: str,
    user_digest: bytes,
    machine: str,
    address: str,
    role: Role | None,
    days: int,
    ttl: float,
    most: int,
    most_here: int,
) -> datetime | None:
    """Until when a person may answer; without a ``role`` theirs is asked for. None: too many wait for an answer."""
    names = {
        "digest": digest_of(code),
        "user_digest": user_digest,
        "machine": machine,
        "address": address,
        "role": role,
        "days": days,
    }
    limited = {"ttl": ttl, "most": most, "most_here": most_here}
    row = await (await conn.execute(sql("devices/insert_one"), {**names, **limited})).fetchone()
    return cast(datetime, row[0]) if row is not None else None


async def find(conn: AsyncConn, user_digests: Sequence[bytes]) -> Row | None:
    """Returns the login that waits for an answer and shows this code."""
    cursor = conn.cursor(row_factory=dict_row)
    return await (await cursor.execute(sql("devices/find_one"), {"user_digests": list(user_digests)})).fetchone()


async def answer(
    conn: AsyncConn, user_digests: Sequence[bytes], *, is_approved: bool, role: Role, days: int, by: str
) -> Row | None:
    """Returns the answer. None: it was answered before, or its time is over."""
    names = {"user_digests": list(user_digests), "is_approved": is_approved, "role": role, "days": days, "by": by}
    async with conn.transaction():
        row = await (await conn.cursor(row_factory=dict_row).execute(sql("devices/answer_one"), names)).fetchone()
        if row is not None:
            action = "login.approve" if is_approved else "login.deny"
            async with recorded(conn, by, action, row["machine"], asked_from=row["address"], role=role, days=days):
                pass
    return row


async def poll(conn: AsyncConn, code: str) -> Polled | None:
    """Polls for the answer. An answered login is not found the next time: see :func:`give`. None: its time is over, or it was
    answered before.
    """
    cursor = conn.cursor(row_factory=args_row(Polled))
    return await (await cursor.execute(sql("devices/poll_one"), {"digest": digest_of(code)})).fetchone()


async def give(conn: AsyncConn, polled: Polled, *, ttl: float, most: int, key_id: int, digest: bytes) -> tuple[int, datetime]:
    """Returns the number of the user's token, and when it expires. The oldest of the user's tokens beyond ``most`` end."""
    user = polled.answered_by
    async with conn.transaction():
        await conn.execute(sql("devices/end_oldest"), {"user": user, "most": most})
        return await tokens.insert_token(
            conn,
            kind="operator",
            name=user,
            scope=(),
            role=Role(polled.role),
            by=user,
            ttl=ttl,
            key_id=key_id,
            digest=digest,
            user=user,
            address=polled.address,
            agent=polled.machine,
        )
