"""What the runs of a DAG may not do: miss a deadline, take too long, and fail one after the other. Also what happens to tries that
no worker claims.

This is the one place that finds missed deadlines. A void timer (the run has ended) does not come here. The timer of a try counts
from when the try was queued: anew with each retry, and each time that it is sent again. Queued tries are never searched: a timer
comes for each such try, and means nothing when a worker has claimed it meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from evenflow.core.callbacks import Callback
from evenflow.core.model import Unclaimed
from evenflow.core.quantities import duration
from evenflow.core.selection.order import DispatchClass
from evenflow.core.states import RunState, TaskEvent, TaskState
from evenflow.scheduler.facts import Facts, Run
from evenflow.scheduler.failures import fail, is_ending, judge_failure, spec_of
from evenflow.scheduler.ledgers.dispatches import Dispatches
from evenflow.scheduler.ledgers.messages import Messages
from evenflow.scheduler.ledgers.moves import RunMoves
from evenflow.store.scheduling import runs, tasks
from evenflow.store.scheduling.inbox import TakenTimer
from evenflow.store.scheduling.tasks import Item, UnclaimedTry
from evenflow.store.serving import callbacks

RUN_TIMEOUT = "run_timeout"  # kinds of timers
DEADLINE = "deadline"
QUEUED_TIMEOUT = "queued_timeout"


def insert_timeouts(facts: Facts, started: Iterable[Run]) -> None:
    """``dagrun_timeout`` counts from the start of a run."""
    timeouts = [(run.run_key, run.graph.spec.dagrun_timeout) for run in started]
    if found := [(run_key, seconds) for run_key, seconds in timeouts if seconds is not None]:
        runs.insert_timeouts(facts.conn, found)


def miss_deadlines(
    facts: Facts, messages: Messages, timers: Iterable[TakenTimer], states: Mapping[int, RunState]
) -> list[TakenTimer]:
    """Writes each that is missed into the history of its run, and calls its functions. Answers the other timers."""
    others: list[TakenTimer] = []
    missed: list[tuple[int, str, float]] = []
    for timer in timers:
        if timer.kind != DEADLINE:
            others.append(timer)
            continue
        deadlines = facts.runs[timer.run_key].graph.spec.deadlines
        deadline = deadlines[timer.task_index]
        missed.append((timer.run_key, deadline.name, timer.due_at_s))
        due = datetime.fromtimestamp(timer.due_at_s, UTC).isoformat(timespec="seconds")
        reason = f"The run had not ended at {due}, the deadline {deadline.name!r}."
        before = sum(d.callbacks for d in deadlines[: timer.task_index])
        for position in range(before, before + deadline.callbacks):
            messages.call_of_run(timer.run_key, Callback.DEADLINE, position, states[timer.run_key], reason)
    if missed:
        callbacks.record_missed(facts.conn, missed)
    return others


def stop_overdue(facts: Facts, messages: Messages, timers: Iterable[TakenTimer]) -> list[TakenTimer]:
    """Asks for the end of runs that take too long, as a person would; returns the other timers."""
    others = []
    for timer in timers:
        if timer.kind == RUN_TIMEOUT:
            seconds = facts.runs[timer.run_key].graph.spec.dagrun_timeout or 0.0
            messages.stops.append((timer.run_key, f"its dagrun_timeout of {timedelta(seconds=seconds)}"))
        else:
            others.append(timer)
    return others


def pause_failing(facts: Facts, run_moves: RunMoves) -> None:
    """``max_consecutive_failed_dag_runs``. Comes when the ends of runs are written; DAGs are locked after all else."""
    if found := failing(facts, run_moves):
        runs.pause_failing(facts.conn, found)


def failing(facts: Facts, run_moves: RunMoves) -> list[tuple[str, int]]:
    """Returns the DAGs of which a run has failed here, each with the number of failures that pauses it."""
    failed = [facts.runs[run_key] for run_key, state, _ in run_moves.ended if state == RunState.FAILED]
    limits = [(run.dag_id, run.graph.spec.max_consecutive_failed_dag_runs) for run in failed]
    return [(dag_id, most) for dag_id, most in limits if most]


def end_queueing(facts: Facts, dispatches: Dispatches, timers: Sequence[TakenTimer]) -> None:
    """Ends tries whose time is over, by the policy of each task, if no worker has them. Tries that are being ended anyway are left
    alone.
    """
    moves = dispatches.moves
    waiting: dict[int, tuple[Item, TakenTimer]] = {}
    for timer in timers:
        if timer.state == TaskState.QUEUED:
            item = moves.item(timer.run_key, timer.task_index, timer.map_index, timer.state, timer.epoch, timer.try_number)
            if item.state is TaskState.QUEUED and item.epoch == timer.epoch and not is_ending(facts, item):
                waiting[timer.epoch] = item, timer
    for unclaimed in tasks.lock_unclaimed(facts.conn, waiting) if waiting else ():
        item, timer = waiting[unclaimed.epoch]
        spec = spec_of(facts, item)
        policy = spec.when_unclaimed(resumes=unclaimed.resumes)
        reason = f"no worker has claimed it in the queue {unclaimed.queue} within {duration(spec.queued_timeout)}"
        moves.messages.overdue[policy] += 1
        if policy is Unclaimed.FAIL:
            _end(facts, dispatches, item, unclaimed, timer.due_at_s, reason)
        elif policy is Unclaimed.ELSEWHERE:
            _send_elsewhere(facts, dispatches, item, unclaimed, timer.due_at_s, reason)
        else:
            moves.apply(item, TaskEvent.OVERDUE, {"reason": reason})


def _end(facts: Facts, dispatches: Dispatches, item: Item, unclaimed: UnclaimedTry, due_at_s: float, reason: str) -> None:
    item.ended_at = unclaimed.at
    dispatches.end(unclaimed.epoch, unclaimed.holds, unclaimed.pool_slots, due_at_s)
    fail(facts, dispatches.moves, item, judge_failure(facts, item), {"reason": reason})


def _send_elsewhere(
    facts: Facts, dispatches: Dispatches, item: Item, unclaimed: UnclaimedTry, due_at_s: float, reason: str
) -> None:
    """The task gives back what it holds and is selected for its other queue, whose executor may have no slot free: no try is used
    up. A resume keeps what it holds, wherever it resumes.
    """
    run, other = facts.runs[item.run_key], spec_of(facts, item).other_queue
    detail = {"reason": reason, "queue": other}
    if unclaimed.resumes:
        place = facts.catalog.place(facts.conn, run.version, item.task_index, other)
        dispatches.pass_on(unclaimed.epoch)
        dispatches.send(
            item,
            TaskEvent.REQUEUE,
            place,
            unclaimed.holds,
            run_priority=run.priority,
            dispatch_class=DispatchClass.RESUME,
            detail=detail,
        )
        return
    dispatches.end(unclaimed.epoch, unclaimed.holds, unclaimed.pool_slots, due_at_s)
    dispatches.moves.apply(item, TaskEvent.ELSEWHERE, detail)
    item.try_number -= 1  # its next start takes the same one
    run.ready_at_s = max(run.ready_at_s, due_at_s)
    dispatches.moves.offers.elsewhere[item.key] = other or ""
    dispatches.moves.offers.ready.append(item)
