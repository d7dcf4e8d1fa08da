"""What reports and timers mean: each try's reports are collapsed into one verdict, and the verdict moves its task instance."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from evenflow.core.model import TaskSpec
from evenflow.core.retry import matching_rule, may_retry, next_delay
from evenflow.core.states import TaskEvent, TaskState
from evenflow.scheduler.assets import produce
from evenflow.scheduler.batch import Batch, Item
from evenflow.scheduler.branches import Skips, apply_skips
from evenflow.store import tasks
from evenflow.store.inbox import TakenReport, TakenTimer


@dataclass(slots=True)
class Verdict:
    """All reports of one try: the first one gives the try, an exit outweighs a loss, and the first exit counts."""

    first: TakenReport
    started_at: str | None = None
    exit: TakenReport | None = None
    lost: TakenReport | None = None


def apply_reports(batch: Batch, reports: Iterable[TakenReport]) -> int:
    """Applies the reports of current tries; answers how many were about past epochs and so changed nothing."""
    verdicts: dict[int, Verdict] = {}
    stale = 0
    for report in reports:
        if report.task_index is None or report.state is None:
            stale += 1
            continue
        run = batch.runs[report.run_key]
        if run.ready_at_s < report.at_s:
            run.ready_at_s = report.at_s
        verdict = verdicts.get(report.epoch)
        if verdict is None:
            verdict = verdicts[report.epoch] = Verdict(report)
        match report.kind:
            case "started":
                verdict.started_at = verdict.started_at or report.at
            case "exit":
                verdict.exit = verdict.exit or report
            case "lost":
                verdict.lost = verdict.lost or report
    skips: Skips = []
    for verdict in verdicts.values():
        first = verdict.first
        assert first.task_index is not None
        assert first.state is not None
        item = batch.item(first.run_key, first.task_index, first.map_index, first.state, first.epoch, first.try_number)
        item.tries_before = first.tries_before
        if verdict.exit is not None:
            _apply_exit(batch, item, verdict.exit, verdict.started_at)
            if verdict.exit.outcome == "success" and verdict.exit.payload and (skipped := verdict.exit.payload.get("skip")):
                skips.append((item, skipped))
        elif verdict.lost is not None:
            reason = str((verdict.lost.payload or {}).get("reason", "lost"))
            _lose(batch, item, verdict.lost, reason, avoid=0)
        elif item.state is TaskState.QUEUED:
            item.started_at = verdict.started_at
            batch.apply(item, TaskEvent.START)
    apply_skips(batch, skips)
    return stale


def apply_timers(batch: Batch, timers: Iterable[TakenTimer]) -> None:
    """Retries and reschedules that are due become ready, unless their task has moved on."""
    for timer in timers:
        if timer.state in (TaskState.UP_FOR_RETRY, TaskState.UP_FOR_RESCHEDULE):
            item = batch.item(timer.run_key, timer.task_index, timer.map_index, timer.state, timer.epoch, timer.try_number)
            if item.state != timer.state:
                continue  # a cancel in this very transaction
            run = batch.runs[timer.run_key]
            run.ready_at_s = max(run.ready_at_s, timer.due_at_s)
            batch.ready.append(item)


def _apply_exit(batch: Batch, item: Item, report: TakenReport, started_at: str | None) -> None:
    payload = report.payload or {}
    if report.outcome in ("cannot_start", "lost"):
        avoid = report.worker_id or 0 if report.outcome == "cannot_start" else 0
        _lose(batch, item, report, str(payload.get("reason", "it could not be started")), avoid=avoid)
        return
    item.started_at = started_at or (report.began_at if item.state is TaskState.QUEUED else None)
    item.ended_at = report.at
    _end(batch, report)
    match report.outcome:
        case "success":
            batch.apply(item, TaskEvent.SUCCEED)
            spec = _spec(batch, item)
            if spec.outlets or spec.outlet_aliases:
                produce(batch, item, spec, payload)
            return
        case "rescheduled":
            _reschedule(batch, item, payload)
            return
        case "skipped":
            event = TaskEvent.SKIP
        case "failed_for_good":
            event = TaskEvent.FAIL
        case _:
            event = _failure(batch, item, payload.get("error_types", ()))
    _fail(batch, item, event, payload)


def _reschedule(batch: Batch, item: Item, payload: dict[str, Any]) -> None:
    """It looks again later. That uses up no try: the number is given back, and its next start takes the same one."""
    if batch.runs[item.run_key].cancelled and not _spec(batch, item).teardown:
        batch.apply(item, TaskEvent.CANCEL)
        return
    delay_s = float(payload.get("delay_s") or 0.0)
    batch.apply(item, TaskEvent.RESCHEDULE, {"delay_s": delay_s})
    item.try_number -= 1
    batch.reschedules.append(tasks.Retry(delay_s, *item.key, item.epoch))


def _failure(batch: Batch, item: Item, error_types: Sequence[str] = ()) -> TaskEvent:
    """Failed: is there a try left? A run that is being ended has none, but for its teardowns."""
    spec = _spec(batch, item)
    if batch.runs[item.run_key].cancelled and not spec.teardown:
        return TaskEvent.CANCEL
    return TaskEvent.RETRY if may_retry(spec, item.try_number - item.tries_before, error_types) else TaskEvent.FAIL


def _fail(batch: Batch, item: Item, event: TaskEvent, payload: dict[str, Any]) -> None:
    batch.apply(item, event, payload)
    rule = matching_rule(_spec(batch, item).retry_rules, payload.get("error_types", ()))
    by = batch.runs[item.run_key].cancelled_by if event is TaskEvent.CANCEL else None
    said = (
        by and f"The run was cancelled by {by}",
        payload.get("reason"),
        rule and rule.reason and f"retry policy: {rule.reason}",
    )
    if any(said):
        batch.explain(item, "; ".join(str(reason) for reason in said if reason))
    if event is TaskEvent.RETRY:
        spec, raised = _spec(batch, item), payload.get("error_types", ())
        delay = next_delay(spec, item.try_number - item.tries_before, raised, chance=_chance(item.epoch))
        batch.retries.append(tasks.Retry(delay, *item.key, item.epoch))


def _lose(batch: Batch, item: Item, report: TakenReport, reason: str, *, avoid: int) -> None:
    """The dispatch is void through no fault of the task: sent again, its try not used up, until that has happened too often. Then
    the try counts as failed, and what its own retries allow follows.
    """
    run, allowed = batch.runs[item.run_key], _spec(batch, item).infrastructure_retries
    item.losses += 1
    if report.losses < allowed and (not run.cancelled or run.graph.teardown[item.task_index]):
        batch.ended_epochs.append(report.epoch)
        place = batch.catalog.place(batch.conn, run.version, item.task_index)
        batch.dispatch(
            item, TaskEvent.REQUEUE, place, report.holds, run_priority=run.priority, avoid=avoid, detail={"reason": reason}
        )
        return
    item.ended_at = report.at
    _end(batch, report)
    if report.losses >= allowed:
        reason = f"lost {report.losses + 1} times, and infrastructure_retries is {allowed}; the last time: {reason}"
    _fail(batch, item, _failure(batch, item), {"reason": reason})


def _end(batch: Batch, report: TakenReport) -> None:
    batch.ended_epochs.append(report.epoch)
    batch.release(report.holds, report.pool_slots, report.at_s)


def _chance(epoch: int) -> float:
    """A number from 0 to 1 that is as good as random, and the same whenever it is asked for: epochs are never used again."""
    return zlib.crc32(epoch.to_bytes(8, "big")) / 2**32


def _spec(batch: Batch, item: Item) -> TaskSpec:
    return batch.runs[item.run_key].graph.task(item.task_index)
