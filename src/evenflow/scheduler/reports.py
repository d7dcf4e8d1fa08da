"""What reports and timers mean: each try's reports are collapsed into one verdict, and the verdict moves its task instance."""

from __future__ import annotations

from collections.abc import Iterable

from evenflow.core.flow.branches import apply_skips
from evenflow.core.flow.ends import collapse, counts_as_loss, is_void, judge, why_void
from evenflow.core.flow.state import Flow
from evenflow.core.selection.order import DispatchClass
from evenflow.core.states import TaskEvent, TaskState
from evenflow.scheduler.answers import decide
from evenflow.scheduler.assets import produce
from evenflow.scheduler.deferrals import TIMEOUTS, apply_events, clean_up_instead, defer, end_waits
from evenflow.scheduler.facts import Facts
from evenflow.scheduler.failures import fail, spec_of
from evenflow.scheduler.ledgers.deferrals import Deferrals
from evenflow.scheduler.ledgers.dispatches import Dispatches
from evenflow.scheduler.ledgers.moves import Moves
from evenflow.scheduler.timeouts import QUEUED_TIMEOUT, end_queueing
from evenflow.store.scheduling import tasks
from evenflow.store.scheduling.inbox import TakenReport, TakenTimer
from evenflow.store.scheduling.tasks import Item

EVENT = "event"  # kind of a report: what became of a trigger


def apply_reports(
    facts: Facts, flow: Flow[Item], dispatches: Dispatches, deferrals: Deferrals, reports: Iterable[TakenReport]
) -> int:
    """Applies the reports of current tries; answers how many were about past epochs and so changed nothing."""
    moves = dispatches.moves
    current: list[TakenReport] = []
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
        current.append(report)
    skips: list[tuple[Item, list[int]]] = []
    deferring: list[tuple[Item, TakenReport]] = []
    for tried in collapse(current).values():
        first, end = tried.first, tried.end
        assert first.task_index is not None
        assert first.state is not None
        item = moves.item(first.run_key, first.task_index, first.map_index, first.state, first.epoch, first.try_number)
        item.tries_before = first.tries_before
        event = judge(facts.runs[first.run_key], first.task_index, item.state, item.try_number - first.tries_before, tried)
        if end is None or event is None:
            if event is TaskEvent.START:
                item.started_at = tried.started_at
                moves.apply(item, event, first.untold(item.state))
        elif event is TaskEvent.SUCCEED:
            _apply_exit(facts, dispatches, deferrals, item, end, event)
            if end.payload and (skipped := end.payload.get("skip")):
                skips.append((item, skipped))
        elif event is TaskEvent.DEFER:
            item.started_at = tried.started_at or (end.began_at if item.state is TaskState.QUEUED else None)
            deferring.append((item, end))
        elif event is TaskEvent.WITHDRAW:
            item.ended_at = end.at
            _end(dispatches, deferrals, end)
            flow.give_up(item, event)
        elif is_void(end):
            _apply_void(facts, dispatches, deferrals, item, end, event)
        else:
            _apply_exit(facts, dispatches, deferrals, item, end, event)
    decide(facts, moves, apply_skips(flow, skips))
    if deferring:
        defer(facts, dispatches, deferrals, deferring)
    return stale + (apply_events(facts, dispatches, deferrals, events) if events else 0)


def apply_timers(facts: Facts, dispatches: Dispatches, deferrals: Deferrals, timers: Iterable[TakenTimer]) -> None:
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
            dispatches.moves.offers.ready.append(item)
    if waits:
        end_waits(facts, dispatches, deferrals, waits)
    if queued:
        end_queueing(facts, dispatches, queued)


def _apply_exit(
    facts: Facts, dispatches: Dispatches, deferrals: Deferrals, item: Item, report: TakenReport, event: TaskEvent
) -> None:
    """The report of an exit says by one clock when the try began, whatever the delay with which its start was told. One that has
    waited began long before.
    """
    item.started_at = None if report.resumes else report.began_at
    item.ended_at = report.at
    moves, payload = dispatches.moves, report.payload or {}
    _end(dispatches, deferrals, report)
    if event is TaskEvent.SUCCEED:
        moves.apply(item, event, report.untold(item.state))
        spec = spec_of(facts, item)
        if spec.outlets or spec.outlet_aliases:
            produce(facts, moves.messages, item, spec, payload)
    elif event is TaskEvent.RESCHEDULE:
        _reschedule(moves, item, report)
    else:
        said = {} if report.outcome in ("deferred", "rescheduled") else payload
        fail(facts, moves, item, event, {**said, **report.untold(item.state)})


def _reschedule(moves: Moves, item: Item, report: TakenReport) -> None:
    """It looks again later. That uses up no try: the number is given back, and its next start takes the same one."""
    delay_s = float((report.payload or {}).get("delay_s") or 0.0)
    moves.apply(item, TaskEvent.RESCHEDULE, {"delay_s": delay_s, **report.untold(item.state)})
    item.try_number -= 1
    moves.messages.reschedules.append(tasks.Retry(item.epoch, *item.key, delay_s))


def _apply_void(
    facts: Facts, dispatches: Dispatches, deferrals: Deferrals, item: Item, report: TakenReport, event: TaskEvent
) -> None:
    """A dispatch that is sent again goes to another worker than one that could not start it, where there is another. A resume stays
    one, and of what is to end it is for its clean-up.
    """
    sent_again = event is TaskEvent.REQUEUE
    item.losses += counts_as_loss(report)
    reason = why_void(spec_of(facts, item), report, sent_again=sent_again)
    if not sent_again:
        item.ended_at = report.at
        _end(dispatches, deferrals, report)
        fail(facts, dispatches.moves, item, event, {"reason": reason, **report.untold(item.state)})
        return
    run = facts.runs[item.run_key]
    dispatches.pass_on(report.epoch)
    dispatches.send(
        item,
        event,
        facts.catalog.place(facts.conn, run.version, item.task_index),
        report.holds,
        run_priority=run.priority,
        avoid=report.worker_id or 0 if report.outcome == "cannot_start" else 0,
        dispatch_class=DispatchClass.RESUME if report.resumes else DispatchClass.FIRST_START,
        detail={"reason": reason, **report.untold(item.state)},
    )
    if report.resumes:
        clean_up_instead(facts, dispatches, deferrals, item, report)


def _end(dispatches: Dispatches, deferrals: Deferrals, report: TakenReport) -> None:
    dispatches.end(report.epoch, report.holds, report.pool_slots, report.at_s)
    if report.resumes and report.task_index is not None:
        deferrals.ended.append((report.run_key, report.task_index, report.map_index))
