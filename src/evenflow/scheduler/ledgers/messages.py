"""What this transaction leaves for later ones to do, at once or at a moment to come, and what other runs and DAGs are to hear."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from evenflow.core.callbacks import Callback, CallbackCall, CallbackOf
from evenflow.core.model import UNMAPPED
from evenflow.store.db.rows import Conn
from evenflow.store.scheduling import assets, inbox, runs, tasks
from evenflow.store.serving import callbacks


@dataclass(slots=True)
class Messages:
    decisions: list[tuple[int, int, int, list[int]]] = field(default_factory=list)  # branches, and the task indexes that they skip
    stops: list[tuple[int, str]] = field(default_factory=list)  # run_key, why it is to be cancelled
    unsettled: dict[int, tuple[int, int]] = field(default_factory=dict)  # by run: behind which instance what waits is to be judged
    calls: list[CallbackCall] = field(default_factory=list)  # of authors' functions
    retries: list[tasks.Retry] = field(default_factory=list)
    reschedules: list[tasks.Retry] = field(default_factory=list)
    produced: list[assets.Produced] = field(default_factory=list)
    watched: set[tuple[int, int]] = field(default_factory=set)  # run_key, task_index: tasks at which runs that wait are to look
    overdue: dict[str, int] = field(default_factory=Counter)  # tries that no worker had claimed in time, by what became of them
    others_have_word: bool = False  # runs that others may apply have reports from here

    def call_of_run(self, run_key: int, event: Callback, position: int, state: str, reason: str) -> None:
        of = CallbackOf(event=event, position=position, state=state, reason=reason)
        self.calls.append(CallbackCall(run_key, None, UNMAPPED, 0, of))

    def write(self, conn: Conn) -> None:
        """Writes everything but reports to other runs: these follow once their subject is written
        (:mod:`evenflow.scheduler.past`).
        """
        if self.decisions:
            runs.keep_decisions(conn, self.decisions)
        if self.stops:
            inbox.insert_cancels(conn, self.stops)
        if self.unsettled:
            inbox.insert_settles(conn, self.unsettled)
        if self.calls:
            callbacks.insert_runs(conn, self.calls)
        if self.retries:
            tasks.insert_retries(conn, self.retries)
        if self.reschedules:
            tasks.insert_reschedules(conn, self.reschedules)
        if self.produced:
            assets.record_events(conn, self.produced)
