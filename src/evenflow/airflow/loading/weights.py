"""The effective weights of an Airflow DAG's tasks, also by strategies that are code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from airflow.sdk._shared.module_loading import import_string
from airflow.serialization.serialized_objects import _get_registered_priority_weight_strategy
from airflow.task.priority_strategy import PriorityWeightStrategy

from evenflow.airflow.loading.refusals import DagRefusals
from evenflow.core.limits import INT32_MAX, INT32_MIN
from evenflow.core.weights import WeightRule, effective_weights

_RULES = {rule.value for rule in WeightRule}


class FirstTry(NamedTuple):
    """What a strategy is asked about: the first try of a task, before there is a run."""

    task: Any
    dag_id: str
    task_id: str
    map_index: int = -1
    try_number: int = 0
    max_tries: int = 0


def weights_of(
    dag: Any, tasks: Sequence[Any], upstream: Sequence[Sequence[int]], order: Sequence[int], refusals: DagRefusals
) -> list[int]:
    """Returns the weight of each task. What a strategy raises is the file's error."""
    strategies = [_strategy_of(task) for task in tasks]
    rules = [
        WeightRule.ABSOLUTE if strategy is not None else _rule_of(task, refusals)
        for task, strategy in zip(tasks, strategies, strict=True)
    ]
    weights = effective_weights(upstream, order, [task.priority_weight for task in tasks], rules)
    return [
        weight if strategy is None else _asked(strategy, dag, task, refusals)
        for task, strategy, weight in zip(tasks, strategies, weights, strict=True)
    ]


def _strategy_of(task: Any) -> PriorityWeightStrategy | None:
    """Returns the strategy, an object or the name of a class; None for one of the three rules, and for what is neither."""
    rule = task.weight_rule
    if isinstance(rule, PriorityWeightStrategy):
        return rule
    name = str(getattr(rule, "value", rule))
    if name in _RULES:
        return None
    kind = _get_registered_priority_weight_strategy(name) or _imported(name)
    return None if kind is None else kind()


def _imported(name: str) -> type[PriorityWeightStrategy] | None:
    try:
        kind = import_string(name)
    except (ImportError, ValueError):
        return None
    return kind if isinstance(kind, type) and issubclass(kind, PriorityWeightStrategy) else None


def _rule_of(task: Any, refusals: DagRefusals) -> WeightRule:
    name = str(getattr(task.weight_rule, "value", task.weight_rule))
    if name not in _RULES:
        cure = f"There are: {', '.join(sorted(_RULES))}, and each PriorityWeightStrategy."
        refusals.add(f"weight rule {name!r}", cure, f"task {task.task_id!r}")
        return WeightRule.ABSOLUTE
    return WeightRule(name)


def _asked(strategy: PriorityWeightStrategy, dag: Any, task: Any, refusals: DagRefusals) -> int:
    name = type(strategy).__name__
    try:
        weight = strategy.get_weight(FirstTry(task, dag.dag_id, task.task_id, max_tries=int(task.retries or 0)))
    except Exception as error:
        what = f"The weight strategy {name} of task {task.task_id!r} of DAG {dag.dag_id!r}"
        error.add_note(f"{what} has raised {type(error).__name__}: {error}")
        raise
    if not isinstance(weight, int):
        refusals.add(f"weight {weight!r}, as {name} says", "Return an integer from get_weight().", f"task {task.task_id!r}")
        return 0
    return max(INT32_MIN, min(INT32_MAX, weight))
