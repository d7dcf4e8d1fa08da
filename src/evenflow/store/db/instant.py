"""Several statements that see the database at one instant, and change nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from psycopg import IsolationLevel
from psycopg.rows import dict_row

from evenflow.store.db.connect import AsyncConn, Row
from evenflow.store.db.sql import sql


@asynccontextmanager
async def one_instant(conn: AsyncConn) -> AsyncIterator[None]:
    """A transaction that reads one snapshot. For a few short statements: an old snapshot holds back vacuum."""
    await conn.set_isolation_level(IsolationLevel.REPEATABLE_READ)
    await conn.set_read_only(True)
    try:
        async with conn.transaction():
            yield
    finally:
        await conn.set_isolation_level(None)
        await conn.set_read_only(None)


async def read(conn: AsyncConn, name: str, params: Mapping[str, Any] | None = None) -> list[Row]:
    """Rows of a statement, by column. It is planned each time, with its values: a filter that is unused must not spoil the plan of
    one that is used, nor a page that begins at a place read all that is before it.
    """
    return await (await conn.cursor(row_factory=dict_row).execute(sql(name), params or {}, prepare=False)).fetchall()
