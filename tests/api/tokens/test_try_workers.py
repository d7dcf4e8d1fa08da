"""What a worker for one try may do: everything for this try, and nothing else (R-SE1, R-EX2)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import replace

import pytest

from evenflow.api import tokens as t
from evenflow.client.execution import ExecutionClient
from evenflow.core.ending import Ending
from evenflow.core.executors import KUBERNETES
from evenflow.errors import ApiRefused, NotAllowed, StaleEpoch
from evenflow.membership.presence import identity
from evenflow.store.serving import executors
from evenflow.wire import messages as m
from tests.api.world import World
from tests.tokens import key_state
from tests.world import CODE_HASH, at_once

Join = Callable[[int], Awaitable[tuple[ExecutionClient, int]]]
QUEUE = "pods"


@pytest.fixture
async def join(api_url: str, world: World) -> AsyncIterator[Join]:
    """Registers a worker for this try alone."""
    told = {"kind": KUBERNETES, "queues": [QUEUE], "slots": 9, "options": {}, "by": "test"}
    assert at_once(executors.set_executor(world.awaited, name="k8s", **told))  # type: ignore[arg-type]
    async with AsyncExitStack() as clients:

        async def joined(epoch: int) -> tuple[ExecutionClient, int]:
            token = t.mint(key_state(world.conn), t.FleetToken("worker", scope=(QUEUE,), epoch=epoch), ttl=60)
            client = ExecutionClient(api_url, token)
            clients.push_async_callback(client.close)
            detail = {"queues": [QUEUE], "handed": True}
            return client, (await client.register(identity("worker", f"evenflow-{epoch}", detail))).service_id

        yield joined


def claim(service_id: int, *epochs: int, queue: str = QUEUE) -> m.Claim:
    return m.Claim(service_id=service_id, request_key="k", slots=1, resume_slots=0, queues=[queue], epochs=list(epochs))


async def test_it_claims_its_try_and_no_other(join: Join, world: World) -> None:
    """R-SE1: a stolen token is not good for another try, nor for whatever waits, nor for another queue."""
    run = world.run(world.add_dag())
    mine, other = world.dispatch(run, 1, queue=QUEUE), world.dispatch(run, 2, 2, queue=QUEUE)
    client, me = await join(mine)
    for wanted in ([other], [], [mine, other]):
        with pytest.raises(ApiRefused, match=f"is for try {mine} and cannot claim") as no:
            await client.claim(claim(me, *wanted))
        assert no.value.status == 403
    with pytest.raises(ApiRefused, match="cannot serve default"):
        await client.claim(claim(me, mine, queue="default"))
    assert world.one("select count(*) from dispatch where worker_id is not null") == 0
    (assignment,) = (await client.claim(claim(me, mine))).assignments
    assert assignment.epoch == mine
    ended = m.Report(token=assignment.token, ending=Ending(outcome="success"))
    assert (await client.report(m.Reports(reports=[ended]))).accepted == 1


async def test_a_token_that_is_used_twice_gets_its_try_once(join: Join, world: World) -> None:
    """R-EX2: who has copied it registers, and finds the try claimed."""
    epoch = world.dispatch(world.run(world.add_dag()), 1, queue=QUEUE)
    client, me = await join(epoch)
    assert (await client.claim(claim(me, epoch))).assignments
    thief, other = await join(epoch)
    assert not (await thief.claim(claim(other, epoch))).assignments


async def test_it_reads_no_code_but_that_of_its_try(join: Join, world: World) -> None:
    """R-SE2: code of the same queue neither, before it has claimed its try."""
    epoch = world.dispatch(world.run(world.add_dag()), 1, queue=QUEUE)
    client, me = await join(epoch)
    with pytest.raises(ApiRefused, match="that this service may read"):
        await client.get_code(CODE_HASH)
    await client.claim(claim(me, epoch))
    assert await client.get_code(CODE_HASH)


async def test_it_registers_under_no_name_but_its_own(api_url: str, join: Join, world: World) -> None:
    """R-SE1, R-AS5: a fleet knows its workers by their names, so one that is called like them would be chosen in their place."""
    epoch = world.dispatch(world.run(world.add_dag()), 1, queue=QUEUE)
    own = t.FleetToken("worker", scope=(QUEUE,), epoch=epoch, worker="evenflow-1")
    async with AsyncExitStack() as clients:
        client = ExecutionClient(api_url, t.mint(key_state(world.conn), own, ttl=60))
        clients.push_async_callback(client.close)
        with pytest.raises(ApiRefused, match="is for 'evenflow-1', and cannot register 'workers-5d9f-x'") as no:
            await client.register(identity("worker", "workers-5d9f-x", {"queues": [QUEUE], "handed": True}))
        assert no.value.status == 403
        assert await client.register(identity("worker", "evenflow-1", {"queues": [QUEUE], "handed": True}))


async def test_it_is_void_with_its_try(join: Join, world: World) -> None:
    """R-SE1: when that is over nobody registers with it any more."""
    epoch = world.dispatch(world.run(world.add_dag()), 1, queue=QUEUE)
    world.end(epoch)
    with pytest.raises(StaleEpoch, match=f"Try {epoch} is over"):
        await join(epoch)


def test_it_is_void_after_a_restore(world: World, api_url: str) -> None:
    """R-HA15: epochs may come again."""
    state = key_state(world.conn)
    text = t.mint(state, t.FleetToken("worker", scope=(QUEUE,), epoch=5), ttl=60)
    assert t.verify(state, text) == t.FleetToken("worker", scope=(QUEUE,), epoch=5)
    with pytest.raises(NotAllowed, match="before the database was set back"):
        t.verify(replace(state, incarnation=state.incarnation + 1), text)
