"""How task instances and runs move: each row is written once, however often it moved, and each move goes into history."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from evenflow.core import callbacks
from evenflow.core.flow.state import InstanceKey
from evenflow.core.limits import MAX_REASON
from evenflow.core.model import UNMAPPED
from evenflow.core.states import FINISHED, Ender, RunEvent, RunState, TaskEvent, TaskState, move, move_run
from evenflow.scheduler.facts import Facts
from evenflow.scheduler.ledgers.holds import Holds
from evenflow.scheduler.ledgers.messages import Messages
from evenflow.store.db.rows import Conn, Rows
from evenflow.store.scheduling import runs, tasks
from evenflow.store.scheduling.tasks import Item

_STATES = {state.value: state for state in TaskState}


@dataclass(slots=True)
class Offers:
    """What may begin. Nothing of it is written here: what does not start becomes lanes (:mod:`evenflow.scheduler.candidates`)."""

    ready: list[Item] = field(default_factory=list)  # candidates for the round
    # Of the items in ``ready`` that resume: when each was queued first.
    resuming: dict[InstanceKey, float] = field(default_factory=dict)
    # For those that wait in another queue than their task's own: the queue.
    elsewhere: dict[InstanceKey, str] = field(default_factory=dict)

    def put_back(self, item: Item, queued_at_s: float) -> None:
        """It resumes in the ordinary way, and keeps the place of the time at which it was queued first."""
        self.ready.append(item)
        self.resuming[item.key] = queued_at_s


@dataclass(slots=True)
class Moves:
    """Of task instances."""

    facts: Facts
    messages: Messages
    offers: Offers
    items: dict[InstanceKey, Item] = field(default_factory=dict)
    wave: list[Item] = field(default_factory=list)  # finished, not yet counted downstream
    gone: set[InstanceKey] = field(default_factory=set)  # rows of mapped tasks that have been expanded
    voided: set[InstanceKey] = field(default_factory=set)  # people moved them, so their timers mean nothing any more
    count: int = 0
    _events: list[tasks.Event] = field(default_factory=list)
    _reasons: list[tuple[int, int, int, str, str | None]] = field(default_factory=list)

    def item(self, run_key: int, task_index: int, map_index: int, state: str, epoch: int, try_number: int) -> Item:
        """The task instance, as this transaction has it; the arguments say how the database has it."""
        key = (run_key, task_index, map_index)
        found = self.items.get(key)
        if found is None:
            now = _STATES[state]
            found = self.items[key] = Item(run_key, task_index, map_index, now, epoch, try_number, now, epoch)
        return found

    def surmise(self, run_key: int, task_index: int) -> None:
        """Knows an instance from now on that waits as it was made."""
        self.item(run_key, task_index, UNMAPPED, TaskState.NONE, 0, 0)

    def new_item(self, run_key: int, task_index: int, map_index: int = UNMAPPED, tries_before: int = 0) -> Item:
        item = Item(run_key, task_index, map_index, TaskState.NONE, 0, tries_before, tries_before=tries_before)
        self.items[run_key, task_index, map_index] = item
        return item

    def apply(self, item: Item, event: TaskEvent, detail: dict[str, Any] | None = None) -> None:
        """Move a task instance, and write it into history. A finished one joins the wave."""
        was = item.state
        state = item.state = move(was, event)
        if item.last is not None:
            self._events.append(item.last)
        text = json.dumps(detail) if detail else None
        item.last = tasks.Event(item.run_key, item.task_index, item.map_index, state, item.epoch, item.try_number, event, text)
        self.count += 1
        if state in FINISHED:
            self.wave.append(item)
        run = self.facts.runs.get(item.run_key)  # None: a stored lane of another run is granted
        if run is not None and (calls := run.graph.calls):
            self._call_back(item, calls.get(item.task_index, {}), callbacks.of_move(was, event, state), detail)

    def _call_back(
        self, item: Item, calls: dict[callbacks.Callback, int], event: callbacks.Callback | None, detail: dict[str, Any] | None
    ) -> None:
        if event is not None:
            reason = (detail or {}).get("reason")
            for position in range(calls.get(event, 0)):
                of = callbacks.CallbackOf(event=event, position=position, state=item.state, reason=reason)
                self.messages.calls.append(callbacks.CallbackCall(*item.key, item.try_number, of))

    def explain(self, item: Item, reason: str, ended_by: Ender | None = None) -> None:
        self._reasons.append((*item.key, reason[:MAX_REASON], ended_by))

    def write(self, conn: Conn) -> None:
        born: list[Item] = []
        moved: list[Item] = []
        for key, item in self.items.items():
            if key not in self.gone:
                if item.was_state is None:
                    born.append(item)
                elif item.state is not item.was_state and item.state is not TaskState.QUEUED:  # that is written with its dispatch
                    moved.append(item)
                    continue
            if item.last is not None:
                self._events.append(item.last)
        if self._events:
            tasks.append_events(conn, self._events)
        if born:
            tasks.insert_instances(conn, born)
        if moved:
            tasks.move(conn, moved)
        if self._reasons:
            tasks.set_reasons(conn, self._reasons)


@dataclass(slots=True)
class RunMoves:
    """Of runs, and how much of each is left to do."""

    facts: Facts
    messages: Messages
    holds: Holds
    finished: dict[int, list[int]]  # by run: how many instances, and how many leaves that failed
    ended: list[tuple[int, str, str | None]] = field(default_factory=list)  # run_key, state, reason
    _events: list[tuple[int, str, str, str]] = field(default_factory=list)

    def apply(self, run_key: int, state: RunState, event: RunEvent, actor: str) -> RunState:
        after = move_run(state, event)
        self._events.append((run_key, event, after, actor))
        return after

    def request_cancel(self, run_key: int, actor: str) -> None:
        """It runs on until all of it has ended."""
        self._events.append((run_key, "cancel_requested", RunState.RUNNING, actor))

    def end(self, run_key: int, state: RunState, event: RunEvent, actor: str, reason: str | None) -> None:
        after = self.apply(run_key, state, event, actor)
        self.ended.append((run_key, after, reason))
        self.call_back(run_key, after, reason)

    def call_back(self, run_key: int, after: RunState, reason: str | None) -> None:
        called = callbacks.of_run(after)
        why = reason or ("success" if after is RunState.SUCCESS else "task_failure")  # as in Airflow
        for position in range(self.facts.runs[run_key].graph.spec.callbacks.count(called)):
            self.messages.call_of_run(run_key, called, position, after, why)

    def count_down(self, conn: Conn) -> Rows[runs.CountedRun] | None:
        """Takes finished instances off their runs; returns what is left of the runs if any may be over."""
        counts = [(run_key, n, leaves) for run_key, (n, leaves) in self.finished.items()]
        counted = runs.count_down(conn, counts) if counts else None
        return counted if any(self._may_be_over(run_key, n) for run_key, n, _ in counts) else None

    def _may_be_over(self, run_key: int, finished: int) -> bool:
        unfinished = self.facts.runs[run_key].unfinished
        return unfinished is None or unfinished <= finished

    def write(self, conn: Conn) -> None:
        if self._events:
            runs.append_events(conn, self._events)

    def write_ends(self, conn: Conn) -> None:
        """Comes when all else is written."""
        if self.ended:
            runs.finish(conn, self.ended)
