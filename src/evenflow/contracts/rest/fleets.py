"""Fleets of workers: what an autoscaler sees of each, what it decided and why, and which workers go first."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import Field

from evenflow.contracts.rest.record import ListedName, Record, Request
from evenflow.core import limits


class FleetSummary(Record):
    name: str = Field(title="fleet")
    target: str = Field(title="target", description="What runs its workers: `native`, `celery` or `kubernetes`.")
    queues: list[str] = Field(title="queues")
    replicas: int = Field(title="workers", description="That there are to be.")
    min: int = Field(title="min", description="Workers that there are at least.")
    max: int = Field(title="max", description="Workers that there are at most.")
    out_of_service: int | None = Field(
        title="out of service", description="Workers taken out of service by people; others replace them."
    )
    load: float | None = Field(title="load", description="Slots that are needed over slots that are there, as they were seen last.")
    running: int | None = Field(title="running", description="Tries of its queues that workers have.")
    waiting: int | None = Field(title="waiting", description="Tries that wait for a worker.")
    oldest_wait_s: float | None = Field(title="for", description="For how long the first of these has waited.")
    expected: int | None = Field(title="expected", description="Slots that a forecast says are needed soon beside those for these.")
    seen_at: datetime | None = Field(title="seen at", description="When that was.")
    reason: str | None = Field(title="why", description="Why it is as large as it is, or why no autoscaler looks after it.")
    policy: dict[str, Any] = Field(description="What is not as by default.")
    options: dict[str, Any] = Field(description="Of the target.")


class QueueDemand(Record):
    """What a queue needs now, in slots, for people who start workers by other means."""

    queue: str = Field(title="queue")
    slots: int = Field(title="slots", description="`running` and `waiting`: what would run if there were workers without end.")
    running: int = Field(title="running", description="Tries that workers have.")
    waiting: int = Field(
        title="waiting", description="Tries that wait for a worker. Of very many, 20,000 of each class are counted."
    )
    oldest_wait_s: float = Field(title="for", description="For how long the first of these has waited.")
    available: int = Field(title="available", description="Of workers of this queue that take tries.")
    load: float | None = Field(title="load", description="`slots` over `available`; none without any available.")
    is_known: bool = Field(description="Whether a worker that lives, a fleet, an executor or a DAG names the queue.")


class FleetWorker(Record):
    name: str = Field(title="worker")
    is_ready: bool = Field(title="ready")
    running: int = Field(title="running")
    rank: int | None = Field(title="rank", description="Of what it costs to end it; the lowest goes first. None: it is protected.")
    cost: float | None = Field(
        title="cost",
        description="Of its end: the seconds for which each of its tries has run, squared and weighed. None: one is protected.",
    )
    mark: str = Field(title="mark", description="`out of service` by hand, `leaving` by a plan, `protected`; else empty.")


class FleetDetail(FleetSummary):
    workers: list[FleetWorker] = Field(description="That serve its queues, who goes first before the others.")


class FleetChange(Request):
    target: str | None = Field(
        default=None,
        max_length=limits.MAX_FEW_WORDS_CHARS,
        description="A fleet keeps the one that it has. A new one is `kubernetes`: those of hosts are made by `evenflow up`.",
    )
    queues: list[ListedName] | None = Field(
        default=None,
        min_length=1,
        max_length=limits.MAX_QUEUES,
        description="All of them, each of one fleet only; as they are when absent.",
    )
    policy: dict[str, Any] = Field(
        default_factory=dict, description="What is to change; the rest stays. `default` has an option as by default again."
    )
    options: dict[str, Any] | None = Field(
        default=None, description="Of the target, those that are to change; the rest stays. An empty text takes one away."
    )


class FleetLook(Record):
    """What was seen of a fleet at one moment, for plots."""

    at: datetime = Field(title="at")
    running: int = Field(title="running", description="Tries of its queues that workers have.")
    aside: int = Field(description="Those of them whose worker gets no others: it is about to go, or out of service.")
    waiting: int = Field(title="waiting")
    expected: int = Field(title="expected", description="By a forecast.")
    oldest_wait_s: float = Field(title="for")
    ready: int = Field(title="slots", description="Of its workers that take tries.")
    replicas: int = Field(title="workers", description="Without those that people took out of service.")
    out_of_service: int = Field(title="out of service", description="Workers that people took out of service.")
    asked: int = Field(title="asked", description="Workers that the load alone asks for.")
    reason: str = Field(title="why")


class FleetStep(Record):
    """What was done with a fleet. The steps of a plan begin with its decision."""

    plan: int
    step: str
    at: datetime
    done_at: datetime | None = Field(description="None: it is under way, or was broken off.")
    is_open: bool = Field(description="Whether its plan has not ended.")
    words: list[str] = Field(description="For people, a line each; none for a step that changed nothing.")
    detail: dict[str, Any] = Field(description="The same for programs, by the kind of step.")
