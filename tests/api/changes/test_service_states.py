"""States of service through REST (R-DQ7): what can be set, what is said of it, who did it."""

from __future__ import annotations

import asyncio

import pytest

from evenflow.client.execution import ExecutionClient
from evenflow.client.rest import RestClient
from evenflow.errors import ApiRefused
from evenflow.wire import messages as m
from tests.api.tries.test_claims import until_waiting
from tests.api.world import World, new_worker

OBJECTS = [("dag", "sales"), ("pool", "default_pool"), ("queue", "default"), ("worker", "w1"), ("system", "all")]
STATES = ("draining", "resume_only", "paused", "frozen", "active")


@pytest.fixture
def sales(world: World) -> int:
    """A run of ``sales``, and a worker ``w1``."""
    world.service(name="w1")
    world.conn.execute(
        "insert into limit_class (class_id, base_id, pool_limit, executor_limit, queue, weight) overriding system value"
        " select 1, 1, p.limit_id, e.limit_id, 'default', 1 from concurrency_limit p, concurrency_limit e"
        " where p.name = 'default_pool' and e.name = 'worker'"
    )
    return world.run(world.add_dag())


@pytest.mark.parametrize(("kind", "name"), OBJECTS)
async def test_every_state_of_every_object(rest: RestClient, world: World, sales: int, kind: str, name: str) -> None:
    """R-DQ7: it can be set, it shows, it is in the events, and setting it active leaves nothing."""
    for state in STATES:
        found = await rest.set_service_state(kind, name, state=state)
        assert (found.kind, found.name, found.state) == (kind, name, state)
        listed = [(s.kind, s.name, s.state) for s in (await rest.list_service_states()).items]
        assert listed == ([] if state == "active" else [(kind, name, state)])
        in_status = [(s.kind, s.name, s.state) for s in (await rest.get_status()).not_active]
        assert in_status == ([] if (kind, state) == ("dag", "paused") else listed)
        if kind == "dag":
            dag = await rest.get_dag(name)
            assert (dag.service_state, dag.is_paused) == (state, state not in ("active", "draining"))
    assert world.one("select count(*) from service_state") == 0
    events = [event.action for event in (await rest.list_changes()).items if event.object == name]
    assert events == [f"{kind}.{verb}" for verb in ("activate", "freeze", "pause", "resume_only", "drain")]


async def test_what_is_in_flight_by_task(rest: RestClient, world: World, sales: int) -> None:
    """R-DQ7: a drain shows what it waits for."""
    worker = world.one("select service_id from service where name = 'w1'")
    pool = world.one("select limit_id from concurrency_limit where name = 'default_pool'")
    world.dispatch(sales, 7)
    world.conn.execute("update dispatch set worker_id = %s, holds = array[%s::bigint]", [worker, pool])
    for kind, name in OBJECTS:
        found = await rest.get_service_state(kind, name)
        assert [(t.dag_id, t.task_id, t.running, t.queued, t.deferred) for t in found.tasks] == [("sales", "extract", 1, 0, 0)]
        assert found.tries == 1
        assert found.runs == (1 if kind in ("dag", "system") else None)
    assert (await rest.get_service_state("dag", "sales")).state == "active"
    world.conn.execute("update dispatch set worker_id = null")
    assert (await rest.get_service_state("worker", "w1")).tries == 0
    assert (await rest.get_service_state("pool", "default_pool")).tasks[0].queued == 1


async def test_a_drain_has_a_deadline_and_others_have_none(rest: RestClient, sales: int) -> None:
    found = await rest.set_service_state("pool", "default_pool", state="draining", within_s=60)
    assert found.deadline is not None
    assert found.since is not None
    assert 59 < (found.deadline - found.since).total_seconds() < 61
    with pytest.raises(ApiRefused, match="Only a drain has a deadline, and paused is none"):
        await rest.set_service_state("pool", "default_pool", state="paused", within_s=60)
    with pytest.raises(ApiRefused, match="within_s"):
        await rest.set_service_state("pool", "default_pool", state="draining", within_s=0)
    paused = await rest.set_service_state("pool", "default_pool", state="paused")
    assert paused.deadline is None


@pytest.mark.parametrize("kind", ["dag", "pool", "queue", "worker", "system"])
async def test_what_there_is_not(rest: RestClient, sales: int, kind: str) -> None:
    with pytest.raises(ApiRefused, match=f"There is no {kind} 'nope'. To see all, type: evenflow "):
        await rest.set_service_state(kind, "nope", state="paused")


async def test_a_plain_pause_ends_a_drain_and_unpausing_ends_all(rest: RestClient, world: World, sales: int) -> None:
    for state in ("draining", "frozen"):
        await rest.set_service_state("dag", "sales", state=state)
        assert (await rest.set_paused("sales", is_paused=True)).service_state == "paused"
        await rest.set_service_state("dag", "sales", state=state)
        assert (await rest.set_paused("sales", is_paused=False)).service_state == "active"
        assert world.one("select count(*) from service_state") == 0


async def test_schedulers_and_workers_are_told(rest: RestClient, world: World, sales: int) -> None:
    for channel in ("inbox", "dispatch", "resumes"):
        world.conn.execute(f"listen {channel}")
    await rest.set_service_state("queue", "default", state="active")
    assert {note.channel for note in world.conn.notifies(timeout=5, stop_after=3)} == {"inbox", "dispatch", "resumes"}


@pytest.mark.parametrize("is_paused", [True, False])
async def test_workers_are_told_when_a_plain_pause_or_its_end_thaws_a_dag(
    rest: RestClient, world: World, sales: int, is_paused: bool
) -> None:
    """R-DQ7: resumes of a frozen DAG wait for them."""
    await rest.set_service_state("dag", "sales", state="frozen")
    for channel in ("dispatch", "resumes"):
        world.conn.execute(f"listen {channel}")
    await rest.set_paused("sales", is_paused=is_paused)
    assert {note.channel for note in world.conn.notifies(timeout=5, stop_after=2)} == {"dispatch", "resumes"}


async def test_workers_that_drain_hide_no_work_from_others(
    client: ExecutionClient, rest: RestClient, world: World, api: object
) -> None:
    """R-DQ7, R-ST2: their empty claims prove nothing about what waits, however many stand before others in the line."""
    run = world.run(world.add_dag())
    drained = [await new_worker(client) for _ in range(3)]
    other = await new_worker(client)
    world.conn.execute("update service set name = 'drained' where service_id = any(%s)", [drained])
    world.conn.execute("update service set name = 'other' where service_id = %s", [other])
    await rest.set_service_state("worker", "drained", state="draining")
    asked = []
    for number, worker in enumerate([*drained, other], 1):
        claim = m.Claim(service_id=worker, request_key="k", slots=2, resume_slots=0, queues=["default"], wait_s=20)
        asked.append(asyncio.create_task(client.claim(claim)))
        await until_waiting(world, api, number)
    world.dispatch(run, 7)
    world.conn.execute("notify dispatch")
    async with asyncio.timeout(5):
        assert [a.epoch for a in (await asked[-1]).assignments] == [7]
    assert not any(task.done() for task in asked[:-1])
    for task in asked:
        task.cancel()
