"""A run in memory: an event loop with its own time, on which tries start, end, and start again.

The flow decides what may run, by the same rules of :mod:`evenflow.core.flow` as a scheduler. The pace decides when: one after the
other, or side by side within the limits of the run, and whether real time passes between two events.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from heapq import heapify, heappop, heappush
from typing import Any

from evenflow.core.deferral import Keeping, is_kept
from evenflow.core.ending import Defer
from evenflow.core.flow.ends import event_of, retry_delay
from evenflow.core.flow.state import InstanceKey
from evenflow.core.model import DagSpec, instance_name
from evenflow.core.operations import cancel_reason
from evenflow.core.states import FINISHED, RunState, TaskEvent, TaskState
from evenflow.sdk.graph import topological_order
from evenflow.sdk.local.flow import LocalFlow, LocalInstance
from evenflow.sdk.local.outcome import TaskOutcome
from evenflow.sdk.local.tries import TestTries, Tried
from evenflow.sdk.local.triggers import TestTriggers
from evenflow.sdk.triggers import BaseTrigger


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """A try that starts (``state`` is running) or ends, at a time of the run. An instance that ends without running has no try."""

    at: datetime
    task_id: str
    map_index: int
    try_number: int
    state: TaskState

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M:%S} {instance_name(self.task_id, self.map_index)}: {self.state}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """``sleep`` lets time pass between two events. ``make_loop`` makes an event loop with its time, in which triggers wait;
    ``trigger_of`` makes these from a task instance's deferral. ``slots`` is how many tries may run at once.
    """

    slots: int | None = 1
    by_priority: bool = False  # otherwise in the order of the DAG
    wait_for_retries: bool = False
    sleep: Callable[[float], None] = field(default=lambda seconds: time.sleep(seconds))
    make_loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop
    trigger_of: Callable[[str, int, Defer], BaseTrigger]


_TOLD = FINISHED | {TaskState.RUNNING, TaskState.DEFERRED, TaskState.UP_FOR_RETRY, TaskState.UP_FOR_RESCHEDULE}
_KEEPING = Keeping()


@dataclass(slots=True, eq=False)
class _LiveInstance:
    """An instance that may run, runs, or waits for its next try or look."""

    instance: LocalInstance
    first_look_s: float | None = None
    slot: bool = False  # of the run
    counted: bool = False  # by the limits of its task
    began_s: float = 0.0  # its try
    resumed: dict[str, Any] | None = None  # set when it resumes from a deferral: the fields of a core.deferral.Resumed

    @property
    def ended(self) -> bool:
        return self.instance.state in FINISHED


class Engine:
    """``moments`` and ``ended`` are in the order of events."""

    def __init__(self, spec: DagSpec, began_at: datetime, tries: TestTries, pace: Pace) -> None:
        self.flow = LocalFlow(spec, tries.xcoms)
        self.ended: list[TaskOutcome] = []
        self.moments: list[Moment] = []
        self.now_s = 0.0
        self._spec, self._began_at, self._tries, self._pace = spec, began_at, tries, pace
        order = topological_order(spec.dag_id, [task.task_id for task in spec.tasks], [task.upstream for task in spec.tasks])
        self._position = {index: position for position, index in enumerate(order)}
        self._sequence = itertools.count()
        self._events: list[tuple[float, int, _LiveInstance, Tried | None]] = []  # a try ends, or is due
        self._ready: list[tuple[tuple[int, int, int], int, _LiveInstance]] = []
        self._live: dict[InstanceKey, _LiveInstance] = {}
        self._slots = 0
        self._counted: Counter[int] = Counter()
        self._triggers: TestTriggers[_LiveInstance] = TestTriggers(pace.make_loop)

    def run(self) -> RunState:
        self.flow.begin()
        self._tell()
        try:
            while self._start_what_may() or self._events or self._triggers:
                self._let_time_pass()
                while self._events and self._events[0][0] <= self.now_s:
                    _, _, work, tried = heappop(self._events)
                    self._happen(work, tried)
        finally:
            self._triggers.close()
        state = self.flow.state()
        self._tries.call_back_run(state)
        return state

    def _let_time_pass(self) -> None:
        """Waits until something is due, or a trigger is over. Limits do not stop a resume."""
        left_s = self._events[0][0] - self.now_s if self._events else None
        if self._triggers:
            with self._tries.quiet():
                waited_s, over = self._triggers.wait(left_s)
            self.now_s += waited_s
            for work, resumed in over.items():
                work.resumed = resumed
                self._start(work)
        elif left_s is not None and left_s > 0:
            self._pace.sleep(left_s)
            self.now_s += left_s

    def _start_what_may(self) -> bool:
        """Returns whether anything was started."""
        self._offer_new()
        held_back, started = [], False
        while self._ready and (self._pace.slots is None or self._slots < self._pace.slots):
            offer = heappop(self._ready)
            work = offer[-1]
            index = work.instance.task_index
            most = self._spec.tasks[index].max_active_tis_per_dagrun
            if work.ended:
                continue
            if most is not None and self._counted[index] >= most:
                held_back.append(offer)
                continue
            started = True
            self._start(work)
        for offer in held_back:
            heappush(self._ready, offer)
        return started

    def _offer_new(self) -> None:
        for instance in self.flow.take_ready():
            work = self._live[instance.key] = _LiveInstance(instance)
            self._offer(work)

    def _offer(self, work: _LiveInstance) -> None:
        instance = work.instance
        priority = -self._spec.tasks[instance.task_index].priority_weight if self._pace.by_priority else 0
        heappush(self._ready, ((priority, self._position[instance.task_index], instance.map_index), next(self._sequence), work))

    def _start(self, work: _LiveInstance) -> None:
        instance = work.instance
        task = self._spec.tasks[instance.task_index]
        self._take(work)
        resumed, work.resumed = work.resumed, None
        if resumed is None:
            work.began_s = self.now_s
            instance.try_number += instance.state is not TaskState.UP_FOR_RESCHEDULE
        else:
            resumed["began_s"] = self.now_s - work.began_s
        self._move(instance, TaskEvent.GRANT if resumed is None else TaskEvent.RESUME)
        self._move(instance, TaskEvent.START)
        waited_s = 0.0 if work.first_look_s is None else self.now_s - work.first_look_s
        tried = self._tries.run(task, instance, waited_s, resumed)
        self._later(tried.took_s, work, tried)

    def _happen(self, work: _LiveInstance, tried: Tried | None) -> None:
        if tried is None and work.slot:
            self._start(work)
        elif tried is None:
            self._offer(work)
        else:
            if not tried.keeps_slot:
                self._free(work)
            self._judge(work, tried)

    def _judge(self, work: _LiveInstance, tried: Tried) -> None:
        """Handles the end of a try."""
        instance, result = work.instance, tried.result
        task = self._spec.tasks[instance.task_index]
        event = event_of(self.flow.run, instance.task_index, instance.try_number, result.outcome, result.error_types)
        if event is TaskEvent.RESCHEDULE:
            self._move(instance, event)
            work.first_look_s = self.now_s - tried.took_s if work.first_look_s is None else work.first_look_s
            self._later(result.delay_s or 0.0, work, None)
        elif event is TaskEvent.DEFER and result.defer is not None:
            self._move(instance, event)
            self._tries.say(f"{instance_name(task.task_id, instance.map_index)}: deferred, waits for {result.defer.trigger}")
            self._hold_while_deferred(work)
            address = task.task_id, instance.map_index
            trigger = self._pace.trigger_of(*address, result.defer)
            self._triggers.begin(work, trigger, result.defer, self._tries.channel_of(*address))
        elif event is TaskEvent.RETRY:
            said = f"try {instance.try_number} of {task.retries + 1} failed ({result.reason}); trying again"
            self._tries.say(f"{task.task_id}: {said}")
            self._move(instance, event, result.reason)
            delay_s = 0.0
            if self._pace.wait_for_retries:
                delay_s = retry_delay(task, instance.try_number, result.error_types, result.delay_s)
            self._later(delay_s, work, None)
        else:
            self._move(instance, event, result.reason)
            del self._live[instance.key]
            if result.skip:
                self.flow.skip(instance, result.skip)
            self._go_on()

    def _go_on(self) -> None:
        """Applies what the last end decides."""
        self.flow.go_on()
        self._tell()
        if (by := self.flow.take_stop()) is not None:
            self._stop(by)

    def _stop(self, by: str) -> None:
        """Cancels the run: running tries fail, waiting ones are skipped, except for teardowns and their upstreams."""
        self._offer_new()
        for ending in self.flow.cancel(by):
            for instance in ending:
                if (work := self._live.pop(instance.key, None)) is not None:
                    self._stop_waiting(work, by)
                    self._free(work)
        self._tell()
        self._events = [event for event in self._events if not event[2].ended]
        heapify(self._events)

    def _stop_waiting(self, work: _LiveInstance, by: str) -> None:
        """Stops what a deferred instance has started outside."""
        resumed = self._triggers.kill(work, cancel_reason(by))
        task = self._spec.tasks[work.instance.task_index]
        if resumed is not None and task.cleans_up:
            self._tries.run(task, work.instance, 0.0, resumed)

    def _move(self, instance: LocalInstance, event: TaskEvent, reason: str | None = None) -> None:
        instance.reason = reason
        self.flow.instances.apply(instance, event)
        self._tell()

    def _tell(self) -> None:
        """Records the moves of task instances, and calls their callbacks."""
        moves, self.flow.instances.moves = self.flow.instances.moves, []
        for instance, state, callback in moves:
            task, map_index, tries = self._spec.tasks[instance.task_index], instance.map_index, instance.try_number
            if state in _TOLD:
                at = self._began_at + timedelta(seconds=self.now_s)
                moment = Moment(at=at, task_id=task.task_id, map_index=map_index, try_number=tries, state=state)
                self.moments.append(moment)
            if state in FINISHED:
                name, reason = instance_name(task.task_id, map_index), instance.reason
                self.ended.append(TaskOutcome(task_id=task.task_id, map_index=map_index, state=state, tries=tries, reason=reason))
                self._tries.say(f"{name}: {state}" + (f" ({reason})" if reason else ""))
            if callback is not None:
                self._tries.call_back(task, instance, callback, state)

    def _take(self, work: _LiveInstance) -> None:
        self._slots += not work.slot
        self._counted[work.instance.task_index] += not work.counted
        work.slot = work.counted = True

    def _hold_while_deferred(self, work: _LiveInstance) -> None:
        """Gives back what a deferred try does not keep by its task's wishes and the defaults of the system's settings."""
        wishes = self._spec.tasks[work.instance.task_index].while_deferred
        slot, counted = is_kept("run", _KEEPING, wishes), is_kept("task_limits", _KEEPING, wishes)
        self._free(work)
        self._slots += slot
        self._counted[work.instance.task_index] += counted
        work.slot, work.counted = slot, counted

    def _free(self, work: _LiveInstance) -> None:
        self._slots -= work.slot
        self._counted[work.instance.task_index] -= work.counted
        work.slot = work.counted = False

    def _later(self, delay_s: float, work: _LiveInstance, tried: Tried | None) -> None:
        heappush(self._events, (self.now_s + delay_s, next(self._sequence), work, tried))
