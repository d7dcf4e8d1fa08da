"""``@setup`` and ``@teardown``: functions whose calls are tasks of that role."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, overload

from evenflow.errors import BadArgument
from evenflow.sdk.operators.decorators import TaskFunction, task
from evenflow.sdk.setup_teardown import SetupRole
from evenflow.sdk.taskgroup import GroupFunction


@overload
def setup(function: TaskFunction[..., Any]) -> TaskFunction[..., Any]: ...
@overload
def setup(function: Callable[..., Any]) -> TaskFunction[..., Any]: ...
def setup(function: Any) -> TaskFunction[..., Any]:
    """Makes each call of the function a setup; without ``@task`` below it, a Python task."""
    return _task_function("setup", function).in_role("setup")


@overload
def teardown(function: Callable[..., Any], /) -> TaskFunction[..., Any]: ...
@overload
def teardown(*, on_failure_fail_dagrun: bool = False) -> Callable[[Callable[..., Any]], TaskFunction[..., Any]]: ...
def teardown(function: Any = None, /, *, on_failure_fail_dagrun: bool = False) -> Any:
    """Makes each call of the function a teardown. It runs once all upstream tasks have ended, if a setup directly upstream of it
    succeeded. With ``on_failure_fail_dagrun`` its failure fails the run.
    """
    role: SetupRole = "decisive_teardown" if on_failure_fail_dagrun else "teardown"
    if function is None:
        return lambda decorated: _task_function("teardown", decorated).in_role(role)
    return _task_function("teardown", function).in_role(role)


def _task_function(name: str, function: Any) -> TaskFunction[..., Any]:
    if isinstance(function, GroupFunction):
        raise BadArgument(f"@{name} cannot mark the task group {function.function.__name__}(). Mark the tasks inside it.")
    return function if isinstance(function, TaskFunction) else task(function)
