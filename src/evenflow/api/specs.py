"""Checks specs from processes that run user code: nothing in them is trusted.

The checks run in a separate process (:mod:`evenflow.api.judge`): no spec can hold up the API server.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, datetime

import msgspec

from evenflow.core.forecast import TimetableRun
from evenflow.core.graph import Graph
from evenflow.core.likeness import did_you_mean
from evenflow.core.model import DEFAULT_EXECUTOR, DagSpec
from evenflow.core.spec.shape import check_shape
from evenflow.core.spec.size import check_size
from evenflow.core.timetable import Past, check_schedule, next_of
from evenflow.errors import BadSchedule, DagError
from evenflow.sdk.param_schema import check_schema


def checked_spec(text: str) -> DagSpec:
    """Returns the spec in ``text``. Raises :class:`DagError` if it is invalid, or the scheduler could not follow it.

    The cost grows only with the length of the text: sizes are checked first, then the shape, and only then the graph is walked.
    """
    spec = _decoded(text)
    check_size(spec)
    check_shape(spec)
    for name, param in spec.params.items():
        check_schema(param.schema, f"DAG {spec.dag_id!r}, parameter {name!r}")
    check_schedule(spec.schedule)
    next_run_of(spec, Past(), datetime.now(UTC))
    Graph.of(spec)
    return spec


def check_resources(spec: DagSpec, pools: Collection[str], executors: Mapping[str, Collection[str]]) -> None:
    """Raises :class:`DagError` when a task names a pool or an executor that does not exist, or an executor other than that of its
    queue. ``executors`` maps names to queues.
    """
    executor_of = {queue: name for name, queues in executors.items() for queue in queues}
    for task in spec.tasks:
        where = f"DAG {spec.dag_id!r}, task {task.task_id!r}"
        if task.pool not in pools:
            near = did_you_mean(task.pool, pools)
            raise DagError(f"{where}: there is no pool {task.pool!r}.{near} Make it with: evenflow pools set {task.pool} SLOTS")
        executor = executor_of.get(task.queue, DEFAULT_EXECUTOR)
        if task.executor not in (None, executor):
            raise DagError(f"{where}: {_other_executor(task.executor, executor, task.queue, executors)}")


def _other_executor(wanted: str, executor: str, queue: str, executors: Mapping[str, Collection[str]]) -> str:
    """Returns why a task of this queue cannot have the executor that it names, and what to write instead."""
    if wanted not in executors:
        near = did_you_mean(wanted, executors)
        return f"there is no executor {wanted!r}.{near} Make it with: evenflow executors set {wanted} --kind KIND --queue QUEUE"
    served = ", ".join(sorted(executors[wanted])) or "those that no other executor has"
    return (
        f"its queue {queue!r} is of the executor {executor!r}, not of {wanted!r}. Leave out executor=, "
        f"or give it a queue of {wanted!r} with queue=: {served}."
    )


def next_run_of(spec: DagSpec, past: Past, now: datetime) -> TimetableRun | None:
    """Returns the next scheduled run of a DAG with this past. Raises :class:`BadSchedule` when its date is out of range."""
    try:
        return next_of(spec, past, now)
    except (OverflowError, ValueError) as error:
        raise BadSchedule(f"DAG {spec.dag_id!r}: when it runs next cannot be computed: {error}.") from None


def _decoded(text: str) -> DagSpec:
    if "\\u0000" in text:
        raise DagError("A DAG spec holds a NUL character, which the database cannot store.")
    try:
        DagSpec.from_json(text)  # raises when the format is newer than this Evenflow
        return msgspec.json.decode(text, type=DagSpec)  # checks every type
    except DagError:
        raise
    except RecursionError:
        raise DagError("A DAG spec is nested deeper than any that can be followed.") from None
    except (msgspec.MsgspecError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise DagError(f"A DAG spec cannot be read: {error}. Processor and API may be of different versions.") from None
