"""``dag.test()``: a run in one process, without a database, that decides as the scheduler does."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from evenflow.core.model import UNMAPPED, DagSpec, TaskSpec
from evenflow.core.retry import may_retry, next_delay
from evenflow.core.states import RunState, TaskState
from evenflow.core.trigger_rules import Verdict
from evenflow.errors import BadArgument, DagTestFailed
from evenflow.sdk import xcom
from evenflow.sdk.alone import answer_alone
from evenflow.sdk.dag import DAG
from evenflow.sdk.graph import topological_order
from evenflow.sdk.param_schema import checked_params
from evenflow.sdk.runner import TryContext, TryResult, run_try
from evenflow.sdk.testcallbacks import TestCallbacks
from evenflow.sdk.testexpansion import Expansions, Whole
from evenflow.sdk.testflow import Decided, Flow
from evenflow.sdk.xcomarg import RETURN_VALUE


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskOutcome:
    """How an instance ended; ``map_index`` is -1 when its task is not mapped, or has no instances."""

    task_id: str
    map_index: int
    state: TaskState
    tries: int = 0
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutcome:
    """What ``dag.test()`` returns."""

    dag: DAG
    run_id: str
    state: RunState
    tasks: list[TaskOutcome]  # in the order in which they ended
    xcoms: dict[tuple[str, str, int], bytes] = field(repr=False)  # JSON by task id, key and map index

    @property
    def states(self) -> dict[str, TaskState | list[TaskState]]:
        """By task id; of a mapped task the list for its instances."""
        found: dict[str, TaskState | list[TaskState]] = {}
        for task_id, task in self.dag.tasks.items():
            ends = [end.state for end in sorted(self.tasks, key=lambda end: end.map_index) if end.task_id == task_id]
            found[task_id] = ends if task.is_mapped else ends[0]
        return found

    def result(self, task_id: str, map_index: int | None = None, key: str = RETURN_VALUE) -> Any:
        """What a task returned, or pushed under ``key``; of a mapped task the list of all without a ``map_index``. None when there
        is nothing.
        """
        task = self.dag.get_task(task_id)
        channel = _Channel(self.xcoms, task_id, UNMAPPED)
        found, value = channel.xcom_pull(task_id, key, map_index if task.is_mapped else UNMAPPED)
        return xcom.decode(value, f"The XCom {key!r} of task {task_id!r}") if found else None

    def raise_on_failure(self) -> None:
        """Raises :class:`DagTestFailed` with the reason of every task that failed, if the run did."""
        if self.state is not RunState.FAILED:
            return
        reasons = [f"{_shown(end)}: {end.reason}" for end in self.tasks if end.state is TaskState.FAILED]
        raise DagTestFailed(f"The run {self.run_id!r} of DAG {self.dag.dag_id!r} failed. " + "; ".join(reasons))


@dataclass(slots=True)
class _Channel:
    """XComs in memory, as the JSON that production stores."""

    xcoms: dict[tuple[str, str, int], bytes]
    task_id: str
    map_index: int

    def xcom_pull(self, task_id: str, key: str, map_index: int | None) -> tuple[bool, Any]:
        if map_index is None:
            found = sorted((at[2], text) for at, text in self.xcoms.items() if at[:2] == (task_id, key))
            return bool(found), [json.loads(text) for _, text in found]
        stored = self.xcoms.get((task_id, key, map_index))
        return stored is not None, json.loads(stored) if stored is not None else None

    def xcom_push(self, key: str, value: Any) -> None:
        self.xcoms[self.task_id, key, self.map_index] = xcom.to_json(value, f"The XCom {key!r} of task {self.task_id!r}")

    def progress(self, label: str, done: int, total: int, detail: dict[str, Any]) -> None:
        print(f"{label}: {done} of {total}")

    def ask(self, question: str, arguments: dict[str, Any]) -> dict[str, Any]:
        if question == "element":
            found = sorted(at[2] for at in self.xcoms if at[:2] == (arguments["task_id"], arguments["key"]))
            index = arguments["index"]
            return {"length": len(found), "map_index": found[index] if index < len(found) else None}
        return answer_alone(question, arguments)


def run_dag(
    dag: DAG,
    *,
    params: Mapping[str, Any],
    run_id: str | None,
    logical_date: datetime | None,
    print_logs: bool,
    wait_for_retries: bool,
) -> RunOutcome:
    """See :meth:`DAG.test`."""
    spec = dag.to_spec()
    now = datetime.now(UTC)
    if logical_date is not None and logical_date.tzinfo is None:
        raise BadArgument(f"logical_date must have a time zone, e.g. datetime(2026, 1, 1, tzinfo=UTC); {logical_date!r} has none.")
    base = TryContext(
        dag_id=dag.dag_id,
        run_id=run_id or f"test__{now.isoformat(timespec='seconds')}",
        task_id="",
        run_after=now,
        params=checked_params(spec.params, params),
        logical_date=logical_date,
        data_interval_start=logical_date,
        data_interval_end=logical_date,
    )
    return _TestRun(dag, spec, base, print_logs, wait_for_retries).run()


class _TestRun:
    def __init__(self, dag: DAG, spec: DagSpec, base: TryContext, print_logs: bool, wait_for_retries: bool) -> None:
        self.dag, self.spec, self.base = dag, spec, base
        self.print_logs, self.wait_for_retries = print_logs, wait_for_retries
        self.xcoms: dict[tuple[str, str, int], bytes] = {}
        self.ends: list[list[TaskOutcome]] = [[] for _ in spec.tasks]
        self.ended: list[TaskOutcome] = []
        self.expansions = Expansions(spec, self.xcoms, self.ends)
        self.flow = Flow(spec, self.expansions, self.ends)
        self.callbacks = TestCallbacks(dag, self._say, lambda task_id, map_index: _Channel(self.xcoms, task_id, map_index))
        self.skips: list[int] = []  # what the task that has just ended decided against

    def run(self) -> RunOutcome:
        upstream = [task.upstream for task in self.spec.tasks]
        begun = self.flow.at_once()
        self._conclude(begun)
        self._settle(begun)
        for index in topological_order(self.dag.dag_id, self.dag.task_ids, upstream):
            if self.ends[index]:  # decided before its turn
                continue
            for end in self._run_task(index):
                self._end(index, end)
        state = self.flow.state()
        with self._quiet():
            self.callbacks.of_run(self.base, state)
        counts = Counter(end.state for end in self.ended)
        self._say(f"DAG {self.dag.dag_id!r}: {state}; " + ", ".join(f"{count} {name}" for name, count in counts.items()))
        return RunOutcome(dag=self.dag, run_id=self.base.run_id, state=state, tasks=self.ended, xcoms=self.xcoms)

    def _end(self, index: int, end: TaskOutcome) -> None:
        """Something has ended, and with it what that decides."""
        self._record(index, end)
        skipped, self.skips = self.flow.skipped_by(index, self.skips), []
        self._conclude(dict.fromkeys(skipped, (TaskState.SKIPPED, f"Skipped by the decision of task {end.task_id!r}.")))
        stops = self.flow.stops_at(index, end.state)
        self._settle([index, *skipped])
        if stops:
            stopped = self.flow.stop()
            reason = f"The run was ended by fail_fast (task {end.task_id!r} failed)."
            self._conclude(dict.fromkeys(stopped, (TaskState.SKIPPED, reason)))
            self._settle(stopped)

    def _settle(self, wave: Iterable[int]) -> None:
        while decided := self.flow.decided_by(wave):
            self._conclude(decided)
            wave = decided

    def _conclude(self, decided: Mapping[int, Decided]) -> None:
        """Ends tasks as a whole that have not run."""
        for index, (state, reason) in decided.items():
            self._record(index, TaskOutcome(task_id=self.spec.tasks[index].task_id, map_index=UNMAPPED, state=state, reason=reason))

    def _record(self, index: int, end: TaskOutcome) -> None:
        self.ends[index].append(end)
        self.ended.append(end)
        self._say(f"{_shown(end)}: {end.state}" + (f" ({end.reason})" if end.reason else ""))
        if not end.tries and end.state in (TaskState.SUCCESS, TaskState.FAILED):
            self._call_back(self.spec.tasks[index], end.map_index, None, 0, end.state, end.reason)

    def _run_task(self, index: int) -> Iterator[TaskOutcome]:
        task = self.spec.tasks[index]
        instances = self.expansions.before(index)
        if isinstance(instances, Whole):
            yield TaskOutcome(task_id=task.task_id, map_index=UNMAPPED, state=instances.state, reason=instances.reason)
            return
        for instance in instances:
            match self.flow.verdict(index, instance.waits_for):
                case Verdict.SKIP:
                    yield TaskOutcome(task_id=task.task_id, map_index=instance.map_index, state=TaskState.SKIPPED)
                case Verdict.UPSTREAM_FAIL:
                    yield TaskOutcome(task_id=task.task_id, map_index=instance.map_index, state=TaskState.UPSTREAM_FAILED)
                case _ if instance.map_index == UNMAPPED and (length := self.expansions.after(index)) is not None:
                    yield from self._run_mapped(index, length)
                case _:
                    yield self._run_instance(task, instance.map_index, instance.map_length)

    def _run_mapped(self, index: int, length: int | Whole) -> Iterator[TaskOutcome]:
        task = self.spec.tasks[index]
        if isinstance(length, Whole):
            yield TaskOutcome(task_id=task.task_id, map_index=UNMAPPED, state=length.state, reason=length.reason)
            return
        self.flow.expected[index] = length
        for map_index in range(length):
            yield self._run_instance(task, map_index, length)

    def _run_instance(self, task: TaskSpec, map_index: int, map_length: int | None) -> TaskOutcome:
        if task.empty:
            return TaskOutcome(task_id=task.task_id, map_index=map_index, state=TaskState.SUCCESS)
        try_number = 0
        while True:
            try_number += 1
            result = self._run_try(task, map_index, map_length, try_number)
            while result.outcome == "rescheduled":
                time.sleep(result.delay_s or 0.0)
                result = self._run_try(task, map_index, map_length, try_number)
            if result.outcome != "failed" or not may_retry(task, try_number, result.error_types):
                break
            self._say(f"{task.task_id}: try {try_number} of {task.retries + 1} failed ({result.reason}); trying again")
            self._call_back(task, map_index, map_length, try_number, TaskState.UP_FOR_RETRY, result.reason)
            if self.wait_for_retries:
                time.sleep(next_delay(task, try_number, result.error_types))
        self.skips = result.skip
        self._call_back(task, map_index, map_length, try_number, _STATES[result.outcome], result.reason)
        return TaskOutcome(
            task_id=task.task_id, map_index=map_index, state=_STATES[result.outcome], tries=try_number, reason=result.reason
        )

    def _run_try(self, task: TaskSpec, map_index: int, map_length: int | None, try_number: int) -> TryResult:
        for at in [at for at in self.xcoms if at[0] == task.task_id and at[2] == map_index]:
            del self.xcoms[at]
        context = self._context_of(task, map_index, map_length, try_number)
        with self._quiet():
            result = run_try(self.dag, context, _Channel(self.xcoms, task.task_id, map_index))
        if result.error_types[:1] == ["KeyboardInterrupt"]:
            raise KeyboardInterrupt
        if result.result is not None:
            self.xcoms[task.task_id, RETURN_VALUE, map_index] = result.result
        return result

    def _call_back(
        self, task: TaskSpec, map_index: int, map_length: int | None, try_number: int, state: TaskState, reason: str | None
    ) -> None:
        with self._quiet():
            self.callbacks.of_try(self._context_of(task, map_index, map_length, try_number), state, reason)

    def _context_of(self, task: TaskSpec, map_index: int, map_length: int | None, try_number: int) -> TryContext:
        return dataclasses.replace(
            self.base,
            task_id=task.task_id,
            map_index=map_index,
            map_length=map_length,
            try_number=try_number,
            max_tries=task.retries + 1,
        )

    @contextlib.contextmanager
    def _quiet(self) -> Iterator[None]:
        """What user code prints goes nowhere, unless logs are wanted."""
        with contextlib.ExitStack() as stack:
            if not self.print_logs:
                stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
                stack.enter_context(contextlib.redirect_stderr(io.StringIO()))
            yield

    def _say(self, line: str) -> None:
        if self.print_logs:
            print(line, flush=True)


_STATES = {
    "success": TaskState.SUCCESS,
    "failed": TaskState.FAILED,
    "failed_for_good": TaskState.FAILED,
    "skipped": TaskState.SKIPPED,
}


def _shown(end: TaskOutcome) -> str:
    return end.task_id if end.map_index == UNMAPPED else f"{end.task_id}[{end.map_index}]"
