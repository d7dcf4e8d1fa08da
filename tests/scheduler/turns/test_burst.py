"""Thousands of runs that are triggered in one instant (R-HA10)."""

from __future__ import annotations

from typing import Any

import pytest

from evenflow.core.limits import NEW_RUNS_PER_TURN
from evenflow.core.model import DagSpec, TaskSpec
from evenflow.scheduler.advance import advance
from tests.scheduler.processes import Schedulers, verify
from tests.scheduler.world import World
from tests.waiting import wait_until

RUNS = 5_000
BURST = DagSpec(dag_id="d", tasks=(TaskSpec(task_id="t", operator="python"),), max_active_runs=None)
TRIGGER = """
    insert into dag_run (dag_id, run_id, version_key, run_type)
    select dag_id, 'run ' || n, version_key, 'manual' from dag, generate_series(1, %s) n where dag_id = 'd' order by n
    returning run_key"""
OVERTAKING = """
    select max(place - turn) from (
        select row_number() over (order by run_key) as place, row_number() over (order by started_at, run_key) as turn from dag_run
    ) as x"""
LEAST_RATE = 10.0  # runs/s on a machine that does much else; what an idle one does is what benchmarks say


@pytest.mark.slow
def test_five_thousand_runs_at_once_all_finish_in_their_turn(world: World, schedulers: Schedulers) -> None:
    """R-HA10: none is lost, and none waits much longer than those that were triggered before and after it."""
    world.add_dag(BURST)
    schedulers.become(2)
    runs = [key for (key,) in schedulers.conn.execute(TRIGGER, [RUNS]).fetchall()]
    schedulers.conn.execute("select pg_notify('inbox', '')")

    def finished() -> bool:
        world.conn.execute("update service set beat_at = now() where service_id = %s", [world.worker])
        world.report(world.claim())
        return not world.conn.execute("select count(*) from dag_run where state in ('queued', 'running')").fetchone()[0]

    wait_until(finished, within_s=RUNS / LEAST_RATE)
    (overtaken_by,) = schedulers.conn.execute(OVERTAKING).fetchone()
    assert overtaken_by <= 2 * NEW_RUNS_PER_TURN, "two schedulers may each have a transaction's worth of runs in hand"
    verify(world, runs)


@pytest.mark.parametrize("runs", [1, 50])
def test_a_free_pool_is_full_at_all_times_below_one_of_higher_priority(world: World, runs: int) -> None:
    """R-ST4: 20 + 20 slots, 1,000 tasks of priority 2 in the first pool, 100 of priority 1 in the second, in one run or in many."""
    left = {"first": 1_000, "second": 100}
    for (pool, tasks), priority in zip(left.items(), (2, 1), strict=True):
        world.pool(pool, 20)
        names = [f"{pool}{n}" for n in range(tasks // runs)]
        each = tuple(TaskSpec(task_id=name, operator="python", pool=pool, priority_weight=priority) for name in names)
        world.add_dag(DagSpec(dag_id=pool, tasks=each, max_active_tasks=None, max_active_runs=None))
        for _ in range(runs):
            world.trigger(pool)
    tries: list[Any] = []
    while left["second"]:
        world.advance()
        tries += world.claim()
        ending = []
        for pool, part in (("first", 7), ("second", 3)):  # of both some end at a time
            running = [t for t in tries if t.task_id.startswith(pool)]
            assert world.used("pool", pool) == len(running) == min(20, left[pool]), pool
            left[pool] -= len(running[:part])
            ending += running[:part]
        world.report(ending)
        tries = [t for t in tries if t not in ending]
    world.advance()
    world.audit()


def test_an_urgent_run_is_created_before_a_backlog_of_other_dags(world: World) -> None:
    """R-ST3, R-ST4: whatever its DAG is named, and whatever blocked runs of the same priority there are."""
    for n in range(2 * NEW_RUNS_PER_TURN):
        world.add_dag(DagSpec(dag_id=f"a{n:03}", tasks=BURST.tasks))
        world.trigger(f"a{n:03}")
    world.add_dag(DagSpec(dag_id="full", tasks=BURST.tasks, max_active_runs=1))
    for _ in range(3):
        world.trigger("full", priority=5)
    world.add_dag(DagSpec(dag_id="z", tasks=BURST.tasks))
    urgent = world.trigger("z", priority=5)
    advance(world.conn, world.catalog)
    assert world.run_state(urgent) == "running"
    world.advance()
    query = "select dag_id, count(*) from dag_run where state = 'queued' group by 1"
    assert world.conn.execute(query).fetchall() == [("full", 2)], "and nobody is forgotten for it"
    world.audit()
