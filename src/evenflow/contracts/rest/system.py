"""The state of the system: its services, its database, what is set aside, what was changed."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from evenflow.contracts.rest.record import Record, Request, Word
from evenflow.contracts.rest.service_states import ObjectServiceState
from evenflow.core import limits
from evenflow.core.why import OutrunTry


class ServiceStatus(Record):
    kind: str
    name: str
    host: str
    pid: int
    version: str
    state: str
    started_at: datetime
    beat_age_s: float
    healthy: bool = Field(description="Its lease holds.")
    detail: dict[str, Any]


class QueueStatus(Record):
    queue: str
    waiting: int
    running: int
    oldest_waiting_s: float | None
    workers: int = Field(description="That serve the queue and live.")
    fleet: str | None = Field(description="Whose workers an autoscaler starts for it.")
    executor: str | None = Field(description="That is sent what waits there.")
    trouble: str | None = Field(description="Why what waits there has no worker, and what to do, in words.")


class PushExecutorStatus(Record):
    """An executor that launchers send what waits."""

    name: str
    kind: str
    queues: list[str]
    launchers: int = Field(description="That live and serve it. Without any nothing is sent there.")
    refusal: str | None = Field(description="Why a launcher that lives does not serve it, or why it takes nothing now.")
    trouble: str | None = Field(description="Why nothing is sent there, and what to do, in words.")


class DatabaseStatus(Record):
    schema_version: int
    server_version: str
    database_bytes: int
    oldest_snapshot_s: float | None


class StartPace(Record):
    """What schedulers have started within the last minute."""

    starts: int = Field(description="Tries that were sent to workers.")
    late_s: float | None = Field(
        description="95 of 100 of them were sent at most so long after they could start; of several schedulers, the slowest."
    )


class Status(Record):
    version: str
    pace: StartPace | None = Field(description="Null when no scheduler tells, or not to this caller.")
    services: list[ServiceStatus]
    missing: list[str] = Field(description="Kinds of service of which none is healthy, and what is there needs one.")
    outrun: list[OutrunTry] = Field(description="Tries that their workers cannot end: the first 20.")
    queues: list[QueueStatus]
    executors: list[PushExecutorStatus] = Field(description="Those that are sent what waits.")
    runs_queued: int = Field(description="Runs that have not begun. At 10,000 counting ends.")
    inbox: int = Field(description="Reports that no scheduler has applied yet.")
    oldest_report_s: float | None
    quarantined: dict[str, int] = Field(description="How much is set aside because handling it failed, by kind.")
    database: DatabaseStatus
    not_active: list[ObjectServiceState] = Field(description="What is not in full service, except for DAGs that are only paused.")
    triggers_waiting: int = Field(description="Triggers that no triggerer has. At 10,000 counting ends.")
    triggers_running: int = Field(description="Triggers that a triggerer has. At 10,000 counting ends.")
    history_days_ahead: int = Field(description="Days after today for which history has its partition; schedulers keep it at 7.")


class Check(Record):
    ok: bool
    reason: str


class Health(Record):
    status: str
    checks: dict[str, Check]


class ServiceHealth(Record):
    kind: str
    name: str
    state: str
    healthy: bool = Field(description="Its lease holds.")
    beat_age_s: float


class SystemHealth(Record):
    status: str = Field(description="`healthy`, `degraded` (a service is silent) or `unhealthy` (no service of a kind is healthy).")
    missing: list[str] = Field(description="Kinds of service of which none is healthy.")
    services: list[ServiceHealth]


class ScrapeTarget(Record):
    targets: list[str]
    labels: dict[str, str]


class ChangeEvent(Record):
    event_id: int
    at: datetime = Field(title="at")
    last_at: datetime | None = Field(description="When the last one of those was.")
    actor: str = Field(title="by", description="The name of an operator's token, or the task that did it.")
    action: str = Field(title="action", description="Kind and verb, such as `pool.set`.")
    object: str = Field(title="of", description="What was changed; a run as DAG/RUN.")
    times: int = Field(
        title="times", description="Above 1: that many in this period, counted together; the rest is of the last one."
    )
    token_id: int | None = Field(
        title="token", description="Of the token in the list; of a service that which its fleet was given."
    )
    address: str | None = Field(title="from", description="Whence it was asked; null: on the database itself.")
    request_id: str | None = Field(description="The request's `X-Request-ID`, or one that all its events have.")
    detail: dict[str, Any] | None = Field(title="detail", description="The new values. Never what is secret.")


class ExportedEvent(ChangeEvent):
    """A line of an export."""

    xact: int = Field(description="The transaction that wrote it last. Lines are in this order, and go on behind one.")
    counted_as: str | None = Field(description="Of one that stands for many: it comes again when it counts more.")
    incarnation: int = Field(description="Of the database. Another one begins when that was set back, and the export with it.")


SetAsideKind = Literal["run", "schedule", "assets", "backfill"]
_KIND = Field(title="kind", description="A run; or what a schedule, assets or a backfill would have made.")
SetAsideName = Annotated[
    str,
    Field(
        title="of",
        max_length=limits.MAX_SET_ASIDE_CHARS,
        description="DAG/RUN of a run, else the name of the DAG or the number of the backfill.",
    ),
]


class SetAside(Request):
    kind: SetAsideKind = _KIND
    object: SetAsideName


class Released(Record):
    kind: SetAsideKind | Word = _KIND
    object: SetAsideName


class QuarantineEntry(Released):
    since: datetime = Field(title="since")
    reason: str = Field(title="why", description="The exception and its place. Its text only where Evenflow wrote it itself.")
