"""Callbacks as authors give them: a function that gets the context, or several; a notifier is one too."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evenflow.core.callbacks import OF_TASKS, Callback
from evenflow.core.limits import MAX_CALLBACKS

if TYPE_CHECKING:
    from evenflow.sdk.context import Context
    from evenflow.sdk.dag import DAG
    from evenflow.sdk.task import Task

Function = Callable[..., Any]
Functions = Function | Sequence[Function] | None

WANTED = f"a function that takes the context, or a list of at most {MAX_CALLBACKS} such functions"


def checked_functions(value: Any) -> tuple[Function, ...] | None:
    """As a tuple; None when ``value`` is not :data:`WANTED`."""
    found = tuple(value) if isinstance(value, (list, tuple)) else () if value is None else (value,)
    return found if len(found) <= MAX_CALLBACKS and all(callable(function) for function in found) else None


class _WithArguments:
    """A function, or the class of a notifier, with its keyword arguments."""

    def __init__(self, callback_callable: Callable[..., Any], kwargs: Mapping[str, Any] | None = None) -> None:
        self.callback_callable, self.kwargs = callback_callable, dict(kwargs or {})

    def __call__(self, context: Context) -> Any:
        if inspect.isclass(self.callback_callable):
            notifier: Any = self.callback_callable(**self.kwargs)
            return notifier(context)
        parameters = inspect.signature(self.callback_callable).parameters
        takes_it = "context" in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())
        return self.callback_callable(**self.kwargs, **({"context": context} if takes_it else {}))


class SyncCallback(_WithArguments):
    """``SyncCallback(function, kwargs={...})``: calls it with these arguments, and with ``context`` if it takes one."""


class AsyncCallback(_WithArguments):
    """The same for an ``async def``, as in Airflow. Both run on a worker, in a process of their own."""


def declared_by_task(task: Task) -> tuple[str, ...]:
    """What the spec says of the callbacks of a task: names, one for each function that a worker is to call."""
    settings = task.task_settings
    return tuple(event for event in OF_TASKS if event is not Callback.EXECUTE for _ in getattr(settings, event))


def functions_of(dag: DAG, task_id: str | None, event: str) -> tuple[Function, ...]:
    """In the order of their positions; ``task_id`` None: those of the DAG."""
    if task_id is not None:
        found: tuple[Function, ...] = getattr(dag.get_task(task_id).task_settings, event)
        return found
    if event == Callback.DEADLINE:
        return tuple(function for alert in dag.header.deadlines for function in alert.functions)
    of_runs: tuple[Function, ...] = getattr(dag.header, event)
    return of_runs


def call(function: Function, context: Context) -> None:
    """Calls it to its end, also when it is an ``async def``."""
    result = function(context)
    if inspect.isawaitable(result):
        import asyncio

        async def awaited() -> None:
            await result

        asyncio.run(awaited())


def before_execution(task: Task, context: Context) -> None:
    """``on_execute_callback``, in the process of the try. An error is shown in its log and changes nothing, as in Airflow."""
    for function in task.task_settings.on_execute_callback:
        try:
            call(function, context)
        except Exception:
            import traceback

            traceback.print_exc()
