"""Makes the spans of a run from its history.

Theory of operation
-------------------
The run is the root, from its trigger to its end. Below it is each task instance, from when it could begin to its end; below that
its tries, and in a try the segments in which a process ran. Between them are the waits: for limits, for a worker, for a trigger,
for the next try. What was cleared while its run went on is another span of the same task.

History has a row for each move. A row opens a stay in a state, and the next row ends it, so a span needs both. A try that ended
before its start was told has its running time in the row of its end. What one transaction wrote happened at once: such stays make
no span. Every id is made from numbers in these rows, so the same history gives the same spans, however often they are made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby

from evenflow.api.tracing.history import RunLife, ToldRun
from evenflow.core.history.tries import TaskMove, process_began
from evenflow.core.states import RunEvent, RunState, TaskEvent, TaskState
from evenflow.core.tracing import RunTrace, read_traceparent

SpanValue = str | int | float | bool

# Stays that are waits: the name of the span, and what is waited for.
_WAITS = {
    TaskState.SCHEDULED: ("wait for limits", "limits"),
    TaskState.QUEUED: ("wait for a worker", "worker"),
    TaskState.DEFERRED: ("deferred", "trigger"),
    TaskState.UP_FOR_RETRY: ("wait for the next try", "retry_delay"),
    TaskState.UP_FOR_RESCHEDULE: ("wait for the next look", "reschedule"),
}
_TOLD = frozenset(  # moves that are events of a span
    {
        TaskEvent.RETRY,
        TaskEvent.DEFER,
        TaskEvent.RESUME,
        TaskEvent.ORDINARY_RESUME,
        TaskEvent.RESCHEDULE,
        TaskEvent.REQUEUE,
        TaskEvent.ELSEWHERE,
        TaskEvent.OVERDUE,
        TaskEvent.CLEAR,
    }
)
_FAILURES = frozenset(
    {TaskEvent.FAIL, TaskEvent.RETRY, TaskEvent.CANCEL, TaskEvent.MARK_FAILED, TaskEvent.UPSTREAM_FAIL, TaskEvent.REQUEUE}
)
_UNSAID: dict[str, str] = {
    TaskEvent.CANCEL: "The run was cancelled.",
    TaskEvent.MARK_FAILED: "Somebody marked it as failed.",
    TaskEvent.UPSTREAM_FAIL: "A task before it failed.",
}
_RESULTS = {  # as the semantic conventions for pipelines call them
    TaskState.SUCCESS: "success",
    TaskState.SKIPPED: "skip",
    TaskState.FAILED: "failure",
    TaskState.UPSTREAM_FAILED: "failure",
    TaskState.UP_FOR_RETRY: "failure",
}


@dataclass(frozen=True, slots=True)
class SpanEvent:
    name: str
    at: datetime
    attributes: Mapping[str, SpanValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SpanLink:
    trace_id: str
    span_id: str
    attributes: Mapping[str, SpanValue]


@dataclass(slots=True)
class RunSpan:
    """``failure`` is why it failed; None: it did not."""

    name: str
    trace_id: str
    span_id: str
    parent_id: str | None
    began_at: datetime
    ended_at: datetime
    attributes: dict[str, SpanValue]
    events: list[SpanEvent] = field(default_factory=list)
    links: list[SpanLink] = field(default_factory=list)
    failure: str | None = None
    is_root: bool = False


@dataclass(frozen=True, slots=True)
class Pages:
    """Addresses for people: ``page`` of a run, or of a task instance in it, and ``log`` of a try."""

    page: Callable[[ToldRun, str, int], str]
    log: Callable[[ToldRun, str, int, int], str]


def spans_of_run(trace: RunTrace, run: ToldRun, life: RunLife, pages: Pages) -> list[RunSpan]:
    """Returns the root, and how long the run waited for its turn."""
    failed = life.end.state == RunState.FAILED
    cancelled = life.end.event == RunEvent.CANCEL
    is_newest = run.ended_at is not None and life.number == run.lives
    attributes: dict[str, SpanValue] = {
        **_of_run(run),
        "cicd.pipeline.result": "cancellation" if cancelled else "failure" if failed else "success",
        "cicd.pipeline.run.url.full": pages.page(run, "", -1),
        "evenflow.run.type": run.run_type,
        "evenflow.run.life": life.number,
        "evenflow.run.after": run.run_after.isoformat(),
        "evenflow.dag.version": run.version_number,
    }
    if run.logical_date is not None:
        attributes["evenflow.run.logical_date"] = run.logical_date.isoformat()
    if run.backfill_id is not None:
        attributes["evenflow.backfill.id"] = run.backfill_id
    default = "The run was cancelled." if cancelled else "Tasks of the run failed."
    root = RunSpan(
        f"run {run.dag_id}",
        trace.trace_id,
        trace.root(life.number),
        trace.caller.span_id if trace.caller is not None else None,
        life.began_at,
        max(life.began_at, life.end.at),
        attributes,
        [SpanEvent(move.event, move.at) for move in life.moves],
        _links(trace, run, life),
        ((is_newest and run.reason) or default) if failed else None,
        is_root=True,
    )
    started = next((move for move in life.moves if move.event == RunEvent.START), None)
    if started is None or started.at <= life.began_at:
        return [root]
    waited = {**_of_run(run), "evenflow.wait.cause": "run"}
    key = trace.span("wait for its turn", -1, -1, life.number)
    return [root, RunSpan("wait for its turn", trace.trace_id, key, root.span_id, life.began_at, started.at, waited)]


def _links(trace: RunTrace, run: ToldRun, life: RunLife) -> list[SpanLink]:
    """What made it begin, and its life before this one."""
    links = []
    if life.number > 1:
        links.append(SpanLink(trace.trace_id, trace.root(life.number - 1), {"evenflow.link": "cleared"}))
    for cause in run.causes:
        other = RunTrace(trace.installation, cause.run_key, read_traceparent(cause.traceparent), trace.ratio)
        links.append(SpanLink(other.trace_id, other.root(1), {"evenflow.link": cause.kind}))
    return links


def spans_of_tasks(trace: RunTrace, run: ToldRun, life: RunLife, moves: Sequence[TaskMove], pages: Pages) -> Iterator[RunSpan]:
    """``moves`` are those of whole task instances, each in the order in which they happened."""
    for _, of_instance in groupby(moves, key=lambda move: (move.task_index, move.map_index)):
        since = 0
        within = [move for move in of_instance if life.has(move.at, move.xact)]
        for position, move in enumerate(within):
            if move.state in (TaskState.NONE, TaskState.REMOVED) or position == len(within) - 1:
                yield from _InstanceSpans(trace, run, life, within[since : position + 1], pages).spans()
                since = position + 1


class _InstanceSpans:
    """A task instance from when it could begin to its end, or until it was cleared."""

    def __init__(self, trace: RunTrace, run: ToldRun, life: RunLife, moves: Sequence[TaskMove], pages: Pages) -> None:
        self._trace, self._run, self._life, self._moves, self._pages = trace, run, life, moves, pages
        self._try: RunSpan | None = None
        self._number = 0  # of that try

    def spans(self) -> Iterator[RunSpan]:
        first, last = self._moves[0], self._moves[-1]
        if len(self._moves) == 1 and last.state in (TaskState.NONE, TaskState.REMOVED):
            return  # nothing had happened to it before it was cleared
        whole = self._span(first.task_id, "task", first, first.at, last.at, self._trace.root(self._life.number))
        whole.attributes["evenflow.task.state"] = last.state
        whole.attributes["evenflow.task.operator"] = first.operator
        _end(whole, last)
        for move, until in zip(self._moves, self._moves[1:], strict=False):
            yield from self._stay(move, until, whole)
        if self._try is not None:
            yield self._closed(last)
        yield whole

    def _stay(self, move: TaskMove, until: TaskMove, whole: RunSpan) -> Iterator[RunSpan]:
        if move.state == TaskState.QUEUED and (self._try is None or self._number != move.try_number):
            if self._try is not None:
                yield self._closed(move)
            self._try, self._number = (
                self._span(f"try {move.try_number}", "try", move, move.at, move.at, whole.span_id),
                move.try_number,
            )
            self._try.attributes["url.full"] = self._pages.log(self._run, move.task_id, move.map_index, move.try_number)
        above = self._try or whole
        if move.event in _TOLD:
            above.events.append(SpanEvent(move.event, move.at, _why(move)))
        if move.state == TaskState.UP_FOR_RETRY and self._try is not None:
            yield self._closed(move)
            above = whole
        began = process_began(move.state, move.at, until.at, until.detail)
        if move.state in _WAITS and began > move.at and until.xact != move.xact:
            name, cause = _WAITS[TaskState(move.state)]
            wait = self._span(name, name, move, move.at, began, above.span_id)
            wait.attributes["evenflow.wait.cause"] = cause
            if (trigger := move.detail.get("trigger")) and move.state == TaskState.DEFERRED:
                wait.attributes["evenflow.trigger"] = str(trigger)
            yield wait
        if began < until.at:
            ran = self._span("run", "segment", move, began, until.at, above.span_id)
            ran.span_id = self._trace.segment(move.epoch)
            ran.attributes["evenflow.epoch"] = move.epoch
            _end(ran, until, is_process=True)
            yield ran

    def _closed(self, end: TaskMove) -> RunSpan:
        span, self._try = self._try, None
        assert span is not None
        span.ended_at = max(span.began_at, end.at)
        _end(span, end)
        return span

    def _span(self, name: str, kind: str, move: TaskMove, began: datetime, ended: datetime, parent: str) -> RunSpan:
        which = round(move.at.timestamp() * 1_000_000)
        attributes: dict[str, SpanValue] = {
            **_of_run(self._run),
            "cicd.pipeline.task.name": move.task_id,
            "cicd.pipeline.task.run.id": f"{self._run.run_id}/{move.task_id}"
            + (f"[{move.map_index}]" if move.map_index >= 0 else ""),
            "cicd.pipeline.task.run.url.full": self._pages.page(self._run, move.task_id, move.map_index),
        }
        if move.map_index >= 0:
            attributes["evenflow.task.map_index"] = move.map_index
        if kind in ("try", "segment"):
            attributes["evenflow.try.number"] = move.try_number
        key = self._trace.span(kind, move.task_index, move.map_index, which)
        return RunSpan(name, self._trace.trace_id, key, parent, began, max(began, ended), attributes)


def _end(span: RunSpan, move: TaskMove, *, is_process: bool = False) -> None:
    """Says how it ended. The exception is an event of the innermost span, whose process raised it."""
    if (result := _RESULTS.get(TaskState(move.state))) is not None:
        span.attributes["cicd.pipeline.task.run.result"] = "cancellation" if move.event == TaskEvent.CANCEL else result
    if move.event not in _FAILURES:
        return
    span.failure = str(move.detail.get("reason") or _UNSAID.get(move.event, "It failed."))
    if error_types := move.detail.get("error_types"):
        span.attributes["error.type"] = str(error_types[0])
        if is_process:
            said: dict[str, SpanValue] = {"exception.type": str(error_types[0]), "exception.message": span.failure}
            span.events.append(SpanEvent("exception", move.at, said))


def _why(move: TaskMove) -> dict[str, SpanValue]:
    return {
        f"evenflow.{name}": value
        for name in ("reason", "delay_s", "trigger", "queue", "not_direct")
        if isinstance(value := move.detail.get(name), (str, int, float))
    }


def _of_run(run: ToldRun) -> dict[str, SpanValue]:
    return {"cicd.pipeline.name": run.dag_id, "cicd.pipeline.run.id": run.run_id}
