"""A DAG as written becomes a ``DagSpec``: its header is checked when the DAG is made, its tasks when it is complete."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING, Any

from evenflow.core.model import DagSpec, GroupSpec, Param, Schedule, TaskSpec
from evenflow.core.timetable import parse_schedule
from evenflow.core.weights import effective_weights
from evenflow.errors import BadSchedule, BadSetting
from evenflow.sdk.graph import topological_order, upstream_indexes
from evenflow.sdk.options import OPTION_NAMES, check_options
from evenflow.sdk.params import params_to_spec

if TYPE_CHECKING:
    from evenflow.sdk.dag import DAG
    from evenflow.sdk.task import Task


@dataclass(frozen=True, slots=True)
class Header:
    """What is known of a DAG before it has tasks."""

    spec: DagSpec  # without tasks and groups
    default_args: dict[str, Any]

    @property
    def params(self) -> dict[str, Param]:
        return self.spec.params


def spec_of_header(dag_id: str, options: Mapping[str, Any]) -> Header:
    """Raises :class:`BadSetting` or :class:`BadSchedule` naming the option that is wrong."""
    where = f"DAG {dag_id!r}"
    unknown = [name for name in options if name not in _OPTIONS]
    if unknown:
        raise BadSetting(f"{where}: there is no option {unknown[0]!r}. There are: {', '.join(_OPTIONS)}.")
    given = {name: value for name, value in options.items() if value is not None or name in ("max_active_runs", "max_active_tasks")}
    for name, value in given.items():
        kind, wanted = _OPTIONS[name]
        if value is not None and (not isinstance(value, kind) or (isinstance(value, bool) and kind is int)):
            raise BadSetting(f"{where}: {name} must be {wanted}, not {value!r} of type {type(value).__name__}.")
    default_args = dict(given.get("default_args", {}))
    owner: str = default_args.pop("owner", "")
    check_options(default_args, f"{where}, default_args")
    start = _aware(given.get("start_date"), UTC)
    end = _aware(given.get("end_date"), start.tzinfo if start and start.tzinfo else UTC)
    catchup = given.get("catchup", False)
    schedule = _schedule(given.get("schedule"), start, where)
    if catchup and start is None and schedule.kind == "cron":
        raise BadSetting(f"{where}: catchup=True needs a start_date: from when on are runs to be made?")
    if start and end and end < start:
        raise BadSetting(f"{where}: end_date {end} is before start_date {start}.")
    return Header(
        spec=DagSpec(
            dag_id=dag_id,
            tasks=(),
            params=params_to_spec(given.get("params", {}), where),
            schedule=schedule,
            start_date=start.isoformat() if start else None,
            end_date=end.isoformat() if end else None,
            catchup=catchup,
            max_active_runs=_limit(given, "max_active_runs", where),
            max_active_tasks=_limit(given, "max_active_tasks", where),
            tags=_tags(given.get("tags", ()), where),
            owner=given.get("owner", owner),
            description=given.get("description", ""),
            doc=given.get("doc_md", ""),
            is_paused_upon_creation=given.get("is_paused_upon_creation", False),
        ),
        default_args=default_args,
    )


_OPTIONS: dict[str, tuple[Any, str]] = {
    "schedule": (str, "a cron expression, a preset such as '@daily', or None"),
    "start_date": (datetime, "a datetime, e.g. datetime(2026, 1, 1, tzinfo=ZoneInfo('Europe/Berlin'))"),
    "end_date": (datetime, "a datetime"),
    "catchup": (bool, "True or False"),
    "params": (Mapping, "a dict of defaults or Param(...)"),
    "default_args": (Mapping, f"a dict of task settings ({', '.join(sorted(OPTION_NAMES))})"),
    "tags": ((list, tuple, set, frozenset), "a list of strings"),
    "max_active_runs": (int, "an integer of at least 1, or None for no limit"),
    "max_active_tasks": (int, "an integer of at least 1, or None for no limit"),
    "description": (str, "a string"),
    "doc_md": (str, "a string"),
    "owner": (str, "a string"),
    "is_paused_upon_creation": (bool, "True or False"),
}


def _limit(given: Mapping[str, Any], name: str, where: str) -> int | None:
    value: int | None = given.get(name, DagSpec.__dataclass_fields__[name].default)
    if value is not None and value < 1:
        raise BadSetting(f"{where}: {name} must be {_OPTIONS[name][1]}, not {value!r}.")
    return value


def _tags(tags: Any, where: str) -> tuple[str, ...]:
    for tag in tags:
        if not isinstance(tag, str) or not tag:
            raise BadSetting(f"{where}: tags must be strings, not {tag!r}.")
    return tuple(sorted(set(tags)))


def _aware(instant: datetime | None, zone: tzinfo) -> datetime | None:
    return instant.replace(tzinfo=zone) if instant is not None and instant.tzinfo is None else instant


def _schedule(expression: str | None, start_date: datetime | None, where: str) -> Schedule:
    if expression is None:
        return Schedule()
    zone = start_date.tzinfo if start_date is not None else None
    timezone = "UTC" if zone is None or zone == UTC else getattr(zone, "key", None)
    if timezone is None:
        raise BadSetting(
            f"{where}: the time zone {zone!r} of start_date has no name, so its summer time is not known. "
            "Type: from zoneinfo import ZoneInfo, and tzinfo=ZoneInfo('Europe/Berlin')"
        )
    try:
        parse_schedule(expression, timezone)
    except BadSchedule as error:
        raise BadSchedule(f"{where}: {error}") from None
    return Schedule(kind="cron", cron=expression, timezone=timezone)


def compile_spec(dag: DAG) -> DagSpec:
    """Raises a :class:`DagError` for a cycle, an empty group with edges, or more than the limits allow."""
    import dataclasses

    upstream = upstream_indexes(dag)
    tasks = list(dag.tasks.values())
    order = topological_order(dag.dag_id, dag.task_ids, upstream)
    weights = effective_weights(
        upstream, order, [task.task_settings.priority_weight for task in tasks], [task.task_settings.weight_rule for task in tasks]
    )
    index_of = {task.task_id: index for index, task in enumerate(tasks)}
    group_index = {group_id: index for index, group_id in enumerate(dag.groups)}
    return dataclasses.replace(
        dag.header.spec,
        tasks=tuple(
            _task_spec(task, tuple(sources), weight, index_of, group_index)
            for task, sources, weight in zip(tasks, upstream, weights, strict=True)
        ),
        groups=tuple(
            GroupSpec(
                group_id=group.group_id,
                parent=group_index[group.parent.group_id] if group.parent else None,
                tooltip=group.tooltip,
            )
            for group in dag.groups.values()
        ),
    )


def _task_spec(
    task: Task, upstream: tuple[int, ...], weight: int, index_of: dict[str, int], group_index: dict[str, int]
) -> TaskSpec:
    settings = task.task_settings
    return TaskSpec(
        task_id=task.task_id,
        operator=task.task_type,
        upstream=upstream,
        trigger_rule=settings.trigger_rule,
        group=group_index[task.task_group.group_id] if task.task_group else None,
        mapping=task.to_mapping(index_of),
        pool=settings.pool,
        pool_slots=settings.pool_slots,
        priority_weight=weight,
        queue=settings.queue,
        executor=settings.executor,
        max_active_tis_per_dag=settings.max_active_tis_per_dag,
        max_active_tis_per_dagrun=settings.max_active_tis_per_dagrun,
        retries=settings.retries,
        retry_delay=settings.retry_delay,
        retry_exponential_backoff=settings.retry_exponential_backoff,
        max_retry_delay=settings.max_retry_delay,
        execution_timeout=settings.execution_timeout,
        empty=task.is_empty,
        doc=settings.doc,
    )
