"""Deferred tasks with three schedulers at once, while an auditor looks at every moment (R-ST1, R-DQ2, R-DQ3, R-DQ9)."""

from __future__ import annotations

import itertools
import random

import pytest

from evenflow.core.metrics import REPAIRS
from evenflow.core.model import DagSpec, TaskSpec
from tests.scheduler.together.test_several import crew
from tests.scheduler.world import World

ENOUGH = 20  # deferrals to say something about


def specs() -> list[DagSpec]:
    """Tasks in a pool that holds and in one that releases, some of which have something to clean up."""
    tasks = [
        TaskSpec(
            task_id=f"t{i}",
            operator="python",
            pool=("holds", "releases")[i % 2],
            pool_slots=1 + i % 3 // 2,
            priority_weight=1 + i,
            max_active_tis_per_dag=(None, 2)[i // 2 % 2],
            cleans_up=i % 4 == 0,
        )
        for i in range(6)
    ]
    return [DagSpec(dag_id=f"d{n}", tasks=tuple(tasks), max_active_tasks=(None, 3)[n], max_active_runs=None) for n in range(2)]


@pytest.mark.parametrize("seed", range(2))
def test_whatever_resumes_when_the_books_are_right(world: World, database_url: str, seed: int) -> None:
    r = random.Random(seed)
    for name, policy in (("holds", "hold"), ("releases", "release")):
        world.pool(name, 4)
        world.conn.execute("update pool set while_deferred = %s where name = %s", [policy, name])
    dags = specs()
    for spec in dags:
        world.add_dag(spec)
    runs: list[int] = []
    deferred = 0
    with crew(database_url) as hands:
        for step in itertools.count():
            if step >= 30 and deferred >= ENOUGH:
                break
            if step < 8 or step >= 30:  # on a busy machine schedulers give out less at a time
                runs += [world.trigger(r.choice(dags).dag_id) for _ in range(2)]
            if step % 6 == 5:
                world.cancel(r.choice(runs))
            for t in world.claim(r.choice([3, 1000])):
                if r.random() < 0.6:
                    deferred += 1
                    world.defer([t])
                else:
                    world.report([t], r.choice(["success", "success", "lost"]))
            for run, task_index, map_index, epoch in world.conn.execute(
                "select run_key, task_index, map_index, epoch from deferral where purpose is null"
            ).fetchall():
                for _ in range(r.choice([0, 1, 1, 2])):
                    world.fire(run, task_index, map_index, epoch=epoch)
            if step % 5 == 4:
                hands.rest(world)
                assert world.startable() == []
        hands.rest(world)
        while any(world.run_state(run) in ("queued", "running") for run in runs):
            world.report(world.claim())
            waiting = world.conn.execute(
                "select run_key, task_index, map_index, epoch from deferral where purpose is null"
            ).fetchall()
            for run, task_index, map_index, epoch in waiting:
                world.fire(run, task_index, map_index, epoch=epoch)
            hands.rest(world)
    assert deferred >= ENOUGH
    assert hands.findings == []
    assert hands.turn_metrics.meter.value(REPAIRS) == 0
    assert world.conn.execute("select count(*) from deferral").fetchone() == (0,)
    resumed = world.conn.execute(
        "select count(*), count(distinct (run_key, task_index, epoch)) from task_event where event = 'resume'"
    )
    count, distinct = resumed.fetchone()
    assert count == distinct > 0
    world.audit()
