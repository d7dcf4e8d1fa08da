"""A DAG as written becomes a ``DagSpec``: its header is checked when the DAG is made, its tasks when it is complete."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from evenflow.core.callbacks import OF_DAGS
from evenflow.core.likeness import meant_or
from evenflow.core.limits import MAX_FAILED_RUNS, MAX_MAP_LENGTH, MAX_RUN_SECONDS
from evenflow.core.model import LINKS, AssetSpec, DagSpec, GroupSpec, RunParamSpec, Schedule, TaskSpec
from evenflow.core.spec_size import check_size
from evenflow.core.timetable import TICKING
from evenflow.core.trigger_rules import TriggerRule
from evenflow.core.weights import effective_weights
from evenflow.errors import BadSchedule, BadSetting
from evenflow.sdk import callbacks
from evenflow.sdk.airflow_settings import DAG_OPTIONS, is_harmless
from evenflow.sdk.assets import Asset, AssetAlias, AssetOrTimeSchedule, condition_of, declared
from evenflow.sdk.deadlines import checked_deadlines
from evenflow.sdk.default_timezone import default_timezone, default_zone
from evenflow.sdk.graph import check_flow, topological_order, upstream_indexes
from evenflow.sdk.options import DISPLAY_NAME, TaskOptions, check_options, is_display_name
from evenflow.sdk.params import params_to_spec
from evenflow.sdk.partials import check_partials
from evenflow.sdk.timetables import schedule_of

if TYPE_CHECKING:
    from evenflow.sdk.dag import DAG
    from evenflow.sdk.task import Task


@dataclass(frozen=True, slots=True)
class Header:
    """What is known of a DAG before it has tasks."""

    spec: DagSpec  # without tasks and groups
    default_args: dict[str, Any]

    @property
    def params(self) -> dict[str, RunParamSpec]:
        return self.spec.params


def spec_of_header(dag_id: str, options: Mapping[str, Any]) -> Header:
    """Raises :class:`BadSetting` or :class:`BadSchedule` naming the option that is wrong."""
    where = f"DAG {dag_id!r}"
    given = _given(options, where)
    default_args = dict(given.get("default_args", {}))
    owner: str = default_args.pop("owner", "")
    for name in ("start_date", "end_date"):
        default_args.pop(name, None)
    check_options(default_args, f"{where}, default_args")
    start = _aware(given.get("start_date"), default_zone())
    end = _aware(given.get("end_date"), start.tzinfo if start and start.tzinfo else default_zone())
    catchup = given.get("catchup", False)
    schedule = _with_assets(given.get("schedule"), start, where)
    if catchup and start is None and schedule.kind in TICKING:
        raise BadSetting(f"{where}: catchup=True needs a start_date: from when on are runs to be made?")
    if start and end and end < start:
        raise BadSetting(f"{where}: end_date {end} is before start_date {start}.")
    params = params_to_spec(given.get("params", {}), where)
    _check_runnable(schedule, params, where)
    return Header(
        spec=DagSpec(
            dag_id=dag_id,
            tasks=(),
            params=params,
            schedule=schedule,
            default_timezone=default_timezone(),
            start_date=start.isoformat() if start else None,
            end_date=end.isoformat() if end else None,
            catchup=catchup,
            max_active_runs=_max_active_runs(given, schedule, where),
            dagrun_timeout=_timeout(given, where),
            max_consecutive_failed_dag_runs=_failures(given, where),
            max_active_tasks=_limit(given, "max_active_tasks", where),
            max_map_length=_map_length(given, where),
            tags=_tags(given.get("tags", ()), where),
            owner=given.get("owner", owner),
            owner_links=_owner_links(given.get("owner_links", {}), where),
            display_name=given.get("dag_display_name", ""),
            description=given.get("description", ""),
            doc=given.get("doc_md", ""),
            fail_fast=given.get("fail_fast", False),
            reset_by=_patterns(given.get("reset_by", ()), where),
            is_paused_upon_creation=given.get("is_paused_upon_creation"),
            callbacks=_callbacks(given, where),
            deadlines=tuple(alert.to_spec() for alert in checked_deadlines(given.get("deadline", ()), where)),
        ),
        default_args=default_args,
    )


def _given(options: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The options that say something, of the right types; dates may be among ``default_args``, where files of Airflow have them."""
    unknown = [name for name, value in options.items() if name not in _OPTIONS and not is_harmless(DAG_OPTIONS, name, value, where)]
    if unknown:
        hint = meant_or(unknown[0], _OPTIONS, f"There are: {', '.join(_OPTIONS)}.")
        raise BadSetting(f"{where}: there is no option {unknown[0]!r}. {hint}")
    for_all = options.get("default_args")
    dates = {name: for_all.get(name) for name in ("start_date", "end_date")} if isinstance(for_all, Mapping) else {}
    told = {name: value for name, value in {**dates, **options}.items() if name in _OPTIONS}
    given = {name: value for name, value in told.items() if value is not None or name in ("max_active_runs", "max_active_tasks")}
    for name, value in given.items():
        kind, wanted = _OPTIONS[name]
        if value is not None and (not isinstance(value, kind) or (isinstance(value, bool) and kind is int)):
            raise BadSetting(f"{where}: {name} must be {wanted}, not {value!r} of type {type(value).__name__}.")
    if "dag_display_name" in given and not is_display_name(given["dag_display_name"]):
        raise BadSetting(f"{where}: dag_display_name must be {DISPLAY_NAME}, not {given['dag_display_name']!r}.")
    return given


