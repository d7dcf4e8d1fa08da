"""The parts of a DAG: tasks, groups of them, and edges between. The authors' classes are built on these."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Generic, TypeAlias, TypeVar

from evenflow.core.limits import MAX_SPEC_EDGES, MAX_TASKS
from evenflow.core.model import UNMAPPED
from evenflow.errors import BadArgument, DagTooLarge, DuplicateId
from evenflow.sdk.edges import Dependency
from evenflow.sdk.mapped.partials import Begun
from evenflow.sdk.options import Header, TaskSettings
from evenflow.sdk.readers import check_id


class Node(Dependency):
    """A task or a group of a DAG."""

    dag: AnyDag

    def around(self) -> Iterable[GroupNode]:
        """The groups around it, innermost first."""
        raise NotImplementedError


class TaskNode(Node):
    """A task, as other tasks see it."""

    task_id: str
    task_group: GroupNode | None
    task_settings: TaskSettings
    upstream_tasks: dict[str, Any]
    downstream_tasks: dict[str, Any]
    mapped_items: set[str]  # items of its result that other tasks map over
    is_setup = False
    is_teardown = False
    on_failure_fail_dagrun = False  # of a teardown: its failure fails the run

    def around(self) -> Iterable[GroupNode]:
        return self.task_group.ancestry() if self.task_group is not None else ()

    @property
    def mapped_group(self) -> GroupNode | None:
        """The mapped group around it, if any: then it has an instance for each index of that group."""
        return next((group for group in self.around() if group.is_mapped), None)

    @property
    def is_mapped(self) -> bool:
        """Whether it has an instance for each element of something, and not just one."""
        return self.mapped_group is not None

    def index_seen(self, source: TaskNode, map_index: int) -> int | None:
        """Returns the index of the instance of ``source`` that the instance ``map_index`` of this task sees. In the same mapped
        group that is its own index; of any other mapped task it sees all instances, which is None.
        """
        if not source.is_mapped:
            return UNMAPPED
        return map_index if source.mapped_group is not None and source.mapped_group is self.mapped_group else None

    @property
    def dag_id(self) -> str:
        return self.dag.dag_id

    @property
    def qualified_name(self) -> str:
        """The task's name in messages."""
        return f"DAG {self.dag.dag_id!r}, task {self.task_id!r}"

    @property
    def upstream_task_ids(self) -> frozenset[str]:
        """The tasks for which it waits directly; edges of groups are added when the DAG is complete."""
        return frozenset(self.upstream_tasks)

    @property
    def downstream_task_ids(self) -> frozenset[str]:
        return frozenset(self.downstream_tasks)

    def __repr__(self) -> str:
        return f"<task {self.task_id!r}>"


class GroupNode(Node):
    """A task group, as tasks and other groups see it."""

    group_id: str
    prefix_group_id: bool
    parent: GroupNode | None
    default_args: dict[str, Any]
    tasks: list[Any]  # including those of the groups inside
    depth: int
    is_mapped: bool

    def around(self) -> Iterable[GroupNode]:
        return self.parent.ancestry() if self.parent is not None else ()

    def ancestry(self) -> Iterator[GroupNode]:
        """Yields this group and all around it, innermost first."""
        yield self
        yield from self.around()

    def child_id(self, label: str) -> str:
        """Returns the id of a task or group with this label inside the group."""
        if self.prefix_group_id:
            return f"{self.group_id}.{label}"
        return self.parent.child_id(label) if self.parent else label

    def __repr__(self) -> str:
        return f"<task group {self.group_id!r}>"


TaskT = TypeVar("TaskT", bound=TaskNode)
GroupT = TypeVar("GroupT", bound=GroupNode)


