"""``DAG`` and ``@dag``: a workflow, its tasks and when it runs."""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Unpack, overload

from evenflow.core.model import DagSpec
from evenflow.errors import BadArgument
from evenflow.sdk import scope
from evenflow.sdk.airflow_settings import DAG_OPTIONS, is_harmless
from evenflow.sdk.assignments import is_own_affair, refuse, refuse_fixed
from evenflow.sdk.nodes import NodesOfDag
from evenflow.sdk.options import DAG_OPTION_NAMES, DagOptions, option_of_dag
from evenflow.sdk.params import Param, ParamRef
from evenflow.sdk.readers import check_id
from evenflow.sdk.spec import compile_spec, spec_of_header
from evenflow.sdk.task import Task
from evenflow.sdk.taskgroup import TaskGroup

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType
    from typing import Self

    from evenflow.sdk.local.outcome import RunOutcome

P = ParamSpec("P")

_run_in_memory: Callable[..., RunOutcome]


_observer: ContextVar[Callable[[DAG], None] | None] = ContextVar("evenflow_dag_observer", default=None)


class DAG(NodesOfDag[Task, TaskGroup]):
    """A workflow. Tasks that are defined inside ``with DAG("name", ...):`` belong to it. Its options can be read and assigned by
    name, as in ``dag.doc_md = __doc__``, while the file is being loaded.
    """

    def __init__(self, dag_id: str, **options: Unpack[DagOptions]) -> None:
        self.dag_id = check_id("DAG", dag_id)
        self._take(options)
        self.file: Path | None = None  # from which it was loaded
        super().__init__()
        if (observer := _observer.get()) is not None:
            observer(self)

    def _take(self, options: Mapping[str, Any]) -> None:
        """Raises :class:`DagError`, without changes, when the options make no sense."""
        header = spec_of_header(self.dag_id, options)
        self.__dict__.update(options=dict(options), header=header, default_args=header.default_args)

    if not TYPE_CHECKING:  # or a type checker would accept any attribute

        def __getattr__(self, name: str) -> Any:
            if name in DAG_OPTION_NAMES and "header" in self.__dict__:
                return option_of_dag(self.header, self.options, name)
            raise AttributeError(f"DAG {self.__dict__.get('dag_id')!r} has no attribute {name!r}", name=name, obj=self)

        def __setattr__(self, name: str, value: Any) -> None:
            """Raises :class:`BadSetting` for an assignment without effect."""
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
    def folder(self) -> Path | None:
        """The folder of the file that defines it: the loaded file, else the running program. None without a file."""
        from pathlib import Path

        file = self.file or getattr(sys.modules.get("__main__"), "__file__", None)
        return Path(file).absolute().parent if file else None

    def template_folders(self) -> list[str]:
        """Where template files are searched: ``template_searchpath``, then the folder of the DAG file."""
        if self.folder is None:
            return list(self.header.template_searchpath)
        return [os.fspath(self.folder / each) for each in (*self.header.template_searchpath, "")]

    def param(self, name: str) -> Any:
        """Returns a reference to a parameter's value in the run, to be given to tasks as an argument."""
        if name not in self.header.params:
            raise BadArgument(f"DAG {self.dag_id!r} has no parameter {name!r}. Declare it: params={{{name!r}: ...}}")
        return ParamRef(name)

    def to_spec(self) -> DagSpec:
        """Returns the DAG as the scheduler knows it. Raises :class:`DagError` for errors of the whole, such as a cycle."""
        return compile_spec(self)

    def test(
        self,
        *,
        params: Mapping[str, Any] | None = None,
        run_id: str | None = None,
        logical_date: datetime | None = None,
        print_logs: bool = True,
        wait_for_retries: bool = False,
        answers: Mapping[str, str | Mapping[str, Any] | None] | None = None,
    ) -> RunOutcome:
        """Runs the DAG once in this process, without a database, one task after the other.

        Trigger rules, mapping, retries and XComs are as in production; limits, timeouts and schedules do not apply. Retries follow
        at once unless ``wait_for_retries``. ``answers`` are those of people, by task: a choice, a dict of ``choice`` and
        ``values``, or None for no answer in time. Raises :class:`ParamError` for params that do not fit.
        """
        return _run_in_memory(
            self,
            params=params or {},
            run_id=run_id,
            logical_date=logical_date,
            print_logs=print_logs,
            wait_for_retries=wait_for_retries,
            answers=answers or {},
        )

    def __enter__(self) -> Self:
        scope.enter_dag(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        scope.leave_dag()

    def __repr__(self) -> str:
        return f"<DAG {self.dag_id!r}>"


@contextmanager
def observed(observer: Callable[[DAG], None]) -> Iterator[None]:
    """Inside, ``observer`` is called with every new DAG."""
    token = _observer.set(observer)
    try:
        yield
    finally:
        _observer.reset(token)


def runs_in_memory(run: Callable[..., RunOutcome]) -> None:
    """Makes ``run`` the implementation of :meth:`DAG.test`. It knows what DAGs are, so DAGs need not know it."""
    global _run_in_memory
    _run_in_memory = run


class DagFunction(Generic[P]):
    """A function with ``@dag``: a call makes the DAG of the tasks that its body defines.

    Its arguments are parameters of the DAG's runs: inside they are references to the run's values, to be given to tasks.
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
