"""Pools: how many slots tasks may take of something scarce."""

from __future__ import annotations

from typing import Any

from psycopg import AsyncConnection
from psycopg.rows import dict_row

from evenflow.store.dags import notify, reparse_failed
from evenflow.store.sql import sql

Conn = AsyncConnection[Any]


async def list_pools(conn: Conn) -> list[dict[str, Any]]:
    """All pools: name, description, slots, used."""
    return await (await conn.cursor(row_factory=dict_row).execute(sql("pools/list_all"))).fetchall()


async def set_pool(conn: Conn, name: str, *, slots: int, description: str | None) -> None:
    """Makes or changes a pool. DAG files that were refused for want of it are parsed again."""
    async with conn.transaction():
        await conn.execute(sql("pools/set_one"), {"name": name, "slots": slots, "description": description})
        await reparse_failed(conn)
        await notify(conn)
