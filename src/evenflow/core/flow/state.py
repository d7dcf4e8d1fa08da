"""What the flow knows of runs, and what it has decided about them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from evenflow.core.graph import Graph, MappedRegion
from evenflow.core.model import UNMAPPED
from evenflow.core.operations import NOT_RUN, cancel_reason
from evenflow.core.states import Ender, TaskEvent, TaskState, move
from evenflow.core.trigger_rules import TriggerRule, UpstreamCounts

TaskKey = tuple[int, int]  # run_key, task_index
InstanceKey = tuple[int, int, int]  # run_key, task_index, map_index


@dataclass(slots=True, kw_only=True)
class RunFacts:
    """The facts about a run by which its tasks are decided."""

    run_key: int
    graph: Graph
    cancelled: bool = False
    cancelled_by: str | None = None  # once that is written
    clears: int = 0  # how often people touched it
    interrupted: bool = False  # parts of it are as a cancel left them
    disturbed: bool = False  # people or branches have moved instances that wait in it

    @property
    def ends_in_parts(self) -> bool:
        """Whether a cancel ends what is left of the run, and nothing else decides about it. With teardowns in the run, the rules
        decide.
        """
        return self.cancelled_by is not None and not self.graph.has_teardowns

    @property
    def why_skipped(self) -> str | None:
        """Why trigger rules skip a task, if a cancel is part of the reason, or None if the rules alone are."""
        if self.cancelled:
            return f"{cancel_reason(self.cancelled_by or 'fail_fast')}."
        return NOT_RUN if self.interrupted else None

    def is_ending(self, task_index: int) -> bool:
        """Returns whether the instances of a task end with a run that is being cancelled: all but teardowns."""
        return self.cancelled and not self.graph.teardown[task_index]

    def ends(self, task_index: int) -> bool:
        """Returns whether a cancel ends the task's instances, now or in a later part, so that none of them continues."""
        return self.cancelled_by is not None and not self.graph.teardown[task_index]


class FlowInstance(Protocol):
    """A task instance with an item, so it is not virtual."""

    @property
    def run_key(self) -> int: ...
    @property
    def task_index(self) -> int: ...
    @property
    def map_index(self) -> int: ...
    @property
    def key(self) -> InstanceKey: ...
    @property
    def state(self) -> TaskState: ...
    @property
    def try_number(self) -> int: ...


T = TypeVar("T", bound=FlowInstance)


class Instances(Protocol[T]):
    """The known instances, and how they move."""

    items: dict[InstanceKey, T]
    wave: list[T]  # finished, not yet counted downstream
    gone: set[InstanceKey]  # those that stood for tasks that are expanded now

    def new_item(self, run_key: int, task_index: int, map_index: int = UNMAPPED) -> T: ...

    def apply(self, item: T, event: TaskEvent, detail: dict[str, Any] | None = None) -> None:
        """Moves an instance. An instance that has finished joins the wave."""

    def explain(self, item: T, reason: str, ended_by: Ender | None = None) -> None:
        """Notes the reason of an instance's end, for people, and what has ended the instance."""


@dataclass(slots=True)
class MappedTask:
    """A task that has become ``length`` instances, and the state of the virtual ones among them."""

    run_key: int
    task_index: int
    length: int
    virtual_state: TaskState
    tries_before: int = 0  # tries begun before it was cleared and expanded anew
    lane: bool = False  # all its instances became ready here, and start in order
    changed: bool = False  # made or moved here


@dataclass(slots=True, frozen=True)
class VirtualEnd:
    """Virtual instances of a task that have just ended, all in one ``state``."""

    run_key: int
    task_index: int
    instances: int
    state: TaskState


@dataclass(slots=True)
class MappedTasks:
    known: dict[TaskKey, MappedTask] = field(default_factory=dict)
    changed: list[MappedTask] = field(default_factory=list)
    ended: list[VirtualEnd] = field(default_factory=list)  # not yet counted downstream

    def move(self, mapped: MappedTask, event: TaskEvent, *, lane: bool = False) -> None:
        """Moves all virtual instances of the task. ``lane``: they are all its instances, and ready."""
        mapped.virtual_state, mapped.lane = move(mapped.virtual_state, event), lane
        self.change(mapped)

    def change(self, mapped: MappedTask) -> None:
        self.known[mapped.run_key, mapped.task_index] = mapped
        if not mapped.changed:
            mapped.changed = True
            self.changed.append(mapped)

    def waiting(self, key: TaskKey) -> MappedTask | None:
        """Returns the task, if it has virtual instances about which nothing has been decided yet."""
        mapped = self.known.get(key)
        return mapped if mapped is not None and mapped.virtual_state is TaskState.NONE else None


