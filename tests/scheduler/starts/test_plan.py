"""The plan of a round is what the next round does."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from evenflow.contracts.rest.plan import Plan
from evenflow.core.model import DagSpec, MapInput, Mapping, TaskSpec
from evenflow.core.selection.pool_policy import PoolPolicy
from evenflow.explaining.plan import ResizedPool, read_plan
from evenflow.scheduler.advance import advance
from evenflow.store.db.connect import connect_async
from evenflow.store.serving.pools import set_pool
from tests.scheduler.workloads import random_dag
from tests.scheduler.world import World

FAST_FOLLOW_OFF = "insert into setting (name, value, changed_by) values ('fast_follow', 'false', 'test')"


@pytest.fixture
async def conn(database_url: str) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    async with await connect_async(database_url, name="test") as conn:
        yield conn


def names(world: World) -> dict[int, str]:
    return dict(world.conn.execute("select run_key, dag_id || '/' || run_id from dag_run"))


def planned(plan: Plan) -> Counter[tuple[str, str]]:
    """How many of each task of each run."""
    found: Counter[tuple[str, str]] = Counter()
    for lane in plan.starts:
        for task in lane.tasks:
            found[f"{lane.dag_id}/{lane.run_id}", task.task_id] += task.count
    return found


@pytest.mark.parametrize("seed", range(6))
async def test_the_next_round_starts_what_was_planned(world: World, conn: psycopg.AsyncConnection[Any], seed: int) -> None:
    """R-ST3, R-ST10: in random worlds, with wakes that nobody has folded yet, pools of both policies, and pools that change."""
    r = random.Random(seed)
    world.conn.execute(FAST_FOLLOW_OFF)
    for name in ("p1", "p2"):
        policy = PoolPolicy.parse(r.choice(["backfill", "strict"]))
        await set_pool(conn, name, slots=r.randint(2, 5), description=None, policy=policy)
    specs = [random_dag(r, number) for number in range(3)]
    for spec in specs:
        world.add_dag(spec)
    began = datetime.now(UTC) - timedelta(days=1)
    live: list[Any] = []
    plans = 0
    for turn in range(25):
        if turn < 12:
            run_after = began + timedelta(seconds=r.randint(0, 10**4))
            world.trigger(r.choice(specs).dag_id, priority=r.choice([0, 0, 1]), run_after=run_after)
            world.advance()
            live += world.claim()
        ending = [t for t in live if r.random() < 0.5]
        live = [t for t in live if t not in ending]
        if ending:
            world.report(ending)
        while advance(world.conn, world.catalog, sweep=False).again:
            pass
        if r.random() < 0.2:
            await set_pool(conn, "p1", slots=r.randint(2, 8), description=None, policy=None)
        resized = ResizedPool("p1", r.randint(0, 8))
        would = await read_plan(conn, limit=100, resized=resized)
        if r.random() < 0.5:
            await set_pool(conn, "p1", slots=resized.slots, description=None, policy=None)
            assert await read_plan(conn, limit=100) == would, f"turn {turn}: what would follow follows"
        plan = await read_plan(conn, limit=100)
        assert plan.complete
        assert plan.unapplied == {"reports": 0, "timers": 0, "pauses": 0, "runs": 0}
        world.advance()
        started = world.claim()
        found = names(world)
        assert planned(plan) == Counter((found[t.run_key], t.task_id) for t in started), f"turn {turn}"
        assert plan.starting == len(started)
        left = world.conn.execute("select coalesce(sum(ready), 0) from lane").fetchone()[0]
        assert sum(group.tasks for group in plan.blocked) == left, f"turn {turn}"
        assert all(group.by is not None for group in plan.blocked)
        assert sum(waiting.lane.count for waiting in plan.waiting) == left
        assert all(waiting.by is not None for waiting in plan.waiting)
        plans += bool(started)
        live += started
    assert plans >= 3, "rounds that started something"


def mapped(length: int) -> Mapping:
    return Mapping(inputs=(MapInput(name="x", length=length),))


async def test_what_it_says(world: World, conn: psycopg.AsyncConnection[Any]) -> None:
    """R-ST10: in the strict order, with names; who is next, and how many wait for what."""
    world.conn.execute(FAST_FOLLOW_OFF)
    world.pool("p", 1)
    tasks = (
        TaskSpec(task_id="one", operator="python", pool="p", priority_weight=9),
        TaskSpec(task_id="two", operator="python", pool="p", priority_weight=9),
        TaskSpec(task_id="many", operator="python", pool="p", mapping=mapped(1000)),
        TaskSpec(task_id="capped", operator="python", mapping=mapped(50), max_active_tis_per_dagrun=2),
    )
    world.add_dag(DagSpec(dag_id="d", tasks=tasks, max_active_tasks=None))
    world.trigger("d")
    world.advance()
    await set_pool(conn, "p", slots=4, description=None, policy=None)
    plan = await read_plan(conn, limit=20)
    assert [(lane.count, [(t.task_id, t.count) for t in lane.tasks], lane.priority) for lane in plan.starts] == [
        (1, [("two", 1)], 9),
        (2, [("many", 2)], 1),
    ]
    assert [(w.lane.count, w.lane.tasks[0].task_id, w.by and (w.by.limit, w.by.used, w.by.capacity)) for w in plan.waiting] == [
        (998, "many", ("pool", 4, 4)),
        (48, "capped", ("run_task", 2, 2)),
    ]
    assert [(group.tasks, group.by and group.by.limit) for group in plan.blocked] == [(998, "pool"), (48, "run_task")]
    assert plan.schedulers == 0


async def test_it_changes_nothing(world: World, conn: psycopg.AsyncConnection[Any]) -> None:
    world.pool("default_pool", 1)
    world.add_dag(DagSpec(dag_id="d", tasks=(TaskSpec(task_id="m", operator="python", mapping=mapped(9)),)))
    world.trigger("d")
    world.advance()
    await set_pool(conn, "default_pool", slots=3, description=None, policy=None)
    before = world.conn.execute("select lane_id, xmin::text, ready, parked_on from lane").fetchall()
    first, second = await read_plan(conn, limit=20), await read_plan(conn, limit=20)
    assert first == second
    assert world.conn.execute("select lane_id, xmin::text, ready, parked_on from lane").fetchall() == before
    assert not conn.read_only, "the connection goes back to its pool as it was"


async def test_a_round_that_ends_early_says_so(world: World, conn: psycopg.AsyncConnection[Any]) -> None:
    """R-ST2: what one round cannot finish the next one does; the plan shows one."""
    world.pool("default_pool", 1)
    world.add_dag(
        DagSpec(dag_id="d", tasks=(TaskSpec(task_id="m", operator="python", mapping=mapped(3000)),), max_active_tasks=None)
    )
    world.trigger("d")
    world.advance()
    await set_pool(conn, "default_pool", slots=2500, description=None, policy=None)
    plan = await read_plan(conn, limit=1)
    assert not plan.complete
    assert 0 < plan.starting < 2499
    assert plan.waiting[0].by is None, "it has room, and its turn comes in the next round"
