"""``@task`` and its variants: a function becomes a task by a call inside a DAG."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Concatenate, Generic, Never, NoReturn, ParamSpec, Required, TypeVar, Unpack, overload

from evenflow.core.likeness import closest
from evenflow.errors import BadArgument, WrongDag
from evenflow.sdk import scope
from evenflow.sdk.airflow_names import MISSING_DECORATORS
from evenflow.sdk.assignments import is_own_affair, refuse
from evenflow.sdk.edges import Uncalled
from evenflow.sdk.mapped.mapping import MappedOperator
from evenflow.sdk.mapped.partials import Begun
from evenflow.sdk.operator import BaseOperator, PythonOperator, is_async
from evenflow.sdk.operators.bash import SKIP_EXIT_CODE, BashFunctionOperator
from evenflow.sdk.operators.branching import BranchPythonOperator, Chosen, ShortCircuitOperator
from evenflow.sdk.operators.conditions import Condition, RunCondition, guard_all, guarding
from evenflow.sdk.operators.isolated_tasks import (
    BranchExternalPythonOperator,
    BranchPythonVirtualenvOperator,
    ExternalPythonOperator,
    PythonVirtualenvOperator,
)
from evenflow.sdk.operators.sensors import POKE_INTERVAL_S, TIMEOUT_S, PythonSensor
from evenflow.sdk.operators.spark_task import DEFAULT_CONNECTION, SparkOperator
from evenflow.sdk.options import OPTION_NAMES, TaskOptions
from evenflow.sdk.setup_teardown import SetupRole
from evenflow.sdk.signature import Signature, returns_mapping
from evenflow.sdk.xcomarg import XComArg

P = ParamSpec("P")
R = TypeVar("R")


class _Options(TaskOptions, total=False):
    task_id: str
    templates_dict: Mapping[str, Any] | None
    templates_exts: Sequence[str] | None


class _ProcessOptions(_Options, total=False):
    env_vars: Mapping[str, str] | None
    inherit_env: bool
    skip_on_exit_code: int | Sequence[int] | None


class _VirtualenvOptions(_ProcessOptions, total=False):
    requirements: str | Sequence[str]
    python_version: str | None
    system_site_packages: bool
    index_urls: str | Sequence[str]
    index_conn_ids: str | Sequence[str]
    pip_install_options: Sequence[str]
    venv_cache_path: str | os.PathLike[str] | None


class _ExternalPythonOptions(_ProcessOptions, total=False):
    python: Required[str | os.PathLike[str]]


class TaskFunction(Uncalled, Generic[P, R]):
    """A function with ``@task``. Each call inside a DAG adds a task and returns a reference to its result.

    A second task of the same function is called ``name__1``. ``function`` is the function itself, e.g. for unit tests.
    """

    def __init__(self, function: Callable[..., R], operator: type[PythonOperator], options: Mapping[str, Any]) -> None:
        if not callable(function):
            raise BadArgument(f"@task decorates a function, not {function!r}. For an id, type: @task(task_id={function!r})")
        if inspect.isasyncgenfunction(function):
            raise BadArgument(f"@task cannot decorate {function.__name__}(), an async generator. Return a list, do not yield.")
        if inspect.iscoroutinefunction(function) and not operator.takes_async:
            raise BadArgument(
                f"@task.{operator.operator_name} cannot decorate the async function {function.__name__}(), which runs in a Python "
                "of its own. Make it a plain one that calls asyncio.run(...)."
            )
        self.function = function
        self.operator = operator
        self.options = dict(options)
        self.role: SetupRole | None = None
        self.guards: tuple[RunCondition, ...] = ()
        functools.update_wrapper(self, function)

    if not TYPE_CHECKING:

        def __setattr__(self, name: str, value: Any) -> None:
            if name in OPTION_NAMES and not is_own_affair(self):
                said = self.function.__name__
                refuse(
                    f"{said}() with @task", name, (), f"Say @task({name}=...), or {said}.override({name}=...)(...) for one call."
                )
            object.__setattr__(self, name, value)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> XComArg:
        """Adds a task that calls the function with these arguments, which may hold results of other tasks."""
        operator = self.operator(
            task_id=self._task_id(), python_callable=self.guarded, op_args=args, op_kwargs=kwargs, **self._options()
        )
        operator.returns_dict = self.returns_dict
        return self._in_role(operator.output)

    def _in_dependency(self, other: object) -> NoReturn:
        """Raises :class:`BadArgument`, because a function is not a task before it is called."""
        self.refuse()

    __rshift__ = __lshift__ = __rrshift__ = __rlshift__ = set_upstream = set_downstream = _in_dependency

    @functools.cached_property
    def returns_dict(self) -> bool:
        """Whether the function is annotated with ``-> dict``, ``-> Mapping[str, int]``, or a ``TypedDict``."""
        return returns_mapping(self.function)

    def override(self, **options: Any) -> TaskFunction[P, R]:
        """Returns the same function with other settings, e.g. ``load.override(task_id="load_late", retries=5)(...)``."""
        return self._copy({**self.options, **options})

    def in_role(self, role: SetupRole) -> TaskFunction[P, R]:
        """Returns the same function, every call of which is a setup or a teardown."""
        return self._copy(self.options, role=role)

    def guarded_by(self, guard: RunCondition) -> TaskFunction[P, R]:
        """Returns the same function, whose tasks are skipped unless ``guard`` allows them."""
        return self._copy(self.options, guards=(guard, *self.guards))

    @property
    def guarded(self) -> Callable[..., R]:
        """The function as a task calls it."""
        return guard_all(self.function, self.guards)

    def partial(self, **arguments: Any) -> PartialFunction:
        """Returns the arguments that all instances share; continue with ``.expand(...)``."""
        return scope.begun(PartialFunction(self, arguments))

    def expand(self, *unnamed: Never, **inputs: Any) -> XComArg:
        """Adds a task with one instance for each combination of the ``inputs``; the last one varies fastest.

        An input is a list, a dict (its items are (key, value) tuples), or the result of a task.
        """
        return PartialFunction(self, {}).expand(*unnamed, **inputs)

    def expand_kwargs(self, kwargs: Any) -> XComArg:
        """Adds a task with one instance for each of ``kwargs``, which is a list of dicts of arguments or a result."""
        return PartialFunction(self, {}).expand_kwargs(kwargs)

    def _copy(
        self, options: Mapping[str, Any], *, role: SetupRole | None = None, guards: tuple[RunCondition, ...] | None = None
    ) -> TaskFunction[P, R]:
        copied: TaskFunction[P, R] = TaskFunction(self.function, self.operator, options)
        copied.role, copied.guards = role or self.role, self.guards if guards is None else guards
        return copied

    def _in_role(self, result: XComArg) -> XComArg:
        match self.role:
            case "setup":
                return result.as_setup()
            case "teardown" | "decisive_teardown":
                return result.as_teardown(on_failure_fail_dagrun=self.role == "decisive_teardown")
            case None:
                return result

    @property
    def label(self) -> str:
        """The id of its first task outside groups."""
        return str(self.options.get("task_id") or getattr(self.function, "__name__", type(self.function).__name__))

    def _task_id(self) -> str:
        """Returns the id inside the current group, with a number behind it when the function was called before."""
        wanted = self.label
        dag = scope.current_dag()
        if dag is None:
            raise WrongDag(
                f"The task {wanted}() was called outside a DAG. Call it inside a function with @dag or inside `with DAG(...):`. "
                f"To run the function as it is, type: {wanted}.function(...)"
            )
        group = scope.current_group(dag)
        full_id = group.child_id(wanted) if group else wanted
        return wanted + dag.free_id(full_id)[len(full_id) :]

    def _options(self) -> dict[str, Any]:
        options = {name: value for name, value in self.options.items() if name != "task_id"}
        if "doc" not in options and "doc_md" not in options:
            options["doc"] = inspect.getdoc(self.function) or ""
        return options


class PartialFunction(Begun[XComArg]):
    """A task function with the arguments that all its instances share."""

    def __init__(self, task_function: TaskFunction[Any, Any], arguments: dict[str, Any]) -> None:
        self.task_function, self.arguments = task_function, arguments
        self.owner = f"Task {task_function.label!r}"

    def __repr__(self) -> str:
        return f"{self.task_function.function.__name__}.partial(...)"

    def _mapped(self, inputs: dict[str, Any], example: Mapping[str, Any] | None, *, unpack: bool) -> XComArg:
        decorated, shared = self.task_function, self.arguments
        task_id, all_options = decorated._task_id(), decorated._options()
        options = {name: value for name, value in all_options.items() if name in OPTION_NAMES}
        own = {name: value for name, value in all_options.items() if name not in options}
        if example is not None:
            Signature.of(decorated.function, decorated.operator.injected).check((), {**shared, **example}, f"Task {task_id!r}")

        def build(mapped: Mapping[str, Any]) -> BaseOperator:
            return decorated.operator(task_id=task_id, python_callable=decorated.guarded, op_kwargs={**shared, **mapped}, **own)

        mapped_task = MappedOperator(
            task_id=task_id,
            operator=decorated.operator.operator_name,
            dag=None,
            group=None,
            options=options,
            shared={**own, **shared},
            inputs=inputs,
            build=build,
            unpack=unpack,
            kind=decorated.operator,
            is_async=is_async(decorated.function),
            template_ext=own.get("templates_exts") or (),
        )
        mapped_task.returns_dict = decorated.returns_dict
        return decorated._in_role(mapped_task.output)


class TaskDecorator:
    """``@task``, ``@task(...)``, ``@task.bash``, ``@task.spark``; the keyword arguments are the settings of the task."""

    @overload
    def __call__(self, function: Callable[P, R], /) -> TaskFunction[P, R]: ...
    @overload
    def __call__(self, function: None = None, /, **options: Unpack[_Options]) -> Callable[[Callable[P, R]], TaskFunction[P, R]]: ...
    def __call__(self, function: Any = None, /, **options: Any) -> Any:
        """Makes a Python function a task."""
        return _decorate(PythonOperator, function, options)

    @overload
    def python(self, function: Callable[P, R], /) -> TaskFunction[P, R]: ...
    @overload
    def python(self, function: None = None, /, **options: Unpack[_Options]) -> Callable[[Callable[P, R]], TaskFunction[P, R]]: ...
    def python(self, function: Any = None, /, **options: Any) -> Any:
        """The same as ``@task``."""
        return _decorate(PythonOperator, function, options)

    if not TYPE_CHECKING:  # or a type checker would accept any name

        def __getattr__(self, name: str) -> Any:
            cure = MISSING_DECORATORS.get(name)
            if cure is None:
                kinds = [kind for kind in vars(TaskDecorator) if not kind.startswith("_")]
                close = closest(name, kinds)
                cure = f"Did you mean @task.{close}?" if close else f"There are: {', '.join(kinds)}."
            raise AttributeError(f"There is no @task.{name}. {cure}")

    @overload
    def bash(self, function: Callable[P, str], /) -> TaskFunction[P, str]: ...
    @overload
    def bash(
        self,
        function: None = None,
        /,
        *,
        env: Mapping[str, str] | None = None,
        append_env: bool = False,
        cwd: str | os.PathLike[str] | None = None,
        skip_on_exit_code: int | Sequence[int] | None = SKIP_EXIT_CODE,
        **options: Unpack[_Options],
    ) -> Callable[[Callable[P, str]], TaskFunction[P, str]]: ...
    def bash(self, function: Any = None, /, **options: Any) -> Any:
        """Makes a function that returns a shell command a task that runs it; see ``BashOperator`` for the arguments."""
        return _decorate(BashFunctionOperator, function, options)

    @overload
    def sensor(self, function: Callable[P, R], /) -> TaskFunction[P, R]: ...
    @overload
    def sensor(
        self,
        function: None = None,
        /,
        *,
        poke_interval: timedelta | float = POKE_INTERVAL_S,
        timeout: timedelta | float = TIMEOUT_S,
        soft_fail: bool = False,
        mode: str = "poke",
        exponential_backoff: bool = False,
        max_wait: timedelta | float | None = None,
        silent_fail: bool = False,
        never_fail: bool = False,
        deferrable: bool = False,
        **options: Unpack[_Options],
    ) -> Callable[[Callable[P, R]], TaskFunction[P, R]]: ...
    def sensor(self, function: Any = None, /, **options: Any) -> Any:
        """Makes a function a sensor. It returns a bool or a ``PokeReturnValue``, which says whether the wait is over; see
        ``BaseSensorOperator`` for the arguments.
        """
        return _decorate(PythonSensor, function, options)

    @overload
    def spark(self, function: Callable[Concatenate[Any, P], R], /) -> TaskFunction[P, R]: ...
    @overload
    def spark(
        self,
        function: None = None,
        /,
        *,
        conn_id: str = DEFAULT_CONNECTION,
        app_name: str | None = None,
        conf: Mapping[str, str] | None = None,
        **options: Unpack[_Options],
    ) -> Callable[[Callable[Concatenate[Any, P], R]], TaskFunction[P, R]]: ...
    def spark(self, function: Any = None, /, **options: Any) -> Any:
        """Makes a function a task whose parameter ``spark`` (the first, for type checkers) is a SparkSession."""
        return _decorate(SparkOperator, function, options)

    @overload
    def virtualenv(self, function: Callable[P, R], /) -> TaskFunction[P, R]: ...
    @overload
    def virtualenv(
        self, function: None = None, /, **options: Unpack[_VirtualenvOptions]
    ) -> Callable[[Callable[P, R]], TaskFunction[P, R]]: ...
    def virtualenv(self, function: Any = None, /, **options: Any) -> Any:
        """Makes a function a task that runs in its own environment; see ``PythonVirtualenvOperator`` for the arguments."""
        return _decorate(PythonVirtualenvOperator, function, options)

    @overload
    def external_python(self, function: Callable[P, R], /) -> TaskFunction[P, R]: ...
    @overload
    def external_python(
        self, function: None = None, /, **options: Unpack[_ExternalPythonOptions]
    ) -> Callable[[Callable[P, R]], TaskFunction[P, R]]: ...
    def external_python(self, function: Any = None, /, **options: Any) -> Any:
        """Makes a function a task that runs in the Python at a path; see ``ExternalPythonOperator`` for the arguments."""
        return _decorate(ExternalPythonOperator, function, options)

    @overload
    def branch(self, function: Callable[P, Chosen], /) -> TaskFunction[P, Chosen]: ...
    @overload
    def branch(
        self, function: None = None, /, **options: Unpack[_Options]
    ) -> Callable[[Callable[P, Chosen]], TaskFunction[P, Chosen]]: ...
    def branch(self, function: Any = None, /, **options: Any) -> Any:
        """Makes a function a branch: it returns ids of tasks or task groups, and the others directly downstream are skipped."""
        return _decorate(BranchPythonOperator, function, options)

    @overload
    def branch_virtualenv(self, function: Callable[P, Chosen], /) -> TaskFunction[P, Chosen]: ...
    @overload
    def branch_virtualenv(
        self, function: None = None, /, **options: Unpack[_VirtualenvOptions]
    ) -> Callable[[Callable[P, Chosen]], TaskFunction[P, Chosen]]: ...
    def branch_virtualenv(self, function: Any = None, /, **options: Any) -> Any:
        """Works like ``virtualenv``, for a function that returns ids of tasks or task groups, as with ``branch``."""
        return _decorate(BranchPythonVirtualenvOperator, function, options)

    @overload
    def branch_external_python(self, function: Callable[P, Chosen], /) -> TaskFunction[P, Chosen]: ...
    @overload
    def branch_external_python(
        self, function: None = None, /, **options: Unpack[_ExternalPythonOptions]
    ) -> Callable[[Callable[P, Chosen]], TaskFunction[P, Chosen]]: ...
    def branch_external_python(self, function: Any = None, /, **options: Any) -> Any:
        """Works like ``external_python``, for a function that returns ids of tasks or task groups, as with ``branch``."""
        return _decorate(BranchExternalPythonOperator, function, options)

    @overload
    def short_circuit(self, function: Callable[P, R], /) -> TaskFunction[P, R]: ...
    @overload
    def short_circuit(
        self, function: None = None, /, *, ignore_downstream_trigger_rules: bool = True, **options: Unpack[_Options]
    ) -> Callable[[Callable[P, R]], TaskFunction[P, R]]: ...
    def short_circuit(self, function: Any = None, /, **options: Any) -> Any:
        """Makes a function a task that skips downstream tasks when it returns a false value; see ``ShortCircuitOperator``."""
        return _decorate(ShortCircuitOperator, function, options)

    def run_if(self, condition: Condition, skip_message: str | None = None) -> Callable[[TaskFunction[P, R]], TaskFunction[P, R]]:
        """Written above ``@task``: the task runs if ``condition(context)`` is true, else it is skipped."""
        return guarding(condition, True, skip_message)

    def skip_if(self, condition: Condition, skip_message: str | None = None) -> Callable[[TaskFunction[P, R]], TaskFunction[P, R]]:
        """Written above ``@task``: the task is skipped if ``condition(context)`` is true."""
        return guarding(condition, False, skip_message)


def _decorate(operator: type[PythonOperator], function: Any, options: dict[str, Any]) -> Any:
    if function is not None:
        return TaskFunction(function, operator, options)
    return lambda decorated: TaskFunction(decorated, operator, options)


task = TaskDecorator()
