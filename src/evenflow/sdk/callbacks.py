"""Callbacks as authors give them: a function that gets the context, or several; a notifier is one too."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from evenflow.core.limits import MAX_CALLBACKS

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

    def __call__(self, context: dict[str, Any]) -> Any:
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


def call(function: Function, context: dict[str, Any]) -> None:
    """Calls it to its end, also when it is an ``async def``."""
    result = function(context)
    if inspect.isawaitable(result):
        import asyncio

        async def awaited() -> None:
            await result

        asyncio.run(awaited())
