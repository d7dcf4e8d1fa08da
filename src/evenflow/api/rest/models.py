"""What REST takes and answers. Times are UTC, durations seconds."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints, field_validator

from evenflow.api import limits
from evenflow.api.rest.service_state_models import StandingObject
from evenflow.api.run_names import PATTERN, checked_instant
from evenflow.core.model import read_schedule
from evenflow.core.service_states import ServiceState
from evenflow.core.states import RunState, TaskState
from evenflow.core.timetable import describe

T = TypeVar("T")

Name = Annotated[str, StringConstraints(min_length=1, max_length=limits.NAME, pattern=PATTERN)]
Instant = Annotated[AwareDatetime, AfterValidator(checked_instant)]
Note = Annotated[str, StringConstraints(min_length=1, max_length=limits.NOTE)]
INT32 = 2**31 - 1


class Request(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ErrorDetail(BaseModel):
    code: str = Field(description="For programs.")
    message: str = Field(description="For people: what happened, to what, and what to do.")


class ErrorAnswer(BaseModel):
    error: ErrorDetail


class Page(BaseModel, Generic[T]):
    items: list[T]
    limit: int
    offset: int
    more: bool = Field(description="Whether there are items after these.")


# -- DAGs --------------------------------------------------------------------------------------------------------------


class DeletedDag(BaseModel):
    dag_id: str
    runs: int = Field(description="How many runs of it were deleted, or would be.")


class DagSummary(BaseModel):
    dag_id: str
    display_name: str = Field(description="The dag_id, unless the DAG has another name for people.")
    is_paused: bool
    paused_reason: str | None = Field(description="Why it is paused, when nobody paused it.")
    is_active: bool = Field(description="False: the file that defined it is gone, or defines it no more.")
    bundle: str
    file: str
    version_number: int
    schedule: str | None = Field(description="In words; null: it runs when somebody triggers it.")
    timezone: str | None
    next_run_at: datetime | None
    next_logical: datetime | None
    updated_at: datetime
    description: str
    owner: str
    tags: list[str]
    last_run_id: str | None
    last_run_state: RunState | None
    last_run_at: datetime | None
    service_state: ServiceState

    @field_validator("schedule", mode="before")
    @classmethod
    def _in_words(cls, stored: dict[str, Any] | None) -> str | None:
        return describe(read_schedule(stored or {}))


class DagTask(BaseModel):
    task_id: str
    display_name: str = Field(description="The task_id, unless the task has another name for people.")
    operator: str
    upstream: list[str]
    trigger_rule: str
    mapped: bool
    pool: str
    queue: str
    priority_weight: int
    retries: int


class DagParam(BaseModel):
    model_config = ConfigDict(serialize_by_alias=True)

    name: str
    default: Any
    required: bool
    json_schema: dict[str, Any] = Field(alias="schema")
    description: str


class DagDetail(DagSummary):
    doc: str
    owner_links: dict[str, str] = Field(description="Where to find owners: https:// or mailto:.")
    max_active_runs: int | None
    max_active_tasks: int | None
    params: list[DagParam]
    tasks: list[DagTask]


class DagChange(Request):
    is_paused: bool


class DagRelease(Request):
    bundle: str = Field(min_length=1, max_length=100, description="The bundle that is to have the DAG.")


class ParseError(BaseModel):
    bundle: str
    file: str
    error: str
    error_line: int | None
    parsed_at: datetime | None
    is_read: bool = Field(description="Whether a processor that lives reads the bundle still.")


# -- runs --------------------------------------------------------------------------------------------------------------


class RunRequest(Request):
    run_id: Name | None = Field(default=None, description="Made from the time when absent.")
    params: dict[str, Any] = {}
    logical_date: Instant | None = Field(default=None, description="A DAG has at most one run of each.")
    priority: int = Field(default=0, ge=-INT32, le=INT32, description="Runs of a higher one go first.")
    note: Note | None = None


class RunChange(Request):
    note: Note | None = Field(description="Null takes it away.")


class CancelRequest(Request):
    state: Literal["queued", "running"] | None = Field(default=None, description="Only runs that are in this state.")
    dry_run: bool = Field(default=False, description="Only say how many there are.")


class CancelledRuns(BaseModel):
    runs: int = Field(description="How many are being cancelled that were not before; of a dry run, how many have not ended.")
    more: bool = Field(description="Whether there are more than one request cancels: ask again.")


class Run(BaseModel):
    dag_id: str
    run_id: str
    state: RunState
    run_type: str
    version_number: int
    params: dict[str, Any]
    priority: int
    run_after: datetime
    logical_date: datetime | None
    data_interval_start: datetime | None
    data_interval_end: datetime | None
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    elapsed_s: float | None
    reason: str | None
    cancelled_by: str | None
    note: str | None
    backfill_id: int | None = Field(description="The backfill that made it, or made it run again.")
    is_being_changed: bool = Field(description="Somebody cleared or marked something of it, and that has not taken effect yet.")
    quarantine: str | None = Field(description="Why it is set aside: handling it raised an exception. Null for nearly all.")


class TryProgress(BaseModel):
    task_id: str
    map_index: int
    at: datetime
    label: str
    done: int
    total: int
    detail: dict[str, Any]


class CallbackRun(BaseModel):
    """A call of an author's function because of the run: a run of the DAG ``evenflow_callbacks``, of one task, ``callback``."""

    run_id: str = Field(description="Name of the run of evenflow_callbacks; its log is that of the task callback.")
    event: str = Field(description="on_failure_callback, deadline_callback, ...")
    task_id: str | None = Field(description="Null: of the run as a whole.")
    map_index: int | None
    try_number: int | None
    state: RunState
    created_at: datetime
    reason: str | None


