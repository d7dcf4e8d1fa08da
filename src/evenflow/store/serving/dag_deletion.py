"""Deleting a DAG whose file is gone, with all its history; and the logs that deleted runs and DAGs leave, which the API deletes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from evenflow.core.limits import DELETED_AT_ONCE, INSTANCES_AT_ONCE, RUNS_AT_ONCE
from evenflow.store.db.columns import texts
from evenflow.store.db.connect import AsyncConn
from evenflow.store.db.sql import sql
from evenflow.store.serving import events, operations

LIVE = ("queued", "running")


class Deletion(NamedTuple):
    """What was deleted, or why nothing was: its ``file`` is there, or it has a run that is ``live``."""

    known: bool
    runs: int = 0
    file: str | None = None
    live: str | None = None


class LogGarbage(NamedTuple):
    """``run_id`` is empty for all of the DAG. ``in_use``: there is a run, or DAG, of that name again."""

    dag_id: str
    run_id: str
    in_use: bool


async def delete_dag(conn: AsyncConn, dag_id: str, *, actor: str, dry_run: bool = False) -> Deletion:
    """Deletes its runs in batches, each a transaction; when that is interrupted, the rest goes when it is asked for again. That
    ``actor`` does it is told with the first of them. With ``dry_run`` only says how many there are.
    """
    deleted = 0
    while True:
        async with conn.transaction():
            found = await (await conn.execute(sql("retention/find_dag"), {"dag_id": dag_id})).fetchone()
            if found is None:
                return Deletion(False)
            is_active, file = found
            if is_active:
                return Deletion(True, deleted, file=file)
            params = {"dag_id": dag_id, "limit": RUNS_AT_ONCE, "instances": INSTANCES_AT_ONCE, "whole": DELETED_AT_ONCE}
            runs = await (await conn.execute(sql("retention/list_runs_of_dag"), params)).fetchall()
            live = next((run_id for _, run_id, state in runs if state in LIVE), None)
            if live is not None:
                return Deletion(True, deleted, live=live)
            if dry_run:
                ((count,),) = await (await conn.execute(sql("retention/count_runs"), {"dag_id": dag_id})).fetchall()
                return Deletion(True, count)
            if not deleted:
                await conn.execute(sql("events/insert_one"), events.names_of(actor, "dag.delete", dag_id, {}))
            if not runs:
                await conn.execute(sql("retention/delete_dag"), {"dag_id": dag_id})
                return Deletion(True, deleted)
            deleted += await operations.delete_runs(conn, [run_key for run_key, _, _ in runs])


async def take_log_garbage(conn: AsyncConn, *, limit: int) -> list[LogGarbage]:
    """Returns logs to delete, and hides them from other callers for a while."""
    rows = await (await conn.execute(sql("retention/take_log_garbage"), {"limit": limit})).fetchall()
    return [LogGarbage(*row) for row in rows]


async def forget_log_garbage(conn: AsyncConn, gone: Sequence[LogGarbage]) -> None:
    params = {"dag_ids": texts(g.dag_id for g in gone), "run_ids": texts(g.run_id for g in gone)}
    await conn.execute(sql("retention/delete_log_garbage"), params)
