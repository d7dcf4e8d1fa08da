"""``@task.run_if`` and ``@task.skip_if``: a condition decides, when a task's turn comes, whether it runs."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from evenflow.errors import BadArgument, TaskSkipped
from evenflow.sdk.awaiting import has_waited
from evenflow.sdk.context import Context, get_current_context

Condition = Callable[["Context"], Any]


@dataclass(frozen=True, slots=True)
class RunCondition:
    """Lets a task run if ``condition(context)`` is as ``wanted``."""

    condition: Condition
    wanted: bool
    skip_message: str | None

    def check(self, context: Context) -> None:
        if bool(self.condition(context)) is not self.wanted:
            what = "run_if" if self.wanted else "skip_if"
            raise TaskSkipped(self.skip_message or f"Skipped by @task.{what}({getattr(self.condition, '__name__', 'condition')}).")


def guard_all(function: Callable[..., Any], guards: tuple[RunCondition, ...]) -> Callable[..., Any]:
    """Returns the function, called only if all guards allow it."""
    if not guards:
        return function

    @functools.wraps(function)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        if not has_waited():  # otherwise they have let it run already
            context = get_current_context()
            for guard in guards:
                guard.check(context)
        return function(*args, **kwargs)

    guarded.__dict__["guards"] = guards  # for callers in another process
    return guarded


def guarding(condition: Condition, wanted: bool, skip_message: str | None) -> Callable[[Any], Any]:
    """Returns the decorator that adds such a guard to a function with ``@task``."""
    what = "run_if" if wanted else "skip_if"
    if not callable(condition):
        raise BadArgument(f"@task.{what} needs a function of the context that says whether, not {condition!r}.")

    def decorate(task_function: Any) -> Any:
        if not hasattr(task_function, "guarded_by"):
            raise BadArgument(f"@task.{what}(...) stands above @task, and decorates what that makes, not {task_function!r}.")
        return task_function.guarded_by(RunCondition(condition, wanted, skip_message))

    return decorate
