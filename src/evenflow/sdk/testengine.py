"""A run in memory: an event loop over a time of its own, on which tries start, end, and are started again.

The flow says what may run, the pace when: one after the other, or side by side within the limits of the run, and whether time
passes for real between two events.
"""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from heapq import heapify, heappop, heappush

from evenflow.core.model import DagSpec, instance_name
from evenflow.core.retry import may_retry, next_delay
from evenflow.core.states import RunState, TaskState
from evenflow.sdk.graph import topological_order
from evenflow.sdk.testflow import Decided, Flow, Instance, Key
from evenflow.sdk.testtries import Tried, Tries


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskOutcome:
    """How an instance ended; ``map_index`` is -1 when its task is not mapped, or has no instances."""

    task_id: str
    map_index: int
    state: TaskState
    tries: int = 0
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """A try that starts (``state`` is running) or ends, at a time of the run's own. What ends without having run has no try."""

    at: datetime
    task_id: str
    map_index: int
    try_number: int
    state: TaskState

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M:%S} {instance_name(self.task_id, self.map_index)}: {self.state}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """``sleep`` lets time pass between two events; ``slots`` is how many tries may run at once."""

    slots: int | None = 1
    by_priority: bool = False  # else in the order of the DAG
    wait_for_retries: bool = False
    sleep: Callable[[float], None] = field(default=lambda seconds: time.sleep(seconds))


@dataclass(slots=True, eq=False)
class _Work:
    """An instance that may run, runs, or waits for its next try or look."""

    instance: Instance
    try_number: int = 1
    first_look_s: float | None = None
    running: bool = False
    slot: bool = False
    ended: bool = False  # by the end of its run


