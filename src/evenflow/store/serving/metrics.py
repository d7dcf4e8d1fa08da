"""What the metrics of the system are made of. All of it is in the tables anyway, nothing is counted for them alone, and none of
these statements costs more the longer the backlog is.
"""

from __future__ import annotations

from typing import NamedTuple

from psycopg.rows import args_row, kwargs_row

from evenflow.contracts.rest.plan import LimitUse
from evenflow.core.limits import MOST_COUNTED, PARTITIONS_AHEAD
from evenflow.store.db.connect import AsyncConn
from evenflow.store.db.sql import sql

HOT_TABLES = (
    "dag_run",
    "deferral",
    "dispatch",
    "lane",
    "ready_task",
    "report",
    "service",
    "task_instance",
    "timer",
    "upstream_counter",
    "wake",
)


class LaneCount(NamedTuple):
    open: int
    parked: int
    paused: int
    ready: int  # tasks that are ready and have not started


class Backlog(NamedTuple):
    """Counts end at :data:`MOST_COUNTED`."""

    runs_queued: int
    runs_running: int
    reports_waiting: int
    reports_oldest_s: float | None
    dag_files_broken: int


class TriggerCount(NamedTuple):
    """Counts end at :data:`MOST_COUNTED`."""

    waiting: int
    running: int


class DatabaseState(NamedTuple):
    bytes: int
    oldest_snapshot_s: float
    lock_waits: int
    active: int
    idle: int
    idle_in_transaction: int


class TableRows(NamedTuple):
    table: str
    live: int
    dead: int


async def read_limits(conn: AsyncConn) -> list[LimitUse]:
    """Of pools and executors."""
    cursor = conn.cursor(row_factory=kwargs_row(LimitUse))
    return await (await cursor.execute(sql("metrics/read_limits"))).fetchall()


async def count_lanes(conn: AsyncConn) -> LaneCount:
    row = await (await conn.execute(sql("metrics/count_lanes"), {"most": MOST_COUNTED})).fetchone()
    assert row is not None
    return LaneCount(*row)


async def read_backlog(conn: AsyncConn, *, scope: str | None = None) -> Backlog:
    """``scope``: in which queued runs are counted."""
    row = await (await conn.execute(sql("metrics/read_backlog"), {"most": MOST_COUNTED, "scope": scope})).fetchone()
    assert row is not None
    return Backlog(*row)


async def read_history_days(conn: AsyncConn) -> int:
    """For how many days after today history has its partition; -1 when today has none."""
    row = await (await conn.execute(sql("partitions/read_days_ahead"), {"most": PARTITIONS_AHEAD})).fetchone()
    assert row is not None
    return int(row[0])


async def count_triggers(conn: AsyncConn, *, scope: str | None = None) -> TriggerCount:
    row = await (await conn.execute(sql("metrics/count_triggers"), {"most": MOST_COUNTED, "scope": scope})).fetchone()
    assert row is not None
    return TriggerCount(*row)


async def read_database(conn: AsyncConn) -> DatabaseState:
    row = await (await conn.execute(sql("metrics/read_database"))).fetchone()
    assert row is not None
    return DatabaseState(*row)


async def read_tables(conn: AsyncConn) -> list[TableRows]:
    cursor = conn.cursor(row_factory=args_row(TableRows))
    return await (await cursor.execute(sql("metrics/read_tables"), {"tables": list(HOT_TABLES)})).fetchall()
