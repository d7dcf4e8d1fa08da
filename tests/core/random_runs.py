"""Random DAGs with all that control flow has, and random ends for their tasks."""

from __future__ import annotations

import random

from evenflow.core.model import DagSpec, MapInput, Mapping, TaskSpec
from evenflow.core.trigger_rules import TriggerRule

RULES = [rule for rule in TriggerRule if rule is not TriggerRule.ALL_DONE_SETUP_SUCCESS]
OUTCOMES = ["success", "success", "success", "failed", "skipped", "failed_for_good"]


def random_dag(rng: random.Random, dag_id: str = "random", *, most: int = 12) -> tuple[DagSpec, dict[int, int]]:
    """A DAG, and into how many instances each of its mapped tasks expands."""
    fail_fast = rng.random() < 0.2
    tasks: list[TaskSpec] = []
    lengths: dict[int, int] = {}
    for i in range(rng.randint(2, most)):
        upstream = tuple(sorted(rng.sample(range(i), min(i, rng.choice([0, 1, 1, 2, 2, 3])))))
        teardown = bool(upstream) and rng.random() < 0.2
        plain = fail_fast or rng.random() < 0.4
        rule = TriggerRule.ALL_SUCCESS if plain else rng.choice(RULES)
        mapped = not teardown and rng.random() < 0.15
        if mapped:
            lengths[i] = rng.randint(0, 3)
        tasks.append(
            TaskSpec(
                task_id=f"t{i}",
                operator="python",
                upstream=upstream,
                trigger_rule=TriggerRule.ALL_DONE_SETUP_SUCCESS if teardown else rule,
                setup=not teardown and rng.random() < 0.25,
                teardown=teardown,
                on_failure_fail_dagrun=teardown and rng.random() < 0.3,
                mapping=Mapping(inputs=(MapInput(name="x", length=lengths[i]),)) if mapped else None,
                retries=rng.choice([0, 0, 0, 1]),
                retry_delay=0.0,
                empty=not mapped and rng.random() < 0.1,
            )
        )
    return DagSpec(dag_id=dag_id, tasks=tuple(tasks), fail_fast=fail_fast, max_active_tasks=None), lengths


def random_skips(rng: random.Random, spec: DagSpec, task_index: int) -> list[int]:
    """What a task decides against when it is a branch, which some are."""
    downstream = [i for i, task in enumerate(spec.tasks) if task_index in task.upstream and not task.teardown]
    return rng.sample(downstream, rng.randint(1, len(downstream))) if downstream and rng.random() < 0.3 else []
