"""What reports and timers mean: each try's reports are collapsed into one verdict, and the verdict moves its task instance."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from evenflow.core.deferral import Purpose
from evenflow.core.flow.branches import apply_skips
from evenflow.core.flow.state import Flow
from evenflow.core.selection.order import DispatchClass
from evenflow.core.states import TaskEvent, TaskState
from evenflow.scheduler.answers import decide
from evenflow.scheduler.assets import produce
from evenflow.scheduler.deferrals import TIMEOUTS, apply_events, awaits_clean_up, clean_up_instead, defer, end_waits
from evenflow.scheduler.facts import Facts
from evenflow.scheduler.failures import fail, is_ending, judge_failure, spec_of
from evenflow.scheduler.ledgers.deferrals import Deferrals
from evenflow.scheduler.ledgers.dispatches import Dispatches
from evenflow.scheduler.ledgers.moves import Moves, Offers
from evenflow.scheduler.timeouts import QUEUED_TIMEOUT, end_queueing
from evenflow.store.scheduling import tasks
from evenflow.store.scheduling.inbox import TakenReport, TakenTimer
from evenflow.store.scheduling.tasks import Item

EVENT = "event"  # kind of a report: what became of a trigger
_UNSTARTED = ("failed", "cannot_start", "lost")  # outcomes that a try can have without a process


@dataclass(slots=True)
class TryReports:
    """All reports of one try: the first one gives the try, an exit outweighs a loss, and the first exit counts."""

    first: TakenReport
    started_at: str | None = None
    exit: TakenReport | None = None
    lost: TakenReport | None = None


def apply_reports(
    facts: Facts, flow: Flow[Item], dispatches: Dispatches, deferrals: Deferrals, offers: Offers, reports: Iterable[TakenReport]
) -> int:
    """Applies the reports of current tries; answers how many were about past epochs and so changed nothing."""
    moves = dispatches.moves
    verdicts: dict[int, TryReports] = {}
    events: list[TakenReport] = []
    stale = 0
    for report in reports:
        if report.kind == EVENT:
            events.append(report)
            continue
        if report.task_index is None or report.state is None:
            stale += 1
            continue
        run = facts.runs[report.run_key]
        if run.ready_at_s < report.at_s:
            run.ready_at_s = report.at_s
        verdict = verdicts.get(report.epoch)
        if verdict is None:
            verdict = verdicts[report.epoch] = TryReports(report)
        match report.kind:
            case "started":
                verdict.started_at = verdict.started_at or report.at
            case "exit":
                if verdict.exit is None or verdict.exit.outcome == "lost":
                    verdict.exit = report
            case "lost":
                verdict.lost = verdict.lost or report
    skips: list[tuple[Item, list[int]]] = []
    deferring: list[tuple[Item, TakenReport]] = []
    for verdict in verdicts.values():
        first = verdict.first
        assert first.task_index is not None
        assert first.state is not None
        item = moves.item(first.run_key, first.task_index, first.map_index, first.state, first.epoch, first.try_number)
        item.tries_before = first.tries_before
        if verdict.exit is not None:
            if _defers(facts, item, verdict.exit):
                item.started_at = verdict.started_at or (verdict.exit.began_at if item.state is TaskState.QUEUED else None)
                deferring.append((item, verdict.exit))
                continue
            if verdict.started_at is None and _never_began(facts, item, verdict.exit):
                _withdraw(flow, dispatches, deferrals, item, verdict.exit)
                continue
            _apply_exit(facts, dispatches, deferrals, item, verdict.exit)
            if verdict.exit.outcome == "success" and verdict.exit.payload and (skipped := verdict.exit.payload.get("skip")):
                skips.append((item, skipped))
        elif verdict.lost is not None:
            reason = str((verdict.lost.payload or {}).get("reason", "lost"))
            _lose(facts, dispatches, deferrals, item, verdict.lost, reason, avoid=0)
        elif item.state is TaskState.QUEUED:
            item.started_at = verdict.started_at
            moves.apply(item, TaskEvent.START)
    decide(facts, moves, apply_skips(flow, skips))
    if deferring:
        defer(facts, dispatches, deferrals, deferring)
    return stale + (apply_events(facts, dispatches, deferrals, offers, events) if events else 0)


def apply_timers(facts: Facts, dispatches: Dispatches, deferrals: Deferrals, offers: Offers, timers: Iterable[TakenTimer]) -> None:
    """Retries and reschedules that are due become ready, deferred tasks wait no longer, and of what no worker has claimed something
    else becomes, unless their task has moved on.
    """
    waits: list[TakenTimer] = []
    queued: list[TakenTimer] = []
    for timer in timers:
        if timer.kind in TIMEOUTS:
            waits.append(timer)
        elif timer.kind == QUEUED_TIMEOUT:
            queued.append(timer)
        elif timer.state in (TaskState.UP_FOR_RETRY, TaskState.UP_FOR_RESCHEDULE):
            item = dispatches.moves.item(
                timer.run_key, timer.task_index, timer.map_index, timer.state, timer.epoch, timer.try_number
            )
            if item.state != timer.state:
                continue  # a cancel in this very transaction
            run = facts.runs[timer.run_key]
            if run.ends(timer.task_index):
                continue
            run.ready_at_s = max(run.ready_at_s, timer.due_at_s)
            offers.ready.append(item)
    if waits:
        end_waits(facts, dispatches, deferrals, offers, waits)
    if queued:
        end_queueing(facts, dispatches, offers, queued)


def _defers(facts: Facts, item: Item, report: TakenReport) -> bool:
    """What is to end and has nothing to clean up does not."""
    is_wanted = report.outcome == "deferred" and report.purpose != Purpose.CLEAN_UP
    return is_wanted and (spec_of(facts, item).cleans_up or not is_ending(facts, item))


def _never_began(facts: Facts, item: Item, report: TakenReport) -> bool:
    """Of a run that is being ended: whether no process of the task was ever started, not in an earlier try either."""
    if item.state is not TaskState.QUEUED or report.resumes or not is_ending(facts, item):
        return False
    unstarted = report.outcome in _UNSTARTED and (report.payload or {}).get("ran_s") is None
    return unstarted and item.try_number == item.tries_before + 1


def _withdraw(flow: Flow[Item], dispatches: Dispatches, deferrals: Deferrals, item: Item, report: TakenReport) -> None:
    item.ended_at = report.at
    _end(dispatches, deferrals, report)
    flow.give_up(item, TaskEvent.WITHDRAW)


def _apply_exit(facts: Facts, dispatches: Dispatches, deferrals: Deferrals, item: Item, report: TakenReport) -> None:
    """The report of an exit says by one clock when the try began, whatever the delay with which its start was told. One that has
    waited began long before.
    """
    payload = report.payload or {}
    if report.outcome in ("cannot_start", "lost"):
        avoid = report.worker_id or 0 if report.outcome == "cannot_start" else 0
        counts = not payload.get("given_back")
        reason = str(payload.get("reason", "it could not be started"))
        _lose(facts, dispatches, deferrals, item, report, reason, avoid=avoid, counts=counts)
        return
    item.started_at = None if report.resumes else report.began_at
    item.ended_at = report.at
    moves = dispatches.moves
    _end(dispatches, deferrals, report)
    match "failed" if report.purpose == Purpose.CLEAN_UP else report.outcome:
        case "success":
            moves.apply(item, TaskEvent.SUCCEED, _implied_start(item, report))
            spec = spec_of(facts, item)
            if spec.outlets or spec.outlet_aliases:
                produce(facts, moves.messages, item, spec, payload)
            return
        case "rescheduled":
            _reschedule(facts, moves, item, report)
            return
        case "deferred":  # of a run that is being ended
            payload, event = {}, TaskEvent.CANCEL
        case "skipped":
            event = TaskEvent.SKIP
        case "failed_for_good":
            event = TaskEvent.FAIL
        case _:
            event = judge_failure(facts, item, payload.get("error_types", ()))
    fail(facts, moves, item, event, payload)


def _implied_start(item: Item, report: TakenReport) -> dict[str, Any] | None:
    """What history says of a try whose end came without its start: how long it ran, so that its wait for a worker is known."""
    return {"ran_s": report.ran_s} if item.state is TaskState.QUEUED and report.ran_s is not None else None


def _reschedule(facts: Facts, moves: Moves, item: Item, report: TakenReport) -> None:
    """It looks again later. That uses up no try: the number is given back, and its next start takes the same one."""
    if is_ending(facts, item):
        moves.apply(item, TaskEvent.CANCEL)
        return
    delay_s = float((report.payload or {}).get("delay_s") or 0.0)
    moves.apply(item, TaskEvent.RESCHEDULE, {"delay_s": delay_s, **(_implied_start(item, report) or {})})
    item.try_number -= 1
    moves.messages.reschedules.append(tasks.Retry(item.epoch, *item.key, delay_s))


def _lose(
    facts: Facts,
    dispatches: Dispatches,
    deferrals: Deferrals,
    item: Item,
    report: TakenReport,
    reason: str,
    *,
    avoid: int,
    counts: bool = True,
) -> None:
    """The dispatch is void through no fault of the task: sent again, its try not used up, until that has happened too often. Then
    the try counts as failed, and what its own retries allow follows. A resume stays one; of what is to end it is for its clean-up.
    What a worker gives back before it has begun it ``counts`` for nothing.
    """
    run, allowed = facts.runs[item.run_key], spec_of(facts, item).infrastructure_retries
    item.losses += counts
    if (report.losses < allowed or not counts) and (not is_ending(facts, item) or awaits_clean_up(facts, report)):
        dispatches.pass_on(report.epoch)
        place = facts.catalog.place(facts.conn, run.version, item.task_index)
        dispatches.send(
            item,
            TaskEvent.REQUEUE,
            place,
            report.holds,
            run_priority=run.priority,
            avoid=avoid,
            dispatch_class=DispatchClass.RESUME if report.resumes else DispatchClass.FIRST_START,
            detail={"reason": reason},
        )
        if report.resumes:
            clean_up_instead(facts, dispatches, deferrals, item, report)
        return
    item.ended_at = report.at
    _end(dispatches, deferrals, report)
    if counts and report.losses >= allowed:
        reason = f"lost {report.losses + 1} times, and infrastructure_retries is {allowed}; the last time: {reason}"
    fail(facts, dispatches.moves, item, judge_failure(facts, item), {"reason": reason})


def _end(dispatches: Dispatches, deferrals: Deferrals, report: TakenReport) -> None:
    dispatches.end(report.epoch, report.holds, report.pool_slots, report.at_s)
    if report.resumes and report.task_index is not None:
        deferrals.ended.append((report.run_key, report.task_index, report.map_index))
