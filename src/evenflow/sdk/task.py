"""``Task``, the node of a DAG's graph: what operators and mapped operators have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from evenflow.errors import WrongDag
from evenflow.sdk import scope
from evenflow.sdk.edges import Dependency, connect
from evenflow.sdk.options import check_id, check_options
from evenflow.sdk.xcomarg import XComArg, references

if TYPE_CHECKING:
    from evenflow.core import model
    from evenflow.sdk.dag import DAG
    from evenflow.sdk.operators import BaseOperator
    from evenflow.sdk.taskgroup import TaskGroup


class Task(Dependency):
    """A task of a DAG. Its ``task_id`` has the prefixes of the groups that it is in.

    It belongs to the DAG and the group whose ``with`` (or decorated function) is open, unless they are given.
    """

    is_mapped: ClassVar[bool] = False
    is_empty: ClassVar[bool] = False  # no code to run

    def __init__(
        self, *, task_id: str, operator: str, dag: DAG | None, group: TaskGroup | None, options: Mapping[str, Any]
    ) -> None:
        self.task_type = operator
        self.mapped_items: set[str] = set()  # items of its result that other tasks map over
        self.upstream_tasks: dict[str, Task] = {}
        self.downstream_tasks: dict[str, Task] = {}
        if scope.is_detached():
            self.task_id = task_id
            self.task_settings = check_options(options, f"Task {task_id!r}")
            return
        if group is not None:
            dag = dag or group.dag
        dag = dag or scope.current_dag()
        if dag is None:
            raise WrongDag(
                f"Task {task_id!r} belongs to no DAG. Define it inside a function with @dag or inside `with DAG(...):`, or give it "
                "dag=. "
                "To run a function with @task as it is, type: name.function(...)"
            )
        check_id("task", task_id, f"DAG {dag.dag_id!r}")
        self.dag = dag
        self.task_group = group or scope.current_group(dag)
        if self.task_group is not None and self.task_group.dag is not dag:
            raise WrongDag(
                f"Task {task_id!r} is to be in DAG {dag.dag_id!r}, but its group {self.task_group.group_id!r} is in "
                f"{self.task_group.dag.dag_id!r}."
            )
        self.task_id = self.task_group.child_id(task_id) if self.task_group else task_id
        defaults = {**dag.default_args, **(self.task_group.default_args if self.task_group else {})}
        self.task_settings = check_options({**defaults, **options}, f"DAG {dag.dag_id!r}, task {self.task_id!r}")

    @property
    def output(self) -> XComArg:
        """The result of the task, for others to use as an argument."""
        return XComArg(self)

    @property
    def qualified_name(self) -> str:
        """How messages name the task."""
        return f"DAG {self.dag.dag_id!r}, task {self.task_id!r}"

    @property
    def upstream_task_ids(self) -> frozenset[str]:
        """The tasks that it waits for directly; edges of groups are added when the DAG is complete."""
        return frozenset(self.upstream_tasks)

    @property
    def downstream_task_ids(self) -> frozenset[str]:
        return frozenset(self.downstream_tasks)

    def join_dag(self, *arguments: Any) -> None:
        """Adds the task to its DAG, downstream of every task that ``arguments`` refer to."""
        self.dag.add_task(self)
        for reference in references(arguments):
            if isinstance(reference, XComArg):
                connect(reference, self)

    def to_mapping(self, index_of: Mapping[str, int]) -> model.Mapping | None:
        """How it is expanded, ``index_of`` giving the task index of a task id; None when it is not."""
        return None

    def make_instance(self, arguments: Mapping[str, Any]) -> BaseOperator:
        """The operator to run, references not resolved yet; ``arguments`` are those of this map index."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<task {self.task_id!r}>"
