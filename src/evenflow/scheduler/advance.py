"""One transaction from reports to starts: the heart of the scheduler.

Lock runs that have something to say, take their reports and due timers, move task instances, count what is downstream, and let
what became ready compete, in the same transaction, for what was released. Successors of a task that ends therefore never see
its slot free without being able to take it (fast-follow, R-HA16), and most of them never touch a lane on disk.

The scheduler that gets the executor's lock creates runs and runs the round. A scheduler without the lock leaves reports to the
holder, too, while that keeps up (ADR 0033). Else it applies some of them and starts what fits into the room that these made. It
leaves the rest to the holder, as lanes and wakes.

Locks are taken in the order executor, run, report and timer, dispatch, counter, task instance, lane, limit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import random

from evenflow.core.flow.readiness import propagate
from evenflow.core.flow.state import Flow
from evenflow.core.limits import REPORTS_PER_TURN, RUNS_PER_TURN, TIMERS_PER_TURN
from evenflow.core.operations import INTERRUPTED, by_cancel
from evenflow.core.selection.order import DispatchClass
from evenflow.core.service_states import ALL_OPEN
from evenflow.core.states import RunEvent, RunState
from evenflow.killpoints import KillPoint, reached
from evenflow.scheduler.answers import decide
from evenflow.scheduler.cancel import cancel_run, end_part
from evenflow.scheduler.candidates import group
from evenflow.scheduler.catalog import Catalog
from evenflow.scheduler.creation import create_runs, most_new_runs
from evenflow.scheduler.facts import Facts, Run
from evenflow.scheduler.foresight import foresee
from evenflow.scheduler.ledgers import Ledgers
from evenflow.scheduler.ledgers.dispatches import give
from evenflow.scheduler.ledgers.moves import Moves, RunMoves
from evenflow.scheduler.operations import OPERATE, end_intended, operate
from evenflow.scheduler.past import KINDS, apply_word, look_again, tell
from evenflow.scheduler.quarantine import pass_by
from evenflow.scheduler.recount import SETTLE, settle_on
from evenflow.scheduler.reports import apply_reports, apply_timers
from evenflow.scheduler.round import Round
from evenflow.scheduler.scope import Scope
from evenflow.scheduler.starts import Starts, leave, swap
from evenflow.scheduler.timeouts import miss_deadlines, pause_failing, stop_overdue
from evenflow.store.db.notify import DISPATCH, INBOX, RESUMES, TRIGGERS, deliver, wake
from evenflow.store.db.rows import Conn, Rows, commit, in_one_go
from evenflow.store.scheduling import inbox, runs, selection, tasks
from evenflow.store.scheduling.tasks import Item


@dataclass(frozen=True, slots=True)
class TurnOutcome:
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
    direct_resumes: Sequence[float]  # seconds since what let each deferred task resume
    ordinary_resumes: int
    overdue: Mapping[str, int]  # tries that no worker had claimed in time, by what became of them
    due_s: float | None  # when nothing is to be done at once: seconds until the next timer, if there is one

    @property
    def starts(self) -> int:
        return self.started.count


def advance(
    conn: Conn,
    catalog: Catalog,
    *,
    max_runs: int = RUNS_PER_TURN,
    sweep: bool = True,
    helps_after_s: float = 0.0,
    scope: Scope | None = None,
) -> TurnOutcome:
    """Applies what waits, selects, commits. Raises what the database raises; nothing is half done then.

    With the setting ``fast_follow`` off only a ``sweep`` selects. Without the executor's lock the turn leaves everything to the
    holder until the oldest report has waited for ``helps_after_s``. A failed turn has spoilt the catalog; ``scope`` then says which
    runs it was about.
    """
    scope = scope or Scope()
    with in_one_go(conn):
        tried, begun = inbox.try_executor(conn), inbox.begin_turn(conn, catalog.since)
        sent = inbox.lock_runs(conn, catalog.since, limit=max_runs, helps_after_s=helps_after_s, spread=random(), only=scope.runs)
        scope.await_rows(sent)
        taken = inbox.take_reports(conn, limit=scope.reports)
        foresight = foresee(conn, catalog)
        catalog.epochs.ask(conn)
        picked = sent.all()
        catalog.since = catalog.since._replace(reports=picked[0].since, changes=picked[0].changes_since)
        locked = scope.within([row for row in picked if row.run_key])
        (lead,), turn = tried.all()[0], begun.all()[0]
        catalog.learn_places(conn, turn.places)
        reached(KillPoint.TURN_LOCKED)
        closures = selection.as_closures(selection.read_closures(conn).all()) if turn.closures else ALL_OPEN
        foresight.arrive()
        catalog.leads, facts = lead, Facts(conn, catalog, turn.now_s, turn.lanes, scope, closures, foresight)
        ledgers = Ledgers(facts)
        selects = lead and (turn.fast_follow or sweep or foresight.queued is not None)
        work = _Work(facts, turn, len(locked)) if selects else None
        usable = pass_by(conn, locked, lead=lead)
        reports, stale, again = _apply(facts, ledgers, usable, turn, taken)
        again |= len(locked) == max_runs or len(usable) < len(locked)
        again |= bool(work and work.take(facts, ledgers.flow, ledgers.moves, ledgers.run_moves))
        reached(KillPoint.TURN_APPLIED)
        ledgers.write_ends()
        run_moves, messages = ledgers.run_moves, ledgers.messages
        finished, starts = run_moves.count_down(conn), Starts(facts, ledgers.dispatches)
        if work:
            selection_round = Round(facts, ledgers.moves, ledgers.holds, ledgers.mapped, starts)
            again |= _end_runs(run_moves, finished)
            again |= selection_round.run()
            if scope.is_partial:  # lanes of other runs may have to be woken
                ledgers.holds.write_looks(conn, selection_round.limits(), turn.now_s)
        else:
            again |= _end_runs(run_moves, finished)
            _wake_ended(facts, run_moves)
            ready = list(group(facts, ledgers.offers, ledgers.mapped).values())
            swap(facts, ledgers.moves, ledgers.holds, starts, ready if turn.fast_follow else [])
            leave(facts, ledgers.moves, run_moves, starts, ready)
        again |= bool(messages.unsettled) or (lead and bool(messages.stops or messages.calls))
        reached(KillPoint.TURN_SELECTED)
        again |= _write(facts, ledgers, turn, lead=lead)
        reached(KillPoint.TURN_WRITTEN)
        commit(conn)
        _wake_others(conn, ledgers, rest_is_left=turn.fast_follow and not lead, lead=lead)
        due = None if again else inbox.next_due(conn)
    reached(KillPoint.TURN_COMMITTED)
    found, ordinary, moved = picked[0].found, len(ledgers.offers.resuming), ledgers.moves.count
    contended, directly = found - sum(1 for row in picked if row.run_key), ledgers.deferrals.directly
    due_s = due.all()[0][0] if due else None
    return TurnOutcome(
        lead, selects, again, reports, stale, moved, starts, found, contended, directly, ordinary, messages.overdue, due_s
    )


def _write(facts: Facts, ledgers: Ledgers, turn: inbox.Turn, *, lead: bool) -> bool:
    """Everything that was decided. Whether there may be more to do at once."""
    if turn.waiting_claims:
        give(ledgers.dispatches, turn.waiting_claims)
    ledgers.write()
    if turn.queued_timeouts and ledgers.dispatches.sent:
        tasks.insert_queued_timeouts(facts.conn, ledgers.dispatches.sent)
    again = tell(facts, ledgers.moves, watches=turn.watches)
    if ended := ledgers.run_moves.ended:
        ledgers.run_moves.write_ends(facts.conn)
        pause_failing(facts, ledgers.run_moves)
        if lead:
            runs.delete_limits(facts.conn, [run_key for run_key, _, _ in ended])
    return again


def _wake_others(conn: Conn, ledgers: Ledgers, *, rest_is_left: bool, lead: bool) -> None:
    """Notifies the processes that have something to do now. ``rest_is_left``: the holder of the executor's lock does the rest."""
    dispatches, messages = ledgers.dispatches, ledgers.messages
    left = rest_is_left and (ledgers.holds.released or ledgers.offers.ready or ledgers.mapped.changed)
    channels = {
        DISPATCH: (dispatches.sent and not dispatches.takers) or dispatches.kills,
        RESUMES: any(row.dispatch_class == DispatchClass.RESUME for row in dispatches.sent),
        TRIGGERS: ledgers.deferrals.has_news,
        INBOX: left or (messages.calls and not lead) or messages.others_have_word,
    }
    if dispatches.takers:
        deliver(conn)
    wake(conn, {channel for channel, has_news in channels.items() if has_news})


