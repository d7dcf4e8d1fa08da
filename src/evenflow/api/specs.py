"""Specs that arrive from a process which runs user code: nothing of them is believed.

They are checked in a process of their own (:mod:`evenflow.api.judge`): whatever a spec is, no API server waits for it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import UTC, datetime

import msgspec

from evenflow.api import limits
from evenflow.core.graph import Graph
from evenflow.core.likeness import did_you_mean
from evenflow.core.limits import MAX_ASSET_NAME, MAX_CALLBACKS, MAX_DEADLINES, MAX_NAME_CHARS, MAX_RUN_SECONDS
from evenflow.core.model import DagSpec, TaskSpec
from evenflow.core.spec_shape import check_shape
from evenflow.core.spec_size import check_size
from evenflow.core.timetable import Past, TimetableRun, check_schedule, next_of
from evenflow.errors import BadSchedule, DagError
from evenflow.sdk.param_schema import check_schema

INT32 = 2**31 - 1
MAX_RETRIES = 32_000  # the try number is a smallint

Numbers = dict[str, tuple[float | None, int, int]]  # by what it is: the number, the least and the most that it may be


def checked_spec(text: str) -> DagSpec:
    """The spec that ``text`` is. Raises :class:`DagError` when it is none, or one that the scheduler could not follow.

    What it costs grows with the length of the text alone: sizes first, then the shape, and only then what walks the graph.
    """
    spec = _decoded(text)
    _check_names(spec)
    check_size(spec)
    check_shape(spec)
    for task in spec.tasks:
        _check_task(spec, task)
    for name, param in spec.params.items():
        check_schema(param.schema, f"DAG {spec.dag_id!r}, parameter {name!r}")
    _check_run(spec)
    check_schedule(spec.schedule)
    next_run_of(spec, Past(), datetime.now(UTC))
    Graph.of(spec)
    return spec


def check_resources(spec: DagSpec, pools: Collection[str], executors: Collection[str]) -> None:
    """Raises :class:`DagError` when a task names a pool or an executor that there is not."""
    for task in spec.tasks:
        where = f"DAG {spec.dag_id!r}, task {task.task_id!r}"
        if task.pool not in pools:
            near = did_you_mean(task.pool, pools)
            raise DagError(f"{where}: there is no pool {task.pool!r}.{near} Make it with: evenflow pools set {task.pool} SLOTS")
        if task.executor not in executors:
            raise DagError(f"{where}: there is no executor {task.executor!r}; there are: {', '.join(sorted(executors))}.")


def next_run_of(spec: DagSpec, past: Past, now: datetime) -> TimetableRun | None:
    """The next scheduled run of a DAG with this past. Raises :class:`BadSchedule` when that is beyond all time."""
    try:
        return next_of(spec, past, now)
    except (OverflowError, ValueError) as error:
        raise BadSchedule(f"DAG {spec.dag_id!r}: when it runs next cannot be computed: {error}.") from None


def _decoded(text: str) -> DagSpec:
    if "\\u0000" in text:
        raise DagError("A DAG spec holds a NUL character, which the database cannot store.")
    try:
        DagSpec.from_json(text)  # says so when the format is newer than this Evenflow
        return msgspec.json.decode(text, type=DagSpec)  # checks every type
    except DagError:
        raise
    except RecursionError:
        raise DagError("A DAG spec is nested deeper than any that can be followed.") from None
    except (msgspec.MsgspecError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise DagError(f"A DAG spec cannot be read: {error}. Processor and API may be of different versions.") from None


def _check_names(spec: DagSpec) -> None:
    for what, name in (("dag_id", spec.dag_id), *(("task_id", task.task_id) for task in spec.tasks)):
        if not name or len(name) > MAX_NAME_CHARS or "/" in name or not name.isprintable():
            raise DagError(f"The {what} {name!r:.300} must have 1 to {MAX_NAME_CHARS} printable characters, and no slash.")
    if len({task.task_id for task in spec.tasks}) != len(spec.tasks):
        raise DagError(f"DAG {spec.dag_id!r} has two tasks with one task_id.")


def _check_task(spec: DagSpec, task: TaskSpec) -> None:
    where = f"DAG {spec.dag_id!r}, task {task.task_id!r}"
    numbers: Numbers = {
        "pool_slots": (task.pool_slots, 1, INT32),
        "priority_weight": (task.priority_weight, -INT32, INT32),
        "retries": (task.retries, 0, MAX_RETRIES),
        "infrastructure_retries": (task.infrastructure_retries, 0, MAX_RETRIES),
        "max_active_tis_per_dag": (task.max_active_tis_per_dag, 1, INT32),
        "max_active_tis_per_dagrun": (task.max_active_tis_per_dagrun, 1, INT32),
        "retry_delay": (task.retry_delay, 0, MAX_RUN_SECONDS),
        "max_retry_delay": (task.max_retry_delay, 0, MAX_RUN_SECONDS),
        "execution_timeout": (task.execution_timeout, 0, MAX_RUN_SECONDS),
        "retry_exponential_backoff": (task.retry_exponential_backoff, 0, INT32),
        "retry_jitter": (task.retry_jitter, 0, INT32),
        "the number of callbacks": (len(task.callbacks), 0, limits.CALLBACKS),
        **{f"the delay of retry rule {n}": (rule.delay, 0, MAX_RUN_SECONDS) for n, rule in enumerate(task.retry_rules, 1)},
    }
    _check_numbers(where, numbers)
    _check_asset_names(where, (*task.outlets, *task.outlet_aliases))


def _check_run(spec: DagSpec) -> None:
    where = f"DAG {spec.dag_id!r}"
    numbers: Numbers = {
        "max_active_runs": (spec.max_active_runs, 1, INT32),
        "max_active_tasks": (spec.max_active_tasks, 1, INT32),
        "max_consecutive_failed_dag_runs": (spec.max_consecutive_failed_dag_runs, 0, INT32),
        "dagrun_timeout": (spec.dagrun_timeout, 0, MAX_RUN_SECONDS),
        "the number of callbacks": (len(spec.callbacks), 0, limits.CALLBACKS),
        "the number of deadlines": (len(spec.deadlines), 0, MAX_DEADLINES),
    }
    for deadline in spec.deadlines:
        numbers[f"the interval of deadline {deadline.name!r}"] = (deadline.interval, -MAX_RUN_SECONDS, MAX_RUN_SECONDS)
        numbers[f"the number of callbacks of deadline {deadline.name!r}"] = (deadline.callbacks, 0, MAX_CALLBACKS)
    _check_numbers(where, numbers)
    _check_asset_names(where, (asset.name for asset in spec.assets))


def _check_numbers(where: str, numbers: Numbers) -> None:
    for name, (number, least, most) in numbers.items():
        if number is not None and not least <= number <= most:
            raise DagError(f"{where}: {name} is {number:,}, not between {least:,} and {most:,}.")


def _check_asset_names(where: str, names: Iterable[str]) -> None:
    for name in names:
        if len(name.encode()) > MAX_ASSET_NAME:
            raise DagError(f"{where}: the name of the asset {name!r:.80} has more than {MAX_ASSET_NAME:,} bytes.")