class NodesOfDag(Generic[TaskT, GroupT]):
    """The tasks and groups of a DAG, each with a unique id."""

    dag_id: str
    options: dict[str, Any]
    header: Header
    default_args: dict[str, Any]

    def __init__(self) -> None:
        self.task_dict: dict[str, TaskT] = {}
        self.groups: dict[str, GroupT] = {}
        self.partials: list[Begun[Any]] = []
        self.group_edges: list[tuple[Node, Node]] = []
        self._task_edges = 0
        self._next_suffix: dict[str, int] = {}

    @property
    def tasks(self) -> list[TaskT]:
        """All tasks, in the order in which they were made."""
        return list(self.task_dict.values())

    @property
    def task_ids(self) -> list[str]:
        return list(self.task_dict)

    def get_task(self, task_id: str) -> TaskT:
        """Raises :class:`BadArgument`, which names the existing tasks."""
        try:
            return self.task_dict[task_id]
        except KeyError:
            raise BadArgument(f"DAG {self.dag_id!r} has no task {task_id!r}. It has: {_few(self.task_dict)}.") from None

    def add_task(self, task: TaskT) -> None:
        self._refuse_taken(task.task_id, "Give one of them another task_id.")
        if len(self.task_dict) >= MAX_TASKS:
            raise DagTooLarge(
                f"DAG {self.dag_id!r} has more than {MAX_TASKS:,} tasks. Map one task over a list with .expand(), or split the DAG."
            )
        check_id("task", task.task_id, f"DAG {self.dag_id!r}")
        self.task_dict[task.task_id] = task
        for group in task.around():
            group.tasks.append(task)

    def add_group(self, group: GroupT) -> None:
        self._refuse_taken(group.group_id, "Give one of them another id.")
        self.groups[group.group_id] = group

    def add_edge(self, upstream: Dependency, downstream: Dependency) -> None:
        if not isinstance(upstream, Node) or not isinstance(downstream, Node):
            raise BadArgument(f"{downstream if isinstance(upstream, Node) else upstream!r} cannot be part of a dependency.")
        if upstream is downstream or _is_inside(upstream, downstream) or _is_inside(downstream, upstream):
            raise BadArgument(
                f"DAG {self.dag_id!r}: {upstream!r} >> {downstream!r} makes a task wait for itself. Remove this dependency."
            )
        if isinstance(upstream, TaskNode) and isinstance(downstream, TaskNode):
            self._task_edges += upstream.task_id not in downstream.upstream_tasks
            check_edge_count(self.dag_id, self._task_edges)
            upstream.downstream_tasks[downstream.task_id] = downstream
            downstream.upstream_tasks[upstream.task_id] = upstream
        else:
            self.group_edges.append((upstream, downstream))

    def free_id(self, wanted: str) -> str:
        """Returns ``wanted``, with ``__1``, ``__2``, ... behind it when it is taken, as for a function that is called again."""
        if wanted not in self.task_dict and wanted not in self.groups:
            return wanted
        number = self._next_suffix.get(wanted, 1)
        while f"{wanted}__{number}" in self.task_dict or f"{wanted}__{number}" in self.groups:
            number += 1
        self._next_suffix[wanted] = number + 1
        return f"{wanted}__{number}"

    def _refuse_taken(self, wanted: str, cure: str) -> None:
        if wanted in self.task_dict or wanted in self.groups:
            kind = "task" if wanted in self.task_dict else "task group"
            raise DuplicateId(f"DAG {self.dag_id!r} already has a {kind} {wanted!r}. {cure}")


AnyDag: TypeAlias = NodesOfDag[Any, Any]


def check_edge_count(dag_id: str, edges: int) -> None:
    if edges > MAX_SPEC_EDGES:
        raise DagTooLarge(
            f"DAG {dag_id!r} has more than {MAX_SPEC_EDGES:,} dependencies. Where many tasks wait for many, put one in between: "
            "first >> EmptyOperator(task_id='all_done') >> second"
        )


def _is_inside(inner: Node, outer: Node) -> bool:
    return any(group is outer for group in inner.around())


def _few(names: Mapping[str, Any]) -> str:
    shown = list(names)[:20]
    return ", ".join(shown) + (", ..." if len(names) > len(shown) else "") if shown else "none"
