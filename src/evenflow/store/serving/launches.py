"""Tries on their way to executors that are sent them. For launchers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from psycopg.rows import args_row

from evenflow.store.db.columns import numbers, texts
from evenflow.store.db.connect import AsyncConn
from evenflow.store.db.notify import INBOX, wake_async
from evenflow.store.db.sql import sql


class Launch(NamedTuple):
    """A try to send, for the ``sends``-th time."""

    epoch: int
    sends: int
    queue: str
    priority: int
    dag_id: str
    run_id: str
    task_id: str
    operator: str
    map_index: int
    try_number: int


class LaunchedTry(NamedTuple):
    """A try that waits for a worker or runs. ``worker`` has it; ``kill``: it is to end."""

    epoch: int
    queue: str
    worker: str | None
    kill: bool


class PodAsk(NamedTuple):
    """What a task says of its pods. ``memory`` in bytes, ``cpu`` in processors."""

    epoch: int
    override: dict[str, Any] | None
    memory: int | None
    cpu: float | None


class LaunchedCode(NamedTuple):
    """Where the code of a try is: a file of a bundle, whose DAGs an ``environment`` runs; empty for a worker's own Python."""

    epoch: int
    bundle: str
    file: str
    environment: str


async def take_unsent(conn: AsyncConn, queues: Collection[str], *, most: int) -> list[Launch]:
    """Takes tries to send. Only this caller sends them: that is written down, whatever happens to them then."""
    cursor = conn.cursor(row_factory=args_row(Launch))
    return await (
        await cursor.execute(sql("launches/take_unsent"), {"queues": list(queues), "most": most}, prepare=True)
    ).fetchall()


async def take_overdue(conn: AsyncConn, queues: Collection[str], *, after_s: float, most_s: float, most: int) -> list[Launch]:
    """Takes tries that were sent and stayed unclaimed for ``after_s``, doubled each time that they are sent, up to ``most_s``."""
    cursor = conn.cursor(row_factory=args_row(Launch))
    params = {"queues": list(queues), "after_s": after_s, "most_s": most_s, "most": most}
    return await (await cursor.execute(sql("launches/take_overdue"), params, prepare=True)).fetchall()


async def call_back(conn: AsyncConn, epochs: Collection[int]) -> None:
    """Marks tries to be sent again at the next look."""
    await conn.execute(sql("launches/call_back"), {"epochs": numbers(epochs)}, prepare=True)


async def report_ends(conn: AsyncConn, reasons: Mapping[int, str], *, failed: bool = False, claimed: bool) -> set[int]:
    """Of these tries, by epoch, the ones of which a report says now that they are lost, or have ``failed``."""
    params = {"epochs": numbers(reasons), "reasons": texts(reasons.values()), "failed": failed, "claimed": claimed}
    told = {epoch for (epoch,) in await (await conn.execute(sql("launches/report_ends"), params, prepare=True)).fetchall()}
    if told:
        await wake_async(conn, [INBOX])
    return told


async def note_ends_of_workers(conn: AsyncConn, reasons: Mapping[int, str]) -> None:
    """Notes why the workers of these tries have ended. They count as lost once their leases are over."""
    params = {"epochs": numbers(reasons), "reasons": texts(reasons.values())}
    await conn.execute(sql("launches/note_ends_of_workers"), params, prepare=True)


async def read_pods(conn: AsyncConn, epochs: Collection[int]) -> dict[int, PodAsk]:
    """What the tasks of these tries say about their pods; tasks that say nothing are left out."""
    cursor = conn.cursor(row_factory=args_row(PodAsk))
    rows = await (await cursor.execute(sql("launches/read_pods"), {"epochs": numbers(epochs)}, prepare=True)).fetchall()
    return {row.epoch: row for row in rows}


async def read_codes(conn: AsyncConn, epochs: Collection[int]) -> dict[int, LaunchedCode]:
    """Where the code of these tries is, by epoch."""
    cursor = conn.cursor(row_factory=args_row(LaunchedCode))
    rows = await (await cursor.execute(sql("launches/read_codes"), {"epochs": numbers(epochs)}, prepare=True)).fetchall()
    return {row.epoch: row for row in rows}


async def find_current(conn: AsyncConn, epochs: Collection[int]) -> dict[int, LaunchedTry]:
    """The tries that wait for a worker or run, by epoch."""
    cursor = conn.cursor(row_factory=args_row(LaunchedTry))
    rows = await (await cursor.execute(sql("launches/find_current"), {"epochs": numbers(epochs)}, prepare=True)).fetchall()
    return {row.epoch: row for row in rows}
