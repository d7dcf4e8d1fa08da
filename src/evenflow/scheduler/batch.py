"""What one transaction has decided so far, in memory, and how it is written: each row once, however often it moved."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec import Struct

from evenflow.core.graph import Graph
from evenflow.core.limits import MAX_REASON
from evenflow.core.model import UNMAPPED
from evenflow.core.states import FINISHED, RunEvent, RunState, TaskEvent, TaskState, move, move_run
from evenflow.scheduler.catalog import Catalog, Place, Version
from evenflow.store import runs, tasks
from evenflow.store.rows import Conn, Guard

Key = tuple[int, int, int]  # run_key, task_index, map_index

FIRST_START = 1  # dispatch class; 0 is a return

_STATES = {state.value: state for state in TaskState}


@dataclass(slots=True)
class Run:
    """What deciding about a run's tasks needs of it."""

    run_key: int
    dag_id: str
    version: Version
    priority: int
    run_after_us: int
    is_paused: bool = False
    cancelled: bool = False
    new: bool = False  # created in this transaction
    ready_at_s: float = 0.0  # when the last thing was said that makes its tasks ready here, seconds since 1970

    @property
    def graph(self) -> Graph:
        return self.version.graph


class Item(Struct):
    """A task instance that this transaction changes. ``was_state`` is None for one that it creates."""

    run_key: int
    task_index: int
    map_index: int
    was_state: TaskState | None
    was_epoch: int
    state: TaskState
    epoch: int
    try_number: int
    losses: int = 0
    started_at: str | None = None  # instants, as the database writes them
    ended_at: str | None = None
    last: tasks.Event | None = None  # its last move, which is written together with it

    @property
    def key(self) -> Key:
        return (self.run_key, self.task_index, self.map_index)


@dataclass(slots=True)
class Expansion:
    """A mapped task that has just become ``length`` instances."""

    run_key: int
    task_index: int
    length: int


