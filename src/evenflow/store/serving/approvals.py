"""Tasks that wait for people, and what these answered. For the API."""

from __future__ import annotations

from psycopg.rows import dict_row

from evenflow.store.db.connect import AsyncConn, Row
from evenflow.store.db.instant import read
from evenflow.store.db.sql import sql


async def list_waiting(
    conn: AsyncConn,
    *,
    dag_id: str | None = None,
    run_id: str | None = None,
    task_id: str | None = None,
    map_index: int | None = None,
    scope: str | None = None,
    limit: int = 1,
    after: str | None = None,
) -> list[Row]:
    """What is asked is sealed in them."""
    names = {"dag_id": dag_id, "run_id": run_id, "task_id": task_id, "map_index": map_index, "scope": scope}
    return await read(conn, "approvals/list_waiting", {**names, "limit": limit, "after": after})


async def lock_run(conn: AsyncConn, dag_id: str, run_id: str) -> bool:
    """Locks the run, in a transaction of the caller; returns whether a person's request about it is not decided yet."""
    row = await (await conn.execute(sql("approvals/lock_run"), {"dag_id": dag_id, "run_id": run_id})).fetchone()
    return row is not None and bool(row[0])


async def find_answer(conn: AsyncConn, run_key: int, *, task_id: str, map_index: int) -> Row | None:
    names = {"run_key": run_key, "task_id": task_id, "map_index": map_index}
    return await (await conn.cursor(row_factory=dict_row).execute(sql("approvals/find_answer"), names)).fetchone()


async def insert_answer(conn: AsyncConn, waiting: Row, *, choice: str, answered_by: str) -> Row:
    """Of one of :func:`list_waiting`, under the lock of its run."""
    key = {name: waiting[name] for name in ("run_key", "task_index", "map_index", "epoch")}
    cursor = conn.cursor(row_factory=dict_row)
    await cursor.execute(sql("approvals/insert_answer"), {**key, "choice": choice, "answered_by": answered_by})
    row = await cursor.fetchone()
    assert row is not None
    return row
