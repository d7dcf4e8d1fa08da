"""``@task`` and its kin: a function becomes a task by being called inside a DAG."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, Unpack, overload

from evenflow.errors import BadArgument, WrongDag
from evenflow.sdk import scope
from evenflow.sdk.bash import SKIP_EXIT_CODE, BashFunctionOperator
from evenflow.sdk.mapping import MappedOperator
from evenflow.sdk.operators import BaseOperator, PythonOperator
from evenflow.sdk.options import OPTION_NAMES, TaskOptions
from evenflow.sdk.signature import Signature
from evenflow.sdk.spark_task import DEFAULT_CONNECTION, SparkOperator
from evenflow.sdk.xcomarg import XComArg

P = ParamSpec("P")
R = TypeVar("R")


class _Options(TaskOptions, total=False):
    task_id: str


class TaskFunction(Generic[P, R]):
    """A function with ``@task``. Each call inside a DAG adds a task and returns a reference to its result.

    A second task of the same function is called ``name__1``. ``function`` is the function itself, e.g. for unit tests.
    """

    def __init__(self, function: Callable[..., R], operator: type[PythonOperator], options: Mapping[str, Any]) -> None:
        if not callable(function):
            raise BadArgument(f"@task decorates a function, not {function!r}. For an id, type: @task(task_id={function!r})")
        if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
            raise BadArgument(
                f"@task cannot decorate the async function {function.__name__}(). Make it a plain one that calls asyncio.run(...)."
            )
        self.function = function
        self.operator = operator
        self.options = dict(options)
        functools.update_wrapper(self, function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> XComArg:
        """Adds a task that calls the function with these arguments, which may hold results of other tasks."""
        operator = self.operator(
            task_id=self._task_id(), python_callable=self.function, op_args=args, op_kwargs=kwargs, **self._options()
        )
        return operator.output

    def override(self, **options: Any) -> TaskFunction[P, R]:
        """The same function with other settings, e.g. ``load.override(task_id="load_late", retries=5)(...)``."""
        return TaskFunction(self.function, self.operator, {**self.options, **options})

    def partial(self, **arguments: Any) -> PartialFunction:
        """The arguments that all instances share; go on with ``.expand(...)``."""
        return PartialFunction(self, arguments)

    def expand(self, **inputs: Any) -> XComArg:
        """Adds a task with one instance for each combination of the ``inputs``, the last of them varying fastest.

        An input is a list, a dict (its items are (key, value) tuples), or the result of a task.
        """
        return PartialFunction(self, {}).expand(**inputs)

    def _task_id(self) -> str:
        """The id inside the current group, with a number behind it when the function has been called before."""
        wanted = str(self.options.get("task_id") or getattr(self.function, "__name__", type(self.function).__name__))
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


class PartialFunction:
    """A task function with the arguments that all its instances share."""

    def __init__(self, task_function: TaskFunction[Any, Any], arguments: dict[str, Any]) -> None:
        self.task_function, self.arguments = task_function, arguments

    def expand(self, **inputs: Any) -> XComArg:
        """As :meth:`TaskFunction.expand`."""
        decorated, shared = self.task_function, self.arguments
        task_id, all_options = decorated._task_id(), decorated._options()
        options = {name: value for name, value in all_options.items() if name in OPTION_NAMES}
        own = {name: value for name, value in all_options.items() if name not in options}
        where = f"Task {task_id!r}"
        for name in inputs:
            if name in shared:
                raise BadArgument(f"{where}: {name!r} is given to both partial() and expand(). Remove one.")
        Signature.of(decorated.function, decorated.operator.injected).check((), {**shared, **inputs}, where)

        def build(mapped: Mapping[str, Any]) -> BaseOperator:
            return decorated.operator(task_id=task_id, python_callable=decorated.function, op_kwargs={**shared, **mapped}, **own)

        return MappedOperator(
            task_id=task_id,
            operator=decorated.operator.operator_name,
            dag=None,
            group=None,
            options=options,
            shared={**own, **shared},
            inputs=inputs,
            build=build,
        ).output


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
        """Makes a function whose parameter ``spark`` (the first, for type checkers) is a SparkSession a task."""
        return _decorate(SparkOperator, function, options)


def _decorate(operator: type[PythonOperator], function: Any, options: dict[str, Any]) -> Any:
    if function is not None:
        return TaskFunction(function, operator, options)
    return lambda decorated: TaskFunction(decorated, operator, options)


task = TaskDecorator()
