"""Fleets without processes: workers are rows that register, claim by the product's own statement, and end when they are told to."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import psycopg

from evenflow.autoscaler.steering import Steering
from evenflow.autoscaler.target import FleetTarget, HostTarget
from evenflow.core.limits import LEASE_S
from evenflow.core.meter import Meter
from evenflow.core.metrics import METRICS
from evenflow.core.model import DagSpec, TaskSpec
from evenflow.core.scaling.policy import ScalingPolicy
from evenflow.core.service import ServiceKind
from evenflow.store.db.connect import AsyncConn, connect_async
from evenflow.store.serving import dispatch, scaling, services
from tests.world import Unscheduled, at_once

EAGER = ScalingPolicy(min=0, max=4, slots=2, up_after=0, down_after=0, up_rate=100, down_rate=100)


class Fleets(Unscheduled):
    """``now`` is the time of looks, in which nothing has to be waited for: rows of the database are moved instead."""

    named = "f"  # the fleet, if no other is

    def __init__(self, conn: psycopg.Connection[Any], url: str) -> None:
        super().__init__(conn)
        self.url = url
        self._claims = 0

    def fleet(self, policy: ScalingPolicy = EAGER, name: str = "", queues: tuple[str, ...] = ("default",), **given: Any) -> None:
        told = {"target": "native", "options": {}, "by": "test", **given}
        assert at_once(scaling.set_fleet(self.awaited, name=name or self.named, queues=queues, policy=policy, **told))

    async def autoscaler(self, name: str = "a", targets: Mapping[str, FleetTarget] | None = None) -> tuple[Steering, AsyncConn]:
        """One that has just started."""
        holder = self.service("autoscaler", name)
        meter = Meter(ServiceKind.AUTOSCALER, name, METRICS)
        steering = Steering(holder, targets or {"native": HostTarget()}, meter)
        return steering, await connect_async(self.url, name=name)

    def lapse(self) -> None:
        """The lease of whoever acts is over."""
        self.conn.execute("update scaling_lease set until = now() - interval '1 second'")

    # -- what a host of native workers does

    def obey(self) -> None:
        """Workers that there are to be are there, and those that are to end have ended, unless they work."""
        for name, leaving in self.native():
            alive = self.alive(name)
            if not leaving and alive is None:
                self.worker(name)
            if leaving and (alive is None or not self.held(alive)):
                self.conn.execute("update service set state = 'stopped' where service_id = %s", [alive])
                at_once(scaling.forget_native(self.awaited, name.partition("-")[0], [name]))

    def native(self, fleet: str = "") -> list[tuple[str, bool]]:
        return at_once(scaling.list_native(self.awaited, fleet or self.named))

    # -- workers

    def worker(self, name: str, slots: int = 2, queues: tuple[str, ...] = ("default",)) -> int:
        process: dict[str, Any] = {"host": "h", "pid": 1, "version": "0", "detail": {"slots": slots, "queues": list(queues)}}
        return at_once(services.register(self.awaited, kind="worker", name=name, **process))

    def alive(self, name: str) -> int | None:
        query = "select max(service_id) from service where name = %s and kind = 'worker' and state in ('active', 'draining')"
        return self.one(query, name)  # type: ignore[no-any-return]

    def held(self, worker: int) -> list[int]:
        return self.all("select epoch from dispatch where worker_id = %s order by 1", worker)

    def claim(self, name: str, slots: int = 1, *, resumes: int = 0) -> list[int]:
        """Epochs that this worker gets."""
        worker = self.alive(name)
        assert worker is not None, f"{name} is not there"
        self._claims += 1
        asked: dict[str, Any] = {"claim_key": str(self._claims), "slots": slots, "resumes": resumes, "queues": ["default"]}
        result = at_once(dispatch.claim(self.awaited, service_id=worker, lease_s=LEASE_S, **asked))
        return [each.epoch for each in result.tries]

    def busy(self, name: str, number: int = 1, *, for_s: float = 0.0) -> list[int]:
        epochs = self.claim(name, number)
        assert len(epochs) == number
        if for_s:
            back = "update dispatch set claimed_at = claimed_at - make_interval(secs => %s) where epoch = any(%s)"
            self.conn.execute(back, [for_s, epochs])
        return epochs

    def tries(self, number: int, *, dag: str = "d", tags: tuple[str, ...] = (), queue: str = "default") -> list[int]:
        """That wait for a worker."""
        spec = DagSpec(dag_id=dag, tasks=(TaskSpec(task_id="t", operator="python"),), tags=tags)
        version = self.add_dag(spec)
        return [self.dispatch(self.run(version), queue=queue) for _ in range(number)]

    # -- what became of it

    @property
    def replicas(self) -> int:
        return int(self.one("select replicas from fleet where name = %s", self.named))

    def fenced(self) -> list[str]:
        return self.all("select name from service where fence is not null and state in ('active', 'draining') order by 1")

    def open_plans(self) -> list[int]:
        return self.all("select distinct plan from scaling_step where open order by 1")

    def steps(self) -> list[str]:
        return self.all("select step from scaling_step order by step_id")

    def detail(self, step: str) -> dict[str, Any]:
        """Of the newest such step."""
        found = self.one("select detail from scaling_step where step = %s order by step_id desc limit 1", step)
        return json.loads(found) if isinstance(found, str) else found
