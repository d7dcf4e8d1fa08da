"""``DAG`` and ``@dag``: a workflow, its tasks and when it runs."""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Unpack, overload

from evenflow.core.limits import MAX_TASKS
from evenflow.errors import BadArgument, DagTooLarge, DuplicateId
from evenflow.sdk import scope
from evenflow.sdk.airflow_settings import DAG_OPTIONS, is_harmless
from evenflow.sdk.assignments import is_own_affair, refuse, refuse_fixed
from evenflow.sdk.edges import Dependency
from evenflow.sdk.graph import check_edge_count
from evenflow.sdk.options import DAG_OPTION_NAMES, DagOptions, Header, option_of_dag
from evenflow.sdk.params import Param, ParamRef
from evenflow.sdk.readers import check_id
from evenflow.sdk.spec import compile_spec, spec_of_header
from evenflow.sdk.task import Task
from evenflow.sdk.taskgroup import TaskGroup

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType
    from typing import Self

    from evenflow.core.model import DagSpec
    from evenflow.sdk.expansion import Begun
    from evenflow.sdk.local.run import RunOutcome

P = ParamSpec("P")


class DAG:
    """A workflow. Tasks that are defined inside ``with DAG("name", ...):`` belong to it. Its options can be read and assigned by
    name, as in ``dag.doc_md = __doc__``, as long as the file is being loaded.
    """

    options: dict[str, Any]
    header: Header
    default_args: dict[str, Any]

    def __init__(self, dag_id: str, **options: Unpack[DagOptions]) -> None:
        self.dag_id = check_id("DAG", dag_id)
        self._take(options)
        self.file: Path | None = None  # that it was loaded from
        self.task_dict: dict[str, Task] = {}
        self.groups: dict[str, TaskGroup] = {}
        self.partials: list[Begun[Any]] = []
        self.group_edges: list[tuple[Dependency, Dependency]] = []
        self._task_edges = 0
        self._next_suffix: dict[str, int] = {}
        scope.announce(self)

    def _take(self, options: Mapping[str, Any]) -> None:
        """Raises :class:`DagError` and leaves everything as it was when they make no sense."""
        header = spec_of_header(self.dag_id, options)
        self.__dict__.update(options=dict(options), header=header, default_args=header.default_args)

    if not TYPE_CHECKING:  # or a type checker would take any attribute for one of ours

        def __getattr__(self, name: str) -> Any:
            if name in DAG_OPTION_NAMES and "header" in self.__dict__:
                return option_of_dag(self.header, self.options, name)
            raise AttributeError(f"DAG {self.__dict__.get('dag_id')!r} has no attribute {name!r}", name=name, obj=self)

        def __setattr__(self, name: str, value: Any) -> None:
            """Raises :class:`BadSetting` for what would change nothing."""
            if is_own_affair(self) or name == "file":
                object.__setattr__(self, name, value)
            else:
                self._assign(name, value, f"DAG {self.dag_id!r}")

    def _assign(self, name: str, value: Any, where: str) -> None:
        if name == "default_args" and self.task_dict:
            refuse_fixed(where, name, value, "It counts for tasks that are made after it: say DAG(..., default_args=...).")
        elif name in DAG_OPTION_NAMES:
            self._take({**self.options, name: value})
        elif not is_harmless(DAG_OPTIONS, name, value, where):
            if hasattr(self, name):
                refuse_fixed(where, name, value)
            refuse(where, name, DAG_OPTION_NAMES)

    @property
    def tasks(self) -> list[Task]:
        """All of them, in the order in which they were made."""
        return list(self.task_dict.values())

    @property
    def folder(self) -> Path | None:
        """Of the file that defines it: where it was loaded from, else the program that runs. None when that is no file."""
        from pathlib import Path

        file = self.file or getattr(sys.modules.get("__main__"), "__file__", None)
        return Path(file).absolute().parent if file else None

    def template_folders(self) -> list[str]:
        """Where files of templates are looked for: ``template_searchpath``, then the folder of the DAG file."""
        if self.folder is None:
            return list(self.header.template_searchpath)
        return [os.fspath(self.folder / each) for each in (*self.header.template_searchpath, "")]

    @property
    def task_ids(self) -> list[str]:
        return list(self.task_dict)

    def get_task(self, task_id: str) -> Task:
        """Raises :class:`BadArgument` naming the tasks that there are."""
        try:
            return self.task_dict[task_id]
        except KeyError:
            raise BadArgument(f"DAG {self.dag_id!r} has no task {task_id!r}. It has: {_few(self.task_dict)}.") from None

    def param(self, name: str) -> Any:
        """A reference to the value that a parameter has in the run, to be given to tasks as an argument."""
        if name not in self.header.params:
            raise BadArgument(f"DAG {self.dag_id!r} has no parameter {name!r}. Declare it: params={{{name!r}: ...}}")
        return ParamRef(name)

    def add_task(self, task: Task) -> None:
        self._refuse_taken(task.task_id, "Give one of them another task_id.")
        if len(self.task_dict) >= MAX_TASKS:
            raise DagTooLarge(
                f"DAG {self.dag_id!r} has more than {MAX_TASKS:,} tasks. Map one task over a list with .expand(), or split the DAG."
            )
        check_id("task", task.task_id, f"DAG {self.dag_id!r}")
        self.task_dict[task.task_id] = task
        if task.task_group is not None:
            for group in task.task_group.ancestry():
                group.tasks.append(task)

    def add_group(self, group: TaskGroup) -> None:
        self._refuse_taken(group.group_id, "Give one of them another id.")
        self.groups[group.group_id] = group

    def add_edge(self, upstream: Dependency, downstream: Dependency) -> None:
        for end in (upstream, downstream):
            if not isinstance(end, (Task, TaskGroup)):
                raise BadArgument(f"{end!r} cannot be part of a dependency.")
        if upstream is downstream or _is_inside(upstream, downstream) or _is_inside(downstream, upstream):
            raise BadArgument(
                f"DAG {self.dag_id!r}: {upstream!r} >> {downstream!r} makes a task wait for itself. Remove this dependency."
            )
        if isinstance(upstream, Task) and isinstance(downstream, Task):
            self._task_edges += upstream.task_id not in downstream.upstream_tasks
            check_edge_count(self.dag_id, self._task_edges)
            upstream.downstream_tasks[downstream.task_id] = downstream
            downstream.upstream_tasks[upstream.task_id] = upstream
        else:
            self.group_edges.append((upstream, downstream))

    def free_id(self, wanted: str) -> str:
        """``wanted``, or with ``__1``, ``__2``, ... behind it when it is taken, as for a function that is called more than once."""
        if wanted not in self.task_dict and wanted not in self.groups:
            return wanted
        number = self._next_suffix.get(wanted, 1)
        while f"{wanted}__{number}" in self.task_dict or f"{wanted}__{number}" in self.groups:
            number += 1
        self._next_suffix[wanted] = number + 1
        return f"{wanted}__{number}"

    def to_spec(self) -> DagSpec:
        """The DAG as the scheduler knows it. Raises :class:`DagError` for what is wrong with it as a whole, such as a cycle."""
        return compile_spec(self)

    def test(
        self,
        *,
        params: Mapping[str, Any] | None = None,
        run_id: str | None = None,
        logical_date: datetime | None = None,
        print_logs: bool = True,
        wait_for_retries: bool = False,
    ) -> RunOutcome:
        """Runs the DAG once in this process, without a database, one task after the other.

        Trigger rules, mapping, retries and XComs are as in production; limits, timeouts and schedules do not apply. Retries
        follow at once unless ``wait_for_retries``. Raises :class:`ParamError` for params that do not fit.
        """
        from evenflow.sdk.local.run import run_dag

        return run_dag(
            self,
            params=params or {},
            run_id=run_id,
            logical_date=logical_date,
            print_logs=print_logs,
            wait_for_retries=wait_for_retries,
        )

    def _refuse_taken(self, wanted: str, cure: str) -> None:
        if wanted in self.task_dict or wanted in self.groups:
            kind = "task" if wanted in self.task_dict else "task group"
            raise DuplicateId(f"DAG {self.dag_id!r} already has a {kind} {wanted!r}. {cure}")

    def __enter__(self) -> Self:
        scope.enter_dag(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        scope.leave_dag()

    def __repr__(self) -> str:
        return f"<DAG {self.dag_id!r}>"


class DagFunction(Generic[P]):
    """A function with ``@dag``: calling it makes the DAG of the tasks that its body defines.

    Its arguments are parameters of the DAG's runs: inside they are references to the values of the run, to be given to tasks.
    """

    def __init__(self, function: Callable[P, Any], dag_id: str | None, options: DagOptions) -> None:
        self.function = function
        self.dag_id: str = dag_id or str(getattr(function, "__name__", "dag"))
        self.options = options
        self.was_called = False
        functools.update_wrapper(self, function)

    if not TYPE_CHECKING:

        def __setattr__(self, name: str, value: Any) -> None:
            if name in DAG_OPTION_NAMES and not is_own_affair(self):
                cure = f"Say @dag({name}=...), or assign it to what the call makes: made = {self.dag_id}(); made.{name} = ..."
                refuse(f"The function {self.dag_id}() makes DAGs and is none", name, (), cure)
            object.__setattr__(self, name, value)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> DAG:
        self.was_called = True
        bound = inspect.signature(self.function).bind_partial(*args, **kwargs)
        arguments: dict[str, Any] = {}
        for name, parameter in inspect.signature(self.function).parameters.items():
            given = bound.arguments.get(name, parameter.default)
            arguments[name] = Param() if given is parameter.empty else given
        options: DagOptions = {**self.options}
        options["params"] = {**arguments, **options.get("params", {})}
        options.setdefault("doc_md", inspect.getdoc(self.function) or "")
        with DAG(self.dag_id, **options) as dag:
            self.function(**{name: ParamRef(name) for name in arguments})  # type: ignore[call-arg]
        return dag


@overload
def dag(dag_id: Callable[P, Any], /) -> DagFunction[P]: ...
@overload
def dag(dag_id: str | None = None, /, **options: Unpack[_DagOptionsWithId]) -> Callable[[Callable[P, Any]], DagFunction[P]]: ...
def dag(dag_id: Any = None, /, **options: Any) -> Any:
    """Makes a function define a DAG, named after the function unless ``dag_id`` is given. Call the function once at the end of the
    file.
    """
    if callable(dag_id):
        return DagFunction(dag_id, None, {})
    dag_id = options.pop("dag_id", dag_id)
    return lambda function: DagFunction(function, dag_id, options)  # type: ignore[arg-type]


class _DagOptionsWithId(DagOptions, total=False):
    dag_id: str


def _is_inside(inner: Dependency, outer: Dependency) -> bool:
    if not isinstance(outer, TaskGroup):
        return False
    group = inner.task_group if isinstance(inner, Task) else inner.parent if isinstance(inner, TaskGroup) else None
    return group is not None and any(around is outer for around in group.ancestry())


def _few(names: Mapping[str, Any]) -> str:
    shown = list(names)[:20]
    return ", ".join(shown) + (", ..." if len(names) > len(shown) else "") if shown else "none"
