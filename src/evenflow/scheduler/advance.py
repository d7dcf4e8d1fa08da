"""One transaction from reports to starts: the heart of the scheduler.

Lock runs that have something to say, take their reports and due timers, move task instances, count what is downstream, and let
what became ready compete, in the same transaction, for what was released. Successors of a task that ends therefore never see
its slot free without being able to take it (fast-follow, R-HA16), and most of them never touch a lane on disk.

Who gets the executor's lock creates runs and runs the round. Who does not leaves a few reports to the holder, too (ADR 0012); of
many it applies some, starts what fits into the room that it has made itself, and leaves the rest to the holder, as lanes and wakes.
Locks are taken in the order executor, run, report and timer, dispatch, counter, task instance, lane, limit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from evenflow.core.limits import REPORTS_PER_TURN, RUNS_PER_TURN, TIMERS_PER_TURN
from evenflow.core.operations import INTERRUPTED
from evenflow.core.states import RunEvent, RunState
from evenflow.killpoints import KillPoint, reached
from evenflow.scheduler.batch import Batch, Item, Run
from evenflow.scheduler.cancel import cancel_run, cancelled, end_part
from evenflow.scheduler.catalog import Catalog
from evenflow.scheduler.creation import create_runs, take_queued
from evenflow.scheduler.deadlines import miss_deadlines
from evenflow.scheduler.indexes import Indexes
from evenflow.scheduler.operations import OPERATE, end_intended, operate
from evenflow.scheduler.past import KINDS, apply_word, look_again, tell
from evenflow.scheduler.quarantine import pass_by
from evenflow.scheduler.readiness import propagate
from evenflow.scheduler.recount import SETTLE, settle_on
from evenflow.scheduler.reports import apply_reports, apply_timers
from evenflow.scheduler.round import Round
from evenflow.scheduler.scope import Scope
from evenflow.scheduler.starts import Starts
from evenflow.scheduler.swap import leave, swap
from evenflow.scheduler.timeouts import pause_failing, stop_overdue
from evenflow.store import inbox, runs, selection
from evenflow.store.dispatch import RETURN
from evenflow.store.notify import DISPATCH, INBOX, RETURNS, TRIGGERS, wake
from evenflow.store.rows import Conn, Rows, sync


@dataclass(frozen=True, slots=True)
class Progress:
    """What a transaction did. ``led``: it had the executor's lock. ``selected``: it ran a round. ``again``: there is more to do at
    once. ``picks``: runs that it wanted, of which others had ``contended``.
    """

    led: bool
    selected: bool
    again: bool
    reports: int
    stale: int
    moves: int
    started: Starts
    picks: int
    contended: int
    direct_returns: Sequence[float]  # seconds since what let each deferred task return
    ordinary_returns: int

    @property
    def starts(self) -> int:
        return self.started.count


def advance(
    conn: Conn,
    catalog: Catalog,
    *,
    max_runs: int = RUNS_PER_TURN,
    sweep: bool = True,
    helps_after_s: float | None = 0.0,
    scope: Scope | None = None,
) -> Progress:
    """Apply what waits, select, commit. Raises what the database raises; nothing is half done then.

    With the setting ``fast_follow`` off only a ``sweep`` selects. Without the executor's lock it leaves little work to the lock's
    holder, unless the oldest of it has waited for ``helps_after_s``. After an exception the catalog may remember what was rolled
    back: the caller makes a new one. ``scope`` says afterwards what it was about.
    """
    scope = scope or Scope()
    with conn.pipeline() as pipeline, conn.transaction():
        tried, begun = inbox.try_executor(conn), inbox.begin_turn(conn, catalog.since)
        picked = inbox.lock_runs(conn, catalog.since, limit=max_runs, helps_after_s=helps_after_s).all()
        catalog.since = catalog.since._replace(reports=picked[0].since, changes=picked[0].changes_since)
        locked = scope.within([row for row in picked if row.run_key])
        (lead,), turn = tried.all()[0], begun.all()[0]
        reached(KillPoint.TURN_LOCKED)
        batch = Batch(conn, catalog, turn.now_s, turn.lanes, scope)
        if turn.closures:
            batch.closures = selection.as_closures(selection.read_closures(conn).all())
        selects = lead and (turn.fast_follow or sweep)
        work = _Work(batch, turn, len(locked)) if selects else None
        usable = pass_by(conn, locked, lead=lead)
        reports, stale, again = _apply(batch, usable, turn, lead)
        again |= len(locked) == max_runs or len(usable) < len(locked)
        if work:
            again |= work.take(batch)
        reached(KillPoint.TURN_APPLIED)
        batch.end_dispatches()
        finished = _count_down(batch)
        starts = Starts(batch)
        if work:
            selection_round = Round(batch, starts)
            again |= _end_runs(batch, finished)
            again |= selection_round.run()
            if scope.is_partial:  # lanes of other runs may have to be woken
                selection.insert_wakes(conn, dict.fromkeys({0, *batch.released, *selection_round.limits()}, 0), {}, turn.now_s)
        else:
            again |= _end_runs(batch, finished)
            _wake_ended(batch)
            swap(batch, starts) if turn.fast_follow else leave(batch, starts)
        again |= bool(batch.unsettled) or (lead and bool(batch.stops or batch.calls))
        reached(KillPoint.TURN_SELECTED)
        batch.write()
        again |= tell(batch, watches=turn.watches)
        if batch.ended_runs:
            runs.finish(conn, batch.ended_runs)
            pause_failing(batch)
            if lead:
                runs.delete_limits(conn, [run_key for run_key, _, _ in batch.ended_runs])
        sync(conn, pipeline)
        for guard in batch.guards:
            guard.check()
        reached(KillPoint.TURN_WRITTEN)
    reached(KillPoint.TURN_COMMITTED)
    wake(conn, _wakes(batch, rest_is_left=turn.fast_follow and not lead, lead=lead))
    contended = picked[0].found - sum(1 for row in picked if row.run_key)
    found, ordinary = picked[0].found, len(batch.returning)
    return Progress(lead, selects, again, reports, stale, batch.moves, starts, found, contended, batch.directly, ordinary)


def _wakes(batch: Batch, *, rest_is_left: bool, lead: bool) -> set[str]:
    """Who has something to do when this is committed. ``rest_is_left``: to the holder of the executor's lock."""
    left = rest_is_left and (batch.released or batch.ready or batch.expanded)
    channels = {
        DISPATCH: batch.dispatches or batch.kills,
        RETURNS: any(row.dispatch_class == RETURN for row in batch.dispatches),
        TRIGGERS: batch.deferred or batch.returns or batch.ended_deferrals,
        INBOX: left or (batch.calls and not lead) or batch.others_have_word,
    }
    return {channel for channel, has_news in channels.items() if has_news}