_SCHEDULE = "a cron expression, a preset such as '@daily', a timedelta, a timetable, assets, or None"

_OPTIONS: dict[str, tuple[Any, str]] = {
    "schedule": (object, _SCHEDULE),
    "start_date": (datetime, "a datetime, e.g. datetime(2026, 1, 1, tzinfo=ZoneInfo('Europe/Berlin'))"),
    "end_date": (datetime, "a datetime"),
    "catchup": (bool, "True or False"),
    "params": (Mapping, "a dict of defaults or Param(...)"),
    "default_args": (Mapping, f"a dict of task settings ({', '.join(sorted(TaskOptions.__annotations__))})"),
    "tags": ((list, tuple, set, frozenset), "a list of strings"),
    "max_active_runs": (int, "an integer of at least 1, or None for no limit"),
    "max_active_tasks": (int, "an integer of at least 1, or None for no limit"),
    "max_map_length": (int, f"an integer from 1 to {MAX_MAP_LENGTH:,}"),
    "dagrun_timeout": ((timedelta, int, float), "a timedelta or a number of seconds above 0"),
    "max_consecutive_failed_dag_runs": (int, "an integer of at least 0, where 0 is no limit"),
    "description": (str, "a string"),
    "doc_md": (str, "a string"),
    "owner": (str, "a string"),
    "owner_links": (Mapping, "a dict from owners to links, which begin with https://, http:// or mailto:"),
    "dag_display_name": (str, DISPLAY_NAME),
    "fail_fast": (bool, "True or False"),
    "reset_by": ((list, tuple), "a list of patterns of DAG ids, or of bundle:pattern"),
    "is_paused_upon_creation": (bool, "True or False, or None for what the setting dags_are_paused_at_creation says"),
    "on_success_callback": (object, callbacks.WANTED),
    "on_failure_callback": (object, callbacks.WANTED),
    "deadline": (object, "a DeadlineAlert, or a list of them"),
    "template_searchpath": ((str, os.PathLike, list, tuple), "a folder, or a list of folders"),
    "data_files": ((list, tuple), "a list of files and folders beside the DAG file"),
    "user_defined_macros": (Mapping, "a dict of names that templates may use"),
    "user_defined_filters": (Mapping, "a dict of filters that templates may use"),
    "render_template_as_native_obj": (bool, "True or False"),
}


DAG_OPTION_NAMES = frozenset(_OPTIONS)
_FIELDS = {"doc_md": "doc", "dag_display_name": "display_name"}
_AS_GIVEN = ("schedule", "start_date", "end_date", "default_args")


def option_of_dag(spec: DagSpec, options: Mapping[str, Any], name: str) -> Any:
    """What an option is, by its name for authors: nothing that could be changed in place, for that would not count."""
    if name == "params":
        return MappingProxyType({each: param.default for each, param in spec.params.items()})
    field = _FIELDS.get(name, name)
    return options.get(name) if name in _AS_GIVEN or not hasattr(spec, field) else getattr(spec, field)


