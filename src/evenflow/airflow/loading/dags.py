"""Turns a DAG of Airflow, as the SDK has made it, into a ``DagSpec``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from airflow.sdk.definitions._internal.types import ArgNotSet
from airflow.sdk.definitions.taskgroup import MappedTaskGroup, TaskGroup

from evenflow.airflow.loading.assets import specs_of
from evenflow.airflow.loading.dates import dates_of
from evenflow.airflow.loading.deadlines import deadlines_of
from evenflow.airflow.loading.mappings import mapping_of
from evenflow.airflow.loading.refusals import OF_DAGS, DagRefusals
from evenflow.airflow.loading.schedules import schedule_of, seconds_of
from evenflow.airflow.loading.tasks import TaskReader
from evenflow.airflow.loading.weights import weights_of
from evenflow.airflow.running.dag_callbacks import functions_of
from evenflow.contracts.airflow.people import own_schema
from evenflow.core.callbacks import OF_DAGS as OF_DAGS_CALLED
from evenflow.core.limits import MAX_NAME_CHARS
from evenflow.core.model import DagSpec, GroupSpec, RunParamSpec
from evenflow.core.spec.size import check_size
from evenflow.sdk.default_timezone import default_timezone
from evenflow.sdk.graph import topological_order
from evenflow.sdk.param_schema import problem_of_value

_NOBODY = "airflow"  # the default owner
_ASKED_FOR = {"manual", "backfill", "operator_triggered"}  # types of runs that no schedule makes


def spec_of(dag: Any) -> DagSpec:
    """Raises :class:`DagError` with everything that has no counterpart, a line for each."""
    refusals = DagRefusals(dag.dag_id)
    refusals.look(OF_DAGS, dag)
    _check_run_types(dag, refusals)
    tasks = list(dag.task_dict.values())
    index_of = {task.task_id: index for index, task in enumerate(tasks)}
    groups = list(_groups_in(dag.task_group))
    group_index = {group.group_id: index for index, group in enumerate(groups)}
    dates = dates_of(dag)
    reader = TaskReader(index_of, group_index, dates, refusals)
    upstream = [sorted(index_of[task_id] for task_id in task.upstream_task_ids) for task in tasks]
    order = topological_order(dag.dag_id, list(index_of), upstream)
    weights = weights_of(dag, tasks, upstream, order, refusals)
    named = [each for task in tasks for each in (*task.outlets, *task.inlets)]
    waits_for = getattr(dag.timetable, "asset_condition", None)
    spec = DagSpec(
        dag_id=dag.dag_id,
        tasks=tuple(reader.spec_of(task, weight) for task, weight in zip(tasks, weights, strict=True)),
        groups=tuple(_group(group, index_of, group_index, refusals) for group in groups),
        params={name: _param(dag.params.get_param(name)) for name in dag.params},
        schedule=schedule_of(dag.timetable, refusals),
        start_date=dates.start.isoformat() if dates.start else None,
        end_date=dates.end.isoformat() if dates.end else None,
        default_timezone=default_timezone(),
        catchup=dag.catchup,
        max_active_runs=dag.max_active_runs or None,
        max_active_tasks=dag.max_active_tasks or None,
        dagrun_timeout=seconds_of(dag.dagrun_timeout, refusals) or None,
        max_consecutive_failed_dag_runs=dag.max_consecutive_failed_dag_runs,
        tags=tuple(sorted(dag.tags)),
        owner=", ".join(sorted({task.owner for task in tasks} - {_NOBODY}))[:MAX_NAME_CHARS],
        owner_links=dict(dag.owner_links),
        display_name=dag.dag_display_name if dag.dag_display_name != dag.dag_id else "",
        description=dag.description or "",
        doc=dag.doc_md or "",
        is_paused_upon_creation=dag.is_paused_upon_creation,
        fail_fast=dag.fail_fast,
        callbacks=tuple(event for event in OF_DAGS_CALLED for _ in functions_of(dag, event)),
        deadlines=deadlines_of(dag, refusals),
        assets=specs_of([*named, *([waits_for] if waits_for is not None else [])], refusals),
    )
    refusals.tell()
    check_size(spec)
    return spec


def _check_run_types(dag: Any, refusals: DagRefusals) -> None:
    """Refuses a list that leaves out runs that people or tasks ask for. The SDK has checked that it has those of the schedule."""
    allowed = dag.allowed_run_types
    if allowed and (out := sorted(_ASKED_FOR - {kind.value for kind in allowed})):
        refusals.add(f"allowed_run_types without {', '.join(out)}", "Leave it out: who may trigger is said by roles.")


def _groups_in(group: TaskGroup) -> Iterator[TaskGroup]:
    """Yields the groups inside, each before its content."""
    for child in group.children.values():
        if isinstance(child, TaskGroup):
            yield child
            yield from _groups_in(child)


def _group(group: TaskGroup, index_of: dict[str, int], group_index: dict[str, int], refusals: DagRefusals) -> GroupSpec:
    around = group.parent_group.group_id if group.parent_group else None
    is_mapped = isinstance(group, MappedTaskGroup)
    of = f"group {group.group_id!r}"
    return GroupSpec(
        group_id=group.group_id,
        parent=group_index[around] if around else None,
        tooltip=group.tooltip,
        mapping=mapping_of(group._expand_input, index_of, refusals, of) if is_mapped else None,
    )


def _param(param: Any) -> RunParamSpec:
    """Returns the parameter. Keywords of Airflow's forms become notes. A value that its own schema refuses is not a default."""
    schema = own_schema(param.schema)
    description = param.description or ""
    if isinstance(param.value, ArgNotSet) or problem_of_value(param.value, schema):
        return RunParamSpec(schema=schema, required=True, description=description)
    return RunParamSpec(default=param.value, schema=schema, description=description)
