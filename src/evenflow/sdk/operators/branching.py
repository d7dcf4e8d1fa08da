"""Tasks that decide which of their downstream tasks are skipped.

The decision is part of the try's exit, so that both take effect together: no downstream task can start before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any

from evenflow.core.timetable import Past, next_of
from evenflow.errors import BadBranch
from evenflow.sdk.clock import clock
from evenflow.sdk.context import Context, TaskInstance
from evenflow.sdk.dag import DAG
from evenflow.sdk.graph import upstream_indexes
from evenflow.sdk.operator import BaseOperator, PythonOperator
from evenflow.sdk.task import Task

Chosen = str | Iterable[str] | None


class SkipMixin:
    """Skips downstream tasks from within ``execute``."""

    def skip(self, ti: TaskInstance, tasks: Iterable[Task]) -> None:
        """Skips these tasks when this try succeeds, directly downstream or not."""
        ti.skipped_tasks.update(task.task_id for task in tasks)

    def skip_all_except(self, ti: TaskInstance, branch_task_ids: Chosen) -> None:
        """Skips the tasks directly downstream, except for the chosen ones and those that follow a chosen one.

        The choice is by ids of tasks and task groups. Teardowns are never skipped. Raises :class:`BadBranch`.
        """
        ti.skipped_tasks.update(not_chosen(ti.task, branch_task_ids))


class BaseBranchOperator(BaseOperator, SkipMixin):
    """Follows the tasks that ``choose_branch`` names, and skips the others directly downstream."""

    operator_name = "branch"

    def choose_branch(self, context: Context) -> Chosen:
        """Returns ids of tasks or task groups directly downstream: one, several, or none (also None) to skip them all."""
        raise NotImplementedError(f"{type(self).__name__} has no choose_branch(self, context)")

    def execute(self, context: Context) -> Any:
        chosen = listed(self.choose_branch(context))
        self.skip_all_except(context["ti"], chosen)
        return chosen


class BranchByResult(PythonOperator, SkipMixin):
    """Follows the tasks whose ids ``python_callable`` returns, see :meth:`BaseBranchOperator.choose_branch`."""

    def execute(self, context: Context) -> Any:
        chosen = listed(super().execute(context))
        self.skip_all_except(context["ti"], chosen)
        return chosen


class BranchPythonOperator(BranchByResult):
    """Follows the tasks whose ids ``python_callable`` returns, see :meth:`BaseBranchOperator.choose_branch`."""

    operator_name = "branch"


class ShortCircuitOperator(PythonOperator, SkipMixin):
    """Continues when ``python_callable`` returns a true value. Otherwise it skips everything downstream, or, without
    ``ignore_downstream_trigger_rules``, only the tasks directly downstream, and trigger rules decide about the rest. Teardowns are
    never skipped.
    """

    operator_name = "short_circuit"

    def __init__(
        self, *, task_id: str, python_callable: Callable[..., Any], ignore_downstream_trigger_rules: bool = True, **options: Any
    ) -> None:
        super().__init__(task_id=task_id, python_callable=python_callable, **options)
        self.ignore_downstream_trigger_rules = ignore_downstream_trigger_rules

    def execute(self, context: Context) -> Any:
        condition = self.call(context)
        if not condition:
            context["ti"].skipped_tasks.update(cut_off(context["ti"].task, everything=self.ignore_downstream_trigger_rules))
        return condition


class LatestOnlyOperator(BaseBranchOperator):
    """Skips the tasks directly downstream in a scheduled run that is not the newest possible. Other runs always continue."""

    operator_name = "latest_only"

    def choose_branch(self, context: Context) -> Chosen:
        run = context["dag_run"]
        if run.run_type != "scheduled" or _is_latest(context["dag"], run.logical_date, run.data_interval_end):
            return _Downstream(context["ti"].task).direct()
        return None


def _is_latest(dag: DAG, logical_date: datetime | None, interval_end: datetime | None) -> bool:
    now = clock().now()
    following = next_of(dag.header.spec, Past(logical_date, interval_end), now)
    return following is None or following.run_after > now or following.logical_date == logical_date


def task_indexes(dag: DAG, task_ids: Iterable[str]) -> list[int]:
    """Returns the task indexes, ascending."""
    if not task_ids:
        return []
    index_of = {task_id: index for index, task_id in enumerate(dag.task_dict)}
    return sorted(index_of[task_id] for task_id in task_ids)


def not_chosen(task: Task, chosen: Chosen) -> list[str]:
    """Returns the tasks that a branch with this choice skips. Raises :class:`BadBranch` for a wrong choice."""
    return _Downstream(task).not_chosen(chosen)


def cut_off(task: Task, *, everything: bool) -> list[str]:
    """Returns the tasks that a short circuit skips: all downstream, or those directly downstream."""
    downstream = _Downstream(task)
    return downstream.all() if everything else downstream.direct()


class _Downstream:
    """The tasks downstream of a task, including edges of groups, without teardowns."""

    def __init__(self, task: Task) -> None:
        self.task, self.dag = task, task.dag
        names = list(self.dag.task_dict)
        self.targets: dict[str, list[str]] = {name: [] for name in names}
        for name, sources in zip(names, upstream_indexes(self.dag), strict=True):
            for source in sources:
                self.targets[names[source]].append(name)

    def direct(self) -> list[str]:
        return self._workers(self.targets[self.task.task_id])

    def all(self) -> list[str]:
        return self._workers(self._reached(self.targets[self.task.task_id]))

    def not_chosen(self, chosen: Chosen) -> list[str]:
        direct = set(self.targets[self.task.task_id])
        followed: list[str] = []
        for name in listed(chosen):
            followed += self._tasks_of(name, direct)
        return self._workers(sorted(direct - self._reached(followed)))

    def _tasks_of(self, name: Any, direct: set[str]) -> list[str]:
        if name in direct:
            return [name]
        if name in self.dag.groups:
            members = [task.task_id for task in self.dag.groups[name].tasks if task.task_id in direct]
            if members:
                return members
        own = self.task.task_id
        there_are = ", ".join(map(repr, self.targets[own])) or "none"
        if name in self.dag.task_dict or name in self.dag.groups:
            cure = f"which is not directly downstream of it. Connect it, {own!r} >> {name!r}, or return one of: {there_are}."
        else:
            cure = f"and there is no such task. Return one of: {there_are}."
        raise BadBranch(f"Task {own!r} chose {name!r}, {cure}")

    def _reached(self, starts: Sequence[str]) -> set[str]:
        """Returns these tasks and all their downstream tasks."""
        reached = set(starts)
        waiting = list(reached)
        while waiting:
            new = set(self.targets[waiting.pop()]) - reached
            reached |= new
            waiting += new
        return reached

    def _workers(self, names: Iterable[str]) -> list[str]:
        return [name for name in names if not self.dag.task_dict[name].is_teardown]


def listed(chosen: Chosen) -> list[str]:
    """Returns a branch's choice as ids. Raises :class:`BadBranch` for a value that names nothing."""
    if chosen is None:
        return []
    if isinstance(chosen, str):
        return [chosen]
    if not isinstance(chosen, Iterable):
        raise BadBranch(f"A branch must return the id of a task or a group, a list of these, or None, not {chosen!r:.80}.")
    return list(chosen)
