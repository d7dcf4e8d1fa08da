"""What the runs of a DAG may not do: take too long, and fail one after the other."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from evenflow.core.states import RunState
from evenflow.scheduler.batch import Batch, Run
from evenflow.store import runs
from evenflow.store.inbox import TakenTimer

RUN_TIMEOUT = "run_timeout"  # kind of a timer


def insert_timeouts(batch: Batch, started: Iterable[Run]) -> None:
    """``dagrun_timeout`` counts from the start of a run."""
    timeouts = [(run.run_key, run.graph.spec.dagrun_timeout) for run in started]
    if found := [(run_key, seconds) for run_key, seconds in timeouts if seconds is not None]:
        runs.insert_timeouts(batch.conn, found)


def stop_overdue(batch: Batch, timers: Iterable[TakenTimer]) -> list[TakenTimer]:
    """Asks for the end of runs that take too long, as an operator would; answers the other timers."""
    others = []
    for timer in timers:
        if timer.kind == RUN_TIMEOUT:
            seconds = batch.runs[timer.run_key].graph.spec.dagrun_timeout or 0.0
            batch.stops.append((timer.run_key, f"its dagrun_timeout of {timedelta(seconds=seconds)}"))
        else:
            others.append(timer)
    return others


def pause_failing(batch: Batch) -> None:
    """``max_consecutive_failed_dag_runs``. Comes when the ends of runs are written; DAGs are locked after all else."""
    if found := failing(batch):
        runs.pause_failing(batch.conn, found)


def failing(batch: Batch) -> list[tuple[str, int]]:
    """DAGs of which a run has failed here and that are paused after so many."""
    failed = [batch.runs[run_key] for run_key, state, _ in batch.ended_runs if state == RunState.FAILED]
    limits = [(run.dag_id, run.graph.spec.max_consecutive_failed_dag_runs) for run in failed]
    return [(dag_id, most) for dag_id, most in limits if most]
