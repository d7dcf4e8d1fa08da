"""What a running try asks about runs of other DAGs, and the runs that it triggers."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple

from psycopg.rows import args_row, dict_row
from psycopg.types.json import Json

from evenflow.core.model import instance_name
from evenflow.store.db.columns import numbers
from evenflow.store.db.connect import AsyncConn, Row
from evenflow.store.db.notify import INBOX
from evenflow.store.db.sql import sql
from evenflow.store.serving.dags import insert_run


class Asker(NamedTuple):
    """A task instance that asks for a run; ``tries_before`` tells apart what it does before and after a person cleared it."""

    run_key: int
    dag_id: str
    run_id: str
    task_id: str
    map_index: int
    tries_before: int
    bundle: str

    @property
    def actor(self) -> str:
        """Its name in the history of the run."""
        return f"{self.task} #{self.tries_before}"

    @property
    def task(self) -> str:
        """Its name in the history, whatever people cleared."""
        return f"task {self.dag_id}/{self.run_id}/{instance_name(self.task_id, self.map_index)}"

    @property
    def identity(self) -> Json:
        """The name by which it is recognised: two may share a name, because a task may have the name of another's instance."""
        named = ("dag_id", "run_id", "task_id", "map_index", "tries_before")
        return Json({name: getattr(self, name) for name in named})


class FoundRun(NamedTuple):
    run_key: int
    run_id: str
    state: str
    is_own: bool
    is_made: bool


async def read_waited(conn: AsyncConn, epoch: int) -> float | None:
    """Seconds since the first look of the sensor whose try this is; None when the try is over."""
    row = await (await conn.execute(sql("others/read_waited"), {"epoch": epoch})).fetchone()
    return None if row is None else float(row[0])


async def list_runs(conn: AsyncConn, dag_id: str, logical_dates: Collection[datetime], run_ids: Collection[str]) -> list[Row]:
    """Those with one of these dates, and those with one of these names."""
    cursor = conn.cursor(row_factory=dict_row)
    names = {"dag_id": dag_id, "logical_dates": list(logical_dates), "run_ids": list(run_ids)}
    return await (await cursor.execute(sql("others/list_runs"), names)).fetchall()


async def count_states(conn: AsyncConn, run_keys: Collection[int], task_ids: Collection[str]) -> list[tuple[int, str, str, int]]:
    """How many instances of these tasks are in which state: (run_key, task_id, state, instances)."""
    names = {"run_keys": numbers(run_keys), "task_ids": list(task_ids)}
    return await (await conn.execute(sql("others/count_states"), names)).fetchall()


async def find_asker(conn: AsyncConn, epoch: int) -> Asker | None:
    """None when the try is over."""
    row = await (await conn.execute(sql("others/find_asker"), {"epoch": epoch})).fetchone()
    return None if row is None else Asker(*row)


async def trigger_run(
    conn: AsyncConn,
    *,
    dag_id: str,
    run_id: str,
    version_key: int,
    params: str,
    logical_date: datetime | None,
    interval: tuple[datetime, datetime] | None,
    asker: Asker,
) -> None:
    """Makes a run, unless the DAG has one of this name or this logical date. ``params`` is JSON."""
    async with conn.transaction():
        key = await insert_run(
            conn,
            dag_id=dag_id,
            run_id=run_id,
            version_key=version_key,
            params=params,
            logical_date=logical_date,
            interval=interval,
            run_type="triggered",
        )
        if key is not None:
            names = {"run_key": key, "actor": asker.actor, "asker": asker.identity}
            await conn.execute(sql("others/record_trigger"), names)


async def find_run(conn: AsyncConn, *, dag_id: str, run_id: str, logical_date: datetime | None, asker: Asker) -> FoundRun | None:
    cursor = conn.cursor(row_factory=args_row(FoundRun))
    names = {"dag_id": dag_id, "run_id": run_id, "logical_date": logical_date, "asker": asker.identity}
    return await (await cursor.execute(sql("others/find_run"), names)).fetchone()


async def reset_run(conn: AsyncConn, run_key: int, *, operation: str, asker: Asker) -> None:
    """Has the schedulers clear a run; ``operation`` is JSON."""
    names = {"run_key": run_key, "operation": operation, "actor": asker.actor, "asker": asker.identity}
    async with conn.transaction():
        await conn.execute(sql("others/reset_run"), names)
        await conn.execute(sql("inbox/notify"), {"channel": INBOX})