class _Work:
    """What else the holder of the executor's lock does before a round: runs to create, wakes, pauses. Making it asks for all."""

    def __init__(self, batch: Batch, turn: inbox.Turn, runs_heard: int) -> None:
        conn = batch.conn
        self._queued = take_queued(conn, batch.catalog.since, runs_heard, tries=turn.tries) if turn.run_wakes else None
        self._wakes = selection.fold_wakes(conn) if turn.wakes else None
        self._pauses = selection.take_pauses(conn) if turn.pauses else None

    def take(self, batch: Batch) -> bool:
        """Whether there may be more."""
        wakes = self._wakes.all() if self._wakes else []
        for limit, released, at_s, _ in wakes:
            batch.released[limit] += released
            batch.released_at[limit] = max(at_s, batch.released_at.get(limit, 0.0))
        if wakes:
            runs.delete_ended_limits(batch.conn, [limit for limit, *_ in wakes])
        more = any(
            of_runs and released > 0 for _, released, _, of_runs in wakes
        )  # room for runs: those are asked for in the next turn
        more |= create_runs(batch, self._queued) if self._queued else False
        if self._pauses and (changed := dict(self._pauses.all())):
            batch.wake(selection.apply_pauses(batch.conn, changed))
            for run in batch.runs.values():
                run.is_paused = changed.get(run.dag_id, run.is_paused)
        return more


