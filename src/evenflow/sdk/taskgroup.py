"""Task groups: a prefix for ids, defaults for tasks, and one end of an edge that stands for many."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, cast, overload

from evenflow.errors import BadArgument, WrongDag
from evenflow.sdk import scope
from evenflow.sdk.edges import Dependency
from evenflow.sdk.options import check_id

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from evenflow.sdk.dag import DAG
    from evenflow.sdk.task import Task

P = ParamSpec("P")
R = TypeVar("R")


class TaskGroup(Dependency):
    """Tasks defined inside ``with TaskGroup("load"):`` have ids such as ``load.copy``.

    An edge from a group begins at its leaves, the tasks that none of the group waits for; one to a group ends at its roots. Both
    are found when the DAG is complete, so tasks may still be added after the edge.
    """

    def __init__(
        self,
        group_id: str,
        *,
        prefix_group_id: bool = True,
        tooltip: str = "",
        default_args: dict[str, Any] | None = None,
        parent_group: TaskGroup | None = None,
        dag: DAG | None = None,
        add_suffix_on_collision: bool = False,
    ) -> None:
        dag = dag or (parent_group.dag if parent_group else scope.current_dag())
        if dag is None:
            raise WrongDag(
                f"Task group {group_id!r} belongs to no DAG. Define it inside `with DAG(...):` or a function with @dag, or give it "
                "dag=."
            )
        check_id("group", group_id, f"DAG {dag.dag_id!r}")
        self.dag = dag
        self.parent = parent_group or scope.current_group(dag)
        full_id = self.parent.child_id(group_id) if self.parent else group_id
        self.group_id = dag.free_id(full_id) if add_suffix_on_collision else full_id
        self.prefix_group_id = prefix_group_id
        self.tooltip = tooltip
        self.default_args: dict[str, Any] = {**(self.parent.default_args if self.parent else {}), **(default_args or {})}
        self.tasks: list[Task] = []  # also those of the groups inside
        self.depth: int = self.parent.depth + 1 if self.parent else 1
        dag.add_group(self)

    def child_id(self, label: str) -> str:
        """The id of a task or group with this label inside the group."""
        if self.prefix_group_id:
            return f"{self.group_id}.{label}"
        return self.parent.child_id(label) if self.parent else label

    def ancestry(self) -> Iterator[TaskGroup]:
        """This group and all around it, innermost first."""
        group: TaskGroup | None = self
        while group is not None:
            yield group
            group = group.parent

    def __enter__(self) -> Self:
        scope.enter_dag(self.dag)
        scope.enter_group(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        scope.leave_group()
        scope.leave_dag()

    def __repr__(self) -> str:
        return f"<task group {self.group_id!r}>"


class GroupFunction(Generic[P, R]):
    """A function with ``@task_group``: each call makes a group of the tasks that its body defines."""

    def __init__(self, function: Callable[P, R], options: dict[str, Any]) -> None:
        self.function = function
        self.options = options
        functools.update_wrapper(self, function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """What the function returns or, if that is None, the group."""
        options = dict(self.options)
        group_id = options.pop("group_id", None) or getattr(self.function, "__name__", "group")
        options.setdefault("tooltip", (self.function.__doc__ or "").strip())
        with TaskGroup(group_id, add_suffix_on_collision=True, **options) as group:
            result = self.function(*args, **kwargs)
        return cast(R, group if result is None else result)

    def override(self, **options: Any) -> GroupFunction[P, R]:
        """The same function with other options, e.g. ``group_id``."""
        return GroupFunction(self.function, {**self.options, **options})


@overload
def task_group(function: Callable[P, None]) -> GroupFunction[P, TaskGroup]: ...
@overload
def task_group(function: Callable[P, R]) -> GroupFunction[P, R]: ...
@overload
def task_group(
    *,
    group_id: str | None = None,
    prefix_group_id: bool = True,
    tooltip: str = "",
    default_args: dict[str, Any] | None = None,
    parent_group: TaskGroup | None = None,
    dag: DAG | None = None,
) -> Callable[[Callable[P, R]], GroupFunction[P, R]]: ...
def task_group(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Makes a function define a task group: ``@task_group`` or ``@task_group(group_id=..., tooltip=...)``."""
    if function is not None:
        if not callable(function):
            raise BadArgument(
                f"@task_group decorates a function, not {function!r}. For an id, type: @task_group(group_id={function!r})"
            )
        return GroupFunction(function, options)
    return lambda decorated: GroupFunction(decorated, options)
