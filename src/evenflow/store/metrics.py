"""What the metrics are made of. All of it is in the tables anyway; nothing is counted for them alone."""

from __future__ import annotations

from typing import Any, NamedTuple

from psycopg import AsyncConnection
from psycopg.rows import args_row

from evenflow.store.sql import sql

Conn = AsyncConnection[Any]


class SchedulerDetail(NamedTuple):
    name: str
    detail: dict[str, Any]  # as ``scheduler.tally`` writes it


class LimitUse(NamedTuple):
    kind: str  # pool, executor
    name: str
    capacity: int
    used: int


class LaneCount(NamedTuple):
    open: int
    parked: int
    paused: int
    ready: int  # tasks that are ready and have not started


async def read_schedulers(conn: Conn) -> list[SchedulerDetail]:
    cursor = conn.cursor(row_factory=args_row(SchedulerDetail))
    return await (await cursor.execute(sql("metrics/read_schedulers"))).fetchall()


async def read_limits(conn: Conn) -> list[LimitUse]:
    cursor = conn.cursor(row_factory=args_row(LimitUse))
    return await (await cursor.execute(sql("metrics/read_limits"))).fetchall()


async def count_lanes(conn: Conn) -> LaneCount:
    row = await (await conn.execute(sql("metrics/count_lanes"))).fetchone()
    assert row is not None
    return LaneCount(*row)
