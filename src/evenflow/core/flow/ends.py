"""What the end of a try means: from what was said of it to the event that moves its task instance.

Theory of operation
-------------------
Several reports may be about one try: that it has started, how its process has ended, that its worker is lost. An exit outweighs a
loss, and the first exit counts, unless that exit itself only says that the try was lost.

The outcome of an exit decides about the event. Three things change what an outcome means. A run that is being cancelled gives no
task another try, another look or another wait, teardowns excepted. A try that has resumed for its clean-up has failed, however that
went. And a try whose worker was lost, or that could not start, is void through no fault of its task: its dispatch is sent again
under a fresh epoch and uses up no try, until that has happened ``infrastructure_retries`` times. Then the try has failed.

A scheduler asks :func:`judge` about the reports of its inbox; ``dag.test()`` has processes of its own and asks :func:`event_of`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from evenflow.core.deferral import Purpose
from evenflow.core.flow.state import RunFacts
from evenflow.core.model import TaskSpec
from evenflow.core.operations import by_cancel, cancel_reason
from evenflow.core.retry import matching_rule, may_retry, next_delay
from evenflow.core.states import TaskEvent, TaskState

_VOID = ("cannot_start", "lost")  # outcomes of tries that end through no fault of their tasks
_UNSTARTED = ("failed", *_VOID)  # outcomes that a try can have without a process


class TryReport(Protocol):
    """A report about a try, with the dispatch of the try."""

    @property
    def epoch(self) -> int: ...
    @property
    def kind(self) -> str: ...
    @property
    def at(self) -> str: ...
    @property
    def outcome(self) -> str | None: ...
    @property
    def payload(self) -> Mapping[str, Any] | None: ...
    @property
    def losses(self) -> int: ...
    @property
    def resumes(self) -> bool: ...
    @property
    def purpose(self) -> str | None: ...


R = TypeVar("R", bound=TryReport)


@dataclass(slots=True)
class TryReports(Generic[R]):
    """What the reports of one try say: ``first`` is the first of them, ``end`` the one that says how the try has ended."""

    first: R
    started_at: str | None = None
    end: R | None = None


def collapse(reports: Iterable[R]) -> dict[int, TryReports[R]]:
    """Returns the reports of each try, by its epoch."""
    tries: dict[int, TryReports[R]] = {}
    for report in reports:
        tried = tries.get(report.epoch)
        if tried is None:
            tried = tries[report.epoch] = TryReports(report)
        match report.kind:
            case "started":
                tried.started_at = tried.started_at or report.at
            case "exit":
                if tried.end is None or "lost" in (tried.end.kind, tried.end.outcome):
                    tried.end = report
            case "lost":
                tried.end = tried.end or report
    return tries


def judge(run: RunFacts, task_index: int, state: TaskState, tries: int, tried: TryReports[R]) -> TaskEvent | None:
    """Returns the event that moves the instance of a try, the last of ``tries`` since a person cleared it. ``REQUEUE`` stands for a
    dispatch that is sent again. None: nothing moves.
    """
    end = tried.end
    if end is None:
        return TaskEvent.START if state is TaskState.QUEUED else None
    cleans_up = end.purpose == Purpose.CLEAN_UP
    if end.outcome == "success" and not cleans_up:
        return TaskEvent.SUCCEED
    if tried.started_at is None and state is TaskState.QUEUED and tries == 1 and _never_began(run, task_index, end):
        return TaskEvent.WITHDRAW
    if is_void(end):
        return TaskEvent.REQUEUE if _is_sent_again(run, task_index, end) else judge_failure(run, task_index, tries)
    return event_of(run, task_index, tries, "failed" if cleans_up else end.outcome, (end.payload or {}).get("error_types", ()))


def event_of(run: RunFacts, task_index: int, tries: int, outcome: str | None, error_types: Sequence[str] = ()) -> TaskEvent:
    """Returns the event of a try that has ended with this outcome, the last of ``tries`` of an instance."""
    match outcome:
        case "success":
            return TaskEvent.SUCCEED
        case "skipped":
            return TaskEvent.SKIP
        case "failed_for_good":
            return TaskEvent.FAIL
        case "rescheduled":
            return TaskEvent.CANCEL if run.is_ending(task_index) else TaskEvent.RESCHEDULE
        case "deferred":  # a try that is to end, and has left something outside, resumes once more to stop that
            goes_on = run.graph.task(task_index).cleans_up or not run.is_ending(task_index)
            return TaskEvent.DEFER if goes_on else TaskEvent.CANCEL
        case _:
            return judge_failure(run, task_index, tries, error_types)


def judge_failure(run: RunFacts, task_index: int, tries: int, error_types: Sequence[str] = ()) -> TaskEvent:
    """Returns the event of a failed try of a task, the last of ``tries``. A task that ends with its run gets no further try."""
    if run.is_ending(task_index):
        return TaskEvent.CANCEL
    return TaskEvent.RETRY if may_retry(run.graph.task(task_index), tries, error_types) else TaskEvent.FAIL


def is_void(end: TryReport) -> bool:
    """Returns whether a try has ended through no fault of its task."""
    return end.kind == "lost" or end.outcome in _VOID


def counts_as_loss(end: TryReport) -> bool:
    """Returns whether the end of a void try is one of its losses. A try that a worker gives back before it has begun it is not."""
    return not (end.payload or {}).get("given_back")


def awaits_clean_up(spec: TaskSpec, end: TryReport) -> bool:
    """Returns whether a try that is to end is cleaned up first: it has deferred now, or it had before and its worker is lost."""
    if end.outcome == "deferred":
        return spec.cleans_up and end.purpose != Purpose.CLEAN_UP
    return spec.cleans_up and is_void(end) and end.resumes and end.losses < spec.infrastructure_retries


def why_void(spec: TaskSpec, end: TryReport, *, sent_again: bool) -> str:
    """Returns the reason of the end of a void try, for people."""
    reason = str((end.payload or {}).get("reason", "lost" if end.kind == "lost" else "it could not be started"))
    allowed = spec.infrastructure_retries
    if sent_again or not counts_as_loss(end) or end.losses < allowed:
        return reason
    return f"lost {end.losses + 1} times, and infrastructure_retries is {allowed}; the last time: {reason}"


def why_ended(run: RunFacts, task_index: int, event: TaskEvent, payload: Mapping[str, Any]) -> str | None:
    """Returns the reason of an end without success, for people, by what the try said of itself."""
    by = run.cancelled_by if event is TaskEvent.CANCEL else None
    rule = matching_rule(run.graph.task(task_index).retry_rules, payload.get("error_types", ()))
    reason = payload.get("reason")
    if by and reason == by_cancel(by):
        reason = None
    said = (by and cancel_reason(by), reason, rule and rule.reason and f"retry policy: {rule.reason}")
    return "; ".join(str(reason) for reason in said if reason) or None


def retry_delay(spec: TaskSpec, tries: int, error_types: Sequence[str], asked_s: float | None, *, chance: float = 0.0) -> float:
    """Returns the seconds until the next try, after the failure of the last of ``tries``. ``asked_s`` is what that try asked for
    itself, within the limit of all waits.
    """
    return next_delay(spec, tries, error_types, chance=chance) if asked_s is None else asked_s


def _never_began(run: RunFacts, task_index: int, end: TryReport) -> bool:
    """Returns whether the first try of a run that is being cancelled ended before it had a process."""
    if end.resumes or not run.is_ending(task_index):
        return False
    return end.outcome in _UNSTARTED and (end.payload or {}).get("ran_s") is None


def _is_sent_again(run: RunFacts, task_index: int, end: TryReport) -> bool:
    spec = run.graph.task(task_index)
    allowed = end.losses < spec.infrastructure_retries or not counts_as_loss(end)
    return allowed and (not run.is_ending(task_index) or awaits_clean_up(spec, end))
