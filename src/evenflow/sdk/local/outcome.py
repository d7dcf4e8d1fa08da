"""The outcome of a run in memory: how its tasks ended, and what they passed on."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from evenflow.core.model import UNMAPPED, instance_name
from evenflow.core.states import RunState, TaskState
from evenflow.errors import DagTestFailed
from evenflow.sdk import xcom
from evenflow.sdk.nodes import NodesOfDag
from evenflow.sdk.task import Task
from evenflow.sdk.taskgroup import TaskGroup
from evenflow.sdk.xcomarg import RETURN_VALUE

StoredXComs = dict[tuple[str, str, int], bytes]  # JSON by task id, key and map index


def pulled(xcoms: StoredXComs, task_id: str, key: str, map_index: int | None) -> tuple[bool, Any]:
    """Returns (found, value), encoded; with ``map_index`` None a list of all instances in map order."""
    if map_index is None:
        found = sorted((at[2], text) for at, text in xcoms.items() if at[:2] == (task_id, key))
        return bool(found), [json.loads(text) for _, text in found]
    stored = xcoms.get((task_id, key, map_index))
    return stored is not None, json.loads(stored) if stored is not None else None


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

    dag: NodesOfDag[Task, TaskGroup]
    run_id: str
    state: RunState
    tasks: list[TaskOutcome]  # in the order of their ends
    xcoms: StoredXComs = field(repr=False)

    @property
    def states(self) -> dict[str, TaskState | list[TaskState]]:
        """The states by task id; for a mapped task the list of its instances' states."""
        ends: dict[str, list[TaskOutcome]] = {task_id: [] for task_id in self.dag.task_dict}
        for end in self.tasks:
            ends[end.task_id].append(end)
        found: dict[str, TaskState | list[TaskState]] = {}
        for task_id, task in self.dag.task_dict.items():
            states = [end.state for end in sorted(ends[task_id], key=lambda end: end.map_index)]
            found[task_id] = states if task.is_mapped else states[0]
        return found

    def result(self, task_id: str, map_index: int | None = None, key: str = RETURN_VALUE) -> Any:
        """Returns what a task returned, or pushed under ``key``; for a mapped task without ``map_index``, the list of all. None
        without a value.
        """
        task = self.dag.get_task(task_id)
        found, value = pulled(self.xcoms, task_id, key, map_index if task.is_mapped else UNMAPPED)
        return xcom.decode(value, f"The XCom {key!r} of task {task_id!r}") if found else None

    def raise_on_failure(self) -> None:
        """Raises :class:`DagTestFailed` with the reason of every failed task, if the run failed."""
        if self.state is not RunState.FAILED:
            return
        failed = [end for end in self.tasks if end.state is TaskState.FAILED]
        reasons = [f"{instance_name(end.task_id, end.map_index)}: {end.reason}" for end in failed]
        raise DagTestFailed(f"The run {self.run_id!r} of DAG {self.dag.dag_id!r} failed. " + "; ".join(reasons))
