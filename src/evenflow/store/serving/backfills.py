"""Backfills as people ask for them and look at them; :mod:`evenflow.store.scheduling.backfills` makes their runs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from evenflow.core.timetable import TimetableRun
from evenflow.store.db.columns import instants, texts
from evenflow.store.db.connect import Conn, Row
from evenflow.store.db.instant import read
from evenflow.store.db.notify import INBOX
from evenflow.store.db.sql import sql


class NewBackfill(NamedTuple):
    dag_id: str
    from_date: datetime
    to_date: datetime
    is_reversed: bool
    reprocess: str
    max_active_runs: int
    params: str  # JSON
    priority: int
    actor: str


async def find_existing(conn: Conn, *, dag_id: str, from_date: datetime, to_date: datetime) -> dict[datetime, tuple[str, str]]:
    """(run_id, state) of the DAG's runs by logical date."""
    rows = await read(conn, "backfills/find_existing", {"dag_id": dag_id, "from_date": from_date, "to_date": to_date})
    return {row["logical_date"]: (row["run_id"], row["state"]) for row in rows}


async def insert(conn: Conn, backfill: NewBackfill, runs: Sequence[tuple[TimetableRun, str | None]]) -> int | None:
    """The number of a new backfill; null when the DAG has one that is not over. ``runs`` in their order, each with the reason why
    it is passed over, or None.
    """
    async with conn.transaction():
        row = await (await conn.execute(sql("backfills/insert_one"), backfill._asdict())).fetchone()
        if row is None:
            return None
        columns = {
            "logical_dates": instants(run.logical_date.isoformat() for run, _ in runs),
            "starts": instants(run.data_interval_start.isoformat() for run, _ in runs),
            "ends": instants(run.data_interval_end.isoformat() for run, _ in runs),
            "run_afters": instants(run.run_after.isoformat() for run, _ in runs),
            "passed_over": texts(reason for _, reason in runs),
        }
        await conn.execute(sql("backfills/insert_runs"), {"backfill_id": row[0], **columns})
        return int(row[0])


async def list_all(
    conn: Conn, *, dag_id: str | None = None, backfill_id: int | None = None, limit: int = 1, offset: int = 0
) -> list[Row]:
    names = {"dag_id": dag_id, "backfill_id": backfill_id, "limit": limit, "offset": offset}
    return await read(conn, "backfills/list_all", names)


async def list_runs(conn: Conn, backfill_id: int, *, limit: int, offset: int) -> list[Row]:
    return await read(conn, "backfills/list_runs", {"backfill_id": backfill_id, "limit": limit, "offset": offset})


async def set_paused(conn: Conn, backfill_id: int, *, is_paused: bool) -> None:
    await conn.execute(sql("backfills/set_paused"), {"backfill_id": backfill_id, "is_paused": is_paused})


async def cancel(conn: Conn, backfill_id: int, *, actor: str) -> None:
    async with conn.transaction():
        await conn.execute(sql("backfills/cancel_one"), {"backfill_id": backfill_id, "actor": actor})
        await conn.execute(sql("inbox/notify"), {"channel": INBOX})
