"""Tasks that wait deferred, and how they resume.

Theory of operation
-------------------
A try that defers ends its dispatch. Its task instance keeps some of its limits (:mod:`evenflow.core.deferral`), and a row of
``deferral`` says what it waits for; only then may a triggerer have its trigger, so no event comes before the deferral is applied.
An event, a timeout or the end of a trigger brings the task back, once. A report about a deferral that has resumed or is gone is
void.

The task resumes *directly*: to a worker, under a fresh epoch, in a class of its own before all first starts, with what it kept and
what it takes again, and no limit is checked. That raises the use of limits without the executor's lock: what the task takes is
written as a negative release, and the holder of the lock adds it to the use. Where direct resumes are switched off, or one fails,
the task resumes in the *ordinary* way: it gives back what it kept and waits for all of it in a lane of resumes, before the first
starts of its DAG. Its place there follows from the time at which its try was first queued.

A waiting task may be ended from outside: by a person's mark or clear, the end of its run, or its execution timeout. If it has left
work outside, it resumes for its *clean-up* first: a worker stops that work, and then the task ends as was requested.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import psycopg

from evenflow.core.deferral import Purpose, Split, amounts, split
from evenflow.core.flow.state import InstanceKey
from evenflow.core.operations import by_cancel
from evenflow.core.selection.order import DispatchClass
from evenflow.core.states import TaskEvent, TaskState
from evenflow.scheduler import observations as seen
from evenflow.scheduler.facts import Facts
from evenflow.scheduler.failures import fail, is_ending, judge_failure, spec_of
from evenflow.scheduler.ledgers.deferrals import Deferrals
from evenflow.scheduler.ledgers.dispatches import Dispatches
from evenflow.scheduler.ledgers.holds import Holds
from evenflow.scheduler.ledgers.moves import Moves
from evenflow.store.scheduling import deferrals as stored
from evenflow.store.scheduling.deferrals import Deferral, Resume, Waiting
from evenflow.store.scheduling.inbox import TakenReport, TakenTimer
from evenflow.store.scheduling.tasks import Item
from evenflow.telemetry.observing import observe

TRIGGER_TIMEOUT = "trigger_timeout"  # kinds of timers
TIMEOUTS = frozenset({TRIGGER_TIMEOUT, "execution_timeout"})


def defer(facts: Facts, dispatches: Dispatches, deferrals: Deferrals, deferring: Sequence[tuple[Item, TakenReport]]) -> None:
    """Applies the exits of tries that have deferred. One that was to end meanwhile, and cleans up, resumes for that at once."""
    conn, limits = facts.conn, {limit for _, report in deferring for limit in report.holds}
    moves = dispatches.moves
    terms, keeping = stored.read_terms(conn, limits), stored.read_keeping(conn)
    known, (kept,) = terms.all(), keeping.all()
    for item, report in deferring:
        dispatches.pass_on(report.epoch)
        intent = dispatches.intents.get(report.epoch) or report.intent
        if intent or is_ending(facts, item):
            _defer_one(facts, moves, deferrals, item, report, Split([], 0, [], 0), ())
            reason = _end_of(facts, item, intent)
            _dispatch(facts, dispatches, item, TaskEvent.RESUME, report.holds, {"purpose": Purpose.CLEAN_UP, "reason": reason})
            deferrals.doomed.append(_resume_of(item, report.epoch, Purpose.CLEAN_UP, reason=reason, intent=intent))
        else:
            parts = split(report.holds, report.pool_slots, known, kept, spec_of(facts, item).while_deferred)
            _defer_one(facts, moves, deferrals, item, report, parts, [term.kind for term in known if term.limit_id in parts.holds])
            dispatches.holds.release(parts.retake, parts.retake_slots, report.at_s)


def _defer_one(
    facts: Facts, moves: Moves, deferrals: Deferrals, item: Item, report: TakenReport, parts: Split, keeps: Sequence[str]
) -> None:
    payload, spec = report.payload or {}, spec_of(facts, item)
    said = payload["defer"]
    timeout_s = said.get("timeout_s")
    detail = {"trigger": said["trigger"], "timeout_s": timeout_s, "keeps": sorted(keeps)}
    told = {name: value for name, value in detail.items() if value}
    moves.apply(item, TaskEvent.DEFER, {**told, **report.untold(item.state)})
    deferrals.begun.append(
        Deferral(
            *item.key,
            report.epoch,
            said["queue"],
            said["trigger"],
            said["sealed"],
            parts.holds,
            parts.pool_slots,
            parts.retake,
            parts.retake_slots,
            float(payload.get("ran_s") or 0.0),
            timeout_s,
            spec.execution_timeout if spec.execution_timeout_counts_waiting else None,
        )
    )


def apply_events(facts: Facts, dispatches: Dispatches, deferrals: Deferrals, reports: Sequence[TakenReport]) -> int:
    """Applies reports of triggerers, and of people who were asked; returns how many of these reports are void."""
    waiting = stored.read_some(facts.conn, {_key_of(report) for report in reports})
    void = 0
    for report in reports:
        found = waiting.get(_key_of(report))
        if found is None or found.epoch != report.epoch or not _waits(item := _item_of(dispatches.moves, found), found):
            void += 1
            continue
        said, run = report.payload or {}, facts.runs[report.run_key]
        if run.ends(item.task_index):
            void += 1
            continue
        run.ready_at_s = max(run.ready_at_s, report.at_s)
        purpose = Purpose(said["purpose"])
        answer: dict[str, str] = {name: said[name] for name in ("actor", "choice") if name in said}
        event, error = said.get("event"), said.get("error")
        _come_back(facts, dispatches, deferrals, item, found, purpose, report.at_s, event=event, reason=error, answer=answer)
    return void


def end_waits(facts: Facts, dispatches: Dispatches, deferrals: Deferrals, timers: Sequence[TakenTimer]) -> None:
    """Applies timeouts of deferred tasks: those of their waits, and those of their tries as a whole."""
    waiting = stored.read_some(facts.conn, {(timer.run_key, timer.task_index, timer.map_index) for timer in timers})
    for timer in timers:
        found = waiting.get((timer.run_key, timer.task_index, timer.map_index))
        if (
            found is None
            or not _waits(item := _item_of(dispatches.moves, found), found)
            or facts.runs[timer.run_key].ends(timer.task_index)
        ):
            continue
        spec = spec_of(facts, item)
        if timer.kind == TRIGGER_TIMEOUT:
            reason = f"nothing came of its trigger within {timedelta(seconds=round(found.waited_s))}"
            _come_back(facts, dispatches, deferrals, item, found, Purpose.TIMEOUT, timer.due_at_s, reason=reason)
            continue
        reason = f"its execution_timeout of {timedelta(seconds=spec.execution_timeout or 0.0)} was over while it was deferred"
        if spec.cleans_up:
            clean_up(facts, dispatches, deferrals, item, found, reason)
        else:
            stop_waiting(facts, dispatches.holds, deferrals, found)
            fail(facts, dispatches.moves, item, judge_failure(facts, item), {"reason": reason})


# -- resumes -------------------------------------------------------------------------------------------------------------


def _come_back(
    facts: Facts,
    dispatches: Dispatches,
    deferrals: Deferrals,
    item: Item,
    waiting: Waiting,
    purpose: Purpose,
    at_s: float,
    *,
    event: str | None = None,
    reason: str | None = None,
    answer: Mapping[str, str] | None = None,
) -> None:
    detail: dict[str, Any] = {"purpose": purpose, "trigger": waiting.trigger, "waited_s": round(waiting.waited_s, 3)}
    detail.update(answer or {})
    if reason:
        detail["reason"] = reason
    why_not = None if waiting.direct else "direct_resume is off"
    if why_not is None:
        try:
            _resume_directly(facts, dispatches, item, waiting, detail)
            deferrals.directly.append(max(0.0, facts.now_s - at_s))
        except Exception as error:
            if isinstance(error, psycopg.Error) or item.state is not TaskState.DEFERRED:
                raise  # of the transaction as a whole
            observe(seen.direct_resume_failed(*item.key[:2], error))
            why_not = f"the direct resume failed: {type(error).__name__}"
    if why_not is not None:
        dispatches.moves.apply(item, TaskEvent.ORDINARY_RESUME, {**detail, "not_direct": why_not})
        dispatches.holds.release(waiting.holds, waiting.pool_slots, at_s)
        dispatches.moves.offers.put_back(item, waiting.ready_at_s)
    back = _resume_of(item, waiting.epoch, purpose, event=event, reason=reason, direct=why_not is None)
    deferrals.resumes.append(back)


def _resume_directly(facts: Facts, dispatches: Dispatches, item: Item, waiting: Waiting, detail: Mapping[str, Any]) -> None:
    _dispatch(facts, dispatches, item, TaskEvent.RESUME, waiting.all_holds, detail)
    _take_again(dispatches.holds, waiting)


def _dispatch(
    facts: Facts, dispatches: Dispatches, item: Item, event: TaskEvent, holds: Sequence[int], detail: Mapping[str, Any]
) -> None:
    run = facts.runs[item.run_key]
    place = facts.catalog.place(facts.conn, run.version, item.task_index)
    dispatches.send(item, event, place, holds, run_priority=run.priority, dispatch_class=DispatchClass.RESUME, detail=dict(detail))


def _take_again(holds: Holds, waiting: Waiting) -> None:
    for limit, count in amounts(waiting.retake, waiting.retake_slots):
        holds.take(limit, count)


# -- ends from outside ---------------------------------------------------------------------------------------------------


def clean_up(
    facts: Facts,
    dispatches: Dispatches,
    deferrals: Deferrals,
    item: Item,
    waiting: Waiting,
    reason: str,
    *,
    intent: Mapping[str, str] | None = None,
    holds: Sequence[int] | None = None,
) -> None:
    """Has a worker stop what the task has left outside; ``intent`` is applied when that has ended. ``holds`` is what its dispatch
    holds, where it has resumed and no worker has claimed it.
    """
    detail = {"purpose": Purpose.CLEAN_UP, "reason": reason}
    if holds is not None:
        dispatches.pass_on(item.epoch)
        _dispatch(facts, dispatches, item, TaskEvent.REQUEUE, holds, detail)
    else:
        event = TaskEvent.RESUME if item.state is TaskState.DEFERRED else TaskEvent.GRANT
        _dispatch(facts, dispatches, item, event, waiting.all_holds, detail)
        _take_again(dispatches.holds, waiting)
    deferrals.resumes.append(_resume_of(item, waiting.epoch, Purpose.CLEAN_UP, reason=reason, intent=intent))


def clean_up_instead(facts: Facts, dispatches: Dispatches, deferrals: Deferrals, item: Item, report: TakenReport) -> None:
    """Sends a lost resume again; for a task that is to end, the resume is for its clean-up."""
    intent = dispatches.intents.get(report.epoch) or report.intent
    if report.deferral is not None and (intent or is_ending(facts, item)):
        reason = None if report.purpose == Purpose.CLEAN_UP else _end_of(facts, item, intent)
        deferrals.resumes.append(_resume_of(item, report.deferral, Purpose.CLEAN_UP, reason=reason, intent=intent))


def stop_waiting(facts: Facts, holds: Holds, deferrals: Deferrals, waiting: Waiting) -> None:
    """Ends a wait without a resume; what the task kept is released."""
    holds.release(waiting.holds, waiting.pool_slots, facts.now_s)
    deferrals.ended.append(waiting.key)


def _resume_of(
    item: Item,
    epoch: int,
    purpose: Purpose,
    *,
    event: str | None = None,
    reason: str | None = None,
    intent: Mapping[str, str] | None = None,
    direct: bool = True,
) -> Resume:
    return Resume(*item.key, epoch, purpose, event, reason, json.dumps(intent) if intent else None, direct)


def _end_of(facts: Facts, item: Item, intent: Mapping[str, str] | None) -> str:
    """Why it ends from outside, for people."""
    if intent and not is_ending(facts, item):
        return f"{intent['event']} by {intent['actor']}"
    return by_cancel(facts.runs[item.run_key].cancelled_by or "")


def _key_of(report: TakenReport) -> InstanceKey:
    said = report.payload or {}
    return report.run_key, int(said["task_index"]), int(said["map_index"])


def _item_of(moves: Moves, waiting: Waiting) -> Item:
    item = moves.item(*waiting.key, waiting.state, waiting.current_epoch, waiting.try_number)
    item.tries_before = waiting.tries_before
    return item


def _waits(item: Item, waiting: Waiting) -> bool:
    return item.state is TaskState.DEFERRED and item.epoch == waiting.epoch and waiting.purpose is None
