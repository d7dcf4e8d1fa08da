"""What an operation changes: from what a person wants of tasks to the fate of each try and the next state of each instance.

Theory of operation
-------------------
An operation names tasks. It becomes changes: tasks, and the move of those of their instances that are in certain states. A clear of
what has failed includes what a cancel has left unrun. A mark has consequences: what failed because of these tasks, and what a
cancel has left unrun behind them, is to be tried again.

What has a process keeps its state until that has ended: its try is killed, and the change is applied to its exit. What waits
deferred and has left something outside gets a process first, to stop that. A mapped task that is cleared as a whole loses its
instances and expands anew, together with the tasks that are expanded with it.

``scheduler/operations.py`` applies all this with statements in sets.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from enum import Enum
from typing import NamedTuple

from evenflow.core.deferral import Purpose
from evenflow.core.flow.recount import RunCounts
from evenflow.core.graph import Graph
from evenflow.core.operations import FAILURES, INTERRUPTED, Only, Operation, Target, among, beyond, targets, touched_states, without
from evenflow.core.states import RUN_FINISHED, Ender, RunEvent, RunState, TaskEvent, TaskState, move, move_run, sources


class StateChange(NamedTuple):
    """The move of task instances that are in one of ``states``."""

    event: TaskEvent
    state: TaskState
    states: frozenset[TaskState]
    actor: str
    reason: str | None = None
    ended_by: Ender | None = None

    @property
    def cleared(self) -> bool:
        return self.event is TaskEvent.CLEAR


class Change(NamedTuple):
    """A move of the instances of these tasks. ``as_whole``: mapped tasks that are meant as a whole lose their instances."""

    targets: Sequence[Target]
    move: StateChange
    as_whole: bool = False


class LiveTry(NamedTuple):
    """A try that has a dispatch."""

    task_index: int
    map_index: int
    epoch: int
    worker_id: int | None
    holds: list[int]
    pool_slots: int
    resumes: bool  # from having been deferred
    purpose: str | None  # what for


class LaneRange(NamedTuple):
    """Untouched instances that a lane stands for: ``first`` to the one before ``past``."""

    lane_id: int
    task_index: int
    first: int
    past: int


class RunSettled(NamedTuple):
    """What becomes of a run whose instances were changed."""

    state: RunState
    revived: bool = False  # it had ended, and continues
    ended: bool = False  # it has ended as before, or otherwise
    reason: str | None = None  # why it has failed


class RunWish(Enum):
    """What a person wants of a run itself, apart from its tasks."""

    FAIL = "fail"  # it has succeeded, and is only said to have failed
    CANCEL = "cancel"  # what still runs of it is killed, the rest is skipped
    TAKE_BACK = "take_back"  # it is a success again if a person said that it had failed
    BEGIN_ANEW = "begin_anew"  # it has no tasks yet if it was cancelled before it began: then it begins as a new one does


class TryFate(Enum):
    END = "end"  # no worker has it
    CLEAN_UP = "clean_up"  # no worker has it, but it has left something outside that is to be stopped
    KILL = "kill"  # the change awaits its exit
    AWAIT = "await"  # it is stopping something outside already


def refusal(state: RunState, *, begun: bool, cancelled: bool) -> str | None:
    """Why an operation on tasks of a run changes nothing."""
    if state is RunState.QUEUED and not begun:
        return "the run had not begun"
    if state is RunState.RUNNING and cancelled:
        return "the run was being cancelled"
    return None


def wish_of_run(state: RunState, operation: Operation, *, begun: bool) -> RunWish | None:
    """Returns what an operation wants of the run itself. ``begun``: whether it has been cleared before."""
    match operation.event:
        case TaskEvent.MARK_FAILED if operation.tasks is None:
            return RunWish.FAIL if state is RunState.SUCCESS else RunWish.CANCEL
        case TaskEvent.MARK_SUCCESS if operation.tasks is None and state is RunState.FAILED:
            return RunWish.TAKE_BACK
        case TaskEvent.CLEAR if operation.only is not Only.RUNNING and state is RunState.FAILED and not begun:
            return RunWish.BEGIN_ANEW
    return None


def run_after(state: RunState, counts: RunCounts) -> RunSettled:
    """Returns what becomes of a run by what its instances are now. One that had ended continues, unless none of its tasks is to
    run: then only its result is decided anew.
    """
    if state not in RUN_FINISHED:
        return RunSettled(state)
    if counts.unfinished:
        return RunSettled(move_run(state, RunEvent.CLEAR), revived=True)
    after = RunState.FAILED if counts.failed_leaves or counts.interrupted else RunState.SUCCESS
    if after is not state:
        after = move_run(state, RunEvent.MARK_SUCCESS if after is RunState.SUCCESS else RunEvent.MARK_FAILED)
    return RunSettled(after, ended=True, reason=INTERRUPTED if counts.interrupted else None)


def moving(event: TaskEvent, actor: str, states: Collection[TaskState]) -> StateChange:
    """Returns the move by a clear or a mark, of instances in one of ``states``."""
    state, touched = move(next(iter(sources(event))), event), frozenset(states)
    if event is TaskEvent.CLEAR:
        return StateChange(event, state, touched, actor)
    return StateChange(event, state, touched, actor, f"marked {state} by {actor}", Ender.MARK)


def changes(graph: Graph, operation: Operation, left: Iterable[tuple[int, int]]) -> Iterator[Change]:
    """Yields what is changed of the tasks that are meant. ``left`` are the instances, as (task index, map index), that a cancel of
    the run has left unrun; they matter if the operation is about what has failed.
    """
    found, move = (
        targets(graph, operation),
        moving(operation.event, operation.actor, touched_states(operation.event, operation.only)),
    )
    yield Change(found, move, as_whole=operation.only is None)
    if operation.only is Only.FAILED:
        yield Change(among(found, left), move._replace(states=frozenset({TaskState.SKIPPED})))


def consequences(graph: Graph, operation: Operation, left: Iterable[tuple[int, int]]) -> Iterator[Change]:
    """Yields what is to be tried again behind tasks that were marked: as in Airflow, what failed because of them."""
    below, again = beyond(graph, graph.downstream, targets(graph, operation)), moving(TaskEvent.CLEAR, operation.actor, FAILURES)
    yield Change(below, again)
    yield Change(among(below, left), again._replace(states=frozenset({TaskState.SKIPPED})))


def fate_of_try(graph: Graph, row: LiveTry) -> TryFate:
    """Returns what becomes of a try whose instance is to change."""
    if row.purpose == Purpose.CLEAN_UP:
        return TryFate.AWAIT
    if row.worker_id is not None:
        return TryFate.KILL
    return TryFate.CLEAN_UP if row.resumes and graph.task(row.task_index).cleans_up else TryFate.END


def whole_regions(graph: Graph, found: Iterable[Target]) -> set[int]:
    """Returns the mapped tasks that are meant as a whole, together with all tasks that are expanded with them."""
    whole = {target.task_index for target in found if target.map_indexes is None}
    return {index for region in graph.regions if whole.issuperset(region.tasks) for index in region.tasks}


def removal(actor: str) -> StateChange:
    """Returns the move of the instances of a mapped task that is to expand anew."""
    return StateChange(TaskEvent.REMOVE, move(TaskState.NONE, TaskEvent.REMOVE), frozenset(), actor)


def expansion_anew(actor: str) -> StateChange:
    """Returns the move of the one instance that stands for a mapped task again."""
    removed = removal(actor).state
    return StateChange(TaskEvent.CLEAR, move(removed, TaskEvent.CLEAR), frozenset({removed}), actor)


def of_virtual(change: StateChange) -> StateChange:
    """Returns the move of virtual instances: those that are to run anyway, or to be made anew, are not cleared."""
    spared = {TaskState.SCHEDULED, TaskState.REMOVED} if change.cleared else set()
    return change._replace(states=change.states - spared)


def parted(lanes: Iterable[LaneRange], rows: Iterable[tuple[int, int]]) -> tuple[list[LaneRange], list[LaneRange]]:
    """Returns what is left of the ranges of lanes without these instances (task index, map index): the ranges that have changed,
    one of each lane, and those for which lanes like it are needed, where one has lost an instance in its middle.
    """
    taken: dict[int, list[int]] = defaultdict(list)
    for task_index, map_index in rows:
        taken[task_index].append(map_index)
    changed: list[LaneRange] = []
    parts: list[LaneRange] = []
    for lane in lanes:
        left = without([(lane.first, lane.past)], taken[lane.task_index]) or [(lane.past, lane.past)]
        first, *others = (lane._replace(first=start, past=end) for start, end in left)
        if first != lane:
            changed.append(first)
        parts += others
    return changed, parts
