"""What REST answers, as its clients read it. The OpenAPI description has the meanings; a test holds the two together.

Unknown fields are ignored, so that a client may be older than its API.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Generic, TypeVar

import msgspec

from evenflow.core.limits import PARTITIONS_AHEAD

T = TypeVar("T")


class Answer(msgspec.Struct, kw_only=True):
    """Base of all."""


class Page(Answer, Generic[T]):
    items: list[T]
    limit: int
    offset: int
    more: bool


class DagSummary(Answer, kw_only=True):
    dag_id: str
    display_name: str
    is_paused: bool
    paused_reason: str | None
    is_active: bool
    bundle: str
    file: str
    version_number: int
    schedule: str | None
    timezone: str | None
    next_run_at: datetime | None
    next_logical: datetime | None
    updated_at: datetime
    description: str
    owner: str
    tags: list[str]
    last_run_id: str | None
    last_run_state: str | None
    last_run_at: datetime | None
    service_state: str = "active"


class DagTask(Answer):
    task_id: str
    display_name: str
    operator: str
    upstream: list[str]
    trigger_rule: str
    mapped: bool
    pool: str
    queue: str
    priority_weight: int
    retries: int


class DagParam(Answer):
    name: str
    default: Any
    required: bool
    schema: dict[str, Any]
    description: str


class DagDetail(DagSummary):
    doc: str
    owner_links: dict[str, str]
    max_active_runs: int | None
    max_active_tasks: int | None
    params: list[DagParam]
    tasks: list[DagTask]


class DeletedDag(Answer):
    dag_id: str
    runs: int


class ParseError(Answer):
    bundle: str
    file: str
    error: str
    error_line: int | None
    parsed_at: datetime | None
    is_read: bool


class CancelledRuns(Answer):
    runs: int
    more: bool


class Run(Answer):
    dag_id: str
    run_id: str
    state: str
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
    backfill_id: int | None
    is_being_changed: bool
    quarantine: str | None


class TryProgress(Answer):
    task_id: str
    map_index: int
    at: datetime
    label: str
    done: int
    total: int
    detail: dict[str, Any]


class CallbackRun(Answer):
    run_id: str
    event: str
    task_id: str | None
    map_index: int | None
    try_number: int | None
    state: str
    created_at: datetime
    reason: str | None


class MissedDeadline(Answer):
    name: str
    due_at: datetime


class RunDetail(Run):
    tasks_by_state: dict[str, int]
    progress: list[TryProgress]
    callbacks: list[CallbackRun]
    missed_deadlines: list[MissedDeadline]


class BackfillDate(Answer):
    logical_date: datetime
    data_interval_start: datetime
    data_interval_end: datetime
    passed_over: str | None
    run_id: str | None
    state: str | None


class BackfillPlan(Answer):
    backfill_id: int | None
    runs: list[BackfillDate]


class Backfill(Answer):
    backfill_id: int
    dag_id: str
    from_date: datetime
    to_date: datetime
    is_reversed: bool
    reprocess: str
    max_active_runs: int
    params: dict[str, Any]
    priority: int
    is_paused: bool
    created_at: datetime
    created_by: str
    ended_at: datetime | None
    cancelled_by: str | None
    total: int
    passed_over: int
    waiting: int
    active: int
    success: int
    failed: int


class TaskInstance(Answer):
    task_id: str
    operator: str
    map_index: int
    state: str
    try_number: int
    queued_at: datetime | None
    started_at: datetime | None
    ended_at: datetime | None
    elapsed_s: float | None
    reason: str | None
    worker: str | None
    losses: int = 0


class Pool(Answer):
    name: str
    description: str
    slots: int
    used: int
    policy: str
    while_deferred: str


class SettingValue(Answer):
    name: str
    value: Any
    default: Any
    kind: str
    meaning: str
    changed_at: datetime | None
    changed_by: str | None
    version: int | None = None


class SettingVersion(Answer):
    version: int
    value: Any
    unset: bool
    changed_at: datetime
    changed_by: str


class ServiceStatus(Answer):
    kind: str
    name: str
    host: str
    pid: int
    version: str
    state: str
    started_at: datetime
    beat_age_s: float
    healthy: bool
    detail: dict[str, Any]


class StandingObject(Answer):
    """The state of service of a DAG, a pool, a queue, a worker or the system."""

    kind: str
    name: str
    state: str
    since: datetime | None
    actor: str | None
    deadline: datetime | None
    reason: str | None


class OutrunTry(Answer):
    worker: str
    host: str
    dag_id: str
    run_id: str
    task_id: str
    map_index: int
    since: datetime


class QueueStatus(Answer):
    queue: str
    waiting: int
    running: int
    oldest_waiting_s: float | None


class DatabaseStatus(Answer):
    schema_version: int
    server_version: str
    database_bytes: int
    oldest_snapshot_s: float | None


class Status(Answer):
    version: str
    services: list[ServiceStatus]
    queues: list[QueueStatus]
    inbox: int
    oldest_report_s: float | None
    quarantined: dict[str, int]
    database: DatabaseStatus
    not_active: list[StandingObject] = []
    triggers_waiting: int = 0
    triggers_running: int = 0
    history_days_ahead: int = PARTITIONS_AHEAD
    runs_queued: int = 0
    outrun: list[OutrunTry] = []


class WaitingTrigger(Answer):
    """What a deferred task waits for. ``triggerer`` is null while none runs it."""

    dag_id: str
    run_id: str
    task_id: str
    map_index: int
    trigger: str
    queue: str
    deferred_at: datetime
    timeout_at: datetime | None
    triggerer: str | None
    claimed_at: datetime | None
    failures: int
    due_at: datetime


class Released(Answer):
    kind: str
    object: str


class QuarantineEntry(Answer):
    """Something that is set aside because handling it failed."""

    kind: str
    object: str
    since: datetime
    reason: str


class Finding(Answer):
    """Something that the auditor found."""

    kind: str
    object: str
    found: str
    expected: str


class Audit(Answer):
    findings: list[Finding]


class StoredValue(Answer):
    name: str
    description: str
    dags: list[str]
    changed_at: datetime
    changed_by: str
    problem: str | None


class StoredConnection(StoredValue):
    conn_type: str
    uri: str
    login: str | None
    host: str | None
    port: int | None
    schema: str


class StoredVariable(StoredValue):
    value: str


class CheckedValue(Answer):
    kind: str
    name: str


class Rotated(Answer):
    resealed: int
    keys_are_set: bool


class RenderedFields(Answer):
    fields: dict[str, str]


class XComEntry(Answer):
    task_id: str
    map_index: int
    key: str
    size: int
    length: int | None
    is_secret: bool
    is_stored: bool
    created_at: datetime


class XComShown(XComEntry):
    value: Any


class Asset(Answer):
    name: str
    uri: str
    group: str
    extra: dict[str, Any]
    last_event_at: datetime | None
    consumers: list[str]


class AssetEvent(Answer):
    event_id: int
    asset: str
    uri: str
    at: datetime
    extra: dict[str, Any]
    alias: str | None
    dag_id: str | None
    run_id: str | None
    task_id: str | None
    map_index: int | None
    actor: str


class Emitted(Answer):
    """``dag_ids``: the DAGs that wait for the asset and have the event now."""

    event_id: int
    at: datetime
    dag_ids: list[str]


class LogText(Answer):
    """A part of a log. ``offset`` is where the next part begins; ``complete`` says that there will be none."""

    text: str
    offset: int
    complete: bool
