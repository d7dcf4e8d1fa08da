"""Limits that change while runs run: when a DAG's file is read again, and when an operator changes a pool (R-ST1, R-ST4)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from evenflow.core.limits import INT32_MAX
from evenflow.core.model import DagSpec, MapInput, Mapping, TaskSpec
from evenflow.core.selection.pool_policy import PoolPolicy
from evenflow.store.db.connect import connect_async
from evenflow.store.serving import pools
from evenflow.store.serving.dag_limits import change_limits, insert_limits
from tests.scheduler.world import World

Reload = Callable[[DagSpec], None]

SIX = Mapping(inputs=(MapInput(name="x", length=6),))


def tasks(count: int, **limits: Any) -> tuple[TaskSpec, ...]:
    return tuple(TaskSpec(task_id=f"t{i}", operator="python", **limits) for i in range(count))


def spec(*some: TaskSpec, **limits: Any) -> DagSpec:
    return DagSpec(dag_id="d", tasks=some, **{"max_active_tasks": None, "max_active_runs": None, **limits})


@pytest.fixture
def within(database_url: str) -> Callable[[Callable[[Any], Awaitable[None]]], None]:
    """Does something as the API does it: on a connection of its own, in one transaction."""

    def do(work: Callable[[Any], Awaitable[None]]) -> None:
        async def connected() -> None:
            async with await connect_async(database_url, name="test") as conn, conn.transaction():
                await work(conn)

        asyncio.run(connected())

    return do


@pytest.fixture
def reload(within: Any) -> Reload:
    def do(newest: DagSpec) -> None:
        async def store(conn: Any) -> None:
            if await insert_limits(conn, [newest]):
                followed.append(newest)

        followed: list[DagSpec] = []
        within(store)
        if followed:
            within(lambda conn: change_limits(conn, followed))

    return do


def limit(world: World, kind: str) -> tuple[int, int] | None:
    """Capacity and use."""
    return world.conn.execute("select capacity, used from concurrency_limit where kind = %s", [kind]).fetchone()


def started(world: World) -> int:
    return world.conn.execute("select count(*) from dispatch").fetchone()[0]


def end_one(world: World) -> None:
    (one,) = world.claim(1)
    world.report([one])
    world.advance()


def in_a_run(n: int | None) -> DagSpec:
    return spec(TaskSpec(task_id="m", operator="python", mapping=SIX, max_active_tis_per_dagrun=n))


def over_runs(n: int | None) -> DagSpec:
    return spec(TaskSpec(task_id="m", operator="python", mapping=SIX, max_active_tis_per_dag=n))


LOCAL = [
    ("run", lambda n: spec(*tasks(6), max_active_tasks=n)),
    ("run_task", in_a_run),
    ("dag_task", over_runs),
]


@pytest.mark.parametrize(("kind", "with_limit"), LOCAL, ids=[kind for kind, _ in LOCAL])
def test_a_raised_limit_takes_effect_in_runs_that_run(world: World, reload: Reload, kind: str, with_limit: Any) -> None:
    """R-ST4: the next transaction starts what has room now, and no more."""
    world.add_dag(with_limit(2))
    world.trigger("d")
    world.advance()
    assert started(world) == 2
    reload(with_limit(5))
    world.advance()
    assert (started(world), limit(world, kind)) == (5, (5, 5))
    world.audit()


@pytest.mark.parametrize(("kind", "with_limit"), LOCAL, ids=[kind for kind, _ in LOCAL])
def test_a_lowered_limit_kills_nothing_and_starts_nothing_until_below(
    world: World, reload: Reload, kind: str, with_limit: Any
) -> None:
    """R-ST1: no first start while used >= capacity; what runs goes on."""
    world.add_dag(with_limit(4))
    world.trigger("d")
    world.advance()
    reload(with_limit(2))
    world.advance()
    assert (started(world), limit(world, kind)) == (4, (2, 4))
    assert world.conn.execute("select count(*) from dispatch where kill").fetchone() == (0,)
    for left in (3, 2):
        end_one(world)
        assert started(world) == left, "two of six still wait"
    end_one(world)
    assert started(world) == 2, "now that there is room, one starts for one that ends"
    world.audit()
    world.drain()
    world.audit()


@pytest.mark.parametrize(("kind", "with_limit"), LOCAL, ids=[kind for kind, _ in LOCAL])
def test_a_limit_that_is_gone_binds_no_more_and_comes_back(world: World, reload: Reload, kind: str, with_limit: Any) -> None:
    world.add_dag(with_limit(1))
    world.trigger("d")
    world.advance()
    reload(with_limit(None))
    world.advance()
    assert (started(world), limit(world, kind)) == (6, (INT32_MAX, 6))
    reload(with_limit(3))
    assert limit(world, kind) == (3, 6)


def test_a_new_limit_of_runs_is_for_new_runs(world: World, reload: Reload) -> None:
    world.add_dag(spec(*tasks(3)))
    world.trigger("d")
    world.advance()
    reload(spec(*tasks(3), max_active_tasks=1))
    assert limit(world, "run") is None
    assert started(world) == 3


def test_max_active_runs_raised_and_lowered(world: World, reload: Reload) -> None:
    """R-ST1, one level up."""

    def running() -> int:
        return world.conn.execute("select count(*) from dag_run where state = 'running'").fetchone()[0]

    world.add_dag(spec(*tasks(1), max_active_runs=2))
    for _ in range(7):
        world.trigger("d")
    world.advance()
    assert running() == 2
    reload(spec(*tasks(1), max_active_runs=4))
    world.advance()
    assert (running(), limit(world, "dag_runs")) == (4, (4, 4))
    reload(spec(*tasks(1), max_active_runs=3))
    world.advance()
    assert (running(), limit(world, "dag_runs")) == (4, (3, 4))
    end_one(world)
    assert running() == 3
    end_one(world)
    assert running() == 3, "one begins for one that ends"
    world.drain()
    world.audit()


def test_a_new_max_active_runs_counts_the_runs_that_run(world: World, reload: Reload) -> None:
    """They hold it from then on, and give it back when they end."""
    world.add_dag(spec(*tasks(1)))
    runs = [world.trigger("d") for _ in range(3)]
    world.advance()
    reload(spec(*tasks(1), max_active_runs=3))
    assert limit(world, "dag_runs") == (3, 3)
    world.audit()
    waiting = world.trigger("d")
    world.advance()
    assert world.run_state(waiting) == "queued"
    end_one(world)
    assert world.run_state(waiting) == "running"
    world.audit()
    world.drain()
    assert {world.run_state(run) for run in (*runs, waiting)} == {"success"}
    assert limit(world, "dag_runs") == (3, 0)
    world.audit()


def test_a_max_active_runs_that_goes_and_comes_back_is_still_held(world: World, reload: Reload) -> None:
    world.add_dag(spec(*tasks(1), max_active_runs=1))
    for _ in range(3):
        world.trigger("d")
    world.advance()
    reload(spec(*tasks(1)))
    world.advance()
    assert limit(world, "dag_runs") == (INT32_MAX, 3)
    reload(spec(*tasks(1), max_active_runs=3))
    assert limit(world, "dag_runs") == (3, 3)
    world.audit()
    world.drain()
    assert limit(world, "dag_runs") == (3, 0)
    world.audit()


def test_what_is_as_it_was_takes_no_lock_and_wakes_nobody(world: World, reload: Reload) -> None:
    world.add_dag(spec(*tasks(3, max_active_tis_per_dag=2), max_active_tasks=1, max_active_runs=2))
    world.trigger("d")
    world.advance()
    with world.conn.transaction():
        world.conn.execute("select pg_advisory_xact_lock(%s)", [0x45564E46])  # as a round that goes on
        reload(spec(*tasks(3, max_active_tis_per_dag=2), max_active_tasks=1, max_active_runs=2))
    assert world.conn.execute("select count(*) from wake").fetchone() == (0,)


def test_a_pool_that_is_made_larger_or_less_strict(world: World, within: Any) -> None:
    """R-ST4, R-ST11: both take effect at the next transaction."""
    world.pool("gpu", 2)
    world.add_dag(
        spec(
            TaskSpec(task_id="big", operator="python", pool="gpu", pool_slots=3, priority_weight=9),
            *tasks(4, pool="gpu"),
        )
    )
    within(lambda conn: pools.set_pool(conn, "gpu", slots=2, description=None, policy=PoolPolicy.parse("strict")))
    world.trigger("d")
    world.advance()
    assert started(world) == 0, "the big one comes first and does not fit"
    within(lambda conn: pools.set_pool(conn, "gpu", slots=2, description=None, policy=PoolPolicy.parse("backfill")))
    world.advance()
    assert started(world) == 2
    within(lambda conn: pools.set_pool(conn, "gpu", slots=5, description=None, policy=None))
    world.advance()
    assert {t.task_id for t in world.claim()} == {"big", "t0", "t1"}
    world.audit()
    within(lambda conn: pools.set_pool(conn, "gpu", slots=1, description=None, policy=None))
    world.advance()
    assert started(world) == 3, "lowered: nothing is killed"


def test_limits_that_change_while_rounds_go_on(world: World, reload: Reload) -> None:
    """R-ST1, R-ST4: nobody waits for another for ever, and all is as it should be at the end."""
    world.add_dag(spec(*tasks(12, max_active_tis_per_dag=2), max_active_tasks=4, max_active_runs=3))
    runs = [world.trigger("d") for _ in range(12)]
    stop = threading.Event()
    changes: list[int] = []

    def change() -> None:
        while not stop.is_set():
            n = len(changes) % 3 + 1
            reload(spec(*tasks(12, max_active_tis_per_dag=n), max_active_tasks=n * 2, max_active_runs=n if n < 3 else None))
            changes.append(n)

    operator = threading.Thread(target=change)
    operator.start()
    try:
        while {world.run_state(run) for run in runs} != {"success"}:
            world.advance()
            world.report(world.claim(5))
    finally:
        stop.set()
        operator.join()
    assert len(changes) >= 3
    world.advance()  # folds what was left while the lock was taken
    world.audit()
