"""A sensor that looks again later: it holds nothing meanwhile, uses up no try, and comes back when it is due."""

from __future__ import annotations

import asyncio

import pytest

from evenflow.core.model import DagSpec, TaskSpec
from evenflow.core.why import AwaitsPoke
from evenflow.explaining import why
from evenflow.store.db.connect import open_pool
from tests.scheduler.world import World

SENSOR = DagSpec(
    dag_id="d",
    tasks=(
        TaskSpec(task_id="wait", operator="sensor", retries=1),
        TaskSpec(task_id="then", operator="python", upstream=(0,)),
    ),
)


def make_due(world: World) -> None:
    world.conn.execute("update timer set due_at = now() where kind = 'reschedule'")


def test_it_looks_again_in_the_same_try(world: World) -> None:
    world.add_dag(SENSOR)
    run = world.trigger("d")
    world.advance()
    since = []
    for _ in range(3):
        (t,) = world.claim()
        assert (t.task_id, t.try_number) == ("wait", 1)
        world.report([t], started=True)
        world.advance()
        world.report([t], "rescheduled", delay_s=60.0)
        world.advance()
        assert world.states(run)["wait"] == "up_for_reschedule"
        assert world.claim() == []
        assert world.conn.execute("select sum(used) from concurrency_limit").fetchone() == (1,)  # max_active_runs alone
        since.append(world.conn.execute("select poking_since from task_instance where poking_since is not null").fetchone())
        world.audit()
        make_due(world)
        world.advance()
    assert since[0] is not None
    assert len(set(since)) == 1, "the time of the first look stays"
    (t,) = world.claim()
    world.report([t])
    assert world.drain() == ["then"]
    assert world.run_state(run) == "success"
    events = [e for (e,) in world.conn.execute("select event from task_event where task_index = 0 order by at")]
    assert events.count("reschedule") == 3
    world.audit()


def test_a_failed_look_uses_up_a_try(world: World) -> None:
    world.add_dag(SENSOR)
    run = world.trigger("d")
    world.advance()
    (t,) = world.claim()
    world.report([t], "rescheduled", delay_s=0.0)
    world.advance()
    make_due(world)
    world.advance()
    (t,) = world.claim()
    world.report([t], "failed")
    world.advance()
    assert world.states(run)["wait"] == "up_for_retry"
    world.conn.execute("update timer set due_at = now()")
    world.advance()
    (t,) = world.claim()
    assert t.try_number == 2
    world.report([t], "failed")
    world.advance()
    assert world.run_state(run) == "failed"
    world.audit()


def test_waiting_for_a_slot_again(world: World) -> None:
    """Due, and its pool is full: it waits in a lane like everything else, and keeps its number."""
    world.add_dag(SENSOR)
    world.trigger("d")
    world.advance()
    (t,) = world.claim()
    world.report([t], "rescheduled", delay_s=0.0)
    world.advance()
    world.pool("default_pool", 0)
    make_due(world)
    world.advance()
    assert world.claim() == []
    world.pool("default_pool", 5)
    world.advance()
    (again,) = world.claim()
    assert again.try_number == 1
    assert again.epoch != t.epoch
    world.audit()


def test_cancel_while_it_waits(world: World) -> None:
    world.add_dag(SENSOR)
    run = world.trigger("d")
    world.advance()
    (t,) = world.claim()
    world.report([t], "rescheduled", delay_s=60.0)
    world.advance()
    world.cancel(run)
    world.advance()
    assert world.run_state(run) == "failed"
    make_due(world)
    world.advance()
    assert world.claim() == []
    world.audit()


def test_cancel_while_it_looks(world: World) -> None:
    world.add_dag(SENSOR)
    run = world.trigger("d")
    world.advance()
    (t,) = world.claim()
    world.cancel(run)
    world.advance()
    world.report([t], "rescheduled", delay_s=60.0)
    world.advance()
    assert world.run_state(run) == "failed"
    ended = world.conn.execute("select reason, ended_by from task_instance where state = 'failed'").fetchall()
    assert ended == [("The run was cancelled by somebody", "cancel")]
    world.audit()


def test_why(world: World, database_url: str) -> None:
    """R-ST10: it says when it looks next."""
    world.add_dag(SENSOR)
    world.trigger("d")
    world.advance()
    (t,) = world.claim()
    world.report([t], "rescheduled", delay_s=60.0)
    world.advance()
    run_id, due = world.conn.execute("select run_id, due_at from dag_run, timer where dag_id = 'd'").fetchone()

    async def explain() -> why.Why:
        pool = await open_pool(database_url, name="why", min_size=1, max_size=1)
        async with pool, pool.connection() as conn:
            return await why.explain(conn, dag_id="d", run_id=run_id, task_id="wait")

    (reason,) = [r for r in asyncio.run(explain()).reasons if isinstance(r, AwaitsPoke)]
    assert reason.at == due
    assert reason.since is not None


@pytest.mark.parametrize("delay", [None, 0.0])
def test_without_a_delay_it_is_due_at_once(world: World, delay: float | None) -> None:
    world.add_dag(SENSOR)
    world.trigger("d")
    world.advance()
    (t,) = world.claim()
    world.report([t], "rescheduled", **({} if delay is None else {"delay_s": delay}))
    world.advance()
    world.advance()
    (again,) = world.claim()
    assert again.try_number == 1
