"""Cancelling a run: what has not started is skipped at once, what runs is killed, and the run fails when the last try has ended."""

from __future__ import annotations

from evenflow.core.states import RunEvent, RunState, TaskEvent, TaskState
from evenflow.core.trigger_rules import counted_as
from evenflow.scheduler.batch import Batch, Run
from evenflow.store import runs, selection, tasks


def cancelled(actor: str) -> str:
    return f"cancelled by {actor}"


def cancel_run(batch: Batch, run: Run, state: RunState, actor: str) -> None:
    """Comes before the reports of the same transaction, with ``run`` already marked as cancelled. Costs the size of the run, once.

    A worker that claims a try just as its dispatch is deleted here learns from its next beat that the try is void.
    """
    conn = batch.conn
    if state is RunState.QUEUED:
        runs.mark_cancelled(conn, run.run_key, actor)
        batch.end_run(run.run_key, state, RunEvent.CANCEL, actor, cancelled(actor))
        return
    if state is not RunState.RUNNING:
        return
    runs.mark_cancelled(conn, run.run_key, actor)
    batch.run_events.append((run.run_key, "cancel_requested", "running", actor))
    batch.wake(row[0] for row in selection.delete_run_lanes(conn, run.run_key).all())
    rows = tasks.read_unfinished(conn, run.run_key).all()
    for row in rows:
        item = batch.item(run.run_key, row.task_index, row.map_index, row.state, row.epoch, row.try_number)
        if item.state is TaskState.QUEUED and row.worker_id is None and row.holds is not None:
            batch.ended_epochs.append(row.epoch)
            batch.release(row.holds, row.pool_slots or 0, batch.now_s)
            batch.apply(item, TaskEvent.CANCEL)
            batch.explain(item, f"The run was cancelled by {actor} before it started.")
        elif item.state in (TaskState.QUEUED, TaskState.RUNNING):
            batch.kills.append(row.epoch)
        elif counted_as(item.state) == (0, 0, 0):
            batch.apply(item, TaskEvent.CANCEL)
            batch.explain(item, f"The run was cancelled by {actor}.")
    for _, rest in tasks.skip_rest(conn, run.run_key).all():
        batch.count(run.run_key, rest)
