"""The autoscaler as a service. Any number may run: the one that holds the lease acts, and when that lapses another one."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Mapping
from importlib.metadata import version

from evenflow.autoscaler import observations as seen
from evenflow.autoscaler.limits import HURRY_S, LOOP_S
from evenflow.autoscaler.steering import Steering
from evenflow.autoscaler.target import FleetTarget, NativeTarget
from evenflow.core import metrics
from evenflow.core.limits import BEAT_S, LEASE_S
from evenflow.errors import NotActing
from evenflow.store.db import migrate
from evenflow.store.db.connect import Conn, connect, connect_async
from evenflow.store.db.failures import OUTAGES
from evenflow.store.db.notify import DISPATCH, AsyncListener
from evenflow.store.serving import scaling, services
from evenflow.telemetry.observing import observe
from evenflow.telemetry.service import Loops, Service
from evenflow.telemetry.vitals import Vitals

TARGETS: Mapping[str, FleetTarget] = {"native": NativeTarget()}


class AutoscalerService(Service):
    """Knows the database, and what runs workers; never code of users, and never a worker itself."""

    kind = "autoscaler"

    def __init__(
        self, database_url: str, *, name: str, targets: Mapping[str, FleetTarget] = TARGETS, vitals: Vitals | None = None
    ) -> None:
        super().__init__(name, vitals)
        self._url, self._targets = database_url, targets
        self._conn: Conn | None = None
        self._service_id = 0
        self._steering: Steering | None = None
        self._news = asyncio.Event()
        self._ending = asyncio.Event()
        self._ended = asyncio.Event()

    async def _begin(self) -> Loops:
        """Raises :class:`EvenflowError` when the database is not there, or does not fit."""
        await asyncio.to_thread(self._check_schema)
        listener = AsyncListener(
            self._url,
            [DISPATCH],
            lambda channel: self._news.set(),
            lambda error: observe(seen.autoscaler_cut_off(str(error))),
            name=self.name,
        )
        self._opened.push_async_callback(listener.stop)
        await listener.start()
        self._pulse = self.vitals.loop("fleets")
        self._database = self.vitals.need("database", 10 * LOOP_S, "its last look")
        self._lease = self.vitals.lease(LEASE_S)
        await self._connected()
        self._measure()
        return {"fleets": self._run()}

    async def _finish(self) -> None:
        """What is under way is finished by another one, or by this one's successor."""
        self._ending.set()
        self._news.set()
        await self._ended.wait()

    async def _leave(self) -> None:
        self._ending.set()
        self._news.set()
        try:
            async with asyncio.timeout(2 * LOOP_S):
                await self._ended.wait()
            conn = await self._connected()
            await scaling.give_lease(conn, self._service_id)
            await services.beat(conn, service_id=self._service_id, kind=self.kind, state="stopped")
        except (*OUTAGES, TimeoutError) as error:
            observe(seen.autoscaler_not_signed_off(str(error)))
        finally:
            await self._disconnect()

    def _check_schema(self) -> None:
        with connect(self._url, name=self.name) as conn:
            migrate.check(conn)

    async def _run(self) -> None:
        beaten = asyncio.get_running_loop().time()
        clock = asyncio.get_running_loop().time
        try:
            while not self._ending.is_set():
                self._pulse.beat()
                began = clock()
                try:
                    conn = await self._connected()
                    if clock() - beaten >= BEAT_S:
                        await self._beat(conn)
                        beaten = clock()
                    assert self._steering is not None
                    await self._steering.loop(conn)
                    self._database.beat()
                except NotActing:
                    observe(seen.acts_no_more())
                except OUTAGES as error:
                    observe(seen.autoscaler_cut_off(str(error)))
                    await self._disconnect()
                await self._rest(began)
        finally:
            self._ended.set()

    async def _rest(self, began: float) -> None:
        """Until the next loop is due, or something comes for a fleet of which nobody takes it."""
        clock = asyncio.get_running_loop().time
        self._news.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(began + LOOP_S):
                while True:
                    await self._news.wait()
                    if self._ending.is_set():
                        return
                    self._news.clear()
                    if self._steering is not None and self._steering.waits_for_the_first:
                        break
        await asyncio.sleep(max(0.0, began + HURRY_S - clock()))

    async def _connected(self) -> Conn:
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

    async def _register(self, conn: Conn) -> None:
        """As a new service: what it remembers is that of another."""
        self._service_id = await services.register(
            conn,
            kind=self.kind,
            name=self.name,
            host=socket.gethostname(),
            pid=os.getpid(),
            version=version("evenflow"),
            detail=dict(self.vitals.detail),
        )
        self._steering = Steering(self._service_id, self._targets, self.vitals.meter)
        self._lease.beat()

    async def _beat(self, conn: Conn) -> None:
        await migrate.check_async(conn)
        known = await services.beat(conn, service_id=self._service_id, kind=self.kind, state=self._state)
        if known is None:
            await self._register(conn)
        self._lease.beat()

    def _measure(self) -> None:
        """Of each fleet that this one looks after."""

        def each(field: str) -> list[tuple[tuple[str, ...], float]]:
            memories = {} if self._steering is None else dict(self._steering.memories)
            return [((name,), float(getattr(memory.look, field))) for name, memory in memories.items() if memory.look is not None]

        meter = self.vitals.meter
        meter.family(metrics.FLEET_REPLICAS, lambda: each("replicas"))
        meter.family(metrics.FLEET_READY, lambda: each("ready"))
        meter.family(metrics.FLEET_RUNNING, lambda: each("running"))
        meter.family(metrics.FLEET_WAITING, lambda: each("waiting"))
        meter.family(metrics.FLEET_OLDEST, lambda: each("oldest_wait"))
