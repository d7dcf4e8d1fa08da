"""What trigger rules may not be combined with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from evenflow.core.trigger_rules import TriggerRule
from evenflow.errors import BadSetting

if TYPE_CHECKING:
    from evenflow.sdk.dag import DAG

_BEFORE_A_FAILURE = (TriggerRule.ALL_SUCCESS, TriggerRule.ALL_DONE_SETUP_SUCCESS)


def check_flow(dag: DAG, upstream: Sequence[Sequence[int]]) -> None:
    """Raises :class:`BadSetting`."""
    tasks = list(dag.task_dict.values())
    for task, sources in zip(tasks, upstream, strict=True):
        rule = task.task_settings.trigger_rule
        if task.is_teardown:
            continue
        if dag.header.spec.fail_fast and rule not in _BEFORE_A_FAILURE:
            raise BadSetting(
                f"{task.qualified_name}: with fail_fast=True nothing goes on after a failure, so its trigger_rule must be "
                f"'all_success', not {rule.value!r}. Remove one of the two."
            )
        setups = [tasks[source] for source in sources if tasks[source].is_setup]
        if setups and rule is not TriggerRule.ALL_SUCCESS:
            raise BadSetting(
                f"{task.qualified_name}: a task that follows a setup ({setups[0].task_id!r}) must have the trigger_rule "
                f"'all_success', not {rule.value!r}: it needs what the setup makes. If it is to clean up, mark it as_teardown()."
            )
