"""The DAG and the task group of a task that is being defined: those of the innermost open ``with``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from evenflow.sdk.mapped.partials import Begun
from evenflow.sdk.nodes import AnyDag, GroupNode

_dags: ContextVar[tuple[AnyDag, ...]] = ContextVar("evenflow_dags", default=())
_groups: ContextVar[tuple[GroupNode, ...]] = ContextVar("evenflow_groups", default=())
_detached: ContextVar[bool] = ContextVar("evenflow_detached", default=False)

B = TypeVar("B", bound="Begun[Any]")


def current_dag() -> AnyDag | None:
    dags = _dags.get()
    return dags[-1] if dags else None


def current_group(dag: AnyDag) -> GroupNode | None:
    """Returns the innermost open group that belongs to ``dag``."""
    groups = _groups.get()
    return groups[-1] if groups and groups[-1].dag is dag else None


def enter_dag(dag: AnyDag) -> None:
    _dags.set((*_dags.get(), dag))


def leave_dag() -> None:
    _dags.set(_dags.get()[:-1])


def enter_group(group: GroupNode) -> None:
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


def begun(partial: B, dag: AnyDag | None = None) -> B:
    """Notes ``partial`` in ``dag``, by default the open one, which checks that it gets expanded."""
    dag = dag or current_dag()
    if dag is not None:
        dag.partials.append(partial)
    return partial
