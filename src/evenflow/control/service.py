"""A service with the database: it registers, beats and signs off; a subclass defines its work."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from abc import abstractmethod
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

from evenflow.core.limits import BEAT_S, LEASE_S
from evenflow.core.observation import error, warning
from evenflow.store.db import migrate
from evenflow.store.db.connect import AsyncConn, connect, connect_async
from evenflow.store.db.failures import OUTAGES
from evenflow.store.db.notify import AsyncListener
from evenflow.store.serving import services
from evenflow.telemetry.health import HealthMonitor
from evenflow.telemetry.observing import observe
from evenflow.telemetry.service import Loops, Service

LAST_WORDS_S = 2.0  # for a running turn when the service ends


class DatabaseService(Service):
    """The service makes turns, each with a connection: about one in ``turn_s``, and one whenever the next is due."""

    turn_s: float
    channels: Sequence[str]

    def __init__(self, database_url: str, name: str, health: HealthMonitor | None) -> None:
        super().__init__(name, health)
        self._url = database_url
        self._conn: AsyncConn | None = None
        self._service_id = 0
        self._beaten = 0.0  # by the loop's clock
        self._news = asyncio.Event()
        self._ending = asyncio.Event()
        self._ended = asyncio.Event()

    @abstractmethod
    async def _turn(self, conn: AsyncConn) -> None:
        """Does the work of one turn."""

    @abstractmethod
    async def _rest(self, began: float) -> None:
        """Returns when the next turn is due. ``_news`` is set after an announcement, and when the service ends."""

    def _registered(self) -> None:
        """Called when it is registered as ``_service_id``: what it remembers belongs to another registration."""

    def _heard(self, channel: str, word: str) -> None:
        """Called with an announcement on a channel."""
        self._news.set()

    def _deaf(self, error: Exception) -> None:
        if isinstance(error, OUTAGES):
            observe(service_cut_off(self.kind, str(error)))
        else:
            observe(announcements_failed(self.kind, error))

    def _detail(self) -> dict[str, Any]:
        """Returns what all may know of it."""
        return dict(self.health.detail)

    async def _after_turns(self) -> None:
        """Called when no turn comes any more: closes what turns have opened."""

    async def _signing_off(self, conn: AsyncConn) -> None:
        """Called after that."""

    async def _begin(self) -> Loops:
        """Raises :class:`EvenflowError` when the database is not there, or has another schema."""
        await asyncio.to_thread(self._check_schema)
        listener = AsyncListener(self._url, self.channels, self._heard, self._deaf, name=self.name)
        self._opened.push_async_callback(listener.stop)
        await listener.start()
        self._pulse = self.health.loop(self.kind)
        self._database = self.health.need("database", 10 * self.turn_s, "its last look")
        self._lease = self.health.lease(LEASE_S)
        await self._connected()
        return {self.kind: self._run()}

    async def _finish(self) -> None:
        await self._end_turns()

    async def _leave(self) -> None:
        try:
            await self._end_turns(LAST_WORDS_S)
            conn = await self._connected()
            await self._signing_off(conn)
            await services.beat(conn, service_id=self._service_id, kind=self.kind, state="stopped")
        except (*OUTAGES, TimeoutError) as error:
            observe(goodbye_not_said(self.kind, str(error)))
        finally:
            await self._disconnect()

    async def _end_turns(self, within_s: float | None = None) -> None:
        """Raises TimeoutError where the running turn had to be ended."""
        self._ending.set()
        self._news.set()
        try:
            async with asyncio.timeout(within_s):
                await self._ended.wait()
        except TimeoutError:
            await self._end_loops()
            raise
        finally:
            await self._after_turns()

    def _check_schema(self) -> None:
        with connect(self._url, name=self.name) as conn:
            migrate.check(conn)

    async def _run(self) -> None:
        clock = asyncio.get_running_loop().time
        try:
            while not self._ending.is_set():
                self._pulse.beat()
                began = clock()
                try:
                    conn = await self._connected()
                    if clock() - self._beaten >= BEAT_S:
                        await self._beat(conn)
                    await self._turn(conn)
                    self._database.beat()
                except OUTAGES as error:
                    observe(service_cut_off(self.kind, str(error)))
                    await self._disconnect()
                await self._rest(began)
        finally:
            self._ended.set()

    async def _connected(self) -> AsyncConn:
        if self._conn is None or self._conn.closed:
            conn = await connect_async(self._url, name=self.name)
            try:
                if not self._service_id:
                    await self._register(conn)
            except BaseException:
                await conn.close()
                raise
            self._conn = conn
        return self._conn

    async def _disconnect(self) -> None:
        if self._conn is not None:
            with contextlib.suppress(*OUTAGES):
                await self._conn.close()
            self._conn = None

    async def _register(self, conn: AsyncConn) -> None:
        about: dict[str, Any] = {
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "version": version("evenflow"),
            "detail": self._detail(),
        }
        self._service_id = await services.register(conn, kind=self.kind, name=self.name, **about)
        self._registered()
        self._lease.beat()

    async def _beat(self, conn: AsyncConn) -> None:
        await migrate.check_async(conn)
        if await services.beat(conn, service_id=self._service_id, kind=self.kind, state=self._state, detail=self._detail()) is None:
            await self._register(conn)
        self._beaten = asyncio.get_running_loop().time()
        self._lease.beat()


# -- what they observe


@warning("the database cannot be used, waiting for it")
def service_cut_off(service: str, reason: str) -> None: ...
@error("announcements could not be heard, and are listened for anew")
def announcements_failed(service: str, trace: BaseException) -> None: ...
@warning("could not sign off")
def goodbye_not_said(service: str, reason: str) -> None: ...
