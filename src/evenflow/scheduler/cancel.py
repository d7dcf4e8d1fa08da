"""Ending a run early: what has not started is skipped, what runs is killed, and the run fails when the last try has ended.

From the first transaction on nothing of it starts, and all its processes are told to end. Of its task instances each transaction
ends so many, from the last tasks to the first; while there are more it leaves another cancel in the inbox. Whoever dies in
between, that cancel is there. What is said of the run meanwhile ends what it is about, and nothing else: the cancel comes to it.

What is deferred waits no more; where it has left something outside, a worker stops that first, and it counts as running until then.
Teardowns are spared: each is decided when all that it waits for has ended, as ever, so what a setup has made is cleaned up. What
stands between a try that is being killed and a teardown waits too: else the teardown would not know of the try. Therefore what
waits for its upstreams in a run with teardowns is ended by the last part, in one transaction.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from evenflow.core.deferral import Purpose
from evenflow.core.limits import CHANGED_PER_TURN
from evenflow.core.model import UNMAPPED
from evenflow.core.operations import cancel_reason
from evenflow.core.states import FINISHED, RunEvent, RunState, TaskEvent, TaskState
from evenflow.scheduler.deferrals import clean_up, stop_waiting
from evenflow.scheduler.facts import Facts, Run
from evenflow.scheduler.ledgers import Ledgers
from evenflow.scheduler.ledgers.mapped_tasks import MappedTasks, Rest
from evenflow.scheduler.ledgers.messages import Messages
from evenflow.scheduler.ledgers.moves import Item, Moves
from evenflow.scheduler.ledgers.offers import Offers
from evenflow.store import deferrals as stored
from evenflow.store import operations, past, runs, selection, tasks

_UNTOUCHED = (TaskState.NONE, TaskState.SCHEDULED)
_UNFINISHED = frozenset(TaskState) - FINISHED - {TaskState.REMOVED}


def cancelled(actor: str) -> str:
    return f"cancelled by {actor}"


def stop_run(facts: Facts, messages: Messages, failed: Item) -> None:
    """Ends the run of a DAG with ``fail_fast`` for this failure. Nothing more starts in this transaction; the rest is for the
    holder of the executor's lock, who finds a cancel in the inbox.
    """
    run = facts.runs[failed.run_key]
    spec = run.graph.task(failed.task_index)
    decisive = not spec.teardown or spec.on_failure_fail_dagrun
    if failed.state is TaskState.FAILED and decisive and not run.cancelled:
        run.cancelled = True
        messages.stops.append((run.run_key, f"fail_fast (task {spec.task_id!r} failed)"))


def cancel_run(facts: Facts, ledgers: Ledgers, run: Run, state: RunState, actor: str) -> None:
    """Comes before the reports of the same transaction, with ``run`` already marked as cancelled. Costs what it ends.

    What waits for a worker is locked before anything is decided about it, so that no worker claims it meanwhile.
    """
    conn = facts.conn
    if state is RunState.QUEUED:
        runs.mark_cancelled(conn, run.run_key, actor)
        if run.clears:
            _skip_cleared(facts, run, actor)
        ledgers.run_moves.end(run.run_key, state, RunEvent.CANCEL, actor, cancelled(actor))
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
    end_part(facts, ledgers, run, {TaskState.QUEUED})  # what could be claimed first


def end_part(facts: Facts, ledgers: Ledgers, run: Run, first: Collection[TaskState] = ()) -> None:
    """Ends some more of a run that is being cancelled, what is in the states ``first`` before the rest, and asks for the next part.
    Costs what it ends, whatever is left.
    """
    spared = _teardowns(run)
    later = _UNFINISHED - set(first) - ({TaskState.NONE} if spared else set())
    rows: list[tasks.Unfinished] = []
    for states in (first, later):
        if states and (room := CHANGED_PER_TURN - len(rows)):
            rows += tasks.read_unfinished(facts.conn, run.run_key, states, limit=room, spared=spared).all()
    if spared and len(rows) < CHANGED_PER_TURN:
        _end_last(facts, ledgers, run)
        return
    _end(facts, ledgers, run, rows, set(), set())
    if len(rows) == CHANGED_PER_TURN:
        ledgers.messages.stops.append((run.run_key, str(run.cancelled_by)))
    else:
        _skip_rest(facts, ledgers.mapped, run, spared=())


def _end_last(facts: Facts, ledgers: Ledgers, run: Run) -> None:
    """What is left of a run that has teardowns. Lanes are those of teardowns that have become ready since."""
    conn = facts.conn
    ledgers.holds.wake(row[0] for row in selection.delete_run_lanes(conn, run.run_key).all())
    held = past.forget_gates(conn, run.run_key) if run.graph.past else set()
    rows = tasks.read_unfinished(conn, run.run_key, _UNFINISHED, limit=None).all()
    waits = _waits(run, rows)
    _end(facts, ledgers, run, rows, waits, held)
    untouched = _end_untouched(facts, ledgers.moves, ledgers.offers, run, waits)
    _skip_rest(facts, ledgers.mapped, run, spared=untouched)


def _teardowns(run: Run) -> list[int]:
    return [index for index, teardown in enumerate(run.graph.teardown) if teardown]


def _end(
    facts: Facts,
    ledgers: Ledgers,
    run: Run,
    rows: list[tasks.Unfinished],
    waits: set[tuple[int, int]],
    held: set[tuple[int, int]],
) -> None:
    """Ends these task instances, but for what ``waits`` for others to end; ``held`` are teardowns that waited for the past."""
    moves, dispatches, deferrals, actor = ledgers.moves, ledgers.dispatches, ledgers.deferrals, run.cancelled_by
    assert actor is not None
    deferred = [(run.run_key, row.task_index, row.map_index) for row in rows if row.has_deferred]
    waiting = stored.read_some(facts.conn, deferred) if deferred else {}
    for row in rows:
        item = moves.item(run.run_key, row.task_index, row.map_index, row.state, row.epoch, row.try_number)
        if run.graph.teardown[row.task_index]:
            _spare(ledgers.offers, item, waiting.get(item.key), held=item.key[1:] in held)
        elif _cleans_up(run, row):
            if row.purpose != Purpose.CLEAN_UP:
                holds = row.holds if item.state is TaskState.QUEUED else None
                clean_up(facts, dispatches, deferrals, item, waiting[item.key], cancelled(actor), holds=holds)
        elif item.state is TaskState.QUEUED and row.worker_id is None and row.holds is not None:
            dispatches.end(row.epoch, row.holds, row.pool_slots or 0, facts.now_s)
            _cancel(moves, item, row)
            if row.has_deferred:
                deferrals.ended.append(item.key)
        elif item.state in (TaskState.QUEUED, TaskState.RUNNING):
            if row.purpose != Purpose.CLEAN_UP:
                dispatches.kills.append(row.epoch)
        elif item.state is TaskState.NONE and (row.task_index, row.map_index) in waits:
            continue
        elif item.state not in FINISHED:
            if item.key in waiting:
                stop_waiting(facts, ledgers.holds, deferrals, waiting[item.key])
            _cancel(moves, item, row)


def _cancel(moves: Moves, item: Item, row: tasks.Unfinished) -> None:
    """It has failed if a process of it ran, and is skipped if none was ever started."""
    waited = item.state not in (TaskState.NONE, TaskState.SCHEDULED, TaskState.QUEUED)
    moves.give_up(item, TaskEvent.CANCEL if row.has_run or waited else TaskEvent.WITHDRAW)


def _skip_rest(facts: Facts, mapped: MappedTasks, run: Run, *, spared: Iterable[int]) -> None:
    """What has no row ends all at once."""
    for task_index, rest in tasks.skip_rest(
        facts.conn, run.run_key, reason=f"{cancel_reason(str(run.cancelled_by))}.", spared=spared
    ).all():
        mapped.rests.append(Rest(run.run_key, task_index, rest, TaskState.SKIPPED))


def _end_untouched(facts: Facts, moves: Moves, offers: Offers, run: Run, waits: set[tuple[int, int]]) -> list[int]:
    """Of tasks that are expanded together with teardowns: untouched instances are skipped one by one, because each teardown waits
    for those of its own index. Answers these tasks; what of them has no row now waits.
    """
    graph = run.graph
    beside = [(run.run_key, index) for span in graph.spans if graph.tears_down(span) for index in span.tasks]
    mapped = [row for row in tasks.read_mapped(facts.conn, beside).all() if row.rest in _UNTOUCHED] if beside else []
    keys = [(row.run_key, row.task_index) for row in mapped]
    begun = {row.key for row in tasks.read_touched(facts.conn, keys).all() if row.state is not None} if keys else set()
    for row in mapped:
        for map_index in range(row.length):
            key = (row.run_key, row.task_index, map_index)
            scheduled = row.rest == TaskState.SCHEDULED
            if (
                key in begun
                or key[1:] in waits
                or (row.task_index, UNMAPPED) in waits
                or (graph.teardown[row.task_index] and not scheduled)
            ):
                continue
            item = moves.new_item(*key)
            if graph.teardown[row.task_index]:
                offers.ready.append(item)
            else:
                moves.give_up(item, TaskEvent.WITHDRAW)
    return [row.task_index for row in mapped]


def _cleans_up(run: Run, row: tasks.Unfinished) -> bool:
    """Whether it is no process that is to end, but has left something to stop."""
    return row.has_deferred and row.worker_id is None and run.graph.task(row.task_index).cleans_up


def _waits(run: Run, rows: list[tasks.Unfinished]) -> set[tuple[int, int]]:
    """What ends (task index, map index) when those end that are being killed, and not at once: the teardowns behind must not run
    before. Inside a group that is what has the same index.
    """
    graph = run.graph
    live: dict[int, set[int]] = {}
    for row in rows:
        killed = row.state == TaskState.RUNNING or (row.state == TaskState.QUEUED and row.worker_id is not None)
        if (killed or _cleans_up(run, row)) and not graph.teardown[row.task_index]:
            live.setdefault(row.task_index, set()).add(row.map_index)
    return {
        (between, map_index if graph.same_span(source, between) else UNMAPPED)
        for source, indexes in live.items()
        for between in graph.in_scopes({source})
        for map_index in indexes
    }


def _skip_cleared(facts: Facts, run: Run, actor: str) -> None:
    """A run that was cleared after its end and has not begun again: what waits in it is skipped."""
    reason = f"{cancel_reason(actor)}."
    change = operations.StateChange(TaskEvent.WITHDRAW, TaskState.SKIPPED, {TaskState.NONE}, False, reason, actor)
    operations.move_instances(facts.conn, run.run_key, [(i, None) for i in range(run.graph.n)], change, live=())
    tasks.skip_rest(facts.conn, run.run_key, reason=reason)
    operations.recount_run(facts.conn, run.run_key, [i for i in range(run.graph.n) if run.graph.leaf[i]])


def _spare(offers: Offers, teardown: Item, waiting: stored.Waiting | None, *, held: bool) -> None:
    """It goes on; one whose lane has just been deleted is offered again, as a return if it was one, and one that was ``held`` waits
    for the past no more.
    """
    if teardown.state is TaskState.SCHEDULED:
        if waiting is not None:
            offers.put_back(teardown, waiting.ready_at_s)
        else:
            offers.ready.append(teardown)
    elif teardown.state is TaskState.NONE and held:
        offers.gated.append(teardown)
