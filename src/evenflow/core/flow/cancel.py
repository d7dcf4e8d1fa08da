"""How a cancelled run ends: the fate of each instance that has not finished.

Teardowns are spared: each is decided as usual when its upstreams have ended, so what a setup has made is cleaned up. Tasks between
a try that is being killed and a teardown wait too: otherwise the teardown could run before that try has ended.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

from evenflow.core.asking import Asking
from evenflow.core.deferral import Purpose
from evenflow.core.flow.indexes import know_mapped, virtual_instances
from evenflow.core.flow.state import Flow, RunFacts, T
from evenflow.core.model import UNMAPPED
from evenflow.core.states import FINISHED, HOLDING, TaskEvent, TaskState, move

_UNTOUCHED = (TaskState.NONE, TaskState.SCHEDULED)
# The next state of virtual instances, by their state. Removed ones are cleared first, because their task is to expand anew.
VIRTUAL_WITHDRAWALS = {
    **{state: move(state, TaskEvent.WITHDRAW) for state in _UNTOUCHED},
    TaskState.REMOVED: move(move(TaskState.REMOVED, TaskEvent.CLEAR), TaskEvent.WITHDRAW),
}


class Unfinished(NamedTuple):
    """A task instance that has not finished, with its dispatch if it has one."""

    task_index: int
    map_index: int
    state: str
    epoch: int
    try_number: int
    worker_id: int | None = None
    holds: list[int] | None = None
    pool_slots: int | None = None
    has_deferred: bool = False  # its try was deferred: it waits or has resumed
    has_run: bool = False  # since it was cleared, a process of it was started, and the start is known
    purpose: str | None = None  # for which it has resumed


class Fate(Enum):
    SPARE = "spare"  # a teardown: it continues
    CLEAN_UP = "clean_up"  # it has no process, but has left something outside that is to be stopped
    VOID = "void"  # void its dispatch, which no worker has
    KILL = "kill"  # kill its process
    END = "end"
    LEAVE = "leave"  # it is ending already, or waits for a try that is being killed


def fate_of(run: RunFacts, row: Unfinished, state: TaskState, waits: set[tuple[int, int]]) -> Fate:
    """Returns the fate of an instance. ``state`` is its current state, ``waits`` the result of :func:`waiting_for_killed`."""
    is_ending = row.purpose == Purpose.CLEAN_UP or state in FINISHED
    if run.graph.teardown[row.task_index]:
        return Fate.SPARE
    if _cleans_up(run, row):
        return Fate.LEAVE if is_ending else Fate.CLEAN_UP
    if state is TaskState.QUEUED and row.worker_id is None and row.holds is not None:
        return Fate.VOID
    if state in HOLDING:
        return Fate.LEAVE if is_ending else Fate.KILL
    waits_for_upstreams = state is TaskState.NONE and (row.task_index, row.map_index) in waits
    return Fate.LEAVE if waits_for_upstreams or state in FINISHED else Fate.END


def end(flow: Flow[T], item: T, *, has_run: bool) -> None:
    """Ends an instance: as failed if a process of it ran, as skipped if none was ever started."""
    waited = item.state not in (TaskState.NONE, TaskState.SCHEDULED, TaskState.QUEUED)
    flow.give_up(item, TaskEvent.CANCEL if has_run or waited else TaskEvent.WITHDRAW)


def waiting_for_killed(run: RunFacts, rows: Iterable[Unfinished]) -> set[tuple[int, int]]:
    """Returns the instances (task index, map index) that end only after the tries that are being killed, because the teardowns
    behind them must not run before. Inside a group, an instance waits for tries of its own index.
    """
    graph = run.graph
    live: dict[int, set[int]] = {}
    for row in rows:
        killed = row.state == TaskState.RUNNING or (row.state == TaskState.QUEUED and row.worker_id is not None)
        if (killed or _cleans_up(run, row)) and not graph.teardown[row.task_index]:
            live.setdefault(row.task_index, set()).add(row.map_index)
    return {
        (between, map_index if graph.same_region(source, between) else UNMAPPED)
        for source, indexes in live.items()
        for between in graph.in_scopes({source})
        for map_index in indexes
    }


def end_virtual(flow: Flow[T], run: RunFacts, tasks: Iterable[int], waits: set[tuple[int, int]]) -> Asking[list[int]]:
    """Skips virtual instances of these tasks one by one, because teardowns that wait for them may wait for their own index only.
    Returns the tasks that had such instances. Instances in ``waits`` stay virtual.
    """
    keys = [(run.run_key, index) for index in tasks]
    yield from know_mapped(flow, keys)
    found = [mapped for key in keys if (mapped := flow.mapped.known.get(key)) and mapped.virtual_state in _UNTOUCHED]
    for mapped, virtual in (yield from virtual_instances(found)):
        task_index, teardown = mapped.task_index, run.graph.teardown[mapped.task_index]
        if (task_index, UNMAPPED) in waits or (teardown and mapped.virtual_state is TaskState.NONE):
            continue
        for key in virtual:
            if key[1:] in waits:
                continue
            item = flow.instances.new_item(*key)
            if teardown:
                flow.ready.append(item)
            else:
                flow.give_up(item, TaskEvent.WITHDRAW)
    return [mapped.task_index for mapped in found]


def _cleans_up(run: RunFacts, row: Unfinished) -> bool:
    """Returns whether an instance has no process, but has left something to stop."""
    return row.has_deferred and row.worker_id is None and run.graph.task(row.task_index).cleans_up
