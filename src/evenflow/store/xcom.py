"""Values that tasks push and pull. All are JSON text here: what they mean is the tasks' business."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg import AsyncConnection

from evenflow.store.failures import not_storable
from evenflow.store.sql import sql

Conn = AsyncConnection[Any]


async def push(conn: Conn, *, epoch: int, key: str, value: str) -> bool:
    """Whether the try still runs and so the value was stored. Raises :class:`XComError` when it is not JSON for the database."""
    try:
        row = await (await conn.execute(sql("xcom/push"), {"epoch": epoch, "key": key, "value": value}, prepare=True)).fetchone()
    except psycopg.DataError as error:
        raise not_storable(f"The XCom {key!r}", error) from None
    return row is not None


async def pull_one(conn: Conn, *, run_key: int, task_index: int, map_index: int, key: str) -> str | None:
    names = {"run_key": run_key, "task_index": task_index, "map_index": map_index, "key": key}
    row = await (await conn.execute(sql("xcom/pull_one"), names, prepare=True)).fetchone()
    return None if row is None else str(row[0])


async def pull_mapped(conn: Conn, *, run_key: int, task_index: int, key: str, limit: int) -> str | None:
    """The values of all instances of a mapped task as a JSON list in map order; null above ``limit`` bytes."""
    names = {"run_key": run_key, "task_index": task_index, "key": key, "limit": limit}
    row = await (await conn.execute(sql("xcom/pull_mapped"), names, prepare=True)).fetchone()
    assert row is not None
    return None if row[0] is None else str(row[0])
