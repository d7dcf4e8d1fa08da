"""Task instances, their counters, dispatches, timers and history: read and written in columns, a statement for any number of
rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import astuple

from evenflow.core.flow.cancel import VIRTUAL_WITHDRAWALS, Unfinished
from evenflow.core.flow.questions import Touched
from evenflow.core.flow.state import InstanceKey, MappedTask
from evenflow.core.limits import LEASE_S
from evenflow.core.selection.order import DispatchClass
from evenflow.core.states import Ender, TaskState
from evenflow.core.trigger_rules import UpstreamCounts
from evenflow.store.db.columns import arrays, floats, instants, numbers, texts, words
from evenflow.store.db.rows import Conn, Rows, execute, row_of


class Instance(Struct, gc=False):
    """How a task instance stands."""

    run_key: int
    task_index: int
    map_index: int
    state: TaskState
    epoch: int
    try_number: int


class Event(Instance, gc=False):
    """A move, for history: how the instance stands after it, and what moved it."""

    event: str
    detail: str | None  # JSON


class Item(Instance, gc=True):
    """A task instance that a transaction changes. ``was_state`` is None for one that it creates; others are written by one
    compare-and-set, from (was_state, was_epoch) to (state, epoch).
    """

    was_state: TaskState | None = None
    was_epoch: int = 0
    losses: int = 0  # to add
    tries_before: int = 0  # tries begun before a person cleared it
    started_at: str | None = None  # instants, as the database writes them
    ended_at: str | None = None
    last: Event | None = None  # its last move, which is written together with it

    @property
    def key(self) -> InstanceKey:
        return (self.run_key, self.task_index, self.map_index)


class Counter(NamedTuple):
    """A row of ``upstream_counter``."""

    run_key: int
    task_index: int
    map_index: int
    total: int
    success: int
    failed: int
    skipped: int


class Dispatch(Struct, gc=False):
    epoch: int
    run_key: int
    task_index: int
    map_index: int
    try_number: int
    dispatch_class: DispatchClass
    priority: int  # as core.selection.order.try_priority makes it
    queue: str
    holds: Sequence[int]  # limits, the pool first
    pool_slots: int
    avoid: int  # a worker, 0 for none
    event: str  # the move for its history
    detail: str | None  # JSON
    was_state: str | None  # of its task instance, which moves with it; None: that is born with it
    was_epoch: int
    losses: int  # to add
    worker: int = 0  # that is given it, if its claim still waits; 0: none


@dataclass(frozen=True, slots=True)
class TryKey:
    epoch: int
    run_key: int
    task_index: int
    map_index: int


@dataclass(frozen=True, slots=True)
class Retry(TryKey):
    delay_s: float


def count_upstreams(conn: Conn, deltas: Iterable[Counter]) -> Rows[Counter]:
    """Adds ``deltas``; answers how the counters stand."""
    run_keys, tasks, maps, total, success, failed, skipped = zip(*deltas, strict=True)
    params = {
        "run_keys": numbers(run_keys),
        "tasks": numbers(tasks),
        "maps": numbers(maps),
        "total": numbers(total),
        "success": numbers(success),
        "failed": numbers(failed),
        "skipped": numbers(skipped),
    }
    return Rows(execute(conn, "tasks/count_upstreams", params), row_of(Counter))


def read_instances(conn: Conn, keys: Iterable[tuple[int, int, int]]) -> Rows[Instance]:
    """Those of (run_key, task_index, map_index) that have a row."""
    run_keys, tasks, maps = zip(*keys, strict=True)
    params = {"run_keys": numbers(run_keys), "tasks": numbers(tasks), "maps": numbers(maps)}
    return Rows(execute(conn, "tasks/read_instances", params), as_instance)


def as_instance(row: Iterable[Any]) -> Instance:
    run_key, task_index, map_index, state, *others = row
    return Instance(run_key, task_index, map_index, TaskState(state), *others)


def read_unfinished(
    conn: Conn, run_key: int, states: Collection[str], *, limit: int | None, spared: Iterable[int] = ()
) -> Rows[Unfinished]:
    """Returns all that are in these states. With ``limit``: of those that are not ending already, that number of the last tasks.
    Leaves out ``spared`` tasks.
    """
    params = {"run_key": run_key, "states": words(states), "every": limit is None, "limit": limit, "spared": numbers(spared)}
    return Rows(execute(conn, "tasks/read_unfinished", params), row_of(Unfinished))


def find_processes(conn: Conn, run_key: int, *, spared: Iterable[int]) -> list[int]:
    """Returns the epochs of a run that workers have and that no kill names, except those of ``spared`` tasks."""
    params = {"run_key": run_key, "spared": numbers(spared)}
    return [epoch for (epoch,) in execute(conn, "tasks/find_processes", params).fetchall()]


def result_lengths(conn: Conn, keys: Iterable[tuple[int, int, str, bool]]) -> Rows[tuple[int, int, str, int | None]]:
    """Lengths of these results: (run_key, task_index, XCom key, whether the task is mapped)."""
    run_keys, tasks, names, mapped = zip(*keys, strict=True)
    params = {
        "run_keys": numbers(run_keys),
        "tasks": numbers(tasks),
        "keys": texts(names),
        "mapped": words("t" if m else "f" for m in mapped),
    }
    return Rows(execute(conn, "tasks/result_lengths", params), tuple)


def move(conn: Conn, items: Sequence[Item]) -> None:
    """Each with its last move, unless that is written elsewhere."""
    run_keys, tasks, maps, states, epochs, tries, was_states, was_epochs, losses, _, started, ended, last = zip(
        *map(astuple, items), strict=True
    )
    params = {
        "run_keys": numbers(run_keys),
        "tasks": numbers(tasks),
        "maps": numbers(maps),
        "was_states": words(was_states),
        "was_epochs": numbers(was_epochs),
        "states": words(states),
        "epochs": numbers(epochs),
        "tries": numbers(tries),
        "losses": numbers(losses),
        "started": instants(started),
        "ended": instants(ended),
        "events": instants(each and each.event for each in last),
        "details": texts(each and each.detail for each in last),
        "expected": len(items),
    }
    execute(conn, "tasks/move", params)


def insert_instances(conn: Conn, items: Sequence[Item]) -> None:
    run_keys, tasks, maps, states, epochs, tries, _, _, _, tries_before, *_ = zip(*map(astuple, items), strict=True)
    params = {
        "run_keys": numbers(run_keys),
        "tasks": numbers(tasks),
        "maps": numbers(maps),
        "states": words(states),
        "epochs": numbers(epochs),
        "tries": numbers(tries),
        "tries_before": numbers(tries_before),
    }
    execute(conn, "tasks/insert_instances", params)


def write_mapped(conn: Conn, mapped: Collection[MappedTask]) -> None:
    """Tasks that have been expanded, or whose virtual instances have moved; the rows that stood for these go."""
    params = {
        "run_keys": numbers(x.run_key for x in mapped),
        "tasks": numbers(x.task_index for x in mapped),
        "lengths": numbers(x.length for x in mapped),
        "virtual_states": words(x.virtual_state for x in mapped),
        "tries_before": numbers(x.tries_before for x in mapped),
    }
    execute(conn, "tasks/write_mapped", params)
    execute(conn, "tasks/delete_operator_rows", {"run_keys": params["run_keys"], "tasks": params["tasks"]})


def read_mapped(conn: Conn, keys: Collection[tuple[int, int]]) -> Rows[MappedTask]:
    """Those of (run_key, task_index) that have been expanded."""
    params = {"run_keys": numbers(run_key for run_key, _ in keys), "tasks": numbers(task_index for _, task_index in keys)}
    return Rows(execute(conn, "tasks/read_mapped", params), _mapped_task)


def _mapped_task(row: Iterable[Any]) -> MappedTask:
    run_key, task_index, length, virtual_state = row
    return MappedTask(run_key, task_index, length, TaskState(virtual_state))


def count_indexed(conn: Conn, deltas: Iterable[tuple[Counter, int]]) -> Rows[Counter]:
    """As :func:`count_upstreams` for counters of one map index, made when they are first touched, each with its first total."""
    counters, wholes = zip(*deltas, strict=True)
    run_keys, tasks, maps, total, success, failed, skipped = zip(*counters, strict=True)
    params = {
        "run_keys": numbers(run_keys),
        "tasks": numbers(tasks),
        "maps": numbers(maps),
        "wholes": numbers(wholes),
        "total": numbers(total),
        "success": numbers(success),
        "failed": numbers(failed),
        "skipped": numbers(skipped),
    }
    return Rows(execute(conn, "tasks/count_indexed", params), row_of(Counter))


def read_touched(conn: Conn, keys: Iterable[tuple[int, int]]) -> Rows[Touched]:
    """The instances of these (run_key, task_index) that have a row or a counter."""
    run_keys, tasks = zip(*keys, strict=True)
    return Rows(execute(conn, "tasks/read_touched", {"run_keys": numbers(run_keys), "tasks": numbers(tasks)}), _touched)


def _touched(row: Iterable[Any]) -> Touched:
    run_key, task_index, map_index, state, epoch, try_number, total, *ended = row
    counts = None if total is None else UpstreamCounts(total, *ended)
    return Touched((run_key, task_index, map_index), counts, state, epoch, try_number)


def skip_virtual(conn: Conn, run_key: int, *, reason: str, spared: Iterable[int] = ()) -> Rows[tuple[int, int]]:
    """Skips the virtual instances of a run, except those of the tasks ``spared``; returns (task_index, how many)."""
    params = {
        "run_key": run_key,
        "reason": reason,
        "spared": numbers(spared),
        "states": words(VIRTUAL_WITHDRAWALS),
        "state": VIRTUAL_WITHDRAWALS[TaskState.NONE],
        "ended_by": Ender.CANCEL,
        "removed": TaskState.REMOVED,
    }
    return Rows(execute(conn, "tasks/skip_virtual", params), tuple)


def set_reasons(conn: Conn, reasons: Sequence[tuple[int, int, int, str, str | None]]) -> None:
    run_keys, tasks, maps, said, enders = zip(*reasons, strict=True)
    params = {
        "run_keys": numbers(run_keys),
        "tasks": numbers(tasks),
        "maps": numbers(maps),
        "reasons": texts(said),
        "enders": texts(enders),
    }
    execute(conn, "tasks/set_reasons", params)


def insert_dispatches(conn: Conn, dispatches: Sequence[Dispatch], takers: Mapping[int, str] = MappingProxyType({})) -> None:
    """``takers``: the workers that are given some of them, with the keys of their claims. With any, ``deliver`` of
    :mod:`evenflow.store.db.notify` is to follow the commit.
    """
    (
        epochs, run_keys, tasks, maps, tries, classes, priorities, queues, holds, slots, avoid, events, details,
        was_states, was_epochs, losses, workers,
    ) = zip(*map(astuple, dispatches), strict=True)  # fmt: skip
    params = {
        "epochs": numbers(epochs),
        "run_keys": numbers(run_keys),
        "tasks": numbers(tasks),
        "maps": numbers(maps),
        "tries": numbers(tries),
        "classes": numbers(classes),
        "priorities": numbers(priorities),
        "queues": texts(queues),
        "holds": arrays(holds),
        "slots": numbers(slots),
        "avoid": numbers(avoid),
        "events": words(events),
        "details": texts(details),
        "was_states": instants(was_states),
        "was_epochs": numbers(was_epochs),
        "losses": numbers(losses),
        "workers": numbers(workers),
        "takers": numbers(takers),
        "keys": texts(takers.values()),
        "lease_s": LEASE_S,
        "expected": sum(1 for state in was_states if state is not None),
    }
    execute(conn, "tasks/insert_dispatches", params)


def carry_values(conn: Conn, carried: Mapping[tuple[int, int, int], tuple[int, int]]) -> None:
    """What task instances pushed under the first of two epochs is theirs under the second."""
    run_keys, task_indexes, maps = zip(*carried, strict=True)
    were, epochs = zip(*carried.values(), strict=True)
    names = {"run_keys": run_keys, "tasks": task_indexes, "maps": maps, "were": were, "epochs": epochs}
    execute(conn, "xcom/carry", {name: numbers(values) for name, values in names.items()})


def delete_dispatches(conn: Conn, epochs: Sequence[int]) -> None:
    execute(conn, "tasks/delete_dispatches", {"epochs": numbers(epochs), "expected": len(epochs)})


def kill_dispatches(conn: Conn, epochs: Sequence[int]) -> None:
    execute(conn, "tasks/kill_dispatches", {"epochs": numbers(epochs)})


class UnclaimedTry(NamedTuple):
    """A try that no worker has claimed, and will while this transaction lasts."""

    epoch: int
    queue: str
    holds: list[int]
    pool_slots: int
    resumes: bool
    at: str  # now, as the database writes it


def lock_unclaimed(conn: Conn, epochs: Collection[int]) -> list[UnclaimedTry]:
    """Those of these tries."""
    return Rows(execute(conn, "tasks/lock_unclaimed", {"epochs": numbers(epochs)}), row_of(UnclaimedTry)).all()


def insert_queued_timeouts(conn: Conn, sent: Sequence[Dispatch]) -> None:
    """Until when they are to have been claimed, where their tasks say so."""
    params = {
        "epochs": numbers(each.epoch for each in sent),
        "run_keys": numbers(each.run_key for each in sent),
        "tasks": numbers(each.task_index for each in sent),
        "maps": numbers(each.map_index for each in sent),
        "queues": texts(each.queue for each in sent),
    }
    execute(conn, "tasks/insert_queued_timeouts", params)


def insert_retries(conn: Conn, retries: Sequence[Retry]) -> None:
    execute(conn, "tasks/insert_timers", _waits(retries))


def insert_reschedules(conn: Conn, reschedules: Sequence[Retry]) -> None:
    """As retries, and sensors that have been looking since their first look."""
    execute(conn, "tasks/insert_reschedules", _waits(reschedules))


def _waits(waits: Sequence[Retry]) -> dict[str, str]:
    return {
        "delays": floats(wait.delay_s for wait in waits),
        "run_keys": numbers(wait.run_key for wait in waits),
        "tasks": numbers(wait.task_index for wait in waits),
        "maps": numbers(wait.map_index for wait in waits),
        "epochs": numbers(wait.epoch for wait in waits),
    }


def append_events(conn: Conn, events: Sequence[Event]) -> None:
    run_keys, tasks, maps, states, epochs, tries, names, details = zip(*map(astuple, events), strict=True)
    params = {
        "run_keys": numbers(run_keys),
        "tasks": numbers(tasks),
        "maps": numbers(maps),
        "epochs": numbers(epochs),
        "tries": numbers(tries),
        "events": words(names),
        "states": words(states),
        "details": texts(details),
    }
    execute(conn, "tasks/append_events", params)
