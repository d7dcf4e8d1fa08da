"""What one transaction has decided so far, in memory, and how it is written: each row once, however often it moved."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec import Struct

from evenflow.core import callbacks
from evenflow.core.graph import Graph
from evenflow.core.limits import MAX_REASON
from evenflow.core.model import UNMAPPED
from evenflow.core.operations import CANCELLED, cancel_reason
from evenflow.core.selection import Node
from evenflow.core.service_states import ALL_OPEN, Closures
from evenflow.core.states import FINISHED, RunEvent, RunState, TaskEvent, TaskState, move, move_run
from evenflow.scheduler.catalog import Catalog, Place, Version
from evenflow.scheduler.scope import Scope
from evenflow.store import asset_runs, branches, deferrals, inbox, runs, tasks
from evenflow.store import callbacks as stored_calls
from evenflow.store.dispatch import FIRST_START, RETURN
from evenflow.store.rows import Conn, Guard

Key = tuple[int, int, int]  # run_key, task_index, map_index

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
    cancelled_by: str | None = None  # once that is written
    new: bool = False  # created in this transaction
    clears: int = 0  # how often operators touched it
    interrupted: bool = False  # some of it is as a cancel left it
    ready_at_s: float = 0.0  # when the last thing was said that makes its tasks ready here, seconds since 1970

    @property
    def graph(self) -> Graph:
        return self.version.graph

    @property
    def ends_in_parts(self) -> bool:
        """Whether a cancel ends what is left of it, so that nothing else decides about that. Where there are teardowns, they do."""
        return self.cancelled_by is not None and not self.graph.has_teardowns

    @property
    def why_skipped(self) -> str | None:
        """Why trigger rules skip something of it, if a cancel has to do with that. None: they alone say so."""
        if self.cancelled:
            return f"{cancel_reason(self.cancelled_by or 'fail_fast')}."
        return f"{CANCELLED}, and something that it waits for did not run." if self.interrupted else None

    def ends(self, task_index: int) -> bool:
        """Whether a cancel ends its instances, now or in a later part, so that none of them goes on."""
        return self.cancelled_by is not None and not self.graph.teardown[task_index]


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
    tries_before: int = 0  # tries begun before an operator cleared it
    started_at: str | None = None  # instants, as the database writes them
    ended_at: str | None = None
    last: tasks.Event | None = None  # its last move, which is written together with it

    @property
    def key(self) -> Key:
        return (self.run_key, self.task_index, self.map_index)


@dataclass(slots=True)
class Expansion:
    """A mapped task that has become ``length`` instances. ``rest`` is the state of those that have no row yet."""

    run_key: int
    task_index: int
    length: int
    rest: TaskState
    lane: bool = False  # in this transaction all its instances became ready, to be started in order
    tries_before: int = 0  # tries begun before it was cleared and expanded anew


@dataclass(slots=True, frozen=True)
class Rest:
    """Instances of a mapped task that have no row and have just ended, all in one ``state``."""

    run_key: int
    task_index: int
    instances: int
    state: TaskState


@dataclass(slots=True)
class Batch:
    conn: Conn
    catalog: Catalog
    now_s: float  # when the transaction began, seconds since 1970
    lanes: bool  # whether any are stored
    scope: Scope = field(default_factory=Scope)
    closures: Closures = ALL_OPEN
    runs: dict[int, Run] = field(default_factory=dict)  # locked or created here
    items: dict[Key, Item] = field(default_factory=dict)
    wave: list[Item] = field(default_factory=list)  # finished, not yet counted downstream
    ready: list[Item] = field(default_factory=list)  # candidates for the round
    gated: list[Item] = field(default_factory=list)  # ready, if the previous run lets them
    watched: set[tuple[int, int]] = field(default_factory=set)  # run_key, task_index: tasks at which runs that wait are to look
    others_have_word: bool = False  # runs that others may apply have reports from here
    offered: set[Key] = field(default_factory=set)  # of the items in ``ready`` that waited for upstreams
    gone: set[Key] = field(default_factory=set)  # rows of mapped tasks that have been expanded
    expanded: list[Expansion] = field(default_factory=list)  # made or changed here
    mapped: dict[tuple[int, int], Expansion] = field(default_factory=dict)  # run_key, task_index: what is known
    released: dict[int, int] = field(default_factory=lambda: defaultdict(int))  # by limit; 0 only wakes
    released_at: dict[int, float] = field(default_factory=dict)  # when the last of it was, seconds since 1970
    ended_epochs: list[int] = field(default_factory=list)
    dispatches: list[tasks.Dispatch] = field(default_factory=list)
    retries: list[tasks.Retry] = field(default_factory=list)
    reschedules: list[tasks.Retry] = field(default_factory=list)
    produced: list[asset_runs.Produced] = field(default_factory=list)
    events: list[tasks.Event] = field(default_factory=list)
    reasons: list[tuple[int, int, int, str]] = field(default_factory=list)
    run_events: list[tuple[int, str, str, str]] = field(default_factory=list)
    ended_runs: list[tuple[int, str, str | None]] = field(default_factory=list)  # run_key, state, reason
    finished: dict[int, list[int]] = field(default_factory=dict)  # run_key: [instances, failed leaves]
    kills: list[int] = field(default_factory=list)
    rests: list[Rest] = field(default_factory=list)  # not yet counted downstream
    decisions: list[tuple[int, int, int, list[int]]] = field(default_factory=list)  # branches, and the task indexes that they skip
    stops: list[tuple[int, str]] = field(default_factory=list)  # run_key, why it is to be cancelled
    unsettled: dict[int, tuple[int, int]] = field(default_factory=dict)  # by run: behind which instance what waits is to be judged
    intents: dict[int, dict[str, str]] = field(default_factory=dict)  # by epoch: what operators wanted in this transaction
    voided: set[Key] = field(default_factory=set)  # operators moved them, so their timers mean nothing any more
    calls: list[callbacks.Call] = field(default_factory=list)  # of authors' functions
    deferred: list[deferrals.Deferral] = field(default_factory=list)
    returns: list[deferrals.Return] = field(default_factory=list)  # of those that were deferred before
    doomed: list[deferrals.Return] = field(default_factory=list)  # of those in ``deferred`` that are to be cleaned up at once
    carried: dict[Key, tuple[int, int]] = field(default_factory=dict)  # from one epoch to another: returns keep their results
    ended_deferrals: list[Key] = field(default_factory=list)
    returning: dict[Key, float] = field(default_factory=dict)  # of the items in ``ready`` that return: when each was queued first
    cleaned: set[int] = field(default_factory=set)  # epochs, before this transaction, of what operators end and is cleaned up first
    directly: list[float] = field(default_factory=list)  # of returns straight to workers: seconds since their events
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

    def new_item(self, run_key: int, task_index: int, map_index: int = UNMAPPED, tries_before: int = 0) -> Item:
        item = Item(run_key, task_index, map_index, None, 0, TaskState.NONE, 0, tries_before, tries_before=tries_before)
        self.items[run_key, task_index, map_index] = item
        return item

    def expand(self, run_key: int, task_index: int, length: int, *, ready: bool) -> None:
        """A task becomes ``length`` instances, all of them ``ready`` or none yet; the row that stood for it goes."""
        rest = TaskState.SCHEDULED if ready else TaskState.NONE
        operator = self.items.get((run_key, task_index, UNMAPPED))
        tries_before = operator.try_number if operator else 0
        expansion = self.mapped[run_key, task_index] = Expansion(run_key, task_index, length, rest, ready, tries_before)
        self.expanded.append(expansion)
        self.gone.add((run_key, task_index, UNMAPPED))
        self.count(run_key, 1 - length)

    def settle_rest(self, expansion: Expansion, state: TaskState, *, lane: bool = False) -> None:
        """All instances of a mapped task that have no row become ready or end, in ``state``."""
        expansion.rest, expansion.lane = state, lane
        if not any(expansion is changed for changed in self.expanded):
            self.expanded.append(expansion)

    def apply(self, item: Item, event: TaskEvent, detail: dict[str, Any] | None = None) -> None:
        """Move a task instance, and write it into history. A finished one joins the wave."""
        was = item.state
        state = item.state = move(was, event)
        if item.last is not None:
            self.events.append(item.last)
        text = json.dumps(detail) if detail else None
        item.last = tasks.Event(item.run_key, item.task_index, item.map_index, item.epoch, item.try_number, event, state, text)
        self.moves += 1
        if state in FINISHED:
            self.wave.append(item)
        run = self.runs.get(item.run_key)  # None: a stored lane of another run is granted
        if run is not None and (calls := run.version.graph.calls):
            self._call_back(item, calls.get(item.task_index, {}), callbacks.of_move(was, event, state), detail)

    def _call_back(
        self, item: Item, calls: dict[callbacks.Callback, int], event: callbacks.Callback | None, detail: dict[str, Any] | None
    ) -> None:
        if event is not None:
            reason = (detail or {}).get("reason")
            for position in range(calls.get(event, 0)):
                self.calls.append(callbacks.Call(*item.key, item.try_number, event, position, item.state, reason))

    def call_back_of_run(self, run_key: int, event: callbacks.Callback, position: int, state: str, reason: str) -> None:
        self.calls.append(callbacks.Call(run_key, None, UNMAPPED, 0, event, position, state, reason))

    def dispatch(
        self,
        item: Item,
        event: TaskEvent,
        place: Place,
        holds: Sequence[int],
        *,
        run_priority: int,
        avoid: int = 0,
        dispatch_class: int = FIRST_START,
        detail: dict[str, Any] | None = None,
    ) -> None:
        """Move a task instance to the workers under a fresh epoch. Its history is written with its dispatch."""
        was, item.epoch = item.epoch, self.catalog.epochs.take(self.conn)
        if dispatch_class == RETURN:
            self.carried[item.key] = (self.carried.get(item.key, (was,))[0], item.epoch)
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
                dispatch_class,
                (run_priority << 32) + place.priority,
                place.node.queue,
                holds,
                place.node.weight,
                avoid,
                event,
                last.detail,
            )
        )

    def give_up(self, item: Item, event: TaskEvent) -> None:
        """What a trigger rule skips, or a cancel ends: by the reason it is known later."""
        self.apply(item, event)
        if why := self.runs[item.run_key].why_skipped:
            self.explain(item, why)

    def explain(self, item: Item, reason: str) -> None:
        self.reasons.append((*item.key, reason[:MAX_REASON]))

    def apply_run(self, run_key: int, state: RunState, event: RunEvent, actor: str) -> RunState:
        after = move_run(state, event)
        self.run_events.append((run_key, event, after, actor))
        return after

    def end_run(self, run_key: int, state: RunState, event: RunEvent, actor: str, reason: str | None) -> None:
        after = self.apply_run(run_key, state, event, actor)
        self.ended_runs.append((run_key, after, reason))
        self.call_back_of_end(run_key, after, reason)

    def call_back_of_end(self, run_key: int, after: RunState, reason: str | None) -> None:
        called = callbacks.of_run(after)
        why = reason or ("success" if after is RunState.SUCCESS else "task_failure")  # as in Airflow
        for position in range(self.runs[run_key].graph.spec.callbacks.count(called)):
            self.call_back_of_run(run_key, called, position, after, why)

    def count(self, run_key: int, finished: int, failed_leaves: int = 0) -> None:
        """Take instances off what is unfinished of a run; a negative number adds them."""
        entry = self.finished.setdefault(run_key, [0, 0])
        entry[0] += finished
        entry[1] += failed_leaves

    def release(self, holds: list[int], pool_slots: int, at_s: float) -> None:
        """Give back what a dispatch held: the pool comes first, where there are slots of it. ``at_s`` says when that happened, in
        seconds since 1970.
        """
        released, released_at, count = self.released, self.released_at, pool_slots or 1
        for limit in holds:
            released[limit] += count
            count = 1
            if released_at.get(limit, 0.0) < at_s:
                released_at[limit] = at_s

    def closes(self, node: Node) -> bool:
        """Whether nothing starts there for the first time."""
        return self.closures.close(node.pool_limit, node.executor_limit, node.queue)

    def wake(self, limits: Iterable[int]) -> None:
        """Have the round look at what is parked on these limits, although nothing was released."""
        for limit in limits:
            self.released[limit] += 0

    def end_dispatches(self) -> None:
        """Delete what has ended, and say what returns. Comes before new dispatches are written."""
        if self.ended_epochs:
            self.guards.append(tasks.delete_dispatches(self.conn, self.ended_epochs))
        if self.returns:
            self.guards.append(deferrals.return_all(self.conn, self.returns))
        if self.ended_deferrals:
            deferrals.delete_all(self.conn, self.ended_deferrals)

    def write(self) -> None:
        """Write everything but lanes and limits, which are the round's."""
        conn = self.conn
        if self.expanded:
            tasks.insert_mapped(conn, [(x.run_key, x.task_index, x.length, x.rest, x.tries_before) for x in self.expanded])
        born: list[tasks.Instance] = []
        moves: list[tasks.Move] = []
        for (run_key, task_index, map_index), item in self.items.items():
            last = item.last
            if (run_key, task_index, map_index) in self.gone:
                if last is not None:
                    self.events.append(last)
                continue
            if item.was_state is None:
                born.append(
                    tasks.Instance(run_key, task_index, map_index, item.state, item.epoch, item.try_number, item.tries_before)
                )
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
        if self.deferred:
            deferrals.insert_all(conn, self.deferred)
        if self.doomed:
            self.guards.append(deferrals.return_all(conn, self.doomed))
        if self.dispatches:
            tasks.insert_dispatches(conn, self.dispatches)
        if self.carried:
            tasks.carry_values(conn, self.carried)
        if self.kills:
            tasks.kill_dispatches(conn, self.kills)
        if self.decisions:
            branches.keep(conn, self.decisions)
        self._ask()
        if self.retries:
            tasks.insert_retries(conn, self.retries)
        if self.reschedules:
            tasks.insert_reschedules(conn, self.reschedules)
        if self.produced:
            asset_runs.record_events(conn, self.produced)
        if self.run_events:
            runs.append_events(conn, self.run_events)

    def _ask(self) -> None:
        """What is for later transactions to do, and not for a moment to come."""
        if self.stops:
            inbox.insert_cancels(self.conn, self.stops)
        if self.unsettled:
            inbox.insert_settles(self.conn, self.unsettled)
        if self.calls:
            stored_calls.insert_runs(self.conn, self.calls)
