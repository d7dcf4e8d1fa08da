"""What a running task knows about itself: the context, Airflow's words for Airflow's things.

Entries of the context reach a function as parameters of the same name, as ``**context``, or through :func:`get_current_context`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol

from evenflow.core.model import UNMAPPED
from evenflow.errors import NoContext
from evenflow.sdk.params import RunParams
from evenflow.sdk.xcomarg import RETURN_VALUE

if TYPE_CHECKING:
    from evenflow.sdk.dag import DAG
    from evenflow.sdk.task import Task

CONTEXT_KEYS = frozenset(
    {
        "dag",
        "dag_run",
        "data_interval_end",
        "data_interval_start",
        "ds",
        "ds_nodash",
        "logical_date",
        "params",
        "run_id",
        "task",
        "task_instance",
        "ti",
        "ts",
        "ts_nodash",
    }
)


class XComs(Protocol):
    """Values of other tasks of the run, and of this one, as Python objects."""

    def pull(self, task_id: str, key: str, map_index: int | None) -> tuple[bool, Any]: ...

    def push(self, key: str, value: Any) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class DagRun:
    """The run that a task belongs to."""

    dag_id: str
    run_id: str
    run_type: str
    run_after: datetime
    logical_date: datetime | None
    data_interval_start: datetime | None
    data_interval_end: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskInstance:
    """One try of a task, as ``ti`` in the context."""

    dag_id: str
    run_id: str
    task_id: str
    map_index: int  # -1 when the task is not mapped
    try_number: int  # from 1
    max_tries: int
    task: Task = field(repr=False)
    xcoms: XComs = field(repr=False)
    report_progress: Callable[[str, int, int, dict[str, Any]], None] = field(repr=False)

    def xcom_push(self, key: str, value: Any) -> None:
        """Stores ``value`` for other tasks under ``key``. Raises :class:`XComError` for a value that cannot be stored."""
        self.xcoms.push(key, value)

    def xcom_pull(
        self,
        task_ids: str | Sequence[str] | None = None,
        key: str = RETURN_VALUE,
        *,
        map_indexes: int | None = None,
        default: Any = None,
    ) -> Any:
        """What a task of this run pushed under ``key``, else ``default``; a list for a list of task ids.

        Without ``task_ids`` it is this task's own. Of a mapped task it is the list of the values of all instances in map order, or
        with ``map_indexes`` that of one.
        """
        if task_ids is None:
            found, value = self.xcoms.pull(self.task_id, key, self.map_index)
            return value if found else default
        if not isinstance(task_ids, str):
            return [self.xcom_pull(task_id, key, map_indexes=map_indexes, default=default) for task_id in task_ids]
        source = self.task.dag.get_task(task_ids)
        found, value = self.xcoms.pull(source.task_id, key, map_indexes if source.is_mapped else UNMAPPED)
        return value if found else default

    def progress(self, label: str, done: int, total: int, **detail: Any) -> None:
        """Shows people how far the try is; the newest replaces the one before."""
        self.report_progress(label, done, total, detail)


class Context(dict[str, Any]):
    """The entries that :data:`CONTEXT_KEYS` names."""

    def __missing__(self, key: str) -> Any:
        raise KeyError(f"The context has no {key!r}; it has: {', '.join(sorted(self))}.")


def make_context(dag: DAG, task: Task, run: DagRun, instance: TaskInstance, params: dict[str, Any]) -> Context:
    # A run triggered by hand may have no logical date. Then ds and ts tell when it was to run, instead of failing as in Airflow.
    date = (run.logical_date or run.run_after).astimezone(UTC)
    return Context(
        dag=dag,
        dag_run=run,
        data_interval_start=run.data_interval_start,
        data_interval_end=run.data_interval_end,
        ds=date.strftime("%Y-%m-%d"),
        ds_nodash=date.strftime("%Y%m%d"),
        logical_date=run.logical_date,
        params=RunParams(params),
        run_id=run.run_id,
        task=task,
        task_instance=instance,
        ti=instance,
        ts=date.isoformat(),
        ts_nodash=date.strftime("%Y%m%dT%H%M%S"),
    )


current: ContextVar[Context | None] = ContextVar("evenflow_context", default=None)


def get_current_context() -> Context:
    """The context of the task that is running here. Raises :class:`NoContext` anywhere else."""
    context = current.get()
    if context is None:
        raise NoContext(
            "get_current_context() was called where no task is running. Call it inside a function with @task or inside execute(), "
            "not at the "
            "top of the DAG file; in a thread of your own, pass the context on."
        )
    return context
