"""A history that a real scheduler decides: a narrow pool, a cap of a run, a mapped task, retries, and a failure."""

from __future__ import annotations

import psycopg

from evenflow.core.model import DagSpec, MapInput, Mapping, TaskSpec
from tests.scheduler.world import World


def decide(db: psycopg.Connection) -> None:
    world = World(db)
    world.pool("narrow", 2)
    mapped = Mapping(inputs=(MapInput(name="x", length=6),))
    tasks = (
        TaskSpec(task_id="a", operator="python", pool="narrow", retries=1, retry_delay=0.0),
        TaskSpec(task_id="m", operator="python", upstream=(0,), pool="narrow", mapping=mapped),
        TaskSpec(task_id="z", operator="python", upstream=(1,)),
    )
    world.add_dag(DagSpec(dag_id="d", tasks=tasks, max_active_tasks=3, max_active_runs=2))
    keys = [world.trigger("d") for _ in range(4)]
    world.advance()
    failed = False
    while tries := world.claim(2):
        world.report(tries, started=True)
        world.advance()
        if not failed:
            world.report(tries[:1], "failed")
            tries, failed = tries[1:], True
        world.report(tries)
        world.advance()
    assert {world.one("select state::text from dag_run where run_key = %s", key) for key in keys} == {"success"}
