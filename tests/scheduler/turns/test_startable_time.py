"""For how long a task could have started before it did (R-ST9): counted from when the last obstacle went, and near zero."""

from __future__ import annotations

import json
from typing import Any

from evenflow.core.limits import STALL_S
from evenflow.core.model import DagSpec, TaskSpec
from evenflow.scheduler.advance import advance
from evenflow.store.db.rows import execute
from tests.scheduler.world import Try, World

HOUR_S = 3600.0


def task(task_id: str, *upstream: int, **options: Any) -> TaskSpec:
    return TaskSpec(task_id=task_id, operator="python", upstream=upstream, **options)


def end(world: World, t: Try, *, ago_s: float) -> None:
    """A success that lay about for so long before anybody looked."""
    (task_index,) = world.conn.execute("select task_index from dispatch where epoch = %s", [t.epoch]).fetchone()
    report = {"run_key": t.run_key, "task_index": task_index, "map_index": -1, "epoch": t.epoch, "kind": "exit", "age_s": ago_s}
    execute(
        world.conn,
        "dispatch/insert_reports",
        {"reports": json.dumps([{**report, "payload": {"outcome": "success", "ran_s": 0.0}}])},
    )


def age_limits(world: World) -> None:
    """They have been as they are for long: before a limit exists, nothing can start."""
    world.conn.execute("update concurrency_limit set released_at = now() - make_interval(secs => %s)", [HOUR_S])


def delays(world: World) -> list[float]:
    """Of each start of one transaction."""
    return [delay_s for delay_s, count in advance(world.conn, world.catalog).started.delays for _ in range(count)]


def test_it_counts_from_the_end_of_the_last_upstream(world: World) -> None:
    world.add_dag(DagSpec(dag_id="d", tasks=(task("a"), task("b"), task("c", 0, 1))))
    world.trigger("d")
    world.advance()
    a, b = world.claim()
    end(world, a, ago_s=60.0)
    assert delays(world) == []
    end(world, b, ago_s=5.0)
    (delay_s,) = delays(world)
    assert 5.0 <= delay_s < 5.0 + STALL_S


def test_it_counts_from_the_release_of_the_last_limit(world: World) -> None:
    """What a task waits for room is not time in which it could have started."""
    world.pool("narrow", 1)
    world.add_dag(DagSpec(dag_id="d", tasks=(task("a", pool="narrow"),), max_active_runs=None))
    for _ in range(2):
        world.trigger("d")
    world.advance()
    (first,) = world.claim()
    age_limits(world)
    world.conn.execute("update lane set since = now() - make_interval(secs => %s)", [HOUR_S])
    assert delays(world) == []
    end(world, first, ago_s=3.0)
    (delay_s,) = delays(world)
    assert 3.0 <= delay_s < 3.0 + STALL_S


def test_it_counts_from_the_creation_of_a_run(world: World) -> None:
    world.add_dag(DagSpec(dag_id="d", tasks=(task("a"),)))
    age_limits(world)
    world.trigger("d")
    world.conn.execute("update dag_run set run_after = now() - interval '1 h', created_at = now() - interval '7 s'")
    (delay_s,) = delays(world)
    assert 7.0 <= delay_s < 7.0 + STALL_S


def test_it_is_near_zero_however_much_waits(world: World) -> None:
    """A hundred runs through pools of two and three slots, under caps of their own: whenever there is room, somebody takes it."""
    world.pool("two", 2)
    world.pool("three", 3)
    world.add_dag(
        DagSpec(
            dag_id="d",
            tasks=(task("a", pool="two"), task("b", pool="three"), task("c", 0, 1, max_active_tis_per_dag=1)),
            max_active_tasks=1,
            max_active_runs=None,
        )
    )
    for _ in range(40):
        world.trigger("d")
    seen: list[float] = []
    while True:
        seen += delays(world)
        tries = world.claim()
        if not tries:
            break
        for t in tries:
            world.report([t])
    assert len(seen) == 120
    assert max(seen) < STALL_S