class MissedDeadline(BaseModel):
    name: str
    due_at: datetime


class RunDetail(Run):
    tasks_by_state: dict[TaskState, int] = Field(description="Task instances, those of mapped tasks that wait included.")
    progress: list[TryProgress] = Field(description="What running tries say of themselves.")
    callbacks: list[CallbackRun] = Field(description="Functions that were called because of it, at most 100 of them.")
    missed_deadlines: list[MissedDeadline]


class TaskInstance(BaseModel):
    task_id: str
    operator: str
    map_index: int
    state: TaskState
    try_number: int
    queued_at: datetime | None
    started_at: datetime | None
    ended_at: datetime | None
    elapsed_s: float | None
    reason: str | None
    worker: str | None
    losses: int = Field(description="How often infrastructure lost it: a worker died, or could not start it. They use up no try.")


# -- the system --------------------------------------------------------------------------------------------------------


class Pool(BaseModel):
    name: str
    description: str
    slots: int
    used: int
    policy: str = Field(
        description="Whether smaller tasks may pass one that does not fit: `backfill`, `strict`, `reserve-after=10m`."
    )
    while_deferred: str = Field(description="What becomes of a slot while its task is deferred: `hold` or `release`.")


class PoolChange(Request):
    slots: int = Field(ge=0, le=INT32)
    description: str | None = Field(default=None, max_length=1_000, description="As it is when absent.")
    policy: str | None = Field(default=None, max_length=50, description="As it is when absent; `backfill` for a new pool.")
    while_deferred: str | None = Field(default=None, max_length=50, description="As it is when absent; `hold` for a new pool.")


class SettingValue(BaseModel):
    name: str
    value: Any
    default: Any
    kind: str = Field(description="What a value may be.")
    meaning: str
    changed_at: datetime | None = Field(description="Null: nobody has set it.")
    changed_by: str | None
    version: int | None = Field(description="Greater than that of any change before it, of whichever setting.")


class SettingVersion(BaseModel):
    version: int
    value: Any
    unset: bool = Field(description="Somebody took back what was set; the value is the default.")
    changed_at: datetime
    changed_by: str


class SettingChange(Request):
    value: Any


class ServiceStatus(BaseModel):
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


class OutrunTry(BaseModel):
    """A try that its worker cannot end: what it has started forks more quickly than it is killed."""

    worker: str
    host: str
    dag_id: str
    run_id: str
    task_id: str
    map_index: int
    since: datetime = Field(description="When the worker claimed it.")


class QueueStatus(BaseModel):
    queue: str
    waiting: int
    running: int
    oldest_waiting_s: float | None


class DatabaseStatus(BaseModel):
    schema_version: int
    server_version: str
    database_bytes: int
    oldest_snapshot_s: float | None


class Status(BaseModel):
    version: str
    services: list[ServiceStatus]
    outrun: list[OutrunTry] = Field(description="Tries that their workers cannot end: the first 20.")
    queues: list[QueueStatus]
    runs_queued: int = Field(description="Runs that have not begun. At 10,000 counting ends.")
    inbox: int = Field(description="Reports that no scheduler has applied yet.")
    oldest_report_s: float | None
    quarantined: dict[str, int] = Field(description="How much is set aside because handling it failed, by kind.")
    database: DatabaseStatus
    not_active: list[StandingObject] = Field(description="What is not in full service, but for DAGs that are only paused.")
    triggers_waiting: int = Field(description="Triggers that no triggerer has. At 10,000 counting ends.")
    triggers_running: int = Field(description="Triggers that a triggerer has. At 10,000 counting ends.")
    history_days_ahead: int = Field(description="Days after today for which history has its partition; schedulers keep it at 7.")


class Check(BaseModel):
    ok: bool
    reason: str


class Health(BaseModel):
    status: str
    checks: dict[str, Check]


class ScrapeTarget(BaseModel):
    targets: list[str]
    labels: dict[str, str]


class ServiceHealth(BaseModel):
    kind: str
    name: str
    state: str
    healthy: bool = Field(description="Its lease holds.")
    beat_age_s: float


class SystemHealth(BaseModel):
    status: str = Field(description="`healthy`, `degraded` (a service is silent) or `unhealthy` (no service of a kind is healthy).")
    missing: list[str] = Field(description="Kinds of service of which none is healthy.")
    services: list[ServiceHealth]
