"""Tries of queues that belong to push executors, and an executor that remembers what it was sent."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import psycopg

from evenflow.core.limits import LEASE_S
from evenflow.core.model import DagSpec, TaskSpec
from evenflow.core.pods.ends import WaitingPod
from evenflow.launcher.executor import LaunchFailure
from evenflow.store.serving import dispatch, executors, launches
from evenflow.store.serving.launches import Launch
from tests.world import World, at_once

QUEUE = "etl"


@dataclass
class Memory:
    """An executor. ``failing`` says what becomes of the next batch; ``lost``: epochs that it says have failed when it is asked."""

    sent: list[Launch] = field(default_factory=list)
    failing: list[Mapping[int, LaunchFailure] | Exception] = field(default_factory=list)
    lost: dict[int, LaunchFailure] = field(default_factory=dict)
    asked: list[int] = field(default_factory=list)
    closed: bool = False

    async def launch(self, tries: Sequence[Launch]) -> Mapping[int, LaunchFailure]:
        if self.failing:
            failure = self.failing.pop(0)
            if isinstance(failure, Exception):
                raise failure
            return failure
        self.sent += tries
        return {}

    @property
    def waiting(self) -> Mapping[int, WaitingPod]:
        return {}

    async def reconcile(self, tries: Sequence[Launch]) -> Mapping[int, LaunchFailure]:
        self.asked += [each.epoch for each in tries]
        return {each.epoch: self.lost[each.epoch] for each in tries if each.epoch in self.lost}

    async def watch(self) -> None:
        await asyncio.Event().wait()

    async def close(self) -> None:
        self.closed = True

    @property
    def epochs(self) -> list[int]:
        return [each.epoch for each in self.sent]


class Pushed(World):
    """``etl`` is a queue of the executor ``elsewhere``."""

    def __init__(self, conn: psycopg.Connection[Any]) -> None:
        super().__init__(conn)
        self.executor()
        self.version = self.add_dag(DagSpec(dag_id="d", tasks=(TaskSpec(task_id="t", operator="python", queue=QUEUE),)))
        self.claims = 0

    def executor(self, name: str = "elsewhere", kind: str = "celery", queues: Sequence[str] = (QUEUE,), **given: Any) -> None:
        told = {"slots": 100, "options": {}, "by": "test", **given}
        assert at_once(executors.set_executor(self.awaited, name=name, kind=kind, queues=queues, **told))

    def tries(self, number: int = 1, **given: Any) -> list[int]:
        """That wait, each of a run of its own."""
        return [self.dispatch(self.run(self.version), **{"queue": QUEUE, **given}) for _ in range(number)]

    def take(self, *, most: int = 100) -> list[Launch]:
        return at_once(launches.take_unsent(self.awaited, [QUEUE], most=most))

    def overdue(self, *, after_s: float = 60.0) -> list[Launch]:
        return at_once(launches.take_overdue(self.awaited, [QUEUE], after_s=after_s, most_s=3_600, most=100))

    def age(self, seconds: float) -> None:
        """What was sent was sent so much earlier."""
        self.conn.execute("update dispatch set sent_at = sent_at - make_interval(secs => %s)", [seconds])

    def claim(self, worker: int, *epochs: int, key: str | None = None) -> dispatch.ClaimResult:
        self.claims += 1
        named: dict[str, Any] = {"service_id": worker, "claim_key": key or f"key-{self.claims}", "lease_s": LEASE_S}
        return at_once(dispatch.claim_handed(self.awaited, epochs, queues=[QUEUE], **named))

    def unsent(self) -> list[int]:
        return self.all("select epoch from dispatch where worker_id is null and sent_at is null order by 1")