class _Work:
    """What else the holder of the executor's lock does before a round: runs to create, wakes, pauses. Making it asks for all."""

    def __init__(self, facts: Facts, turn: inbox.Turn, runs_heard: int) -> None:
        conn = facts.conn
        self._most = most_new_runs(runs_heard, tries=turn.tries)
        if turn.run_wakes and facts.foresight.queued is None:
            facts.foresight.ask_for_queued(conn, facts.catalog, self._most)
        self._wakes = selection.fold_wakes(conn) if turn.wakes else None
        if turn.wakes:  # they may say that limits have changed
            facts.foresight.ask(conn, facts.catalog)
        self._pauses = selection.take_pauses(conn) if turn.pauses else None

    def take(self, facts: Facts, flow: Flow[Item], moves: Moves, run_moves: RunMoves) -> bool:
        """Whether there may be more."""
        wakes = self._wakes.all() if self._wakes else []
        facts.foresight.arrive()
        for limit, released, at_s, _ in wakes:
            run_moves.holds.fold(limit, released, at_s)
        if wakes:
            runs.delete_ended_limits(facts.conn, [limit for limit, *_ in wakes])
        # Room for runs: those are asked for in the next turn.
        more = any(of_runs and released > 0 for _, released, _, of_runs in wakes)
        if facts.foresight.queued and create_runs(facts, flow, moves, run_moves, facts.foresight.queued):
            facts.catalog.runs_left, more = self._most, True
        if self._pauses and (changed := dict(self._pauses.all())):
            run_moves.holds.wake(selection.apply_pauses(facts.conn, changed))
            for run in facts.runs.values():
                run.is_paused = changed.get(run.dag_id, run.is_paused)
        return more


