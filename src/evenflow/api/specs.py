"""Specs that arrive from a process which runs user code: nothing of them is believed."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime
from graphlib import CycleError, TopologicalSorter

import msgspec

from evenflow.api import limits
from evenflow.core.graph import Graph
from evenflow.core.limits import MAX_MAP_LENGTH
from evenflow.core.mapping import sources
from evenflow.core.model import DagSpec, TaskSpec
from evenflow.core.timetable import Past, check_schedule, next_of
from evenflow.errors import DagCycle, DagError
from evenflow.sdk.limits import MAX_CALLBACKS, MAX_DEADLINES, MAX_RUN_SECONDS
from evenflow.store.dags import NextRun

INT32 = 2**31 - 1
MAX_RETRIES = 32_000  # the try number is a smallint

Numbers = dict[str, tuple[float | None, int, int]]  # by what it is: the number, the least and the most that it may be


def checked_spec(text: str, *, pools: Collection[str], executors: Collection[str]) -> DagSpec:
    """The spec that ``text`` is. Raises :class:`DagError` when it is none, or one that the scheduler could not follow."""
    if "\\u0000" in text:
        raise DagError("A DAG spec holds a NUL character, which the database cannot store.")
    try:
        DagSpec.from_json(text)  # says so when the format is newer than this Evenflow
        spec = msgspec.json.decode(text, type=DagSpec)  # checks every type
    except DagError:
        raise
    except (msgspec.MsgspecError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise DagError(f"A DAG spec cannot be read: {error}. Processor and API may be of different versions.") from None
    _check_names(spec)
    _check_graph(spec)
    for task in spec.tasks:
        _check_task(spec, task, pools, executors)
    _check_run(spec)
    check_schedule(spec.schedule)
    for name, moment in (("start_date", spec.start_date), ("end_date", spec.end_date)):
        parsed_date(spec, name, moment)
    return spec


def parsed_date(spec: DagSpec, name: str, text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise DagError(f"DAG {spec.dag_id!r}: {name} {text!r} is no ISO 8601 time.") from None
    if moment.tzinfo is None:
        raise DagError(f"DAG {spec.dag_id!r}: {name} {text!r} has no UTC offset.")
    return moment


def upcoming_run(spec: DagSpec, past: Past, now: datetime) -> NextRun:
    """The next scheduled run of a DAG with this past. ``now`` is by the database's clock, as it is for those who make the run: by
    another clock that is ahead, a date would be passed over.
    """
    run = next_of(spec, past, now)
    return NextRun(None, None) if run is None else NextRun(run.run_after, run.logical_date)


def _check_names(spec: DagSpec) -> None:
    if len(spec.tasks) > limits.TASKS:
        raise DagError(f"DAG {spec.dag_id!r} has {len(spec.tasks):,} tasks (limit {limits.TASKS:,}). Map over a list instead.")
    for what, name in (("dag_id", spec.dag_id), *(("task_id", task.task_id) for task in spec.tasks)):
        if not name or len(name) > limits.NAME or "/" in name or not name.isprintable():
            raise DagError(f"The {what} {name!r} must have 1 to {limits.NAME} printable characters, and no slash.")
    if len({task.task_id for task in spec.tasks}) != len(spec.tasks):
        raise DagError(f"DAG {spec.dag_id!r} has two tasks with one task_id.")


def _check_graph(spec: DagSpec) -> None:
    known = range(len(spec.tasks))
    for task in spec.tasks:
        mapped_over = {source for source, _ in sources(task.mapping.inputs)} if task.mapping else set()
        if any(index not in known for index in (*task.upstream, *mapped_over)):
            raise DagError(f"DAG {spec.dag_id!r}: task {task.task_id!r} depends on a task that does not exist.")
        if list(task.upstream) != sorted(set(task.upstream)):
            raise DagError(f"DAG {spec.dag_id!r}: the upstreams of task {task.task_id!r} are not in ascending order.")
        if not mapped_over <= set(task.upstream):
            raise DagError(f"DAG {spec.dag_id!r}: task {task.task_id!r} maps over a task that is not upstream of it.")
    _check_mapped_groups(spec)
    try:
        TopologicalSorter({index: task.upstream for index, task in enumerate(spec.tasks)}).prepare()
    except CycleError as error:
        raise DagCycle(spec.dag_id, [spec.tasks[index].task_id for index in error.args[1][:-1]]) from None


def _check_task(spec: DagSpec, task: TaskSpec, pools: Collection[str], executors: Collection[str]) -> None:
    where = f"DAG {spec.dag_id!r}, task {task.task_id!r}"
    if task.pool not in pools:
        raise DagError(f"{where}: there is no pool {task.pool!r}. Make it with: evenflow pools set {task.pool} SLOTS")
    if task.executor not in executors:
        raise DagError(f"{where}: there is no executor {task.executor!r}; there are: {', '.join(sorted(executors))}.")
    numbers: Numbers = {
        "pool_slots": (task.pool_slots, 1, INT32),
        "priority_weight": (task.priority_weight, -INT32, INT32),
        "retries": (task.retries, 0, MAX_RETRIES),
        "infrastructure_retries": (task.infrastructure_retries, 0, MAX_RETRIES),
        "max_active_tis_per_dag": (task.max_active_tis_per_dag, 1, INT32),
        "max_active_tis_per_dagrun": (task.max_active_tis_per_dagrun, 1, INT32),
        "retry_delay": (task.retry_delay, 0, MAX_RUN_SECONDS),
        "max_retry_delay": (task.max_retry_delay, 0, MAX_RUN_SECONDS),
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
        if len(name.encode()) > limits.ASSET_NAME:
            raise DagError(f"{where}: the name of the asset {name!r:.80} has more than {limits.ASSET_NAME:,} bytes.")


def _check_mapped_groups(spec: DagSpec) -> None:
    """What a group maps over must be upstream of each of its roots: then nothing in it ends before the group is expanded."""
    if not 1 <= spec.max_map_length <= MAX_MAP_LENGTH:
        raise DagError(f"DAG {spec.dag_id!r}: max_map_length must be 1 to {MAX_MAP_LENGTH:,}, not {spec.max_map_length:,}.")
    if any(i not in range(len(spec.tasks)) for g in spec.groups if g.mapping for i, _ in sources(g.mapping.inputs)):
        raise DagError(f"DAG {spec.dag_id!r}: a group maps over a task that does not exist.")
    for group in spec.groups:
        around = group.parent
        while around is not None:
            if group.mapping is not None and spec.groups[around].mapping is not None:
                raise DagError(f"DAG {spec.dag_id!r}: mapped group {group.group_id!r} is inside another one.")
            around = spec.groups[around].parent
    for span in Graph.of(spec).spans:
        for index in span.tasks:
            task = spec.tasks[index]
            if span.head is None and task.mapping is not None:
                raise DagError(f"DAG {spec.dag_id!r}: mapped task {task.task_id!r} is inside mapped group {span.name!r}.")
            if span.head is None and set(span.tasks).isdisjoint(task.upstream) and not set(span.gated_by) <= set(task.upstream):
                raise DagError(
                    f"DAG {spec.dag_id!r}: task {task.task_id!r} does not wait for what its group {span.name!r} maps over."
                )