def _limit(given: Mapping[str, Any], name: str, where: str) -> int | None:
    value: int | None = given.get(name, DagSpec.__dataclass_fields__[name].default)
    if value is not None and value < 1:
        raise BadSetting(f"{where}: {name} must be {_OPTIONS[name][1]}, not {value!r}.")
    return value


def _timeout(given: Mapping[str, Any], where: str) -> float | None:
    value = given.get("dagrun_timeout")
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    if seconds is not None and not 0 < seconds <= MAX_RUN_SECONDS:
        raise BadSetting(f"{where}: dagrun_timeout must be above 0 and at most {MAX_RUN_SECONDS:,} seconds, not {value!r}.")
    return None if seconds is None else float(seconds)


def _failures(given: Mapping[str, Any], where: str) -> int:
    value: int = given.get("max_consecutive_failed_dag_runs", 0)
    if not 0 <= value <= MAX_FAILED_RUNS:
        raise BadSetting(f"{where}: max_consecutive_failed_dag_runs must be from 0 to {MAX_FAILED_RUNS}, not {value!r}.")
    return value


def _map_length(given: Mapping[str, Any], where: str) -> int:
    value: int = given.get("max_map_length", MAX_MAP_LENGTH)
    if not 1 <= value <= MAX_MAP_LENGTH:
        raise BadSetting(f"{where}: max_map_length must be {_OPTIONS['max_map_length'][1]}, not {value!r}.")
    return value


def _callbacks(given: Mapping[str, Any], where: str) -> tuple[str, ...]:
    for name in OF_DAGS:
        if callbacks.checked_functions(given.get(name)) is None:
            raise BadSetting(f"{where}: {name} must be {callbacks.WANTED}, not {given[name]!r}.")
    return callbacks.declared_by_dag(given)


def _owner_links(links: Mapping[Any, Any], where: str) -> dict[str, str]:
    for owner, link in links.items():
        if not isinstance(owner, str) or not isinstance(link, str) or not link.startswith(LINKS):
            raise BadSetting(f"{where}: owner_links must be {_OPTIONS['owner_links'][1]}, not {{{owner!r}: {link!r}}}.")
    return dict(links)


def _tags(tags: Any, where: str) -> tuple[str, ...]:
    for tag in tags:
        if not isinstance(tag, str) or not tag:
            raise BadSetting(f"{where}: tags must be strings, not {tag!r}.")
    return tuple(sorted(set(tags)))


def _patterns(patterns: Any, where: str) -> tuple[str, ...]:
    for pattern in patterns:
        if not isinstance(pattern, str) or not pattern:
            raise BadSetting(f"{where}: reset_by must be {_OPTIONS['reset_by'][1]}, not {pattern!r}.")
    return tuple(sorted(set(patterns)))


def _aware(instant: datetime | None, zone: tzinfo) -> datetime | None:
    return instant.replace(tzinfo=zone) if instant is not None and instant.tzinfo is None else instant


def _with_assets(schedule: Any, start_date: datetime | None, where: str) -> Schedule:
    """Of times, of assets, or of both."""
    from dataclasses import replace

    if isinstance(schedule, AssetOrTimeSchedule):
        return replace(_schedule(schedule.timetable, start_date, where), assets=schedule.assets.to_condition())
    condition = condition_of(schedule)
    if condition is not None:
        return Schedule(kind="assets", assets=condition.to_condition())
    return _schedule(schedule, start_date, where)


def _assets_of(dag: DAG) -> tuple[AssetSpec, ...]:
    """Every asset that it makes, reads or waits for, by name."""
    schedule = dag.options.get("schedule")
    condition = schedule.assets if isinstance(schedule, AssetOrTimeSchedule) else condition_of(schedule)
    named = [*(condition.leaves() if condition else ()), *declared(dag)]
    found = {each.name: each for each in named if isinstance(each, Asset)}
    return tuple(
        AssetSpec(name=asset.name, uri=asset.uri, group=asset.group, extra=asset.extra) for _, asset in sorted(found.items())
    )


