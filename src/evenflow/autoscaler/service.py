"""The autoscaler as a service. Any number may run: the one that holds the lease acts, and another one when that lapses."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Any

from evenflow.autoscaler.kubernetes import KubernetesTarget
from evenflow.autoscaler.limits import CLUSTER_ANSWER_S, CLUSTER_S, HURRY_S, LOOP_S
from evenflow.autoscaler.steering import Steering
from evenflow.autoscaler.target import FleetTarget, HostTarget
from evenflow.control.service import DatabaseService
from evenflow.core import metrics
from evenflow.kubernetes.address import find_cluster
from evenflow.kubernetes.client import KubernetesClient
from evenflow.store.db.connect import AsyncConn
from evenflow.store.db.notify import DISPATCH
from evenflow.store.serving import scaling
from evenflow.telemetry.health import HealthMonitor
from evenflow.telemetry.service import Loops


def fleet_targets(kubernetes: str, environ: Mapping[str, str]) -> dict[str, FleetTarget]:
    """By their kind. ``kubernetes`` says where the cluster is; the cluster is contacted only once a fleet exists."""

    async def connect() -> KubernetesClient:
        return KubernetesClient(await find_cluster(kubernetes, environ), patience_s=CLUSTER_S, answer_s=CLUSTER_ANSWER_S)

    return {"native": HostTarget(), "celery": HostTarget(), "kubernetes": KubernetesTarget(connect)}


class AutoscalerService(DatabaseService):
    """Knows the database, and what runs workers; never code of users, and never a worker itself."""

    kind = "autoscaler"
    turn_s = LOOP_S
    channels = (DISPATCH,)

    def __init__(
        self, database_url: str, *, name: str, targets: Mapping[str, FleetTarget], health: HealthMonitor | None = None
    ) -> None:
        super().__init__(database_url, name, health)
        self._targets = targets
        self._steering: Steering | None = None
        self._acts = False  # as it was told, and
        self._told: dict[str, str] = {}  # why fleets cannot be looked after

    async def _begin(self) -> Loops:
        for target in self._targets.values():
            self._opened.push_async_callback(target.close)
        loops = await super()._begin()
        self._measure()
        return loops

    async def _signing_off(self, conn: AsyncConn) -> None:
        await scaling.give_lease(conn, self._service_id)

    def _detail(self) -> dict[str, Any]:
        """Returns whether it is the one that acts, and why it cannot look after fleets, too."""
        return {**super()._detail(), "acts": self._acts, "refused": self._told}

    async def _turn(self, conn: AsyncConn) -> None:
        assert self._steering is not None
        acts = await self._steering.loop(conn)
        if (acts, self._steering.refused) != (self._acts, self._told):
            self._acts, self._told = acts, self._steering.refused
            await self._beat(conn)  # so that all know it at once

    async def _rest(self, began: float) -> None:
        """Waits until the next loop is due, or there is news of a fleet that no autoscaler handles."""
        clock = asyncio.get_running_loop().time
        self._news.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(began + (LOOP_S if self._steering is None else self._steering.rest_s)):
                while True:
                    await self._news.wait()
                    if self._ending.is_set():
                        return
                    self._news.clear()
                    if self._steering is not None and self._steering.waits_for_the_first:
                        break
        await asyncio.sleep(max(0.0, began + HURRY_S - clock()))

    def _registered(self) -> None:
        self._steering = Steering(self._service_id, self._targets, self.health.meter)

    def _measure(self) -> None:
        """Of each fleet that this one looks after."""

        def each(field: str) -> list[tuple[tuple[str, ...], float]]:
            memories = {} if self._steering is None else dict(self._steering.memories)
            return [((name,), float(getattr(memory.look, field))) for name, memory in memories.items() if memory.look is not None]

        meter = self.health.meter
        meter.family(metrics.FLEET_REPLICAS, lambda: each("replicas"))
        meter.family(metrics.FLEET_READY, lambda: each("ready"))
        meter.family(metrics.FLEET_RUNNING, lambda: each("running"))
        meter.family(metrics.FLEET_WAITING, lambda: each("waiting"))
        meter.family(metrics.FLEET_OLDEST, lambda: each("oldest_wait"))
