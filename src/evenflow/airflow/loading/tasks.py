"""The scheduler's view of an Airflow task; its work stays the SDK's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow.sdk import AssetAlias

from evenflow.airflow.loading.assets import name_of
from evenflow.airflow.loading.dates import DagDates
from evenflow.airflow.loading.mappings import mapping_of
from evenflow.airflow.loading.pods import pod_override_of
from evenflow.airflow.loading.refusals import OF_TASKS, DagRefusals
from evenflow.airflow.loading.schedules import seconds_of
from evenflow.airflow.loading.watches import AssetWatch
from evenflow.core.deferral import RELEASE
from evenflow.core.limits import MAX_CHOICES
from evenflow.core.model import WAITING_HOLDS, TaskSpec
from evenflow.core.trigger_rules import TriggerRule

_ASKS = "HITLOperator"  # of the standard provider, which need not be installed
_RULES = {rule.value for rule in TriggerRule}


class TaskReader:
    """Reads the tasks of one DAG: ``index_of`` and ``group_index`` have the positions of tasks and groups in its spec."""

    def __init__(self, index_of: Mapping[str, int], group_index: Mapping[str, int], dates: DagDates, refusals: DagRefusals) -> None:
        self._index_of, self._group_index, self._dates, self._refusals = index_of, group_index, dates, refusals

    def spec_of(self, task: Any, weight: int) -> TaskSpec:
        of = f"task {task.task_id!r}"
        self._check(task, of)
        backoff = float(getattr(task, "retry_exponential_backoff", 0) or 0)
        longest = task.max_retry_delay
        group = getattr(task.task_group, "group_id", None) if task.task_group else None
        return TaskSpec(
            task_id=task.task_id,
            operator=str(getattr(task, "operator_name", None) or task.task_type),
            upstream=tuple(sorted(self._index_of[task_id] for task_id in task.upstream_task_ids)),
            group=self._group_index.get(group) if group else None,
            mapping=mapping_of(task._get_specified_expand_input(), self._index_of, self._refusals, of) if task.is_mapped else None,
            setup=task.is_setup,
            teardown=task.is_teardown,
            on_failure_fail_dagrun=bool(task.is_teardown and task.on_failure_fail_dagrun),
            empty=_is_empty(task),
            outlets=tuple(name_of(each, self._refusals, of) for each in task.outlets if not isinstance(each, AssetAlias)),
            outlet_aliases=tuple(each.name for each in task.outlets if isinstance(each, AssetAlias)),
            inlets=tuple(each.name if isinstance(each, AssetAlias) else name_of(each, self._refusals, of) for each in task.inlets),
            cleans_up=bool(getattr(task, "deferrable", False) or (task.is_mapped and task.partial_kwargs.get("deferrable"))),
            trigger_rule=self._rule(task, of),
            pod_override=pod_override_of(task.executor_config, self._refusals, of),
            pool=task.pool,
            pool_slots=task.pool_slots,
            priority_weight=weight,
            queue=task.queue,
            executor=task.executor,
            max_active_tis_per_dag=task.max_active_tis_per_dag,
            max_active_tis_per_dagrun=task.max_active_tis_per_dagrun,
            retries=int(task.retries or 0),
            retry_delay=seconds_of(task.retry_delay, self._refusals),
            retry_exponential_backoff=2.0 if backoff == 1 else backoff,
            max_retry_delay=float(longest) if isinstance(longest, int | float) else seconds_of(longest, self._refusals) or None,
            depends_on_past=bool(task.depends_on_past or task.wait_for_downstream),
            wait_for_downstream=bool(task.wait_for_downstream),
            while_deferred=_while_deferred(task),
            display_name=task.task_display_name if task.task_display_name != task.task_id else "",
            doc=next(
                (doc for kind in ("doc_md", "doc", "doc_rst", "doc_yaml", "doc_json") if (doc := getattr(task, kind, None))), ""
            ),
        )

    def _check(self, task: Any, of: str) -> None:
        self._refusals.look(OF_TASKS, task, of)
        if self._dates.starts_later(task.start_date):
            self._refusals.add("start_date of a task that is later than its DAG's", "Give the date to the DAG.", of)
        if self._dates.ends_earlier(task.end_date):
            self._refusals.add("end_date of a task that is earlier than its DAG's", "Give the date to the DAG.", of)
        if getattr(task, "wait_for_past_depends_before_skipping", False) and task.depends_on_past:
            self._refusals.add("wait_for_past_depends_before_skipping", "Leave it out: a task is skipped at once.", of)
        if _asks_people(task) and len(getattr(task, "options", ())) > MAX_CHOICES:
            self._refusals.add(f"question with more than {MAX_CHOICES} options", "Say params= with an enum, or ask twice.", of)

    def _rule(self, task: Any, of: str) -> TriggerRule:
        name = str(getattr(task.trigger_rule, "value", task.trigger_rule))
        if task.is_teardown:
            return TriggerRule.ALL_DONE_SETUP_SUCCESS
        if name not in _RULES:
            self._refusals.add(f"trigger rule {name!r}", f"There are: {', '.join(sorted(_RULES))}.", of)
            return TriggerRule.ALL_SUCCESS
        return TriggerRule(name)


def _while_deferred(task: Any) -> dict[str, str] | None:
    if isinstance(task, AssetWatch):
        return dict.fromkeys(WAITING_HOLDS, RELEASE)
    return {"pool": RELEASE} if _asks_people(task) else None


def _asks_people(task: Any) -> bool:
    made_by = task.operator_class if task.is_mapped else type(task)
    return any(base.__name__ == _ASKS for base in getattr(made_by, "__mro__", ()))


def _is_empty(task: Any) -> bool:
    """Returns whether the task has nothing to run."""
    called = (task.on_execute_callback, task.on_success_callback)
    return bool(not task.is_mapped and task.inherits_from_empty_operator and not task.outlets and not any(called))
