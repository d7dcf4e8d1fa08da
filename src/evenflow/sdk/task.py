"""``Task``, the node of a DAG's graph: the common part of operators and mapped operators."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from evenflow.core import model
from evenflow.errors import WrongDag
from evenflow.sdk import scope
from evenflow.sdk.airflow_settings import TASK_SETTINGS, is_harmless
from evenflow.sdk.assignments import LOOKS, is_own_affair, refuse, refuse_fixed
from evenflow.sdk.edges import Uncalled, connect
from evenflow.sdk.nodes import AnyDag, GroupNode, NodesOfDag, TaskNode
from evenflow.sdk.options import OPTION_NAMES, OWN_OPTIONS, changed, check_options, option_of
from evenflow.sdk.readers import check_id
from evenflow.sdk.references import found_in, references
from evenflow.sdk.setup_teardown import Markable, defined
from evenflow.sdk.xcomarg import XComArg

_FOR_ASYNC = ("asyncio", "concurrent.futures.thread", "hashlib", "evenflow.sdk.awaiting")  # imports of an async function's run


class Task(TaskNode, Markable):
    """A task of a DAG. Its ``task_id`` has the prefixes of the groups around it.

    It belongs to the DAG and the group whose ``with`` (or decorated function) is open, unless they are given. Its settings can be
    read and assigned by name, as in ``load.retries = 3``, while the file is being loaded.
    """

    is_empty: ClassVar[bool] = False  # no code to run
    template_fields: ClassVar[Sequence[str]] = ()
    returns_dict = False  # by its function's annotation, so that items of the result can be pulled by key
    is_made = False  # it has joined its DAG; a try's own copy is open again
    dag: NodesOfDag[Task, Any]
    upstream_tasks: dict[str, Task]
    downstream_tasks: dict[str, Task]

    def __init__(
        self, *, task_id: str, operator: str, dag: AnyDag | None, group: GroupNode | None, options: Mapping[str, Any]
    ) -> None:
        self.task_type = operator
        self.mapped_items = set()
        self.upstream_tasks, self.downstream_tasks = {}, {}
        early = {name: self.__dict__.pop(name) for name in list(self.__dict__) if name in OWN_OPTIONS}  # assigned before this call
        options = {**early, **options}
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
        self.task_settings = check_options({**defaults, **options}, self.qualified_name, type(self))

    if not TYPE_CHECKING:  # or a type checker would accept any attribute

        def __getattr__(self, name: str) -> Any:
            if name in OWN_OPTIONS and "task_settings" in self.__dict__:
                return option_of(self.task_settings, name)
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)

        def __setattr__(self, name: str, value: Any) -> None:
            """Raises :class:`BadSetting` for an assignment without effect, unless the task assigns its own attribute."""
            if name in OWN_OPTIONS and "task_settings" in self.__dict__:
                value, name = changed(self.task_settings, name, value, named(self)), "task_settings"
            elif self.is_made and not is_own_affair(self):
                self._check_assigned(name, value)
            object.__setattr__(self, name, value)

    def _check_assigned(self, name: str, value: Any) -> None:
        if name in _FIXED:
            if getattr(self, name) is not value:
                refuse_fixed(named(self), name, value)
        elif not self.has_attribute(name) and name not in LOOKS and not is_harmless(TASK_SETTINGS, name, value, named(self)):
            refuse(named(self), name, [*OPTION_NAMES, *vars(self)])

    def has_attribute(self, name: str) -> bool:
        """Returns whether a try of it would see an assignment to ``name``."""
        return name in self.__dict__ or hasattr(type(self), name)

    @property
    def operator_class(self) -> type[Task]:
        """The class of its instances."""
        return type(self)

    @property
    def may_defer(self) -> bool:
        """Whether its operator is deferrable."""
        return bool(getattr(self, "deferrable", False))

    def runs_async(self) -> bool:
        """Returns whether it calls an ``async def``. Its triggers, and whether these must be stopped, are known only when
        it runs.
        """
        return False

    @classmethod
    def overrides_on_kill(cls) -> bool:
        return False

    @classmethod
    def modules_of_tries(cls, deferrable: bool) -> tuple[str, ...]:
        """Returns modules that each try of this class would import."""
        return ()

    @classmethod
    def released_by_default(cls, deferrable: bool) -> dict[str, str] | None:
        """Returns what the class holds or releases by default; None for one that is not deferred."""
        return None

    def files_beside(self) -> Iterable[str]:
        """Returns names, relative to the DAG's folder, of files that its tries read: they travel with the code."""
        return ()

    def stops_work(self) -> bool:
        """Returns whether an early end of a try may need work: ``on_kill`` of its operator, or callbacks."""
        return bool(self.task_settings.on_kill_callback) or self.operator_class.overrides_on_kill()

    def cleans_up(self) -> bool:
        """Returns whether that may also be so while it is deferred."""
        return self.stops_work() or self.runs_async()

    def held_while_deferred(self) -> dict[str, str] | None:
        """What it holds or releases while it is deferred, if it or its operator says so."""
        return self.task_settings.while_deferred or self.operator_class.released_by_default(self.may_defer)

    def preloads(self) -> tuple[str, ...]:
        """Returns modules that its tries would import: loaded once, by the process that forks them."""
        return (*self.operator_class.modules_of_tries(self.may_defer), *(_FOR_ASYNC if self.runs_async() else ()))

    def templates(self) -> tuple[Any, tuple[str, ...]]:
        """Returns values that may hold templates, however deep, and the endings of template files."""
        return (), ()

    def templates_by_field(self) -> Iterable[tuple[str, Any]]:
        """Yields what is surely rendered when the task runs, by the names of the fields."""
        return ()

    @property
    def has_outputs(self) -> bool:
        """Whether items of its result are available under their keys, as in Airflow: by its option, or because its function returns
        a dict.
        """
        said = self.task_settings.multiple_outputs
        return self.returns_dict if said is None else said

    @property
    def output(self) -> XComArg:
        """The result of the task, as an argument for other tasks."""
        return XComArg(self)

    def join_dag(self, *arguments: Any) -> None:
        """Adds the task to its DAG, downstream of every task to which ``arguments`` refer."""
        for function in found_in(arguments, Uncalled):
            function.refuse(f"{self.qualified_name}: ")
        self.dag.add_task(self)
        defined(self)
        for reference in references(arguments):
            for source in reference.sources():
                connect(source, self)
        self.is_made = True

    def to_mapping(self, index_of: Mapping[str, int]) -> model.Mapping | None:
        """Returns how it is expanded, None if it is not. ``index_of`` maps a task id to its task index."""
        return None

    def make_instance(self, arguments: Mapping[str, Any]) -> Task:
        """Returns the operator to run, with unresolved references; ``arguments`` are those of this map index."""
        raise NotImplementedError


_FIXED = frozenset(
    {"task_id", "dag_id", "dag", "task_group", "task_type", "task_settings", "upstream_tasks", "downstream_tasks", "is_made"}
)


def named(task: Task) -> str:
    """Works like :attr:`Task.qualified_name`, also for an instance that is in no DAG."""
    return task.qualified_name if "dag" in task.__dict__ else f"Task {task.task_id!r}"
