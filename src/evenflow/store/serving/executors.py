"""Executors: what runs tries, which queues belong to it, and how many slots it has."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import psycopg
from psycopg.rows import dict_row
from psycopg.types.json import Json

from evenflow.core.executors import send_again_s
from evenflow.store.db.connect import AsyncConn, Row
from evenflow.store.db.notify import DISPATCH, RESUMES, wake_async
from evenflow.store.db.sql import sql
from evenflow.store.scheduling.inbox import EXECUTOR_LOCK
from evenflow.store.serving.dags import notify, reparse_failed


class LaunchedExecutor(NamedTuple):
    """What a launcher goes by."""

    name: str
    kind: str
    queues: list[str]
    send_again_s: int  # after this time it sends unclaimed tries again
    options: dict[str, Any]  # all options; each kind of launcher reads its own


class PushedTo(NamedTuple):
    """The executor that is sent the tries of a queue."""

    executor: str
    kind: str


async def list_executors(conn: AsyncConn, name: str | None = None, *, scope: str | None = None) -> list[dict[str, Any]]:
    """Returns all executors, or the one of this name, with the fields of the contract's record."""
    cursor = conn.cursor(row_factory=dict_row)
    return await (await cursor.execute(sql("executors/list_all"), {"name": name, "scope": scope}, prepare=True)).fetchall()


def list_served(conn: psycopg.Connection[Any], *, lease_s: float) -> list[Row]:
    """Works like :func:`views.list_push_executors`, of all queues and without an event loop."""
    cursor = conn.cursor(row_factory=dict_row)
    return cursor.execute(sql("views/list_push_executors"), {"lease_s": lease_s, "scope": None}).fetchall()


async def list_launched(conn: AsyncConn) -> list[LaunchedExecutor]:
    """Returns the executors whose tries launchers send."""
    rows = await (await conn.execute(sql("executors/list_launched"), prepare=True)).fetchall()
    return [LaunchedExecutor(name, kind, queues, send_again_s(options), options) for name, kind, queues, options in rows]


async def list_pushed(conn: AsyncConn) -> dict[str, PushedTo]:
    """Executors by queue, of the queues whose tries are sent to them."""
    rows = await (await conn.execute(sql("executors/list_pushed"), prepare=True)).fetchall()
    return {queue: PushedTo(executor, kind) for queue, executor, kind in rows}


async def lock_owners(conn: AsyncConn) -> None:
    """Until the end of the transaction no other one changes which queue is of which executor or fleet."""
    await conn.execute(sql("executors/lock_owners"))


async def find_rival(conn: AsyncConn, name: str, queues: Collection[str]) -> tuple[str, str] | None:
    """(executor, queue) of another executor that has one of these queues."""
    row = await (await conn.execute(sql("executors/find_rival"), {"name": name, "queues": list(queues)})).fetchone()
    return None if row is None else (row[0], row[1])


async def set_executor(
    conn: AsyncConn, *, name: str, kind: str, queues: Collection[str], slots: int, options: Mapping[str, Any], by: str
) -> bool:
    """Whether it is set: an executor keeps its kind. What is ready goes to the executor that its queue has from now on. DAG files
    that were refused for want of it are parsed again. The last of its transaction, which ends with the executor's lock.
    """
    params = {"name": name, "kind": kind, "queues": list(queues), "slots": slots, "options": Json(dict(options)), "by": by}
    async with conn.transaction():
        await reparse_failed(conn)  # first: storing a parsed file also locks its row, and then limits
        await conn.execute(sql("dags/lock_executor"), {"executor": EXECUTOR_LOCK})
        if await (await conn.execute(sql("executors/set_one"), params)).fetchone() is None:
            return False
        await conn.execute(sql("executors/move_waiting"))
        await notify(conn)
    return True


async def delete_executor(conn: AsyncConn, name: str) -> None:
    """Its queues are of the default executor from now on, and so is what waits in them."""
    async with conn.transaction():
        await conn.execute(sql("dags/lock_executor"), {"executor": EXECUTOR_LOCK})
        await conn.execute(sql("executors/delete_one"), {"name": name})
        await conn.execute(sql("executors/move_waiting"))
        await notify(conn)


async def wake_takers(conn: AsyncConn) -> None:
    """What waited for one executor may be for another one now."""
    await wake_async(conn, [DISPATCH, RESUMES])
