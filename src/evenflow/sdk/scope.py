"""Which DAG and which task group a task that is being defined belongs to: the innermost ``with`` that is open."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evenflow.sdk.dag import DAG
    from evenflow.sdk.taskgroup import TaskGroup

_dags: ContextVar[tuple[DAG, ...]] = ContextVar("evenflow_dags", default=())
_groups: ContextVar[tuple[TaskGroup, ...]] = ContextVar("evenflow_groups", default=())
_detached: ContextVar[bool] = ContextVar("evenflow_detached", default=False)
_observer: ContextVar[Callable[[DAG], None] | None] = ContextVar("evenflow_dag_observer", default=None)


def current_dag() -> DAG | None:
    dags = _dags.get()
    return dags[-1] if dags else None


def current_group(dag: DAG) -> TaskGroup | None:
    """The innermost open group that belongs to ``dag``."""
    groups = _groups.get()
    return groups[-1] if groups and groups[-1].dag is dag else None


def enter_dag(dag: DAG) -> None:
    _dags.set((*_dags.get(), dag))


def leave_dag() -> None:
    _dags.set(_dags.get()[:-1])


def enter_group(group: TaskGroup) -> None:
    _groups.set((*_groups.get(), group))


def leave_group() -> None:
    _groups.set(_groups.get()[:-1])


def is_detached() -> bool:
    return _detached.get()


@contextmanager
def detached() -> Iterator[None]:
    """Operators made inside join no DAG: they are instances of a mapped task, made at run time."""
    token = _detached.set(True)
    try:
        yield
    finally:
        _detached.reset(token)


@contextmanager
def observed(observer: Callable[[DAG], None]) -> Iterator[None]:
    """``observer`` is told of every DAG that is made inside."""
    token = _observer.set(observer)
    try:
        yield
    finally:
        _observer.reset(token)


def announce(dag: DAG) -> None:
    observer = _observer.get()
    if observer is not None:
        observer(dag)
