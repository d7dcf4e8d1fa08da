"""Registration and beats: what a worker learns about its tries."""

from __future__ import annotations

from typing import Any

import pytest

from evenflow.client.execution import ExecutionClient
from evenflow.core.ending import Ending
from evenflow.errors import ApiRefused
from evenflow.store.serving import scaling
from evenflow.wire import messages as m
from tests.api.world import World, new_worker
from tests.world import at_once


async def claimed(client: ExecutionClient, worker: int, slots: int = 10) -> list[int]:
    answer = await client.claim(m.Claim(service_id=worker, request_key="k", slots=slots, queues=["default"]))
    return [a.epoch for a in answer.assignments]


async def test_a_service_registers_with_what_it_is(client: ExecutionClient, world: World) -> None:
    message = m.Register(kind="worker", name="w1", host="box", pid=77, version="0.1", detail={"slots": 8})
    answer = await client.register(message)
    assert (answer.lease_s, answer.beat_s) == (15.0, 3.0)
    row = world.one("select kind, name, host, pid, version, state, detail from service where service_id = %s", answer.service_id)
    assert row == ("worker", "w1", "box", 77, "0.1", "active", {"slots": 8})


async def test_a_token_registers_only_its_kind(client: ExecutionClient) -> None:
    with pytest.raises(ApiRefused, match="cannot register a processor") as refused:
        await client.register(m.Register(kind="processor", name="p", host="h", pid=1, version="0"))
    assert refused.value.status == 403


@pytest.mark.parametrize(
    "names", [{"name": "\x1b]0;t\x07w"}, {"host": "a\nb"}, {"version": "\u202e1"}, {"name": ""}, {"host": "h" * 254}]
)
async def test_what_people_are_shown_of_a_service_can_be_shown(
    client: ExecutionClient, world: World, names: dict[str, str]
) -> None:
    """R-SE2: it is the word of whoever has a fleet's token."""
    known = world.one("select count(*) from service")
    with pytest.raises(ApiRefused, match="characters that can be printed") as refused:
        await client.register(m.Register(**{"kind": "worker", "name": "w", "host": "h", "pid": 1, "version": "0", **names}))
    assert refused.value.status == 422
    assert world.one("select count(*) from service") == known


@pytest.mark.parametrize(
    "detail",
    [
        {"slots": "many"},
        {"slots": -1},
        {"slots": 2**40},
        {"slots": None},
        {"running": 0.5},
        {"queues": 5},
        {"queues": [None]},
        {"outrun": "all"},
    ],
)
async def test_what_a_worker_says_of_itself_cannot_stop_those_who_read_it(
    client: ExecutionClient, worker: int, world: World, detail: dict[str, Any]
) -> None:
    """R-SE1, R-AS3: autoscalers read what all workers say in one statement, and any worker's token is enough to say it."""
    known = world.one("select count(*) from service")
    for say in (
        client.register(m.Register(kind="worker", name="w", host="h", pid=1, version="0", detail=detail)),
        client.beat(worker, m.Beat(detail=detail)),
    ):
        with pytest.raises(ApiRefused, match="says of itself what is none of its values") as refused:
            await say
        assert refused.value.status == 422
    assert world.one("select count(*) from service") == known
    there = at_once(scaling.read_workers(world.awaited))
    assert [(each.slots, each.queues) for each in there if each.service_id == worker] == [(4, ["default"])]


async def test_services_that_ended_long_ago_are_forgotten(client: ExecutionClient, world: World) -> None:
    old, holding, other = [await new_worker(client) for _ in range(3)]
    world.dispatch(world.run(world.add_dag()), 1)
    assert await claimed(client, holding) == [1]
    world.conn.execute("update service set beat_at = now() - interval '8 days' where service_id = any(%s)", [[old, holding]])
    await new_worker(client)
    assert set(world.all("select service_id from service where kind = 'worker'")) >= {holding, other}
    assert world.one("select count(*) from service where service_id = %s", old) == 0


async def test_a_beat_keeps_the_lease_and_the_detail(client: ExecutionClient, worker: int, world: World) -> None:
    world.conn.execute("update service set beat_at = now() - interval '10 seconds'")
    assert await client.beat(worker, m.Beat(detail={"running": 3})) == m.BeatAnswer()
    assert world.one("select now() - beat_at < interval '5 seconds' from service where service_id = %s", worker)
    await client.beat(worker, m.Beat())
    assert world.one("select detail from service where service_id = %s", worker) == {"running": 3}


@pytest.mark.parametrize("state", ["lost", "stopped"])
async def test_a_beat_does_not_raise_the_dead(client: ExecutionClient, worker: int, world: World, state: str) -> None:
    world.conn.execute("update service set state = %s", [state])
    assert not (await client.beat(worker, m.Beat())).known
    assert world.one("select state from service where service_id = %s", worker) == state
    assert not (await client.beat(424_242, m.Beat())).known


