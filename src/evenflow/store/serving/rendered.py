"""What template fields became, for people."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from evenflow.store.db.connect import AsyncConn
from evenflow.store.db.sql import sql


class PreviousRunTimes(NamedTuple):
    data_interval_start: datetime | None
    data_interval_end: datetime | None
    started_at: datetime | None
    ended_at: datetime | None


async def write(conn: AsyncConn, *, epoch: int, fields: str) -> bool:
    """Whether the try still runs; ``fields`` is a JSON object."""
    cursor = await conn.execute(sql("rendered/write"), {"epoch": epoch, "fields": fields}, prepare=True)
    return await cursor.fetchone() is not None


async def read(conn: AsyncConn, *, dag_id: str, run_id: str, task_id: str, map_index: int) -> dict[str, str] | None:
    names = {"dag_id": dag_id, "run_id": run_id, "task_id": task_id, "map_index": map_index}
    row = await (await conn.execute(sql("rendered/read"), names)).fetchone()
    return None if row is None else dict(row[0])


async def previous_run(conn: AsyncConn, run_key: int) -> PreviousRunTimes | None:
    """The last successful run of the same DAG before this one."""
    row = await (await conn.execute(sql("runs/read_previous"), {"run_key": run_key})).fetchone()
    return None if row is None else PreviousRunTimes(*row)
