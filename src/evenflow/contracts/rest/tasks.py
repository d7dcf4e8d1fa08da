"""Task instances: how they stand, what happened to them, what they wait for, and what they passed on."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from evenflow.contracts.rest.record import HistoryEntry, Record, TaskWord


class InstanceSummary(Record):
    task_id: str
    operator: str
    map_index: int
    state: TaskWord
    try_number: int
    queued_at: datetime | None
    started_at: datetime | None
    ended_at: datetime | None
    elapsed_s: float | None
    reason: str | None
    worker: str | None
    losses: int = Field(description="How often infrastructure lost it: a worker died, or could not start it. They use up no try.")


class TaskHistoryEntry(HistoryEntry):
    map_index: int
    try_number: int
    state: TaskWord
    actor: str | None = Field(description="Who did it, when it was a person.")


class WaitingTrigger(Record):
    dag_id: str
    run_id: str
    task_id: str
    map_index: int
    trigger: str = Field(description="The path of its class. What it was given is sealed, and shown to nobody.")
    queue: str
    deferred_at: datetime
    timeout_at: datetime | None
    triggerer: str | None = Field(description="The name of the triggerer that runs it; null: it waits for one.")
    claimed_at: datetime | None
    failures: int = Field(description="How often in a row it has failed.")
    due_at: datetime = Field(description="When a triggerer may have it: later than now while it pauses after a failure.")


class RenderedFields(Record):
    fields: dict[str, str] = Field(description="Template fields of the newest try; empty when none was a template.")


class XComEntry(Record):
    task_id: str
    map_index: int
    key: str
    size: int = Field(description="Bytes of its JSON.")
    length: int | None = Field(description="Elements of a list or an object.")
    is_secret: bool = Field(description="It holds a secret that its try was given, and is not shown.")
    is_stored: bool = Field(description="It lies in object storage.")
    created_at: datetime


class XComShown(XComEntry):
    value: object = Field(description="JSON; null when it is secret or lies in object storage.")
