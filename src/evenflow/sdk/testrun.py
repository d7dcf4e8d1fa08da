"""``dag.test()``: a run in one process, without a database, that decides as the scheduler does."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import math
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from evenflow.core.model import UNMAPPED, DagSpec, MapInput, TaskSpec
from evenflow.core.params import resolve_params
from evenflow.core.retry import next_delay
from evenflow.core.states import RunState, TaskState
from evenflow.core.trigger_rules import UpstreamCounts, Verdict, counted_as, evaluate
from evenflow.errors import BadArgument, DagTestFailed
from evenflow.sdk import xcom
from evenflow.sdk.dag import DAG
from evenflow.sdk.graph import topological_order
from evenflow.sdk.runner import TryContext, TryResult, run_try
from evenflow.sdk.xcomarg import RETURN_VALUE

_BAD_ENDS = frozenset({TaskState.FAILED, TaskState.UPSTREAM_FAILED})


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
        params=resolve_params(spec.params, params),
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

    def run(self) -> RunOutcome:
        upstream = [task.upstream for task in self.spec.tasks]
        for index in topological_order(self.dag.dag_id, self.dag.task_ids, upstream):
            for end in self._run_task(self.spec.tasks[index]):
                self.ends[index].append(end)
                self.ended.append(end)
                self._say(f"{_shown(end)}: {end.state}" + (f" ({end.reason})" if end.reason else ""))
        waited_for = {source for sources in upstream for source in sources}
        leaves = (end for index, ends in enumerate(self.ends) if index not in waited_for for end in ends)
        state = RunState.FAILED if any(end.state in _BAD_ENDS for end in leaves) else RunState.SUCCESS
        counts = Counter(end.state for end in self.ended)
        self._say(f"DAG {self.dag.dag_id!r}: {state}; " + ", ".join(f"{count} {name}" for name, count in counts.items()))
        return RunOutcome(dag=self.dag, run_id=self.base.run_id, state=state, tasks=self.ended, xcoms=self.xcoms)

    def _run_task(self, task: TaskSpec) -> Iterator[TaskOutcome]:
        counts = [counted_as(end.state) for source in task.upstream for end in self.ends[source]]
        verdict = evaluate(task.trigger_rule, UpstreamCounts(len(counts), *map(sum, zip(*counts, strict=True))))
        match verdict:
            case Verdict.SKIP:
                yield TaskOutcome(task_id=task.task_id, map_index=UNMAPPED, state=TaskState.SKIPPED)
            case Verdict.UPSTREAM_FAIL:
                yield TaskOutcome(task_id=task.task_id, map_index=UNMAPPED, state=TaskState.UPSTREAM_FAILED)
            case _ if task.mapping is not None:
                yield from self._run_mapped(task, task.mapping.inputs)
            case _:
                yield self._run_instance(task, UNMAPPED, None)

    def _run_mapped(self, task: TaskSpec, inputs: tuple[MapInput, ...]) -> Iterator[TaskOutcome]:
        lengths = [self._length(item) for item in inputs]
        known = [length for length in lengths if length is not None]
        if len(known) < len(lengths):
            names = ", ".join(repr(item.name) for item, length in zip(inputs, lengths, strict=True) if length is None)
            reason = f"It maps {names} over a result that is no list and no dict."
            yield TaskOutcome(task_id=task.task_id, map_index=UNMAPPED, state=TaskState.FAILED, reason=reason)
            return
        total = math.prod(known)
        if not total:
            reason = "It was expanded over nothing."
            yield TaskOutcome(task_id=task.task_id, map_index=UNMAPPED, state=TaskState.SKIPPED, reason=reason)
        for map_index in range(total):
            yield self._run_instance(task, map_index, total)

    def _length(self, item: MapInput) -> int | None:
        if item.task is None:
            return item.length
        source = self.spec.tasks[item.task]
        if source.mapping is not None:
            return sum(at[:2] == (source.task_id, item.key) for at in self.xcoms)
        stored = self.xcoms.get((source.task_id, item.key, UNMAPPED))
        return xcom.mapped_length(json.loads(stored)) if stored is not None else None

    def _run_instance(self, task: TaskSpec, map_index: int, map_length: int | None) -> TaskOutcome:
        if task.empty:
            return TaskOutcome(task_id=task.task_id, map_index=map_index, state=TaskState.SUCCESS)
        try_number = 0
        while True:
            try_number += 1
            result = self._run_try(task, map_index, map_length, try_number)
            if result.outcome != "failed" or try_number > task.retries:
                break
            self._say(f"{task.task_id}: try {try_number} of {task.retries + 1} failed ({result.reason}); trying again")
            if self.wait_for_retries:
                time.sleep(next_delay(task, try_number))
        return TaskOutcome(
            task_id=task.task_id, map_index=map_index, state=_STATES[result.outcome], tries=try_number, reason=result.reason
        )

    def _run_try(self, task: TaskSpec, map_index: int, map_length: int | None, try_number: int) -> TryResult:
        for at in [at for at in self.xcoms if at[0] == task.task_id and at[2] == map_index]:
            del self.xcoms[at]
        context = dataclasses.replace(
            self.base,
            task_id=task.task_id,
            map_index=map_index,
            map_length=map_length,
            try_number=try_number,
            max_tries=task.retries + 1,
        )
        with contextlib.ExitStack() as stack:
            if not self.print_logs:
                stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
                stack.enter_context(contextlib.redirect_stderr(io.StringIO()))
            result = run_try(self.dag, context, _Channel(self.xcoms, task.task_id, map_index))
        if result.error_types[:1] == ["KeyboardInterrupt"]:
            raise KeyboardInterrupt
        if result.result is not None:
            self.xcoms[task.task_id, RETURN_VALUE, map_index] = result.result
        return result

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
