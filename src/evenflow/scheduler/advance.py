"""One transaction from reports to starts: the heart of the scheduler.

Lock runs that have something to say, take their reports and due timers, move task instances, count what is downstream, and let
what became ready compete, in the same transaction, for what was released. Successors of a task that ends therefore never see
its slot free without being able to take it (fast-follow, R-HA16), and most of them never touch a lane on disk.

Who gets the executor's lock creates runs and runs the round; who does not applies reports and leaves lanes and wakes to the holder.
Locks are taken in the order executor, run, report and timer, dispatch, counter, task instance, lane, limit.
"""

from __future__ import annotations

from dataclasses import dataclass

from evenflow.core.limits import REPORTS_PER_TURN, RUNS_PER_TURN
from evenflow.core.states import RunEvent, RunState
from evenflow.scheduler import candidates
from evenflow.scheduler.batch import Batch, Run
from evenflow.scheduler.cancel import cancel_run, cancelled
from evenflow.scheduler.catalog import Catalog
from evenflow.scheduler.creation import create_runs
from evenflow.scheduler.readiness import propagate
from evenflow.scheduler.reports import apply_reports, apply_timers
from evenflow.scheduler.round import Round
from evenflow.store import inbox, runs, selection
from evenflow.store.notify import DISPATCH, INBOX
from evenflow.store.rows import Conn


@dataclass(frozen=True, slots=True)
class Progress:
    """What a transaction did. ``again``: there is more to do at once."""

    lead: bool
    again: bool
    reports: int = 0
    stale: int = 0
    starts: int = 0
    moves: int = 0


def advance(conn: Conn, catalog: Catalog, *, max_runs: int = RUNS_PER_TURN) -> Progress:
    """Apply what waits, select, commit. Raises what the database raises; nothing is half done then.

    After an exception the catalog may remember what was rolled back: the caller makes a new one.
    """
    with conn.pipeline() as pipeline, conn.transaction():
        turn = inbox.try_executor(conn)
        locked = inbox.lock_runs(conn, limit=max_runs).all()
        lead, now = turn.all()[0]
        batch = Batch(conn, catalog, now)
        reports, stale, again = _apply(batch, locked, lead)
        if lead:
            batch.wake(selection.apply_pauses(conn))
            for limit, released in selection.fold_wakes(conn).all():
                batch.released[limit] += released
            again |= create_runs(batch)
        batch.end_dispatches()
        again |= _count_down(batch)
        if lead:
            again |= Round(batch).run()
        else:
            candidates.store_all(batch)
        batch.write()
        if batch.ended_runs:
            runs.finish(conn, batch.ended_runs)
            runs.delete_limits(conn, [run_key for run_key, _, _ in batch.ended_runs])
        if batch.dispatches or batch.kills:
            inbox.notify(conn, DISPATCH)
        if not lead and (batch.released or batch.ready or batch.expanded):
            inbox.notify(conn, INBOX)
        pipeline.sync()
        for guard in batch.guards:
            guard.check()
    return Progress(lead, again, reports, stale, batch.starts, len(batch.events))


def _apply(batch: Batch, locked: list[inbox.LockedRun], lead: bool) -> tuple[int, int, bool]:
    """Reports and timers of the locked runs; answers how many reports, how many of them stale, and whether there may be more."""
    if not locked:
        return 0, 0, False
    run_keys = [row.run_key for row in locked]
    taken = inbox.take_reports(batch.conn, run_keys, lead=lead, limit=REPORTS_PER_TURN)
    timers = inbox.take_timers(batch.conn, run_keys).all()
    reports = taken.all()
    cancels = {r.run_key: r for r in reports if r.kind == "cancel"}
    for row in locked:
        cancelled = row.cancelled_by is not None or row.run_key in cancels
        batch.runs[row.run_key] = Run(
            row.run_key, row.dag_id, row.version_key, row.priority, row.run_after_us, row.is_paused, cancelled
        )
    states = {row.run_key: RunState(row.state) for row in locked}
    for run_key, report in cancels.items():
        actor = str((report.payload or {}).get("actor", "an operator"))
        cancel_run(batch, batch.runs[run_key], states[run_key], actor)
    stale = apply_reports(batch, [r for r in reports if r.kind != "cancel"])
    apply_timers(batch, timers)
    propagate(batch)
    return len(reports), stale, len(reports) == REPORTS_PER_TURN


def _count_down(batch: Batch) -> bool:
    """Takes what has finished off its runs, and ends those of which nothing is left. Whether that lets queued runs start."""
    counts = [(run_key, n, leaves) for run_key, (n, leaves) in batch.finished.items()]
    if not counts:
        return False
    room = False
    for standing in runs.count_down(batch.conn, counts).all():
        if standing.unfinished > 0:
            continue
        if standing.cancelled_by is not None:
            event, reason = RunEvent.CANCEL, cancelled(standing.cancelled_by)
        else:
            event, reason = RunEvent.FAIL if standing.failed_leaves else RunEvent.SUCCEED, None
        batch.end_run(standing.run_key, RunState.RUNNING, event, "scheduler", reason)
        if standing.slot_limit is not None:
            batch.released[standing.slot_limit] += 1
            room = room or standing.others_wait
    return room
