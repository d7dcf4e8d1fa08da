"""What the runs of a DAG may not do: miss a deadline, take too long, and fail one after the other.

This is the one place that finds deadlines missed. A timer that is void (the run has ended) does not come here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta

from evenflow.core.callbacks import Callback
from evenflow.core.states import RunState
from evenflow.scheduler.facts import Facts, Run
from evenflow.scheduler.ledgers.messages import Messages
from evenflow.scheduler.ledgers.moves import RunMoves
from evenflow.store.scheduling import runs
from evenflow.store.scheduling.inbox import TakenTimer
from evenflow.store.serving import callbacks

RUN_TIMEOUT = "run_timeout"  # kinds of timers
DEADLINE = "deadline"


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
    """Asks for the end of runs that take too long, as an operator would; answers the other timers."""
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
    """DAGs of which a run has failed here and that are paused after so many."""
    failed = [facts.runs[run_key] for run_key, state, _ in run_moves.ended if state == RunState.FAILED]
    limits = [(run.dag_id, run.graph.spec.max_consecutive_failed_dag_runs) for run in failed]
    return [(dag_id, most) for dag_id, most in limits if most]