def _apply(
    facts: Facts, ledgers: Ledgers, locked: list[inbox.LockedRun], turn: inbox.Turn, taken: Rows[inbox.TakenReport]
) -> tuple[int, int, bool]:
    """Reports and timers of the locked runs; answers how many reports, how many of them stale, and whether there may be more."""
    if not locked:
        return 0, 0, False
    run_keys = [row.run_key for row in locked]
    share = max(1, TIMERS_PER_TURN // len(run_keys))
    due = inbox.take_timers(facts.conn, run_keys, share=share).all() if turn.timers else []
    timers = [timer for timer in due if not timer.is_void]
    reports = facts.scope.taken = taken.all()
    versions = facts.catalog.versions(facts.conn, (row.version_key for row in locked))
    cancels = {r.run_key: r for r in reports if r.kind == "cancel"}
    for row in locked:
        run = Run.of(row, versions[row.version_key])
        run.cancelled = row.cancelled_by is not None or row.run_key in cancels
        run.cancelled_by, run.is_paused = row.cancelled_by, row.is_paused
        run.unfinished, run.disturbed = row.unfinished, row.branched or run.disturbed
        facts.runs[row.run_key] = run
        if row.clears:
            facts.catalog.forget_older(row.run_key, row.clears)
        facts.foresight.teach(facts.catalog, row.run_key, versions[row.version_key])
    flow, moves, messages = ledgers.flow, ledgers.moves, ledgers.messages
    dispatches, deferrals = ledgers.dispatches, ledgers.deferrals
    states = {row.run_key: RunState(row.state) for row in locked}
    timers = stop_overdue(facts, messages, miss_deadlines(facts, messages, timers, states)) if timers else timers
    already = {row.run_key for row in locked if row.cancelled_by is not None}
    for run_key, report in cancels.items():
        if run_key in already:
            if states[run_key] is RunState.RUNNING:
                end_part(facts, flow, dispatches, deferrals, facts.runs[run_key])
            continue
        actor = str((report.payload or {}).get("actor", "somebody"))
        cancel_run(facts, ledgers, facts.runs[run_key], states[run_key], actor)
    operations = [r for r in reports if r.kind == OPERATE]
    for report in operations:
        facts.runs[report.run_key].disturbed = True
        operate(facts, ledgers, facts.runs[report.run_key], states[report.run_key], report)
        look_again(messages, facts.runs[report.run_key])
    for report in reports:
        if report.kind == SETTLE and states[report.run_key] is RunState.RUNNING:
            settle_on(facts, flow, moves, facts.runs[report.run_key], report)
    apply_word(facts, flow, moves, [r for r in reports if r.kind in KINDS])
    others = [r for r in reports if r.kind not in ("cancel", OPERATE, SETTLE, *KINDS)]
    others = end_intended(facts, flow, dispatches, deferrals, others)
    stale = apply_reports(facts, flow, dispatches, deferrals, others)
    if moves.voided:
        timers = [timer for timer in timers if (timer.run_key, timer.task_index, timer.map_index) not in moves.voided]
    apply_timers(facts, dispatches, deferrals, timers)
    decide(facts, moves, propagate(flow))
    is_full = len(reports) == REPORTS_PER_TURN or share in Counter(timer.run_key for timer in due).values()
    return len(reports), stale, bool(cancels or operations) or is_full


def _end_runs(run_moves: RunMoves, finished: Rows[runs.CountedRun] | None) -> bool:
    """Ends the runs of which nothing is left. Whether that lets queued runs start."""
    room = False
    reason: str | None
    for run in finished.all() if finished else ():
        if run.unfinished > 0:
            continue
        if run.cancelled_by is not None:
            event, reason = RunEvent.CANCEL, by_cancel(run.cancelled_by)
        elif run.interrupted:
            event, reason = RunEvent.FAIL, INTERRUPTED
        else:
            event, reason = RunEvent.FAIL if run.failed_leaves else RunEvent.SUCCEED, None
        run_moves.end(run.run_key, RunState.RUNNING, event, "scheduler", reason)
        if run.slot_limit is not None:
            run_moves.holds.give(run.slot_limit)
            room = room or run.others_wait
    return room


def _wake_ended(facts: Facts, run_moves: RunMoves) -> None:
    """Limits of runs that ended go with the wakes that name them: only the holder of the executor's lock deletes limits."""
    ended = [run_key for run_key, _, _ in run_moves.ended]
    facts.catalog.load_run_limits(facts.conn, ended)
    for run_key in ended:
        run_moves.holds.wake(facts.catalog.run_limits(run_key).values())
