"""Runs: asking for one, watching it, changing and ending it."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from evenflow.contracts.rest.record import HistoryEntry, Instant, ObjectName, Record, Request, RunWord, TaskWord
from evenflow.core import limits
from evenflow.core.flow.effects import Effect
from evenflow.core.limits import INT32_MAX
from evenflow.core.operations import Only

Note = Annotated[str, StringConstraints(min_length=1, max_length=limits.NOTE)]


class RunRequest(Request):
    run_id: ObjectName | None = Field(default=None, description="Made from the time when absent.")
    params: dict[str, Any] = Field(default={})
    logical_date: Instant | None = Field(default=None, description="A DAG has at most one run of each.")
    priority: int = Field(default=0, ge=-INT32_MAX, le=INT32_MAX, description="Runs of a higher one go first.")
    note: Note | None = None


class RunChange(Request):
    note: Note | None = Field(description="Null takes it away.")


class CancelRequest(Request):
    state: Literal["queued", "running"] | None = Field(default=None, description="Only runs that are in this state.")
    dry_run: bool = Field(default=False, description="Only say how many there are.")


class CancelledRuns(Record):
    effect: Effect | None = Field(description=f"Of a dry run, what would be touched of the first {limits.EFFECT_RUNS:,} runs.")
    runs: int = Field(description="How many are being cancelled that were not before; of a dry run, how many have not ended.")
    more: bool = Field(description="Whether there are more than one request cancels: ask again.")


# A new field is a column of the clause store/clauses/run_summary.sql, too: all statements that list runs name that. With a title it
# is a column of `evenflow runs list`.
class RunSummary(Record):
    dag_id: str = Field(title="DAG")
    run_id: str = Field(title="run")
    state: RunWord = Field(title="state")
    run_type: str
    version_number: int
    params: dict[str, Any]
    priority: int = Field(title="priority")
    run_after: datetime
    logical_date: datetime | None
    data_interval_start: datetime | None
    data_interval_end: datetime | None
    created_at: datetime
    started_at: datetime | None = Field(title="started")
    ended_at: datetime | None
    elapsed_s: float | None = Field(title="took")
    reason: str | None = Field(title="why")
    cancelled_by: str | None
    note: str | None = Field(title="note")
    backfill_id: int | None = Field(description="The backfill that made it, or made it run again.")
    is_being_changed: bool = Field(description="Somebody cleared or marked something of it, and that has not taken effect yet.")
    quarantine: str | None = Field(description="Why it is set aside: handling it raised an exception. Null for nearly all.")


class TryProgress(Record):
    task_id: str
    map_index: int
    at: datetime
    label: str
    done: int
    total: int
    detail: dict[str, Any]


class CallbackRun(Record):
    """A call of an author's function because of the run: a run of the DAG ``evenflow_callbacks``, of one task, ``callback``."""

    run_id: str = Field(description="Name of the run of evenflow_callbacks; its log is that of the task callback.")
    event: str = Field(description="on_failure_callback, deadline_callback, clean_up, ...")
    task_id: str | None = Field(description="Null: of the run as a whole.")
    map_index: int | None
    try_number: int | None
    state: RunWord
    created_at: datetime
    reason: str | None


class RunDeadline(Record):
    """A run that has ended in time has met its deadlines, however it ended."""

    name: str
    due_at: datetime
    state: Literal["open", "met", "missed"]


class RunDetail(RunSummary):
    tasks_by_state: dict[TaskWord, int] = Field(description="Task instances, those of mapped tasks that wait included.")
    progress: list[TryProgress] = Field(description="What running tries say of themselves.")
    callbacks: list[CallbackRun] = Field(description="Functions that were called because of it, at most 100 of them.")
    deadlines: list[RunDeadline] = Field(
        description="When it is to have ended. One by the average runtime is left out once it has ended in time."
    )
    trace_id: str | None = Field(description="Its trace in OpenTelemetry, which is sent when it ends. Null: none is sent.")


class GridRun(Record):
    run_id: str
    state: RunWord
    run_type: str
    version_number: int
    logical_date: datetime | None
    created_at: datetime
    started_at: datetime | None
    elapsed_s: float | None
    states: dict[TaskWord, list[int]] = Field(
        description="Tasks by state, as places in `tasks`. A mapped one has those of all its instances."
    )


class Grid(Record):
    """The newest runs of a DAG, and how each task of them stands."""

    tasks: list[str] = Field(description="Of all these runs, in the order of the newest version.")
    runs: list[GridRun] = Field(description="The newest first.")
    total: int = Field(description=f"Runs that the DAG has, counted up to {limits.GRID_TOTAL:,}.")
    more: bool


class TaskCounts(Record):
    """How the task instances of a run stand, task by task."""

    tasks: dict[str, dict[TaskWord, int]] = Field(
        description="By task_id, how many instances are in each state, those without a row included. An untouched task is left out."
    )


class CalendarDay(Record):
    day: str = Field(description="Of the logical dates, as YYYY-MM-DD; of runs without one, of their creation.")
    runs: int
    success: int
    failed: int
    median_s: float | None = Field(description="Of those that have ended; null of none.")
    longest_s: float | None


class Calendar(Record):
    """How the runs of a DAG of the last year ended, by day."""

    days: list[CalendarDay] = Field(description="Those with runs, the oldest first.")
    is_cut: bool = Field(description="Whether there are more runs than are counted: the days before the first are left out.")


class RunName(Record):
    dag_id: str
    run_id: str
    state: RunWord


class RunHistoryEntry(HistoryEntry):
    state: RunWord = Field(title="state")
    actor: str = Field(title="who")


class ScopeRequest(Request):
    """Which tasks of which runs."""

    tasks: list[ObjectName] | None = Field(
        default=None, min_length=1, max_length=limits.OPERATED_TASKS, description="All of the run when absent."
    )
    map_indexes: list[Annotated[int, Field(ge=0)]] | None = Field(
        default=None, min_length=1, max_length=limits.OPERATED_TASKS, description="Of mapped tasks, only these instances."
    )
    upstream: bool = Field(default=False, description="Also all that these tasks depend on.")
    downstream: bool = Field(default=False, description="Also all that depends on these tasks.")
    past: bool = Field(default=False, description="Also in the runs of the DAG before this one.")
    future: bool = Field(default=False, description="Also in the runs of the DAG after this one.")
    dry_run: bool = Field(default=False, description="Only say what would be touched.")


class ClearRequest(ScopeRequest):
    only: Only | None = Field(default=None, description="Only what failed (or could not start because of that), or what runs.")


class MarkRequest(ScopeRequest):
    state: Literal["success", "failed", "skipped"]


class StateOfInstance(Record):
    task_id: str
    map_index: int
    state: TaskWord


class TouchedInstance(StateOfInstance):
    """Its state is as it was when this was asked."""

    run_id: str


class Operated(Record):
    dry_run: bool
    effect: Effect = Field(description="The same in counts, and what ends with it outside.")
    runs: list[str]
    instances: list[TouchedInstance]
    more: bool = Field(description="Whether there are more instances than are listed.")
    total: int = Field(description="How many instances there are; at least so many unless `counted`.")
    counted: bool
    already: bool = Field(description="Of a mark: whether all that is meant was so already when this was asked.")