@dataclass(slots=True, frozen=True)
class Opening:
    """A mapped group whose sources have all ended, with ``counts``."""

    run_key: int
    region: MappedRegion
    counts: UpstreamCounts

    @property
    def first(self) -> TaskKey:
        """The first task of the group, which stands for all its tasks."""
        return self.run_key, self.region.tasks[0]

    @property
    def stand_ins(self) -> list[InstanceKey]:
        """The instances that stand for the group's tasks before it is expanded."""
        return [(self.run_key, task_index, UNMAPPED) for task_index in self.region.tasks]


@dataclass(slots=True)
class Flow(Generic[T]):
    runs: Mapping[int, RunFacts]
    instances: Instances[T]
    ready: list[T] = field(default_factory=list)  # may start
    gated: list[T] = field(default_factory=list)  # may start, if the previous run lets them
    unexpanded: list[T] = field(default_factory=list)  # stand for mapped tasks that may expand
    begun: set[InstanceKey] = field(default_factory=set)  # have been in ``ready`` or ``unexpanded``
    opening: list[Opening] = field(default_factory=list)
    mapped: MappedTasks = field(default_factory=MappedTasks)
    finished: dict[int, list[int]] = field(default_factory=dict)  # by run: finished instances, and failed leaves
    stops: list[tuple[int, str]] = field(default_factory=list)  # runs that are to be cancelled, and why
    decisions: list[tuple[int, int, int, list[int]]] = field(default_factory=list)  # branches, and the task indexes that they skip
    surmise: Callable[[int, int], None] | None = None  # makes an item for an instance that waits untouched; None: all are read

    @property
    def goes_on(self) -> bool:
        """Whether a decision has consequences that are not handled yet."""
        return bool(self.instances.wave or self.unexpanded or self.opening or self.mapped.ended or self.gated)

    def count(self, run_key: int, finished: int, failed_leaves: int = 0) -> None:
        """Subtracts instances from the unfinished ones of a run; a negative number adds them."""
        entry = self.finished.setdefault(run_key, [0, 0])
        entry[0] += finished
        entry[1] += failed_leaves

    def is_untouched(self, key: TaskKey) -> bool:
        """Returns whether a task whose upstreams have all ended well waits untouched, so that its row need not be read. In a run
        that no person or branch has changed, only upstreams move it. A decision by this rule alone is checked when it is written.
        """
        run_key, task_index = key
        run = self.runs[run_key]
        if self.surmise is None or run.disturbed or run.cancelled or run.cancelled_by:
            return False
        return run.graph.rules[task_index] is TriggerRule.ALL_SUCCESS and not run.graph.mapped[task_index]

    def waits(self, key: InstanceKey) -> T | None:
        """Returns the instance, if it is not virtual and nothing has been decided about it yet."""
        item = self.instances.items.get(key)
        return item if item is not None and item.state is TaskState.NONE and key not in self.instances.gone else None

    def give_up(self, item: T, event: TaskEvent) -> None:
        """Ends an instance that a trigger rule skips or a cancel ends, and notes which of the two it was."""
        self.instances.apply(item, event)
        if why := self.runs[item.run_key].why_skipped:
            self.instances.explain(item, why, Ender.CANCEL)

    def begin(self, item: T) -> None:
        """Begins an instance that its upstreams and the previous run let begin."""
        if item.state is not TaskState.NONE:
            return  # a branch skipped it while the past held it back; or it began already
        run = self.runs[item.run_key]
        spec = run.graph.task(item.task_index)
        expands = spec.mapping is not None and item.map_index == UNMAPPED
        if run.is_ending(item.task_index):
            self.give_up(item, TaskEvent.WITHDRAW)
        elif spec.empty and not expands:
            self.instances.apply(item, TaskEvent.SUCCEED)
        elif item.key not in self.begun:  # several upstreams at once satisfy a rule such as one_success
            self.begun.add(item.key)
            (self.unexpanded if expands else self.ready).append(item)

    def expand(self, run_key: int, task_index: int, length: int) -> MappedTask:
        """Expands a task into ``length`` virtual instances, in the state of the instance that stood for it and is removed."""
        key = (run_key, task_index, UNMAPPED)
        stood = self.instances.items.get(key)
        state, tries = (stood.state, stood.try_number) if stood is not None else (TaskState.NONE, 0)
        mapped = MappedTask(run_key, task_index, length, state, tries)
        self.mapped.change(mapped)
        self.instances.gone.add(key)
        self.count(run_key, 1 - length)
        return mapped
