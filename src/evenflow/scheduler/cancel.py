"""Ending a run early: what has not started is skipped at once, what runs is killed, and the run fails when the last try has ended.

Teardowns are spared: each is decided when all that it waits for has ended, as ever, so what a setup has made is cleaned up.
What stands between a try that is being killed and a teardown waits too: else the teardown would not know of the try.
"""

from __future__ import annotations

from evenflow.core.model import UNMAPPED
from evenflow.core.states import FINISHED, RunEvent, RunState, TaskEvent, TaskState
from evenflow.scheduler.batch import Batch, Item, Run
from evenflow.store import operations, runs, selection, tasks


def cancelled(actor: str) -> str:
    return f"cancelled by {actor}"


def stop_run(batch: Batch, failed: Item) -> None:
    """Ends the run of a DAG with ``fail_fast`` for this failure. Nothing more starts in this transaction; the rest is for the
    holder of the executor's lock, who finds a cancel in the inbox.
    """
    run = batch.runs[failed.run_key]
    spec = run.graph.task(failed.task_index)
    decisive = not spec.teardown or spec.on_failure_fail_dagrun
    if failed.state is TaskState.FAILED and decisive and not run.cancelled:
        run.cancelled = True
        batch.stops.append((run.run_key, f"fail_fast (task {spec.task_id!r} failed)"))


def cancel_run(batch: Batch, run: Run, state: RunState, actor: str) -> None:
    """Comes before the reports of the same transaction, with ``run`` already marked as cancelled. Costs the size of the run, once.

    A worker that claims a try just as its dispatch is deleted here learns from its next beat that the try is void.
    """
    conn = batch.conn
    if state is RunState.QUEUED:
        runs.mark_cancelled(conn, run.run_key, actor)
        if run.clears:
            _skip_cleared(batch, run, actor)
        batch.end_run(run.run_key, state, RunEvent.CANCEL, actor, cancelled(actor))
        return
    if state is not RunState.RUNNING:
        return
    runs.mark_cancelled(conn, run.run_key, actor)
    batch.run_events.append((run.run_key, "cancel_requested", "running", actor))
    batch.wake(row[0] for row in selection.delete_run_lanes(conn, run.run_key).all())
    rows = tasks.read_unfinished(conn, run.run_key).all()
    waits = _waits(run, rows)
    for row in rows:
        item = batch.item(run.run_key, row.task_index, row.map_index, row.state, row.epoch, row.try_number)
        if run.graph.teardown[row.task_index]:
            _spare(batch, item)
        elif item.state is TaskState.QUEUED and row.worker_id is None and row.holds is not None:
            batch.ended_epochs.append(row.epoch)
            batch.release(row.holds, row.pool_slots or 0, batch.now_s)
            batch.apply(item, TaskEvent.CANCEL)
            batch.explain(item, f"The run was cancelled by {actor} before it started.")
        elif item.state in (TaskState.QUEUED, TaskState.RUNNING):
            batch.kills.append(row.epoch)
        elif item.state is TaskState.NONE and row.map_index == UNMAPPED and row.task_index in waits:
            continue
        elif item.state not in FINISHED:
            batch.apply(item, TaskEvent.CANCEL)
            batch.explain(item, f"The run was cancelled by {actor}.")
    for task_index, rest in tasks.skip_rest(conn, run.run_key).all():
        batch.count(run.run_key, rest)
        batch.rests.append((run.run_key, task_index, rest))


def _waits(run: Run, rows: list[tasks.Unfinished]) -> set[int]:
    """Tasks that end when those end that are being killed, and not at once: the teardowns behind them must not run before."""
    live = {
        row.task_index
        for row in rows
        if row.state == TaskState.RUNNING or (row.state == TaskState.QUEUED and row.worker_id is not None)
    }
    live -= {i for i in live if run.graph.teardown[i]}
    return {i for i in run.graph.in_scopes(live) if not run.graph.grouped(i)}


def _skip_cleared(batch: Batch, run: Run, actor: str) -> None:
    """A run that was cleared after its end and has not begun again: what waits in it is skipped."""
    reason = f"The run was cancelled by {actor}."
    change = operations.Change(TaskEvent.CANCEL, TaskState.SKIPPED, {TaskState.NONE}, False, reason, actor)
    operations.move_instances(batch.conn, run.run_key, [(i, None) for i in range(run.graph.n)], change, live=())
    tasks.skip_rest(batch.conn, run.run_key)
    operations.recount_run(batch.conn, run.run_key, [i for i in range(run.graph.n) if run.graph.leaf[i]])


def _spare(batch: Batch, teardown: Item) -> None:
    """It goes on; one whose lane has just been deleted is offered again."""
    if teardown.state is TaskState.SCHEDULED:
        batch.ready.append(teardown)
