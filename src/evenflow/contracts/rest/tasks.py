"""Task instances: how they stand, what happened to them, what they wait for, and what they passed on."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from evenflow.contracts.rest.record import HistoryEntry, Record, TaskWord
from evenflow.core import limits
from evenflow.core.history.tries import TaskTry
from evenflow.spark.advice import Advice
from evenflow.spark.status import ApplicationFigures


class InstanceSummary(Record):
    task_id: str = Field(title="task")
    operator: str
    map_index: int
    state: TaskWord = Field(title="state")
    try_number: int = Field(title="try")
    queued_at: datetime | None
    started_at: datetime | None = Field(title="started")
    ended_at: datetime | None
    elapsed_s: float | None = Field(title="took")
    reason: str | None = Field(title="why")
    worker: str | None
    losses: int = Field(description="How often infrastructure lost it: a worker died, or could not start it. They use up no try.")


class TaskHistoryEntry(HistoryEntry):
    map_index: int = Field(title="task")
    state: TaskWord = Field(title="state")
    try_number: int = Field(title="try")
    actor: str | None = Field(title="who", description="Who did it, when it was a person.")


class TaskTries(Record):
    tries: list[TaskTry] = Field(description="The oldest first. One that has yet to begin is among them while it waits.")
    is_cut: bool = Field(
        description=f"There are more than the newest {limits.MOVES_OF_TRIES:,} moves: the first tries are left out."
    )


class WaitingTrigger(Record):
    dag_id: str = Field(title="DAG")
    run_id: str = Field(title="run")
    task_id: str = Field(title="task")
    map_index: int
    trigger: str = Field(title="waits for", description="The path of its class. What it was given is sealed, and shown to nobody.")
    queue: str
    deferred_at: datetime = Field(title="for")
    timeout_at: datetime | None = Field(title="until at most")
    triggerer: str | None = Field(title="runs on", description="The name of the triggerer that runs it; null: it waits for one.")
    claimed_at: datetime | None
    failures: int = Field(title="failures", description="How often in a row it has failed.")
    due_at: datetime = Field(description="When a triggerer may have it: later than now while it pauses after a failure.")


class RenderedFields(Record):
    fields: dict[str, str] = Field(description="Template fields of the newest try; empty when none was a template.")


class TaskLinks(Record):
    links: dict[str, str] = Field(description="Where the work of its newest try is to be seen outside, by names: URLs of HTTP.")
    try_number: int | None = Field(description="Of the newest try that has told any; null: none has.")


class TaskLineage(Record):
    event: dict[str, object] = Field(description="A RunEvent of OpenLineage: what the try read and wrote, and how it ended.")
    try_number: int
    is_sent: bool = Field(description="To the endpoint of the settings. Without one nothing is.")


class SparkUiPath(Record):
    path: str = Field(description="Of this API, where a browser that is logged in reads it.")
    application_id: str
    try_number: int


class SparkStages(Record):
    try_number: int
    at: datetime = Field(description="When its driver has told them.")
    runs: bool = Field(description="They are those so far: the try runs, or what it has submitted does.")
    application: ApplicationFigures
    advice: list[Advice] = Field(description="What held it up, and which settings to change; of the stage that took longest first.")


class XComEntry(Record):
    task_id: str = Field(title="task")
    map_index: int
    key: str = Field(title="key")
    size: int = Field(title="bytes", description="Bytes of its JSON.")
    length: int | None = Field(title="elements", description="Elements of a list or an object.")
    is_secret: bool = Field(description="It holds a secret that its try was given, and is not shown.")
    is_stored: bool = Field(title="kept", description="It lies in object storage.")
    created_at: datetime = Field(title="at")


class XComShown(XComEntry):
    value: object = Field(description="JSON; null when it is secret or lies in object storage.")
