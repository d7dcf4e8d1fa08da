"""Backfills as people ask for them and look at them; :mod:`evenflow.store.scheduling.schedules` makes their runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from evenflow.contracts.rest.backfills import BackfillRequest
from evenflow.core.forecast import TimetableRun
from evenflow.store.db.columns import instants, texts
from evenflow.store.db.connect import AsyncConn, Row
from evenflow.store.db.instant import read
from evenflow.store.db.notify import INBOX
from evenflow.store.db.sql import sql


class PlannedRun(NamedTuple):
    """By a date of the schedule, or for a partition with a key, which its parameter ``param`` says."""

    run: TimetableRun | None
    partition: str | None = None
    passed_over: str | None = None  # why there is no run


async def find_existing(conn: AsyncConn, *, dag_id: str, from_date: datetime, to_date: datetime) -> dict[datetime, tuple[str, str]]:
    """(run_id, state) of the DAG's runs by logical date."""
    rows = await read(conn, "backfills/find_existing", {"dag_id": dag_id, "from_date": from_date, "to_date": to_date})
    return {row["logical_date"]: (row["run_id"], row["state"]) for row in rows}


async def insert(
    conn: AsyncConn, dag_id: str, request: BackfillRequest, params: Mapping[str, Any], planned: Sequence[PlannedRun], *, actor: str
) -> int | None:
    """Returns the number of a new backfill, with the ``params`` of its runs; null when the DAG has another that is not over.
    ``planned`` is in the order of the runs.
    """
    asked = request.model_dump(exclude={"dry_run", "params"})
    async with conn.transaction():
        values = {**asked, "dag_id": dag_id, "params": msgspec.json.encode(params).decode(), "actor": actor}
        row = await (await conn.execute(sql("backfills/insert_one"), values)).fetchone()
        if row is None:
            return None
        columns = {
            "logical_dates": instants(each.run and each.run.logical_date.isoformat() for each in planned),
            "starts": instants(each.run and each.run.data_interval_start.isoformat() for each in planned),
            "ends": instants(each.run and each.run.data_interval_end.isoformat() for each in planned),
            "run_afters": instants(each.run and each.run.run_after.isoformat() for each in planned),
            "passed_over": texts(each.passed_over for each in planned),
            "partitions": texts(each.partition for each in planned),
        }
        await conn.execute(sql("backfills/insert_runs"), {"backfill_id": row[0], **columns})
        return int(row[0])


async def list_all(
    conn: AsyncConn,
    *,
    dag_id: str | None = None,
    backfill_id: int | None = None,
    scope: str | None,
    limit: int = 1,
    after: str | None = None,
) -> list[Row]:
    names = {"dag_id": dag_id, "backfill_id": backfill_id, "scope": scope, "limit": limit, "after": after}
    return await read(conn, "backfills/list_all", names)


async def list_runs(conn: AsyncConn, backfill_id: int, *, limit: int, after: str | None) -> list[Row]:
    return await read(conn, "backfills/list_runs", {"backfill_id": backfill_id, "limit": limit, "after": after})


async def set_paused(conn: AsyncConn, backfill_id: int, *, is_paused: bool) -> None:
    await conn.execute(sql("backfills/set_paused"), {"backfill_id": backfill_id, "is_paused": is_paused})


async def cancel(conn: AsyncConn, backfill_id: int, *, actor: str) -> None:
    async with conn.transaction():
        await conn.execute(sql("backfills/cancel_one"), {"backfill_id": backfill_id, "actor": actor})
        await conn.execute(sql("inbox/notify"), {"channel": INBOX})