def _apply(batch: Batch, locked: list[inbox.LockedRun], turn: inbox.Turn, lead: bool) -> tuple[int, int, bool]:
    """Reports and timers of the locked runs; answers how many reports, how many of them stale, and whether there may be more."""
    if not locked:
        return 0, 0, False
    run_keys = [row.run_key for row in locked]
    taken = inbox.take_reports(batch.conn, run_keys, lead=lead, limit=batch.scope.reports)
    share = max(1, TIMERS_PER_TURN // len(run_keys))
    due = inbox.take_timers(batch.conn, run_keys, share=share).all() if turn.timers else []
    timers = [timer for timer in due if not timer.is_void]
    reports = batch.scope.taken = taken.all()
    batch.catalog.load_versions(batch.conn, (row.version_key for row in locked))
    cancels = {r.run_key: r for r in reports if r.kind == "cancel"}
    for row in locked:
        cancelled = row.cancelled_by is not None or row.run_key in cancels
        version = batch.catalog.version(row.version_key)
        run = Run(
            row.run_key,
            row.dag_id,
            version,
            row.priority,
            row.run_after_us,
            row.is_paused,
            cancelled,
            row.cancelled_by,
            clears=row.clears,
            interrupted=row.interrupted,
        )
        batch.runs[row.run_key] = run
        if row.clears:
            batch.catalog.forget_older(row.run_key, row.clears)
    states = {row.run_key: RunState(row.state) for row in locked}
    timers = stop_overdue(batch, miss_deadlines(batch, timers, states)) if timers else timers
    already = {row.run_key for row in locked if row.cancelled_by is not None}
    for run_key, report in cancels.items():
        if run_key in already:
            if states[run_key] is RunState.RUNNING:
                end_part(batch, batch.runs[run_key])
            continue
        actor = str((report.payload or {}).get("actor", "an operator"))
        cancel_run(batch, batch.runs[run_key], states[run_key], actor)
    expansions: list[Item] = []
    indexes = Indexes(batch)
    operations = [r for r in reports if r.kind == OPERATE]
    for report in operations:
        operate(batch, batch.runs[report.run_key], states[report.run_key], report, expansions, indexes)
        look_again(batch, batch.runs[report.run_key])
    for report in reports:
        if report.kind == SETTLE and states[report.run_key] is RunState.RUNNING:
            settle_on(batch, batch.runs[report.run_key], report, expansions, indexes)
    apply_word(batch, [r for r in reports if r.kind in KINDS])
    left = end_intended(batch, [r for r in reports if r.kind not in ("cancel", OPERATE, SETTLE, *KINDS)], expansions, indexes)
    stale = apply_reports(batch, left)
    apply_timers(batch, [t for t in timers if (t.run_key, t.task_index, t.map_index) not in batch.voided] if operations else timers)
    propagate(batch, expansions, indexes)
    is_full = len(reports) == REPORTS_PER_TURN or share in Counter(timer.run_key for timer in due).values()
    return len(reports), stale, bool(cancels or operations) or is_full


def _count_down(batch: Batch) -> Rows[runs.RunStanding] | None:
    """Takes what has finished off its runs."""
    counts = [(run_key, n, leaves) for run_key, (n, leaves) in batch.finished.items()]
    return runs.count_down(batch.conn, counts) if counts else None


def _end_runs(batch: Batch, finished: Rows[runs.RunStanding] | None) -> bool:
    """Ends the runs of which nothing is left. Whether that lets queued runs start."""
    room = False
    reason: str | None
    for standing in finished.all() if finished else ():
        if standing.unfinished > 0:
            continue
        if standing.cancelled_by is not None:
            event, reason = RunEvent.CANCEL, cancelled(standing.cancelled_by)
        elif standing.interrupted:
            event, reason = RunEvent.FAIL, INTERRUPTED
        else:
            event, reason = RunEvent.FAIL if standing.failed_leaves else RunEvent.SUCCEED, None
        batch.end_run(standing.run_key, RunState.RUNNING, event, "scheduler", reason)
        if standing.slot_limit is not None:
            batch.released[standing.slot_limit] += 1
            room = room or standing.others_wait
    return room


def _wake_ended(batch: Batch) -> None:
    """Limits of runs that ended go with the wakes that name them: only the holder of the executor's lock deletes limits."""
    ended = [run_key for run_key, _, _ in batch.ended_runs]
    batch.catalog.load_run_limits(batch.conn, ended)
    for run_key in ended:
        batch.wake(batch.catalog.run_limits(run_key).values())
