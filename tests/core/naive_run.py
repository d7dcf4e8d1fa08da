"""A whole run, decided in the most obvious way: from the states of all upstreams, read again each time, without counters.

``NaiveRun`` is told how instances end, one after the other, and settles after each what that decides, in waves: everything that can
be decided is decided at once, from the states before, until nothing more can be.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from evenflow.core.model import UNMAPPED, DagSpec
from evenflow.core.states import RunState, TaskState
from evenflow.core.trigger_rules import TriggerRule

Key = tuple[int, int]  # task index, map index
S = TaskState
ENDED = {S.SUCCESS, S.FAILED, S.SKIPPED, S.UPSTREAM_FAILED}
BAD = {S.FAILED, S.UPSTREAM_FAILED}


class NaiveRun:
    """``lengths`` says into how many instances each mapped task expands. What may run has the state ``scheduled``."""

    def __init__(self, spec: DagSpec, lengths: Mapping[int, int] | None = None) -> None:
        self.spec = spec
        self.lengths = lengths or {}
        self.states: dict[Key, TaskState] = {(i, UNMAPPED): S.NONE for i in range(len(spec.tasks))}
        self.tries: dict[Key, int] = {}
        self.cancelled = False
        self._settle()

    def may_run(self) -> set[Key]:
        return {key for key, state in self.states.items() if state is S.SCHEDULED}

    def end(self, task_index: int, map_index: int = UNMAPPED, outcome: str = "success", skip: Iterable[int] = ()) -> None:
        """An instance that may run ends: ``success``, ``failed`` (with tries left it may run again), ``failed_for_good`` or
        ``skipped``; a branch names the tasks that it skips.
        """
        key, task = (task_index, map_index), self.spec.tasks[task_index]
        assert self.states[key] is S.SCHEDULED, (task.task_id, map_index, self.states[key])
        self.tries[key] = self.tries.get(key, 0) + 1
        gives_up = self.cancelled and not task.teardown
        if outcome == "failed" and self.tries[key] <= task.retries and not gives_up:
            return
        self.states[key] = {"success": S.SUCCESS, "skipped": S.SKIPPED}.get(outcome, S.FAILED)
        if outcome == "success":
            for skipped in skip:
                if self.states.get((skipped, UNMAPPED)) is S.NONE:
                    self.states[skipped, UNMAPPED] = S.SKIPPED
        decisive = not task.teardown or task.on_failure_fail_dagrun
        stops = self.spec.fail_fast and self.states[key] is S.FAILED and decisive and not self.cancelled
        if stops:
            self.cancelled = True
        self._settle()
        if stops:
            self._end_all()

    def cancel(self) -> None:
        """What waits is skipped, what may run is killed, but for teardowns; what stands between the two waits for the killed."""
        if not self.cancelled:
            self.cancelled = True
            self._end_all()

    def _end_all(self) -> None:
        if self.state is not None:
            return
        tasks = self.spec.tasks
        killed = [(i, m) for i, m in self.may_run() if not tasks[i].teardown]
        for (i, m), state in self.states.items():
            between = any(self._follows(i, k) for k, _ in killed) and any(
                self._follows(t, i) for t, task in enumerate(tasks) if task.teardown
            )
            if not tasks[i].teardown and state is S.NONE and not between:
                self.states[i, m] = S.SKIPPED
        self._settle()
        self.states.update(dict.fromkeys(killed, S.FAILED))
        self._settle()

    def _follows(self, task_index: int, source: int) -> bool:
        """Whether a task waits for another, directly or not."""
        return any(u == source or self._follows(u, source) for u in self.spec.tasks[task_index].upstream)

    @property
    def state(self) -> RunState | None:
        """None while something is unfinished."""
        if any(state not in ENDED for state in self.states.values()):
            return None
        if self.cancelled:
            return RunState.FAILED
        return RunState.FAILED if any(s in BAD for (i, _), s in self.states.items() if i in self.leaves()) else RunState.SUCCESS

    def leaves(self) -> set[int]:
        """The tasks whose end decides how the run ends."""
        tasks = self.spec.tasks
        counted = {i for i, task in enumerate(tasks) if not task.teardown or task.on_failure_fail_dagrun}
        if not counted:
            counted = set(range(len(tasks)))
        return {i for i in counted if not any(i in tasks[d].upstream for d in counted)}

    def _settle(self) -> None:
        while decided := self._wave():
            self.states.update(decided)
            for i, _ in decided:
                if (i, 0) in decided:
                    self.states.pop((i, UNMAPPED), None)

    def _wave(self) -> dict[Key, TaskState]:
        decided: dict[Key, TaskState] = {}
        for (i, m), state in self.states.items():
            if state is not S.NONE:
                continue
            task = self.spec.tasks[i]
            wanted = decide(task.trigger_rule, *self._upstreams(i))
            if wanted is S.SCHEDULED and self.cancelled and not task.teardown:
                wanted = S.SKIPPED
            if wanted is S.SCHEDULED and task.mapping is not None:
                length = self.lengths[i]
                decided |= {(i, n): S.SCHEDULED for n in range(length)} or {(i, m): S.SKIPPED}
            elif wanted is S.SCHEDULED and task.empty:
                decided[i, m] = S.SUCCESS
            elif wanted is not None:
                decided[i, m] = wanted
        return decided

    def _upstreams(self, index: int) -> tuple[list[TaskState], list[TaskState]]:
        """The states of everything that a task waits for, and of the setups among it."""
        states: list[TaskState] = []
        setups: list[TaskState] = []
        for source in self.spec.tasks[index].upstream:
            of_source = [state for (i, _), state in self.states.items() if i == source]
            states += of_source
            if self.spec.tasks[source].setup:
                setups += of_source
        return states, setups


def decide(rule: TriggerRule, upstreams: list[TaskState], setups: list[TaskState]) -> TaskState | None:
    """What a waiting task becomes; None: it goes on waiting."""
    if not upstreams or rule is TriggerRule.ALWAYS:
        return S.SCHEDULED
    all_done = all(state in ENDED for state in upstreams)
    success = S.SUCCESS in upstreams
    skipped = S.SKIPPED in upstreams
    failed = S.FAILED in upstreams or S.UPSTREAM_FAILED in upstreams
    ready = S.SCHEDULED if all_done else None
    if rule is TriggerRule.ALL_SUCCESS:
        return S.UPSTREAM_FAILED if failed else S.SKIPPED if skipped else ready
    if rule is TriggerRule.ALL_FAILED:
        return S.SKIPPED if success or skipped else ready
    if rule is TriggerRule.ALL_DONE:
        return ready
    if rule is TriggerRule.ALL_SKIPPED:
        return S.SKIPPED if success or failed else ready
    if rule is TriggerRule.NONE_FAILED:
        return S.UPSTREAM_FAILED if failed else ready
    if rule is TriggerRule.NONE_SKIPPED:
        return S.SKIPPED if skipped else ready
    if rule is TriggerRule.NONE_FAILED_MIN_ONE_SUCCESS:
        return S.UPSTREAM_FAILED if failed else S.SKIPPED if all_done and not success else ready
    if rule is TriggerRule.ONE_FAILED:
        return S.SCHEDULED if failed else S.SKIPPED if all_done else None
    if rule is TriggerRule.ONE_DONE:
        return S.SCHEDULED if success or failed else S.SKIPPED if all_done else None
    if rule is TriggerRule.ONE_SUCCESS:
        return S.SCHEDULED if success else None if not all_done else S.UPSTREAM_FAILED if failed else S.SKIPPED
    if rule is TriggerRule.ALL_DONE_MIN_ONE_SUCCESS:
        return None if not all_done else S.SCHEDULED if success else S.UPSTREAM_FAILED if failed else S.SKIPPED
    assert rule is TriggerRule.ALL_DONE_SETUP_SUCCESS
    if not all_done:
        return None
    if not setups or S.SUCCESS in setups:
        return S.SCHEDULED
    return S.SKIPPED if all(state is S.SKIPPED for state in setups) else S.UPSTREAM_FAILED