async def test_draining_can_be_asked_for_by_both_sides(client: ExecutionClient, worker: int, world: World) -> None:
    assert (await client.beat(worker, m.Beat(state="draining"))).state == "draining"
    assert (await client.beat(worker, m.Beat(state="active"))).state == "draining"
    other = await new_worker(client)
    world.conn.execute("update service set state = 'draining' where service_id = %s", [other])
    assert (await client.beat(other, m.Beat())).state == "draining"
    await client.beat(other, m.Beat(state="stopped"))
    assert world.one("select state from service where service_id = %s", other) == "stopped"


async def test_a_farewell_gives_back_what_was_not_begun(client: ExecutionClient, worker: int, world: World) -> None:
    """R-AS8: listed without a process, or not even heard of. What ran is lost, and what has ended has its own report."""
    run = world.run(world.add_dag())
    for epoch in range(1, 6):
        world.dispatch(run, epoch, task=1, map_index=epoch)
    assert await claimed(client, worker, slots=4) == [1, 2, 3, 4]
    await client.report(m.Reports(reports=[m.Report(token=world.try_token(4), ending=Ending(outcome="success"))]))
    await client.beat(worker, m.Beat(state="stopped", epochs=[1, 2], starting=[2]))
    told = world.all("select epoch, payload ->> 'outcome', (payload ->> 'given_back')::bool from report order by epoch")
    assert told == [(2, "cannot_start", True), (3, "cannot_start", True), (4, "success", None)]
    assert not (await client.beat(worker, m.Beat(state="stopped", starting=[]))).known
    assert world.one("select count(*) from report") == 3


async def test_a_worker_of_the_release_before_does_not_say_what_it_had_begun(
    client: ExecutionClient, worker: int, world: World
) -> None:
    """R-CS9: all that it had may have begun."""
    world.dispatch(world.run(world.add_dag()), 1)
    assert await claimed(client, worker) == [1]
    await client.beat(worker, m.Beat(state="stopped"))
    assert world.one("select state from service where service_id = %s", worker) == "stopped"
    assert world.one("select count(*) from report") == 0


async def test_a_processor_cannot_beat_for_a_worker(client: ExecutionClient, worker: int, processor: ExecutionClient) -> None:
    assert not (await processor.beat(worker, m.Beat(state="stopped"))).known
    assert (await client.beat(worker, m.Beat())).known


async def test_a_beat_names_the_tries_to_kill(client: ExecutionClient, worker: int, world: World) -> None:
    """R-CS7: what is not this worker's any more, and what an operator wants ended."""
    run = world.run(world.add_dag())
    for epoch in range(1, 6):
        world.dispatch(run, epoch, task=1, map_index=epoch)
    assert await claimed(client, worker, slots=4) == [1, 2, 3, 4]
    other = await new_worker(client)
    world.end(1)
    world.conn.execute("update dispatch set worker_id = %s where epoch = 2", [other])
    world.conn.execute("update dispatch set kill_at = now() where epoch = 3")
    answer = await client.beat(worker, m.Beat(epochs=[1, 2, 3, 4, 77]))
    assert sorted(answer.kill) == [1, 2, 3, 77]
    assert sorted(answer.revoked) == [1, 2, 77], "not the one that an operator wants ended: that is still its own"
    assert answer.resend == []


async def test_claimed_but_unlisted_tries_are_sent_again(client: ExecutionClient, worker: int, world: World) -> None:
    run = world.run(world.add_dag(), params={"a": 1})
    for epoch in range(1, 5):
        world.dispatch(run, epoch, task=1, map_index=epoch)
    assert await claimed(client, worker) == [1, 2, 3, 4]
    assert (await client.beat(worker, m.Beat(epochs=[1]))).resend == [], "its answer may still be on its way"
    world.conn.execute("update dispatch set claimed_at = now() - interval '3 seconds' where epoch < 4")
    await client.report(m.Reports(reports=[m.Report(token=world.try_token(2), ending=Ending(outcome="success"))]))
    (again,) = (await client.beat(worker, m.Beat(epochs=[1]))).resend
    assert (again.epoch, again.task_id, again.map_index, again.params) == (3, "clean", 3, {"a": 1})
    pushed = m.XComPush(key="k", value=b"1")
    await client.push_xcom(again.token, pushed)
    assert world.one("select epoch from xcom") == 3


async def test_the_api_itself_beats(world: World, api) -> None:
    assert world.one("select name, state, detail from service where kind = 'api'") == (
        "api",
        "active",
        {"port": api.port, "metrics": f"127.0.0.1:{api.port}"},
    )
    await api.stop()
    assert world.one("select state from service where kind = 'api'") == "stopped"
