"""What tries say of their work besides their results."""

from __future__ import annotations

from evenflow.store.db.connect import Conn
from evenflow.store.db.sql import sql


async def write(conn: Conn, *, epoch: int, kind: str, value: str) -> bool:
    """Whether the try still runs; ``value`` is a JSON object."""
    cursor = await conn.execute(sql("try_records/write"), {"epoch": epoch, "kind": kind, "value": value}, prepare=True)
    return await cursor.fetchone() is not None
