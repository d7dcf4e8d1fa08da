"""What task instances store once, for all their tries: ids of what they have made outside, and the keys to make it with."""

from __future__ import annotations

from typing import NamedTuple

from evenflow.store.db.connect import AsyncConn
from evenflow.store.db.failures import BAD_VALUE, not_storable
from evenflow.store.db.sql import sql


class OnceValue(NamedTuple):
    """Neither a value nor a sealed one: nothing is stored yet."""

    key: str
    value: str | None  # JSON
    sealed: bytes | None


async def ask(conn: AsyncConn, *, epoch: int, name: str, limit: int) -> OnceValue | None:
    """None when the try is over, or when its task instance has ``limit`` other names."""
    row = await (await conn.execute(sql("once/ask"), {"epoch": epoch, "name": name, "limit": limit}, prepare=True)).fetchone()
    return None if row is None else OnceValue(*row)


async def store(conn: AsyncConn, *, epoch: int, name: str, value: str | None, sealed: bytes | None) -> OnceValue | None:
    """What is stored then, which is what was there first; None when the try is over or has not asked for the name.

    Raises :class:`XComError` when the value is not JSON that the database can hold.
    """
    names = {"epoch": epoch, "name": name, "value": value, "sealed": sealed}
    try:
        row = await (await conn.execute(sql("once/set"), names, prepare=True)).fetchone()
    except BAD_VALUE as error:
        raise not_storable(f"What is to be stored once as {name!r}", error) from None
    return None if row is None else OnceValue(*row)


async def forget(conn: AsyncConn, *, epoch: int, name: str) -> bool:
    """Whether the try still runs."""
    cursor = await conn.execute(sql("once/forget"), {"epoch": epoch, "name": name}, prepare=True)
    return await cursor.fetchone() is not None
