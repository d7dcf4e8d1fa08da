"""A run for people: one row a task, with all instances of a mapped task in one row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from evenflow.contracts import rest
from evenflow.core.states import FINISHED, RUN_FINISHED, RunState, TaskState

_FINISHED = frozenset(map(str, FINISHED))
_RUN_FINISHED = frozenset(map(str, RUN_FINISHED))
# The state of a mapped task is the first of these that any of its instances has.
_TELLING = (
    "running",
    "failed",
    "up_for_retry",
    "queued",
    "deferred",
    "up_for_reschedule",
    "scheduled",
    "none",
    "upstream_failed",
    "success",
)


@dataclass(frozen=True, slots=True)
class RunSnapshot:
    """A run and its task instances at one moment; ``all_tasks``: they are all here."""

    run: rest.runs.RunDetail
    instances: Sequence[rest.tasks.InstanceSummary]
    all_tasks: bool

    @property
    def finished(self) -> bool:
        return self.run.state in _RUN_FINISHED and not self.run.is_being_changed

    @property
    def succeeded(self) -> bool:
        return self.run.state == RunState.SUCCESS

    @property
    def total(self) -> int:
        return sum(self.run.tasks_by_state.values())

    @property
    def done(self) -> int:
        return sum(count for state, count in self.run.tasks_by_state.items() if state in _FINISHED)

    def elapsed_s(self, now: datetime | None = None) -> float:
        """Returns the seconds since the run was requested, until it ended or until now."""
        return ((self.run.ended_at or now or datetime.now(UTC)) - self.run.created_at).total_seconds()


@dataclass(slots=True)
class TaskRow:
    task_id: str
    mapped: bool
    counts: Counter[str] = field(default_factory=Counter)
    try_number: int = 0
    reason: str | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    progress: list[rest.runs.TryProgress] = field(default_factory=list)

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    @property
    def done(self) -> int:
        return sum(count for state, count in self.counts.items() if state in _FINISHED)

    @property
    def finished(self) -> bool:
        return self.done == self.total

    @property
    def state(self) -> str:
        return next((state for state in _TELLING if self.counts[state]), next(iter(self.counts)))

    def elapsed_s(self, now: datetime | None = None) -> float | None:
        """Returns the seconds from its first start to its last end, or until now; None while it waits."""
        if self.started_at is None or not (self.finished or self.counts["running"]):
            return None
        end = self.ended_at if self.finished and self.ended_at else now or datetime.now(UTC)
        return (end - self.started_at).total_seconds()


def task_rows(instances: Iterable[rest.tasks.InstanceSummary], progress: Iterable[rest.runs.TryProgress]) -> list[TaskRow]:
    """Returns the rows in the order of the DAG."""
    rows: dict[str, TaskRow] = {}
    for instance in instances:
        row = rows.setdefault(instance.task_id, TaskRow(instance.task_id, mapped=instance.map_index >= 0))
        row.counts[instance.state] += 1
        row.try_number = max(row.try_number, instance.try_number)
        if instance.state in (TaskState.FAILED, TaskState.UP_FOR_RETRY) or row.reason is None:
            row.reason = instance.reason or row.reason
        row.started_at = min(filter(None, (row.started_at, instance.started_at)), default=None)
        row.ended_at = max(filter(None, (row.ended_at, instance.ended_at)), default=None)
    for report in progress:
        if report.task_id in rows and not rows[report.task_id].finished:
            rows[report.task_id].progress.append(report)
    return list(rows.values())
