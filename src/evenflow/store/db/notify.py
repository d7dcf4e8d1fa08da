"""NOTIFY and LISTEN: which channel wakes which processes. A notification says that it is worth looking; one of ``dispatch`` may
name the workers that have been given tries, and the tries.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import psycopg
from psycopg import sql
from psycopg.pq import ConnStatus, TransactionStatus

from evenflow.store.db.columns import words
from evenflow.store.db.connect import connect_async
from evenflow.store.db.rows import BEGIN, COMMIT, Conn, execute
from evenflow.store.db.sql import sql as statement

INBOX = "inbox"  # reports, run requests, intents: wakes schedulers
DISPATCH = "dispatch"  # new dispatch rows, or kills: wakes the long polls of workers
RESUMES = "resumes"  # some new dispatch rows are resumes: also wakes workers that have only slots for resumes
DAG = "dag"  # a DAG changed: a new version, paused, gone
TOKENS = "tokens"  # a token was revoked, or the keys changed: wakes APIs
TRIGGERS = "triggers"  # deferrals that wait for a triggerer, or have ended: wakes the long polls of triggerers
FLEETS = "fleets"  # the number of native workers is to change: wakes the processes that start and end them
CHANNELS = (INBOX, DISPATCH, RESUMES, DAG, TOKENS, TRIGGERS, FLEETS)

IDLE = TransactionStatus.IDLE
RECONNECT_DELAY_S = 0.5  # a listener that is away misses events until the sweep of 1 s; no need to be quicker
PROBE_EVERY_S = 15.0  # a silent connection is asked whether it lives


def wake(conn: Conn, channels: Collection[str]) -> None:
    """Wakes the listeners on these channels to what is committed (ADR 0020). Runs after the commit: within the transaction it would
    make that as little durable as it is itself.
    """
    if channels:
        execute(conn, "notify/wake", {"channels": words(channels)})


def deliver(conn: Conn) -> None:
    """As :func:`wake`: tells API servers which workers have been given tries by the commit before, and that there are others."""
    execute(conn, "notify/deliver")


async def wake_async(conn: psycopg.AsyncConnection[Any], channels: Collection[str]) -> None:
    """As :func:`wake`. On an idle connection."""
    assert conn.info.transaction_status == IDLE
    await conn.execute(statement("notify/wake"), {"channels": words(channels)}, prepare=True)


async def execute_then_wake(
    conn: psycopg.AsyncConnection[Any], name: str, params: Mapping[str, Any], channels: Collection[str]
) -> None:
    """Executes statement ``name`` as a transaction, and wakes the listeners on these channels once it has committed, in one round
    trip. Needs an idle connection that no other task uses meanwhile. Returns when both are done.
    """
    assert conn.info.transaction_status == IDLE
    try:
        async with conn.pipeline():
            await conn.execute(BEGIN)
            await conn.execute(statement(name), params, prepare=True)
            await conn.execute(COMMIT)
            await conn.execute(statement("notify/wake"), {"channels": words(channels)}, prepare=True)
    except BaseException:
        if conn.pgconn.status == ConnStatus.OK:
            await conn.rollback()
        raise


class AsyncListener:
    """Calls ``on_notify(channel, what is said)`` in the event loop whenever something happened on one of ``channels``.

    It has a connection of its own, which it makes anew after any error, as ``lost`` hears: also after a defect, because a service
    that listens no more still looks alive. Since notifications sent meanwhile are lost, it then calls back once for every channel.
    Bursts may be merged into one call.
    """

    def __init__(
        self,
        url: str,
        channels: Sequence[str],
        on_notify: Callable[[str, str], None],
        lost: Callable[[Exception], None],
        *,
        name: str,
    ) -> None:
        self._url, self._channels, self._on_notify, self._lost, self._name = url, tuple(channels), on_notify, lost, name
        self._conn: psycopg.AsyncConnection[tuple[object, ...]] | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def connected(self) -> bool:
        return self._conn is not None and not self._conn.closed

    async def start(self) -> None:
        """Returns once it listens. Raises as :func:`evenflow.store.db.connect.connect` does."""
        self._conn = await self._listen()
        self._task = asyncio.create_task(self._run(), name=f"listener {self._name}")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        if self._conn is not None:
            await self._conn.close()

    async def _listen(self) -> psycopg.AsyncConnection[tuple[object, ...]]:
        conn = await connect_async(self._url, name=f"{self._name} listener")
        for channel in self._channels:
            await conn.execute(sql.SQL("listen {}").format(sql.Identifier(channel)))
        return conn

    async def _run(self) -> None:
        while True:
            try:
                if self._conn is None:
                    self._conn = await self._listen()
                    for channel in self._channels:
                        self._on_notify(channel, "")
                await self._pass_on(self._conn)
            except Exception as error:
                self._lost(error)
                if self._conn is not None:
                    await self._conn.close()
                    self._conn = None
                await asyncio.sleep(RECONNECT_DELAY_S)

    async def _pass_on(self, conn: psycopg.AsyncConnection[tuple[object, ...]]) -> None:
        while True:
            async for notification in conn.notifies(timeout=PROBE_EVERY_S):
                self._on_notify(notification.channel, notification.payload)
            await conn.execute("select 1")
