"""``dag.test()``: a run in one process, without a database, that decides as the scheduler does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from evenflow.core.model import UNMAPPED, DagSpec, instance_name
from evenflow.core.states import RunState, TaskState
from evenflow.errors import BadArgument, DagTestFailed
from evenflow.sdk import xcom
from evenflow.sdk.dag import DAG
from evenflow.sdk.local.engine import Engine, Pace, TaskOutcome
from evenflow.sdk.local.tries import MemoryChannel, TestTries, XComs, run_for_real
from evenflow.sdk.param_schema import checked_params
from evenflow.sdk.trying.runner import TryContext
from evenflow.sdk.xcomarg import RETURN_VALUE


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutcome:
    """What ``dag.test()`` returns."""

    dag: DAG
    run_id: str
    state: RunState
    tasks: list[TaskOutcome]  # in the order in which they ended
    xcoms: XComs = field(repr=False)

    @property
    def states(self) -> dict[str, TaskState | list[TaskState]]:
        """By task id; of a mapped task the list for its instances."""
        ends: dict[str, list[TaskOutcome]] = {task_id: [] for task_id in self.dag.task_dict}
        for end in self.tasks:
            ends[end.task_id].append(end)
        found: dict[str, TaskState | list[TaskState]] = {}
        for task_id, task in self.dag.task_dict.items():
            states = [end.state for end in sorted(ends[task_id], key=lambda end: end.map_index)]
            found[task_id] = states if task.is_mapped else states[0]
        return found

    def result(self, task_id: str, map_index: int | None = None, key: str = RETURN_VALUE) -> Any:
        """What a task returned, or pushed under ``key``; of a mapped task the list of all without a ``map_index``. None when there
        is nothing.
        """
        task = self.dag.get_task(task_id)
        channel = MemoryChannel(self.xcoms, task_id, UNMAPPED)
        found, value = channel.xcom_pull(task_id, key, map_index if task.is_mapped else UNMAPPED)
        return xcom.decode(value, f"The XCom {key!r} of task {task_id!r}") if found else None

    def raise_on_failure(self) -> None:
        """Raises :class:`DagTestFailed` with the reason of every task that failed, if the run did."""
        if self.state is not RunState.FAILED:
            return
        failed = [end for end in self.tasks if end.state is TaskState.FAILED]
        reasons = [f"{instance_name(end.task_id, end.map_index)}: {end.reason}" for end in failed]
        raise DagTestFailed(f"The run {self.run_id!r} of DAG {self.dag.dag_id!r} failed. " + "; ".join(reasons))


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
    base = context_of_run(spec, datetime.now(UTC), params, run_id, logical_date)
    tries = TestTries(dag, base, run_for_real, print_logs=print_logs, calls_back=True)
    engine = Engine(spec, base.run_after, tries, Pace(wait_for_retries=wait_for_retries))
    state = engine.run()
    counts = Counter(end.state for end in engine.ended)
    tries.say(f"DAG {dag.dag_id!r}: {state}; " + ", ".join(f"{count} {name}" for name, count in counts.items()))
    return RunOutcome(dag=dag, run_id=base.run_id, state=state, tasks=engine.ended, xcoms=tries.xcoms)


def context_of_run(
    spec: DagSpec, now: datetime, params: Mapping[str, Any], run_id: str | None, logical_date: datetime | None
) -> TryContext:
    """What all tries of a run by hand are told of it. Raises :class:`ParamError` for params that do not fit."""
    if logical_date is not None and logical_date.tzinfo is None:
        raise BadArgument(f"logical_date must have a time zone, e.g. datetime(2026, 1, 1, tzinfo=UTC); {logical_date!r} has none.")
    return TryContext(
        dag_id=spec.dag_id,
        run_id=run_id or f"test__{now.isoformat(timespec='seconds')}",
        task_id="",
        run_after=now,
        params=checked_params(spec.params, params),
        logical_date=logical_date,
        data_interval_start=logical_date,
        data_interval_end=logical_date,
    )
