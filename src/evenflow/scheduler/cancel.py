"""Ending a run early: tasks that have not started are skipped, running ones are killed, and the run fails when the last try has
ended.

From the first transaction on no task of the run starts, and all its processes are told to end. Each transaction ends a part of its
task instances, from the last tasks to the first; while there are more it leaves another cancel in the inbox. That cancel is there
even if the scheduler dies in between. A report that comes meanwhile ends only its own task instance; the cancel ends the others.

A deferred task ends, too. If it has left work outside, a worker stops that first, and the task counts as running until then.
:mod:`evenflow.core.flow.cancel` decides how each instance ends. Teardowns depend on that: therefore the last part ends, in one
transaction, all tasks that wait for their upstreams in a run with teardowns.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from evenflow.core.flow.cancel import VIRTUAL_WITHDRAWALS, Fate, Unfinished, end, end_virtual, fate_of, waiting_for_killed
from evenflow.core.flow.changes import StateChange
from evenflow.core.flow.past import let_through
from evenflow.core.flow.state import Flow, MappedTasks, VirtualEnd
from evenflow.core.limits import CHANGED_PER_TURN
from evenflow.core.operations import by_cancel, cancel_reason
from evenflow.core.states import FINISHED, Ender, RunEvent, RunState, TaskEvent, TaskState, move
from evenflow.scheduler.answers import decide
from evenflow.scheduler.deferrals import clean_up, stop_waiting
from evenflow.scheduler.facts import Facts, Run
from evenflow.scheduler.ledgers import Ledgers
from evenflow.scheduler.ledgers.deferrals import Deferrals
from evenflow.scheduler.ledgers.dispatches import Dispatches
from evenflow.scheduler.ledgers.moves import Moves
from evenflow.store.scheduling import deferrals as stored
from evenflow.store.scheduling import operations, past, runs, selection, tasks
from evenflow.store.scheduling.tasks import Item

_UNFINISHED = frozenset(TaskState) - FINISHED


def cancel_run(facts: Facts, ledgers: Ledgers, run: Run, state: RunState, actor: str) -> None:
    """Begins a cancel. Comes before the reports of the same transaction, with ``run`` already marked as cancelled. Costs what it
    ends.

    Tries that wait for a worker are locked before anything is decided about them, so that no worker claims them meanwhile.
    """
    conn = facts.conn
    if state is RunState.QUEUED:
        runs.mark_cancelled(conn, run.run_key, actor)
        if run.clears:
            _skip_cleared(facts, run, actor)
        ledgers.run_moves.end(run.run_key, state, RunEvent.CANCEL, actor, by_cancel(actor))
        return
    if state is not RunState.RUNNING:
        return
    runs.mark_cancelled(conn, run.run_key, actor)
    run.cancelled_by = actor
    ledgers.run_moves.request_cancel(run.run_key, actor)
    ledgers.holds.wake(row[0] for row in selection.delete_run_lanes(conn, run.run_key).all())
    if run.graph.past and run.ends_in_parts:
        past.forget_gates(conn, run.run_key)
    ledgers.dispatches.kills += tasks.find_processes(conn, run.run_key, spared=_teardowns(run))
    end_part(facts, ledgers.flow, ledgers.dispatches, ledgers.deferrals, run, {TaskState.QUEUED})  # what could be claimed first


def end_part(
    facts: Facts,
    flow: Flow[Item],
    dispatches: Dispatches,
    deferrals: Deferrals,
    run: Run,
    first: Collection[TaskState] = (),
) -> None:
    """Ends another part of a run that is being cancelled, instances in the states ``first`` before the others, and asks for the
    next part. Costs what it ends, however much is left.
    """
    spared = _teardowns(run)
    later = _UNFINISHED - set(first) - ({TaskState.NONE} if spared else set())
    rows: list[Unfinished] = []
    for states in (first, later):
        if states and (room := CHANGED_PER_TURN - len(rows)):
            rows += tasks.read_unfinished(facts.conn, run.run_key, states, limit=room, spared=spared).all()
    if spared and len(rows) < CHANGED_PER_TURN:
        _end_last(facts, flow, dispatches, deferrals, run)
        return
    _end(facts, flow, dispatches, deferrals, run, rows, set(), set())
    if len(rows) == CHANGED_PER_TURN:
        dispatches.moves.messages.stops.append((run.run_key, str(run.cancelled_by)))
    else:
        _skip_virtual(facts, flow.mapped, run, spared=())


def _end_last(facts: Facts, flow: Flow[Item], dispatches: Dispatches, deferrals: Deferrals, run: Run) -> None:
    """Ends the last part of a run that has teardowns. Its lanes contain teardowns that have become ready since."""
    conn = facts.conn
    dispatches.holds.wake(row[0] for row in selection.delete_run_lanes(conn, run.run_key).all())
    held = past.forget_gates(conn, run.run_key) if run.graph.past else set()
    rows = tasks.read_unfinished(conn, run.run_key, _UNFINISHED, limit=None).all()
    waits = waiting_for_killed(run, rows)
    _end(facts, flow, dispatches, deferrals, run, rows, waits, held)
    beside = [index for region in run.graph.regions if run.graph.tears_down(region) for index in region.tasks]
    spared = decide(facts, dispatches.moves, end_virtual(flow, run, beside, waits))
    _skip_virtual(facts, flow.mapped, run, spared=spared)


def _teardowns(run: Run) -> list[int]:
    return [index for index, teardown in enumerate(run.graph.teardown) if teardown]


def _end(
    facts: Facts,
    flow: Flow[Item],
    dispatches: Dispatches,
    deferrals: Deferrals,
    run: Run,
    rows: list[Unfinished],
    waits: set[tuple[int, int]],
    held: set[tuple[int, int]],
) -> None:
    """Ends these task instances, except what ``waits`` for others to end; ``held`` are teardowns that waited for the past."""
    actor = run.cancelled_by
    assert actor is not None
    deferred = [(run.run_key, row.task_index, row.map_index) for row in rows if row.has_deferred]
    waiting = stored.read_some(facts.conn, deferred) if deferred else {}
    for row in rows:
        item = dispatches.moves.item(run.run_key, row.task_index, row.map_index, row.state, row.epoch, row.try_number)
        match fate_of(run, row, item.state, waits):
            case Fate.SPARE:
                _spare(flow, dispatches.moves, item, waiting.get(item.key), held=item.key[1:] in held)
            case Fate.CLEAN_UP:
                holds = row.holds if item.state is TaskState.QUEUED else None
                clean_up(facts, dispatches, deferrals, item, waiting[item.key], by_cancel(actor), holds=holds)
            case Fate.VOID:
                assert row.holds is not None
                dispatches.end(row.epoch, row.holds, row.pool_slots or 0, facts.now_s)
                end(flow, item, has_run=row.has_run)
                if row.has_deferred:
                    deferrals.ended.append(item.key)
            case Fate.KILL:
                dispatches.kills.append(row.epoch)
            case Fate.END:
                if item.key in waiting:
                    stop_waiting(facts, dispatches.holds, deferrals, waiting[item.key])
                end(flow, item, has_run=row.has_run)
            case Fate.LEAVE:
                pass


def _skip_virtual(facts: Facts, mapped: MappedTasks, run: Run, *, spared: Iterable[int]) -> None:
    """Virtual instances end all at once."""
    reason = f"{cancel_reason(str(run.cancelled_by))}."
    for task_index, instances in tasks.skip_virtual(facts.conn, run.run_key, reason=reason, spared=spared).all():
        mapped.ended.append(VirtualEnd(run.run_key, task_index, instances, VIRTUAL_WITHDRAWALS[TaskState.NONE]))


def _skip_cleared(facts: Facts, run: Run, actor: str) -> None:
    """A run that was cleared after its end and has not begun again: what waits in it is skipped."""
    reason = f"{cancel_reason(actor)}."
    state = move(TaskState.NONE, TaskEvent.WITHDRAW)
    change = StateChange(TaskEvent.WITHDRAW, state, frozenset({TaskState.NONE}), actor, reason, Ender.CANCEL)
    operations.move_instances(facts.conn, run.run_key, [(i, None) for i in range(run.graph.n)], change, live=())
    tasks.skip_virtual(facts.conn, run.run_key, reason=reason)
    leaves = [i for i in range(run.graph.n) if run.graph.leaf[i]]
    run.unfinished = operations.recount_run(facts.conn, run.run_key, leaves).unfinished


def _spare(flow: Flow[Item], moves: Moves, teardown: Item, waiting: stored.Waiting | None, *, held: bool) -> None:
    """Lets a teardown continue. If its lane has just been deleted it is offered again, as a resume if it was one; if it was
    ``held`` it no longer waits for the past.
    """
    if teardown.state is TaskState.SCHEDULED:
        if waiting is not None:
            moves.offers.put_back(teardown, waiting.ready_at_s)
        else:
            moves.offers.ready.append(teardown)
    elif held:
        let_through(flow, [teardown])