def _schedule(given: Any, start_date: datetime | None, where: str) -> Schedule:
    if given is None:
        return Schedule()
    if not isinstance(given, (str, timedelta)) and not hasattr(given, "to_schedule"):
        raise BadSetting(f"{where}: schedule must be {_SCHEDULE}, not {given!r} of type {type(given).__name__}.")
    try:
        return schedule_of(given, start_date.tzinfo if start_date is not None else None)
    except (BadSchedule, BadSetting) as error:
        raise type(error)(f"{where}: {error}") from None


def _max_active_runs(given: Mapping[str, Any], schedule: Schedule, where: str) -> int | None:
    if schedule.kind != "continuous":
        return _limit(given, "max_active_runs", where)
    if given.get("max_active_runs", 1) != 1:
        raise BadSetting(f"{where}: with schedule='@continuous' one run follows another. Leave max_active_runs out, or make it 1.")
    return 1


def _check_runnable(schedule: Schedule, params: Mapping[str, RunParamSpec], where: str) -> None:
    """A run that nobody triggers has nobody to give it values."""
    missing = [name for name, param in params.items() if param.required]
    if schedule.kind != "manual" and missing:
        raise BadSetting(
            f"{where}: it has a schedule, and its parameter {missing[0]!r} no default. Give it one, or take the schedule away."
        )


def compile_spec(dag: DAG) -> DagSpec:
    """Raises a :class:`DagError` for a cycle, an empty group with edges, or more than the limits allow."""
    import dataclasses

    check_partials(dag)
    upstream = upstream_indexes(dag)
    tasks = list(dag.task_dict.values())
    check_flow(dag, upstream)
    order = topological_order(dag.dag_id, dag.task_ids, upstream)
    weights = effective_weights(
        upstream, order, [task.task_settings.priority_weight for task in tasks], [task.task_settings.weight_rule for task in tasks]
    )
    index_of = {task.task_id: index for index, task in enumerate(tasks)}
    group_index = {group_id: index for index, group_id in enumerate(dag.groups)}
    spec = dataclasses.replace(
        dag.header.spec,
        assets=_assets_of(dag),
        tasks=tuple(
            _task_spec(task, tuple(sources), weight, index_of, group_index)
            for task, sources, weight in zip(tasks, upstream, weights, strict=True)
        ),
        groups=tuple(
            GroupSpec(
                group_id=group.group_id,
                parent=group_index[group.parent.group_id] if group.parent else None,
                tooltip=group.tooltip,
                mapping=group.expansion.to_mapping(index_of) if group.expansion else None,
            )
            for group in dag.groups.values()
        ),
    )
    check_size(spec)
    return spec


def _task_spec(
    task: Task, upstream: tuple[int, ...], weight: int, index_of: dict[str, int], group_index: dict[str, int]
) -> TaskSpec:
    settings = task.task_settings
    return TaskSpec(
        task_id=task.task_id,
        operator=task.task_type,
        upstream=upstream,
        trigger_rule=TriggerRule.ALL_DONE_SETUP_SUCCESS if task.is_teardown else settings.trigger_rule,
        setup=task.is_setup,
        teardown=task.is_teardown,
        on_failure_fail_dagrun=task.is_teardown and task.on_failure_fail_dagrun,
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
        retry_jitter=settings.retry_jitter,
        retry_rules=settings.retry_rules,
        infrastructure_retries=settings.infrastructure_retries,
        execution_timeout=settings.execution_timeout,
        depends_on_past=settings.depends_on_past or settings.wait_for_downstream,
        wait_for_downstream=settings.wait_for_downstream,
        empty=task.is_empty and not settings.outlets and not settings.on_execute_callback,
        display_name=settings.display_name,
        doc=settings.doc,
        outlets=tuple(outlet.name for outlet in settings.outlets if isinstance(outlet, Asset)),
        outlet_aliases=tuple(outlet.name for outlet in settings.outlets if isinstance(outlet, AssetAlias)),
        inlets=tuple(inlet.name for inlet in settings.inlets),
        callbacks=callbacks.declared_by_task(task),
        while_deferred=task.held_while_deferred(),
        cleans_up=task.cleans_up(),
        execution_timeout_counts_waiting=settings.execution_timeout_counts_waiting,
    )
