"""The stand-in for Airflow 2's DAGs inside of DAGs: the tasks of the inner one are a task group of the outer one."""

from __future__ import annotations

import weakref
from typing import Any

from airflow.sdk import DAG, TaskGroup
from airflow.sdk.definitions._internal.contextmanager import DagContext

_INSIDE = "inside_of_evenflow_group"


class SubDagOperator(TaskGroup):  # type: ignore[misc]
    """Ids of the inner tasks stay as they are, unless the outer DAG has one of them already: then the id of the group comes before
    each. The schedule, pool and other settings of the operator itself mean nothing in a group.
    """

    def __init__(self, *, task_id: str, subdag: DAG, dag: DAG | None = None, trigger_rule: Any = None, **settings: Any) -> None:
        outer = dag or DagContext.get_current()
        if outer is None:
            raise ValueError(f"SubDagOperator {task_id!r} is in no DAG. Write: with DAG(...), or dag=")
        super().__init__(group_id=task_id, prefix_group_id=False, dag=outer)
        tasks = list(subdag.task_dict.values())
        if any(task.task_id in outer.task_group.used_group_ids for task in tasks):
            _prefix(tasks, task_id)
        setattr(subdag, _INSIDE, True)
        for child in subdag.task_group.children.values():
            child.task_group = weakref.proxy(self)
            self.children[child.node_id] = child
        for task in tasks:
            vars(task)["_dag"] = None  # it is assigned a second time
            task.dag = outer
            if trigger_rule is not None and not task.upstream_task_ids:
                task.trigger_rule = trigger_rule
        self.used_group_ids.update(child for child in subdag.task_group.used_group_ids if child is not None)


def is_inside(dag: DAG) -> bool:
    return hasattr(dag, _INSIDE)


def _prefix(tasks: list[Any], group_id: str) -> None:
    named = {task.task_id: f"{group_id}.{task.task_id}" for task in tasks}
    for task in tasks:
        task.task_id = named[task.task_id]
        task.upstream_task_ids = {named[each] for each in task.upstream_task_ids}
        task.downstream_task_ids = {named[each] for each in task.downstream_task_ids}
