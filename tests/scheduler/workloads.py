"""DAGs made at random."""

from __future__ import annotations

import random

from evenflow.core.model import DagSpec, MapInput, Mapping, TaskSpec


def random_dag(r: random.Random, number: int) -> DagSpec:
    """With every kind of limit, in pools p1 and p2. Tasks of one DAG have distinct priorities, so that the order is strict even
    between lanes of one run.
    """
    tasks = []
    for i in range(r.randint(1, 6)):
        upstream = (r.randrange(i),) if i and r.random() < 0.4 else ()
        if i > 1 and r.random() < 0.2:
            upstream = tuple(sorted(r.sample(range(i), 2)))
        tasks.append(
            TaskSpec(
                task_id=f"t{i}",
                operator="python",
                upstream=upstream,
                pool=r.choice(["p1", "p2"]),
                pool_slots=r.choice([1, 1, 2]),
                priority_weight=i * 10 + r.randint(1, 9),
                max_active_tis_per_dag=r.choice([None, None, 1, 2]),
                max_active_tis_per_dagrun=r.choice([None, None, 1]),
                mapping=Mapping(inputs=(MapInput(name="x", length=r.randint(1, 6)),)) if r.random() < 0.4 else None,
                retries=r.choice([0, 0, 1]),
                retry_delay=0.0,
            )
        )
    return DagSpec(dag_id=f"d{number}", tasks=tuple(tasks), max_active_tasks=r.choice([None, 1, 2, 5]), max_active_runs=None)
