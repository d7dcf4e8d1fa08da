"""``Task``, the node of a DAG's graph: what operators and mapped operators have in common."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from evenflow.core.model import UNMAPPED
from evenflow.errors import BadArgument, WrongDag
from evenflow.sdk import scope, setup_teardown
from evenflow.sdk.airflow_settings import TASK_SETTINGS, is_harmless
from evenflow.sdk.assignments import LOOKS, is_own_affair, refuse, refuse_fixed
from evenflow.sdk.edges import Dependency, Uncalled, connect
from evenflow.sdk.options import OPTION_NAMES, OWN_OPTIONS, TaskSettings, changed, check_options, option_of
from evenflow.sdk.readers import check_id
from evenflow.sdk.references import found_in, references
from evenflow.sdk.xcomarg import XComArg

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from evenflow.core import model
    from evenflow.sdk.dag import DAG
    from evenflow.sdk.operator import BaseOperator
    from evenflow.sdk.taskgroup import TaskGroup

FOR_ASYNC = ("asyncio", "concurrent.futures.thread", "hashlib", "evenflow.sdk.awaiting")  # what running an async function imports


class Task(Dependency):
    """A task of a DAG. Its ``task_id`` has the prefixes of the groups that it is in.

    It belongs to the DAG and the group whose ``with`` (or decorated function) is open, unless they are given. Its settings can be
    read and assigned by name, as in ``load.retries = 3``, as long as the file is being loaded.
    """

    is_empty: ClassVar[bool] = False  # no code to run
    is_setup = False
    is_teardown = False
    on_failure_fail_dagrun = False  # of a teardown: when it fails, the run does
    returns_dict = False  # as its function says, so that items of the result can be pulled by key
    is_made = False  # it has joined its DAG; a try's own copy is free again
    task_settings: TaskSettings

    def __init__(
        self, *, task_id: str, operator: str, dag: DAG | None, group: TaskGroup | None, options: Mapping[str, Any]
    ) -> None:
        self.task_type = operator
        self.mapped_items: set[str] = set()  # items of its result that other tasks map over
        self.upstream_tasks: dict[str, Task] = {}
        self.downstream_tasks: dict[str, Task] = {}
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

    if not TYPE_CHECKING:  # or a type checker would take any attribute for one of ours

        def __getattr__(self, name: str) -> Any:
            if name in OWN_OPTIONS and "task_settings" in self.__dict__:
                return option_of(self.task_settings, name)
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)

        def __setattr__(self, name: str, value: Any) -> None:
            """Raises :class:`BadSetting` for what would change nothing, unless the task keeps it for itself."""
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
        """Whether a try of it would see what is assigned to ``name``."""
        return name in self.__dict__ or hasattr(type(self), name)

    @property
    def mapped_group(self) -> TaskGroup | None:
        """The mapped group that it is in: then it has an instance for each index of that."""
        around = self.task_group.ancestry() if self.task_group is not None else ()
        return next((group for group in around if group.expansion is not None), None)

    @property
    def is_mapped(self) -> bool:
        """Whether it has instances."""
        return self.mapped_group is not None

    def index_seen(self, source: Task, map_index: int) -> int | None:
        """The instance of ``source`` whose results the instance ``map_index`` of this task sees: the same one inside a mapped
        group, elsewhere None for all of a task that has instances.
        """
        if not source.is_mapped:
            return UNMAPPED
        return map_index if source.mapped_group is not None and source.mapped_group is self.mapped_group else None

    def stops_work(self) -> bool:
        """Whether there may be something to do when a try of it is ended early: ``on_kill`` of its operator, or callbacks."""
        return bool(self.task_settings.on_kill_callback)

    def cleans_up(self) -> bool:
        """Whether that may be so while it is deferred, too."""
        return self.stops_work()

    def held_while_deferred(self) -> dict[str, str] | None:
        """What it holds or releases while it is deferred, where it says so."""
        return self.task_settings.while_deferred

    def preloads(self) -> tuple[str, ...]:
        """Modules that its tries would import each for itself: loaded once, by the process that they are forked from."""
        return ()

    def templates(self) -> tuple[Any, tuple[str, ...]]:
        """What may hold templates, however deep, and the endings of names of files that are some."""
        return (), ()

    def templates_by_field(self) -> Iterable[tuple[str, Any]]:
        """What is rendered for sure when the task runs, by the names of the fields."""
        return ()

    @property
    def has_outputs(self) -> bool:
        """Whether items of its result are to be had under their keys, as in Airflow: it says so, or its function returns a dict."""
        said = self.task_settings.multiple_outputs
        return self.returns_dict if said is None else said

    @property
    def output(self) -> XComArg:
        """The result of the task, for others to use as an argument."""
        return XComArg(self)

    @property
    def dag_id(self) -> str:
        return self.dag.dag_id

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

    def as_setup(self) -> Self:
        """Marks it as a setup: teardowns of it run if it has succeeded, whatever became of the tasks between."""
        setup_teardown.mark_setup(self)
        return self

    def as_teardown(self, *, setups: Any = None, on_failure_fail_dagrun: bool | None = None) -> Self:
        """Marks it as a teardown of ``setups`` (one task or several), which become setups and upstream of it.

        It runs once all upstream has ended, if one of the setups succeeded. Its own failure fails the run only with
        ``on_failure_fail_dagrun``.
        """
        setup_teardown.mark_teardown(self, _tasks(setups), on_failure_fail_dagrun)
        return self

    def __enter__(self) -> setup_teardown.SetupScope:
        return setup_teardown.enter(self)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        setup_teardown.leave()

    def join_dag(self, *arguments: Any) -> None:
        """Adds the task to its DAG, downstream of every task that ``arguments`` refer to."""
        for function in found_in(arguments, Uncalled):
            function.refuse(f"{self.qualified_name}: ")
        self.dag.add_task(self)
        setup_teardown.defined(self)
        for reference in references(arguments):
            for source in reference.sources():
                connect(source, self)
        self.is_made = True

    def to_mapping(self, index_of: Mapping[str, int]) -> model.Mapping | None:
        """How it is expanded, ``index_of`` giving the task index of a task id; None when it is not."""
        return None

    def make_instance(self, arguments: Mapping[str, Any]) -> BaseOperator:
        """The operator to run, references not resolved yet; ``arguments`` are those of this map index."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<task {self.task_id!r}>"


_FIXED = frozenset(
    {"task_id", "dag_id", "dag", "task_group", "task_type", "task_settings", "upstream_tasks", "downstream_tasks", "is_made"}
)


def named(task: Task) -> str:
    """As :attr:`Task.qualified_name`, also of an instance that is in no DAG."""
    return task.qualified_name if "dag" in task.__dict__ else f"Task {task.task_id!r}"


def _tasks(given: Any) -> Iterable[Task]:
    if given is None:
        return
    if isinstance(given, Dependency):
        end = given.endpoint()
        if not isinstance(end, Task):
            raise BadArgument(f"{end!r} is a task group: only tasks can be setups. Mark those inside.")
        yield end
        return
    for each in given:
        yield from _tasks(each)
