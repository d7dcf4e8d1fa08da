"""Service states: what a DAG, a pool, a queue, a worker or the system takes on."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from evenflow.contracts.rest.record import ObjectKindWord, Record, Request, ServiceWord
from evenflow.core import limits
from evenflow.core.service_states import ServiceState


class ObjectServiceState(Record):
    kind: ObjectKindWord
    name: str = Field(description="Of the system: all.")
    state: ServiceWord
    since: datetime | None = Field(description="Null of an active object, and of a DAG that is paused and no more.")
    actor: str | None
    deadline: datetime | None = Field(description="Until when a drain waits.")
    reason: str | None = Field(description="Why, when nobody asked for just this state.")


class HeldByTask(Record):
    dag_id: str
    task_id: str
    running: int
    queued: int = Field(description="Wait for a worker.")
    deferred: int = Field(description="Wait for their trigger, or are on their way back.")


class DetailedServiceState(ObjectServiceState):
    tries: int = Field(description="Tries in flight.")
    tasks: list[HeldByTask] = Field(description="In flight, by task, the most first; not all when there are very many.")
    runs: int | None = Field(description="Runs that run, of a DAG or of the system.")


class ServiceStateChange(Request):
    state: ServiceState
    within_s: float | None = Field(default=None, gt=0, le=limits.MAX_DRAIN_S, description="How long a drain waits at most.")
