"""Turns a written DAG into a ``DagSpec``: the header is checked when the DAG is made, the tasks when it is complete."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from datetime import datetime, timedelta, tzinfo
from typing import Any

from evenflow.core.callbacks import OF_DAGS, OF_TASKS, Callback
from evenflow.core.model import AssetSpec, DagSpec, GroupSpec, RunParamSpec, Schedule, TaskSpec, TaskTerms
from evenflow.core.spec.size import check_size
from evenflow.core.timetable import TICKING
from evenflow.core.trigger_rules import TriggerRule
from evenflow.core.weights import effective_weights
from evenflow.errors import BadSchedule, BadSetting
from evenflow.sdk.assets import Asset, AssetAlias, AssetOrTimeSchedule, condition_of
from evenflow.sdk.default_timezone import default_timezone, default_zone
from evenflow.sdk.graph import check_flow, check_partials, topological_order, upstream_indexes
from evenflow.sdk.nodes import NodesOfDag
from evenflow.sdk.options import SCHEDULE, Header, check_dag_options, check_options
from evenflow.sdk.params import params_to_spec
from evenflow.sdk.task import Task
from evenflow.sdk.taskgroup import TaskGroup
from evenflow.sdk.timetables import schedule_of

_SHARED = tuple(each.name for each in fields(TaskTerms))
_IN_HEADER = {each.name for each in fields(Header)}


def spec_of_header(dag_id: str, options: Mapping[str, Any]) -> Header:
    """Raises :class:`BadSetting` or :class:`BadSchedule`, which names the wrong option."""
    where = f"DAG {dag_id!r}"
    given = check_dag_options(options, where)
    default_args = dict(given.pop("default_args", {}))
    owner: str = default_args.pop("owner", "")
    for name in ("start_date", "end_date"):
        default_args.pop(name, None)
    check_options(default_args, f"{where}, default_args")
    start = _aware(given.pop("start_date", None), default_zone())
    end = _aware(given.pop("end_date", None), start.tzinfo if start and start.tzinfo else default_zone())
    schedule = _with_assets(given.pop("schedule", None), start, where)
    if given.get("catchup") and start is None and schedule.kind in TICKING:
        raise BadSetting(f"{where}: catchup=True needs a start_date: from when on are runs to be made?")
    if start and end and end < start:
        raise BadSetting(f"{where}: end_date {end} is before start_date {start}.")
    params = params_to_spec(given.pop("params", {}), where)
    _check_runnable(schedule, params, where)
    _check_continuous(given, schedule, where)
    own = {name: given.pop(name) for name in list(given) if name in _IN_HEADER}
    return Header(
        spec=DagSpec(
            dag_id=dag_id,
            tasks=(),
            params=params,
            schedule=schedule,
            default_timezone=default_timezone(),
            start_date=start.isoformat() if start else None,
            end_date=end.isoformat() if end else None,
            callbacks=tuple(event for event in OF_DAGS for _ in own.get(event, ())),
            deadlines=tuple(alert.to_spec() for alert in own.get("deadlines", ())),
            **{"owner": owner, **given},
        ),
        default_args=default_args,
        **own,
    )


def _aware(instant: datetime | None, zone: tzinfo) -> datetime | None:
    return instant.replace(tzinfo=zone) if instant is not None and instant.tzinfo is None else instant


def _with_assets(schedule: Any, start_date: datetime | None, where: str) -> Schedule:
    """Returns a schedule of times, of assets, or of both."""
    if isinstance(schedule, AssetOrTimeSchedule):
        return replace(_schedule(schedule.timetable, start_date, where), assets=schedule.assets.to_condition())
    condition = condition_of(schedule)
    if condition is not None:
        return Schedule(kind="assets", assets=condition.to_condition())
    return _schedule(schedule, start_date, where)


def _assets_of(dag: NodesOfDag[Task, TaskGroup]) -> tuple[AssetSpec, ...]:
    """Returns every asset that the DAG makes, reads or waits for, by name."""
    schedule = dag.options.get("schedule")
    condition = schedule.assets if isinstance(schedule, AssetOrTimeSchedule) else condition_of(schedule)
    settings = [task.task_settings for task in dag.tasks]
    named = [*(condition.leaves() if condition else ()), *(asset for each in settings for asset in (*each.outlets, *each.inlets))]
    # Several objects may mean one asset. The one with partitions counts, if others name it without them.
    found = {each.name: each for each in sorted(named, key=_says_partitions) if isinstance(each, Asset)}
    return tuple(
        AssetSpec(name=asset.name, uri=asset.uri, group=asset.group, extra=asset.extra, partitions=asset.partitions)
        for _, asset in sorted(found.items())
    )


def _says_partitions(named: Asset | AssetAlias) -> bool:
    return isinstance(named, Asset) and named.partitions is not None


def _schedule(given: Any, start_date: datetime | None, where: str) -> Schedule:
    if given is None:
        return Schedule()
    if not isinstance(given, (str, timedelta)) and not hasattr(given, "to_schedule"):
        raise BadSetting(f"{where}: schedule must be {SCHEDULE}, not {given!r} of type {type(given).__name__}.")
    try:
        return schedule_of(given, start_date.tzinfo if start_date is not None else None)
    except (BadSchedule, BadSetting) as error:
        raise type(error)(f"{where}: {error}") from None


def _check_continuous(given: dict[str, Any], schedule: Schedule, where: str) -> None:
    if schedule.kind == "continuous" and given.setdefault("max_active_runs", 1) != 1:
        raise BadSetting(f"{where}: with schedule='@continuous' one run follows another. Leave max_active_runs out, or make it 1.")


def _check_runnable(schedule: Schedule, params: Mapping[str, RunParamSpec], where: str) -> None:
    """Raises for a parameter without a default in a scheduled DAG: no person gives its runs values."""
    missing = [name for name, param in params.items() if param.required]
    if schedule.kind != "manual" and missing:
        raise BadSetting(
            f"{where}: it has a schedule, and its parameter {missing[0]!r} no default. Give it one, or take the schedule away."
        )


def compile_spec(dag: NodesOfDag[Task, TaskGroup]) -> DagSpec:
    """Raises a :class:`DagError` for a cycle, an empty group with edges, or exceeded limits."""
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
    spec = replace(
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
    shared = {name: getattr(settings, name) for name in _SHARED}
    if task.is_teardown:
        shared["trigger_rule"] = TriggerRule.ALL_DONE_SETUP_SUCCESS
    shared["priority_weight"] = weight
    shared["depends_on_past"] = settings.depends_on_past or settings.wait_for_downstream
    shared["while_deferred"] = task.held_while_deferred()
    return TaskSpec(
        task_id=task.task_id,
        operator=task.task_type,
        upstream=upstream,
        setup=task.is_setup,
        teardown=task.is_teardown,
        on_failure_fail_dagrun=task.is_teardown and task.on_failure_fail_dagrun,
        group=group_index[task.task_group.group_id] if task.task_group else None,
        mapping=task.to_mapping(index_of),
        empty=task.is_empty and not settings.outlets and not settings.on_execute_callback,
        outlets=tuple(outlet.name for outlet in settings.outlets if isinstance(outlet, Asset)),
        outlet_aliases=tuple(outlet.name for outlet in settings.outlets if isinstance(outlet, AssetAlias)),
        inlets=tuple(inlet.name for inlet in settings.inlets),
        callbacks=_callbacks_of(task),
        cleans_up=task.cleans_up(),
        **shared,
    )


def _callbacks_of(task: Task) -> tuple[str, ...]:
    """Returns names of events, one for each function that a worker must call."""
    settings = task.task_settings
    return tuple(event for event in OF_TASKS if event is not Callback.EXECUTE for _ in getattr(settings, event))
