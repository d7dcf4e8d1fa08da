"""A run in memory: an event loop over a time of its own, on which tries start, end, and are started again.

The flow says what may run, the pace when: one after the other, or side by side within the limits of the run, and whether time
passes for real between two events.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from heapq import heapify, heappop, heappush
from typing import Any

from evenflow.core.model import DagSpec, instance_name
from evenflow.core.retry import may_retry, next_delay
from evenflow.core.states import RunState, TaskState
from evenflow.sdk.graph import topological_order
from evenflow.sdk.local.flow import Decided, Flow, FlowInstance, Key
from evenflow.sdk.local.tries import TestTries, Tried
from evenflow.sdk.local.triggers import TestTriggers
from evenflow.sdk.triggers import BaseTrigger, load


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
    """``sleep`` lets time pass between two events, ``make_loop`` makes an event loop in whose time triggers wait, which
    ``trigger_of`` makes from what a task instance deferred with; ``slots`` is how many tries may run at once.
    """

    slots: int | None = 1
    by_priority: bool = False  # else in the order of the DAG
    wait_for_retries: bool = False
    sleep: Callable[[float], None] = field(default=lambda seconds: time.sleep(seconds))
    make_loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop
    trigger_of: Callable[[str, int, Mapping[str, Any]], BaseTrigger] = field(
        default=lambda task_id, map_index, defer: load(defer["trigger"], defer["trigger_kwargs"])
    )


@dataclass(slots=True, eq=False)
class _Work:
    """An instance that may run, runs, or waits for its next try or look."""

    instance: FlowInstance
    try_number: int = 1
    first_look_s: float | None = None
    running: bool = False
    slot: bool = False  # of the run
    counted: bool = False  # by the limits of its task
    ended: bool = False  # by the end of its run
    began_s: float = 0.0  # its try
    resumed: dict[str, Any] | None = None  # it goes on after it was deferred: the fields of a core.deferral.Resumed


class Engine:
    """``moments`` and ``ended`` are in the order in which things happen."""

    def __init__(self, spec: DagSpec, began_at: datetime, tries: TestTries, pace: Pace) -> None:
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
        self._slots = 0
        self._counted: Counter[int] = Counter()
        self._triggers: TestTriggers[_Work] = TestTriggers(pace.make_loop)

    def run(self) -> RunState:
        begun = self.flow.at_once()
        self._conclude(begun)
        self._settle(begun)
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
        """Until something is due, or a trigger is over: a return is not refused by a limit."""
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
        """Whether anything has been started."""
        for instance in self.flow.ready:
            self._offer(_Work(instance))
        self.flow.ready.clear()
        held_back, started = [], False
        while self._ready and (self._pace.slots is None or self._slots < self._pace.slots):
            offer = heappop(self._ready)
            work = offer[-1]
            most = self._spec.tasks[work.instance.index].max_active_tis_per_dagrun
            if work.ended:
                continue
            if most is not None and self._counted[work.instance.index] >= most:
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
        self._take(work)
        work.running = True
        self._note(work, TaskState.RUNNING)
        waited_s = 0.0 if work.first_look_s is None else self.now_s - work.first_look_s
        resumed, work.resumed = work.resumed, None
        if resumed is None:
            work.began_s = self.now_s
        else:
            resumed["began_s"] = self.now_s - work.began_s
        tried = self._tries.run(task, work.instance, work.try_number, waited_s, resumed)
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
        elif result.defer is not None:
            self._note(work, TaskState.DEFERRED)
            self._tries.say(
                f"{instance_name(task.task_id, work.instance.map_index)}: deferred, waits for {result.defer['trigger']}"
            )
            self._hold_while_deferred(work)
            address = task.task_id, work.instance.map_index
            trigger = self._pace.trigger_of(*address, result.defer)
            self._triggers.begin(work, trigger, result.defer, self._tries.channel_of(*address))
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
        waited = {work for work in ends if self._stop_waiting(work, reason)}
        killed = [work for work in ends if work.running or work in waited or work.first_look_s is not None or work.try_number > 1]
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
                self._tries.call_back(task, FlowInstance(index, map_index, None), 0, state, reason)

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

    def _stop_waiting(self, work: _Work, reason: str) -> bool:
        """Whether it was deferred; then what it has started outside is stopped."""
        resumed = self._triggers.kill(work, reason)
        task = self._spec.tasks[work.instance.index]
        if resumed is not None and task.cleans_up:
            self._tries.run(task, work.instance, work.try_number, 0.0, resumed)
        return resumed is not None

    def _take(self, work: _Work) -> None:
        self._slots += not work.slot
        self._counted[work.instance.index] += not work.counted
        work.slot = work.counted = True

    def _hold_while_deferred(self, work: _Work) -> None:
        """Gives back what a deferred try does not keep: unless its task says otherwise, its slot of the run."""
        chosen = self._spec.tasks[work.instance.index].while_deferred or {}
        slot, counted = chosen.get("run") == "hold", chosen.get("task_limits") != "release"
        self._free(work)
        self._slots += slot
        self._counted[work.instance.index] += counted
        work.slot, work.counted = slot, counted

    def _free(self, work: _Work) -> None:
        self._slots -= work.slot
        self._counted[work.instance.index] -= work.counted
        work.slot = work.counted = False

    def _later(self, delay_s: float, work: _Work, tried: Tried | None) -> None:
        heappush(self._events, (self.now_s + delay_s, next(self._sequence), work, tried))


_STATES = {
    "success": TaskState.SUCCESS,
    "failed": TaskState.FAILED,
    "failed_for_good": TaskState.FAILED,
    "skipped": TaskState.SKIPPED,
}
