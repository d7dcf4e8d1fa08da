"""What tries say of their work besides their results."""

from __future__ import annotations

from psycopg.rows import dict_row

from evenflow.store.db.connect import AsyncConn, Row
from evenflow.store.db.sql import sql


async def write(conn: AsyncConn, *, epoch: int, kind: str, value: str) -> bool:
    """Whether the try still runs; ``value`` is a JSON object."""
    cursor = await conn.execute(sql("records/write"), {"epoch": epoch, "kind": kind, "value": value}, prepare=True)
    return await cursor.fetchone() is not None


async def read_lineage(
    conn: AsyncConn, *, dag_id: str, run_id: str, task_id: str, map_index: int, try_number: int | None
) -> Row | None:
    """Of the newest try that has told, where none is asked for."""
    names = {"dag_id": dag_id, "run_id": run_id, "task_id": task_id, "map_index": map_index, "try_number": try_number}
    return await (await conn.cursor(row_factory=dict_row).execute(sql("records/read_lineage"), names)).fetchone()


async def read_spark_ui(conn: AsyncConn, *, dag_id: str, run_id: str, task_id: str, map_index: int) -> Row | None:
    """Of the newest try that has told."""
    names = {"dag_id": dag_id, "run_id": run_id, "task_id": task_id, "map_index": map_index}
    return await (await conn.cursor(row_factory=dict_row).execute(sql("records/read_spark_ui"), names)).fetchone()


async def take_unsent(conn: AsyncConn, *, limit: int, again_s: float) -> list[Row]:
    """As :func:`read_lineage` has it. Who does not tell that it was sent leaves it to others after ``again_s`` seconds."""
    names = {"limit": limit, "again_s": again_s}
    return await (await conn.cursor(row_factory=dict_row).execute(sql("records/take_unsent"), names)).fetchall()


async def tell_sent(conn: AsyncConn, *, run_key: int, epoch: int) -> None:
    await conn.execute(sql("records/tell_sent"), {"run_key": run_key, "epoch": epoch})
