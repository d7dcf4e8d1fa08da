"""Deadlines of runs: the one place that finds them missed. A timer that is void (the run has ended) does not come here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from evenflow.core.callbacks import Callback
from evenflow.core.states import RunState
from evenflow.scheduler.batch import Batch
from evenflow.store import callbacks
from evenflow.store.inbox import TakenTimer

DEADLINE = "deadline"


def miss_deadlines(batch: Batch, timers: Iterable[TakenTimer], states: Mapping[int, RunState]) -> list[TakenTimer]:
    """Writes each that is missed into the history of its run, and calls its functions. Answers the other timers."""
    others: list[TakenTimer] = []
    missed: list[tuple[int, str, float]] = []
    for timer in timers:
        if timer.kind != DEADLINE:
            others.append(timer)
            continue
        deadlines = batch.runs[timer.run_key].graph.spec.deadlines
        deadline = deadlines[timer.task_index]
        missed.append((timer.run_key, deadline.name, timer.due_at_s))
        due = datetime.fromtimestamp(timer.due_at_s, UTC).isoformat(timespec="seconds")
        reason = f"The run had not ended at {due}, the deadline {deadline.name!r}."
        before = sum(d.callbacks for d in deadlines[: timer.task_index])
        for position in range(before, before + deadline.callbacks):
            batch.call_back_of_run(timer.run_key, Callback.DEADLINE, position, states[timer.run_key], reason)
    if missed:
        callbacks.record_missed(batch.conn, missed)
    return others
