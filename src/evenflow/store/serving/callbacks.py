"""Calls of authors' functions and missed deadlines: written by the scheduler, read by the API."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import psycopg
from psycopg import AsyncConnection
from psycopg.rows import args_row, dict_row

from evenflow.core.callbacks import CALLBACK_DAG, CLEAN_UP, CallbackCall
from evenflow.store.db.columns import floats, numbers, texts
from evenflow.store.db.rows import Conn, execute
from evenflow.store.db.sql import sql


class ClaimedCall(NamedTuple):
    """The subject of a run of the DAG of callbacks; the names and times are those of the run that calls."""

    run_key: int
    of_run: int
    version_key: int
    task_index: int | None
    map_index: int
    try_number: int
    event: str
    position: int
    state: str
    reason: str | None
    notifier: dict[str, Any] | None
    dag_id: str
    run_id: str
    run_type: str
    params: dict[str, Any]
    run_after: datetime
    logical_date: datetime | None
    data_interval_start: datetime | None
    data_interval_end: datetime | None
    map_length: int | None
    started_at: datetime | None  # of the try that it is about, unless another has begun since
    ended_at: datetime | None


def insert_runs(conn: Conn, calls: Sequence[CallbackCall]) -> None:
    """A queued run for each call."""
    run_keys, tasks, maps, tries, called = zip(*calls, strict=True)
    params = {
        "dag_id": CALLBACK_DAG,
        "run_keys": numbers(run_keys),
        "tasks": texts(None if task is None else str(task) for task in tasks),
        "maps": numbers(maps),
        "tries": numbers(tries),
        "events": texts(each.event for each in called),
        "positions": numbers(each.position for each in called),
        "states": texts(each.state for each in called),
        "reasons": texts(each.reason for each in called),
    }
    execute(conn, "callbacks/insert_runs", params)


def insert_clean_ups(conn: Conn, *, limit: int) -> int:
    """A queued run for each thing that a try that is over has left outside; answers how many."""
    params = {"dag_id": CALLBACK_DAG, "event": CLEAN_UP, "limit": limit}
    row = execute(conn, "callbacks/insert_clean_ups", params).fetchone()
    assert row is not None
    return int(row[0])


def restore_dag(conn: Conn) -> bool:
    """Makes the DAG of callbacks what came with the schema; says whether it was something else."""
    return conn.execute(sql("callbacks/restore_dag"), {"dag_id": CALLBACK_DAG}).rowcount > 0


def record_missed(conn: Conn, missed: Sequence[tuple[int, str, float]]) -> None:
    """Deadlines as (run_key, name, when it was due, seconds since 1970)."""
    run_keys, names, due_at_s = zip(*missed, strict=True)
    execute(conn, "callbacks/record_missed", {"run_keys": numbers(run_keys), "names": texts(names), "due_at_s": floats(due_at_s)})


async def try_deadlines(conn: AsyncConnection[Any], deadlines: str) -> str | None:
    """Why the database cannot follow these deadlines of a DAG, given as JSON; null when it can."""
    try:
        async with conn.transaction():
            await conn.execute(sql("callbacks/try_deadlines"), {"deadlines": deadlines})
    except psycopg.DataError as error:
        return error.diag.message_primary or str(error)
    return None


async def read_claimed(conn: AsyncConnection[Any], run_keys: Collection[int]) -> dict[int, ClaimedCall]:
    """By the key of the callback's own run."""
    cursor = conn.cursor(row_factory=args_row(ClaimedCall))
    rows = await (await cursor.execute(sql("callbacks/read_claimed"), {"run_keys": numbers(run_keys)}, prepare=True)).fetchall()
    return {row.run_key: row for row in rows}


async def list_of_run(conn: AsyncConnection[Any], run_key: int, *, limit: int) -> list[dict[str, Any]]:
    cursor = conn.cursor(row_factory=dict_row)
    return await (await cursor.execute(sql("callbacks/list_of_run"), {"run_key": run_key, "limit": limit})).fetchall()


async def list_deadlines(conn: AsyncConnection[Any], dag_id: str, version_key: int, *, runs: int) -> list[dict[str, Any]]:
    """Of each deadline of a version, in its order, when it is due next, and what the newest ``runs`` runs have missed."""
    cursor = conn.cursor(row_factory=dict_row)
    params = {"dag_id": dag_id, "version_key": version_key, "runs": runs}
    return await (await cursor.execute(sql("callbacks/list_deadlines"), params)).fetchall()


async def list_deadlines_of_run(conn: AsyncConnection[Any], run_key: int) -> list[dict[str, Any]]:
    cursor = conn.cursor(row_factory=dict_row)
    return await (await cursor.execute(sql("callbacks/list_deadlines_of_run"), {"run_key": run_key})).fetchall()