@dataclass(slots=True)
class Batch:
    conn: Conn
    catalog: Catalog
    now_s: float  # when the transaction began, seconds since 1970
    lanes: bool  # whether any are stored
    runs: dict[int, Run] = field(default_factory=dict)  # locked or created here
    items: dict[Key, Item] = field(default_factory=dict)
    wave: list[Item] = field(default_factory=list)  # finished, not yet counted downstream
    ready: list[Item] = field(default_factory=list)  # candidates for the round
    gone: set[Key] = field(default_factory=set)  # rows of mapped tasks that have been expanded
    expanded: list[Expansion] = field(default_factory=list)
    released: dict[int, int] = field(default_factory=lambda: defaultdict(int))  # by limit; 0 only wakes
    released_at: dict[int, float] = field(default_factory=dict)  # when the last of it was, seconds since 1970
    ended_epochs: list[int] = field(default_factory=list)
    dispatches: list[tasks.Dispatch] = field(default_factory=list)
    retries: list[tasks.Retry] = field(default_factory=list)
    events: list[tasks.Event] = field(default_factory=list)
    reasons: list[tuple[int, int, int, str]] = field(default_factory=list)
    run_events: list[tuple[int, str, str, str]] = field(default_factory=list)
    ended_runs: list[tuple[int, str, str | None]] = field(default_factory=list)  # run_key, state, reason
    finished: dict[int, list[int]] = field(default_factory=dict)  # run_key: [instances, failed leaves]
    kills: list[int] = field(default_factory=list)
    guards: list[Guard] = field(default_factory=list)
    moves: int = 0

    def item(self, run_key: int, task_index: int, map_index: int, state: str, epoch: int, try_number: int) -> Item:
        """The task instance, as this transaction has it; the arguments say how the database has it."""
        key = (run_key, task_index, map_index)
        found = self.items.get(key)
        if found is None:
            now = _STATES[state]
            found = self.items[key] = Item(run_key, task_index, map_index, now, epoch, now, epoch, try_number)
        return found

    def new_item(self, run_key: int, task_index: int, map_index: int = UNMAPPED) -> Item:
        item = self.items[run_key, task_index, map_index] = Item(run_key, task_index, map_index, None, 0, TaskState.NONE, 0, 0)
        return item

    def apply(self, item: Item, event: TaskEvent, detail: dict[str, Any] | None = None) -> None:
        """Move a task instance, and write it into history. A finished one joins the wave."""
        state = item.state = move(item.state, event)
        if item.last is not None:
            self.events.append(item.last)
        text = json.dumps(detail) if detail else None
        item.last = tasks.Event(item.run_key, item.task_index, item.map_index, item.epoch, item.try_number, event, state, text)
        self.moves += 1
        if state in FINISHED:
            self.wave.append(item)

    def dispatch(
        self,
        item: Item,
        event: TaskEvent,
        place: Place,
        holds: Sequence[int],
        *,
        run_priority: int,
        avoid: int = 0,
        detail: dict[str, Any] | None = None,
    ) -> None:
        """Move a task instance to the workers under a fresh epoch. Its history is written with its dispatch."""
        item.epoch = self.catalog.epochs.take(self.conn)
        self.apply(item, event, detail)
        last, item.last = item.last, None
        assert last is not None
        self.dispatches.append(
            tasks.Dispatch(
                item.epoch,
                item.run_key,
                item.task_index,
                item.map_index,
                item.try_number,
                FIRST_START,
                (run_priority << 32) + place.priority,
                place.node.queue,
                holds,
                place.node.weight,
                avoid,
                event,
                last.detail,
            )
        )

    def explain(self, item: Item, reason: str) -> None:
        self.reasons.append((*item.key, reason[:MAX_REASON]))

    def apply_run(self, run_key: int, state: RunState, event: RunEvent, actor: str) -> RunState:
        after = move_run(state, event)
        self.run_events.append((run_key, event, after, actor))
        return after

    def end_run(self, run_key: int, state: RunState, event: RunEvent, actor: str, reason: str | None) -> None:
        self.ended_runs.append((run_key, self.apply_run(run_key, state, event, actor), reason))

    def count(self, run_key: int, finished: int, failed_leaves: int = 0) -> None:
        """Take instances off what is unfinished of a run; a negative number adds them."""
        entry = self.finished.setdefault(run_key, [0, 0])
        entry[0] += finished
        entry[1] += failed_leaves

    def release(self, holds: list[int], pool_slots: int, at_s: float) -> None:
        """Give back what a dispatch held: the pool comes first. ``at_s`` says when that happened, seconds since 1970."""
        released, released_at, count = self.released, self.released_at, pool_slots
        for limit in holds:
            released[limit] += count
            count = 1
            if released_at.get(limit, 0.0) < at_s:
                released_at[limit] = at_s

    def wake(self, limits: Iterable[int]) -> None:
        """Have the round look at what is parked on these limits, although nothing was released."""
        for limit in limits:
            self.released[limit] += 0

    def end_dispatches(self) -> None:
        """Delete what has ended. Comes before new dispatches are written."""
        if self.ended_epochs:
            self.guards.append(tasks.delete_dispatches(self.conn, self.ended_epochs))

    def write(self) -> None:
        """Write everything but lanes and limits, which are the round's."""
        conn = self.conn
        if self.expanded:
            tasks.insert_mapped(conn, [(x.run_key, x.task_index, x.length) for x in self.expanded])
        born: list[tasks.Instance] = []
        moves: list[tasks.Move] = []
        for (run_key, task_index, map_index), item in self.items.items():
            if (run_key, task_index, map_index) in self.gone:
                continue
            last = item.last
            if item.was_state is None:
                born.append(tasks.Instance(run_key, task_index, map_index, item.state, item.epoch, item.try_number))
                if last is not None:
                    self.events.append(last)
            elif item.state is not item.was_state or item.epoch != item.was_epoch:
                moves.append(
                    tasks.Move(
                        run_key,
                        task_index,
                        map_index,
                        item.was_state,
                        item.was_epoch,
                        item.state,
                        item.epoch,
                        item.try_number,
                        item.losses,
                        item.started_at,
                        item.ended_at,
                        last.event if last else None,
                        last.detail if last else None,
                    )
                )
        if self.events:
            tasks.append_events(conn, self.events)
        if born:
            tasks.insert_instances(conn, born)
        if moves:
            self.guards.append(tasks.move(conn, moves))
        if self.reasons:
            tasks.set_reasons(conn, self.reasons)
        if self.dispatches:
            tasks.insert_dispatches(conn, self.dispatches)
        if self.kills:
            tasks.kill_dispatches(conn, self.kills)
        if self.retries:
            tasks.insert_retries(conn, self.retries)
        if self.run_events:
            runs.append_events(conn, self.run_events)