class Engine:
    """``moments`` and ``ended`` are in the order in which things happen."""

    def __init__(self, spec: DagSpec, began_at: datetime, tries: Tries, pace: Pace) -> None:
        self.flow = Flow(spec, tries.xcoms)
        self.ended: list[TaskOutcome] = []
        self.moments: list[Moment] = []
        self.now_s = 0.0
        self._spec, self._began_at, self._tries, self._pace = spec, began_at, tries, pace
        order = topological_order(spec.dag_id, [task.task_id for task in spec.tasks], [task.upstream for task in spec.tasks])
        self._position = {index: position for position, index in enumerate(order)}
        self._sequence = itertools.count()
        self._events: list[tuple[float, int, _Work, Tried | None]] = []  # a try ends, or is due
        self._ready: list[tuple[tuple[int, int, int], int, _Work]] = []
        self._live: dict[_Work, None] = {}
        self._slots_of: Counter[int] = Counter()

    def run(self) -> RunState:
        begun = self.flow.at_once()
        self._conclude(begun)
        self._settle(begun)
        while self._start_what_may() or self._events:
            due_s = self._events[0][0]
            if due_s > self.now_s:
                self._pace.sleep(due_s - self.now_s)
                self.now_s = due_s
            while self._events and self._events[0][0] <= self.now_s:
                _, _, work, tried = heappop(self._events)
                self._happen(work, tried)
        state = self.flow.state()
        self._tries.call_back_run(state)
        return state

    def _start_what_may(self) -> bool:
        """Whether anything has been started."""
        for instance in self.flow.ready:
            self._offer(_Work(instance))
        self.flow.ready.clear()
        held_back, started = [], False
        while self._ready and (self._pace.slots is None or self._slots_of.total() < self._pace.slots):
            offer = heappop(self._ready)
            work = offer[-1]
            most = self._spec.tasks[work.instance.index].max_active_tis_per_dagrun
            if work.ended:
                continue
            if most is not None and self._slots_of[work.instance.index] >= most:
                held_back.append(offer)
                continue
            started = True
            self._start(work)
        for offer in held_back:
            heappush(self._ready, offer)
        return started

    def _offer(self, work: _Work) -> None:
        self._live[work] = None
        index = work.instance.index
        priority = -self._spec.tasks[index].priority_weight if self._pace.by_priority else 0
        heappush(self._ready, ((priority, self._position[index], work.instance.map_index), next(self._sequence), work))

    def _start(self, work: _Work) -> None:
        task = self._spec.tasks[work.instance.index]
        if not work.slot:
            work.slot = True
            self._slots_of[work.instance.index] += 1
        work.running = True
        self._note(work, TaskState.RUNNING)
        waited_s = 0.0 if work.first_look_s is None else self.now_s - work.first_look_s
        tried = self._tries.run(task, work.instance, work.try_number, waited_s)
        self._later(tried.took_s, work, tried)

    def _happen(self, work: _Work, tried: Tried | None) -> None:
        if tried is None and work.slot:
            self._start(work)
        elif tried is None:
            self._offer(work)
        else:
            work.running = False
            if not tried.keeps_slot:
                self._free(work)
            self._judge(work, tried)

    def _judge(self, work: _Work, tried: Tried) -> None:
        """A try has ended."""
        task, result = self._spec.tasks[work.instance.index], tried.result
        if result.outcome == "rescheduled":
            self._note(work, TaskState.UP_FOR_RESCHEDULE)
            work.first_look_s = self.now_s - tried.took_s if work.first_look_s is None else work.first_look_s
            self._later(result.delay_s or 0.0, work, None)
        elif (
            result.outcome == "failed"
            and may_retry(task, work.try_number, result.error_types)
            and (task.teardown or not self.flow.stopped)
        ):
            self._note(work, TaskState.UP_FOR_RETRY)
            self._tries.say(f"{task.task_id}: try {work.try_number} of {task.retries + 1} failed ({result.reason}); trying again")
            self._tries.call_back(task, work.instance, work.try_number, TaskState.UP_FOR_RETRY, result.reason)
            delay_s = next_delay(task, work.try_number, result.error_types) if self._pace.wait_for_retries else 0.0
            work.try_number += 1
            self._later(delay_s, work, None)
        else:
            state = _STATES[result.outcome]
            self._tries.call_back(task, work.instance, work.try_number, state, result.reason)
            self._end(work, state, result.reason, result.skip)

    def _end(self, work: _Work, state: TaskState, reason: str | None, skip: Iterable[int]) -> None:
        """An instance has ended, and with it what that decides."""
        key = work.instance.index, work.instance.map_index
        self._finish(work, state, reason)
        task_id = self._spec.tasks[key[0]].task_id
        skipped = self.flow.skipped_by(key, skip)
        self._conclude(dict.fromkeys(skipped, (TaskState.SKIPPED, f"Skipped by the decision of task {task_id!r}.")))
        stops = self.flow.stops_at(key[0], state)
        self._settle([key, *skipped])
        if stops:
            self._stop(f"The run was ended by fail_fast (task {task_id!r} failed).")

    def _stop(self, reason: str) -> None:
        """What runs fails, what waits is skipped, but for teardowns."""
        for instance in self.flow.ready:
            self._offer(_Work(instance))
        self.flow.ready.clear()
        ends = [work for work in self._live if not self._spec.tasks[work.instance.index].teardown]
        killed = [work for work in ends if work.running or work.first_look_s is not None or work.try_number > 1]
        stopped = self.flow.stop({work.instance.index for work in killed})
        self._conclude(dict.fromkeys(stopped, (TaskState.SKIPPED, reason)))
        for work in ends:
            work.ended = True
            self._free(work)
            if work in killed:
                task = self._spec.tasks[work.instance.index]
                self._tries.call_back(task, work.instance, work.try_number, TaskState.FAILED, reason)
            self._finish(work, TaskState.FAILED if work in killed else TaskState.SKIPPED, reason, was_tried=work in killed)
        self._events = [event for event in self._events if not event[2].ended]
        heapify(self._events)
        self._settle([*stopped, *((work.instance.index, work.instance.map_index) for work in ends)])

    def _settle(self, wave: Iterable[Key]) -> None:
        while decided := self.flow.decided_by(wave):
            self._conclude(decided)
            wave = decided

    def _conclude(self, decided: Mapping[Key, Decided]) -> None:
        """Ends what has not run."""
        for (index, map_index), (state, reason) in decided.items():
            task = self._spec.tasks[index]
            self._record(index, TaskOutcome(task_id=task.task_id, map_index=map_index, state=state, reason=reason))
            if state in (TaskState.SUCCESS, TaskState.FAILED):
                self._tries.call_back(task, Instance(index, map_index, None), 0, state, reason)

    def _finish(self, work: _Work, state: TaskState, reason: str | None, *, was_tried: bool = True) -> None:
        del self._live[work]
        task_id = self._spec.tasks[work.instance.index].task_id
        tries = work.try_number if was_tried else 0
        end = TaskOutcome(task_id=task_id, map_index=work.instance.map_index, state=state, tries=tries, reason=reason)
        self._record(work.instance.index, end)

    def _record(self, index: int, end: TaskOutcome) -> None:
        self.flow.add((index, end.map_index), end.state)
        self.ended.append(end)
        self._append_moment(end.task_id, end.map_index, end.tries, end.state)
        self._tries.say(f"{instance_name(end.task_id, end.map_index)}: {end.state}" + (f" ({end.reason})" if end.reason else ""))

    def _note(self, work: _Work, state: TaskState) -> None:
        task_id = self._spec.tasks[work.instance.index].task_id
        self._append_moment(task_id, work.instance.map_index, work.try_number, state)

    def _append_moment(self, task_id: str, map_index: int, try_number: int, state: TaskState) -> None:
        at = self._began_at + timedelta(seconds=self.now_s)
        self.moments.append(Moment(at=at, task_id=task_id, map_index=map_index, try_number=try_number, state=state))

    def _free(self, work: _Work) -> None:
        if work.slot:
            work.slot = False
            self._slots_of[work.instance.index] -= 1

    def _later(self, delay_s: float, work: _Work, tried: Tried | None) -> None:
        heappush(self._events, (self.now_s + delay_s, next(self._sequence), work, tried))


_STATES = {
    "success": TaskState.SUCCESS,
    "failed": TaskState.FAILED,
    "failed_for_good": TaskState.FAILED,
    "skipped": TaskState.SKIPPED,
}
