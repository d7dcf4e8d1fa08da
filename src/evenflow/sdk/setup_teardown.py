"""Setups make what other tasks need, teardowns remove it, and ``with`` marks the tasks between."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Literal

from evenflow.core.trigger_rules import TriggerRule
from evenflow.errors import BadArgument
from evenflow.sdk.edges import Dependency
from evenflow.sdk.nodes import TaskNode

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

SetupRole = Literal["setup", "teardown", "decisive_teardown"]  # the last one also fails the run when it fails


class SetupScope:
    """One ``with setup_or_teardown:``. Tasks defined inside come after the setups and before the teardowns: those without an
    upstream, or a downstream, inside get an edge.
    """

    def __init__(self, task: TaskNode, around: SetupScope | None) -> None:
        if not task.is_setup and not task.is_teardown:
            raise BadArgument(
                f"{task.qualified_name} is no setup and no teardown, so `with` has no meaning for it. Mark it: .as_setup() or "
                ".as_teardown(setups=...)"
            )
        self.around = around
        self.setups = [task] if task.is_setup else [t for t in task.upstream_tasks.values() if t.is_setup]
        self.teardowns = [task] if task.is_teardown else [t for t in task.downstream_tasks.values() if t.is_teardown]
        self.tasks: list[TaskNode] = []

    def add_task(self, *tasks: Dependency) -> None:
        """Adds tasks that were made outside to this scope."""
        self.tasks += _tasks(tasks)

    def close(self) -> None:
        work = [task for task in dict.fromkeys(self.tasks) if not task.is_setup and not task.is_teardown]
        inside = {task.task_id for task in work}
        roots = [task for task in work if inside.isdisjoint(task.upstream_tasks)]
        leaves = [task for task in work if inside.isdisjoint(task.downstream_tasks)]
        for setup_task in self.setups:
            setup_task.set_downstream(roots)
        for teardown_task in self.teardowns:
            teardown_task.set_upstream(leaves)
        if self.around is not None:
            _nest(self, self.around)


def _nest(inner: SetupScope, outer: SetupScope) -> None:
    for setup_task in outer.setups:
        setup_task.set_downstream([task for task in inner.setups if task is not setup_task])
    for teardown_task in outer.teardowns:
        teardown_task.set_upstream([task for task in inner.teardowns if task is not teardown_task])


_open: ContextVar[SetupScope | None] = ContextVar("evenflow_setup_scope", default=None)


def defined(task: TaskNode) -> None:
    """Adds a task that has just joined its DAG to the innermost scope."""
    scope = _open.get()
    if scope is not None:
        scope.tasks.append(task)


class Markable(Dependency):
    """A task, or its result, that can become a setup or a teardown."""

    def as_setup(self) -> Self:
        """Marks the task as a setup: its teardowns run if it has succeeded, whatever happened to the tasks between."""
        for task in _tasks(self):
            _mark_setup(task)
        return self

    def as_teardown(self, *, setups: Any = None, on_failure_fail_dagrun: bool | None = None) -> Self:
        """Marks the task as a teardown of ``setups`` (one task or several), which become setups and upstream of it.

        It runs once all upstream tasks have ended, if one of the setups succeeded. Its own failure fails the run only with
        ``on_failure_fail_dagrun``.
        """
        for task in _tasks(self):
            _mark_teardown(task, _tasks(setups), on_failure_fail_dagrun)
        return self

    def __enter__(self) -> SetupScope:
        (task,) = _tasks(self)
        scope = SetupScope(task, _open.get())
        _open.set(scope)
        return scope

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        scope = _open.get()
        assert scope is not None
        _open.set(scope.around)
        scope.close()


def _mark_setup(task: TaskNode) -> None:
    if task.is_teardown:
        raise BadArgument(f"{task.qualified_name} is a teardown and cannot be a setup too. Make two tasks.")
    task.is_setup = True


def _mark_teardown(task: TaskNode, setups: Iterable[TaskNode], on_failure_fail_dagrun: bool | None) -> None:
    if task.is_setup:
        raise BadArgument(f"{task.qualified_name} is a setup and cannot be a teardown too. Make two tasks.")
    if task.task_settings.trigger_rule not in (TriggerRule.ALL_SUCCESS, TriggerRule.ALL_DONE_SETUP_SUCCESS):
        raise BadArgument(
            f"{task.qualified_name}: a teardown always has the trigger rule {TriggerRule.ALL_DONE_SETUP_SUCCESS.value!r}. Remove "
            f"trigger_rule={task.task_settings.trigger_rule.value!r}."
        )
    task.is_teardown = True
    if on_failure_fail_dagrun is not None:
        task.on_failure_fail_dagrun = on_failure_fail_dagrun
    for found in setups:
        _mark_setup(found)
        found.set_downstream(task)


def _tasks(given: Any) -> Iterator[TaskNode]:
    if given is None:
        return
    if isinstance(given, Dependency):
        end = given.endpoint()
        if not isinstance(end, TaskNode):
            raise BadArgument(f"{end!r} is a task group: only tasks can be setups. Mark those inside.")
        yield end
        return
    for each in given:
        yield from _tasks(each)
