"""A fleet's token may be for some queues or bundles: what its services can claim, deliver and read beyond them is nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any, Protocol

import pytest

from evenflow.api import tokens as t
from evenflow.client.execution import ExecutionClient
from evenflow.core.model import DagSpec, TaskSpec
from evenflow.core.service import UserCodeKind
from evenflow.errors import ApiRefused
from evenflow.membership.presence import identity
from evenflow.wire import messages as m
from evenflow.wire.code import archive_hash, pack
from evenflow.wire.triggers import ClaimTriggers
from tests.api.world import World
from tests.tokens import JTI, LISTED, key_state, listed
from tests.world import CODE_HASH

Joined = tuple[ExecutionClient, int]


class Fleet(Protocol):
    """Registers a service with the token of a fleet that has this scope; gives its client and its number."""

    async def __call__(self, kind: UserCodeKind, *scope: str) -> Joined: ...


@pytest.fixture
async def join(api_url: str, world: World) -> AsyncIterator[Fleet]:
    async with AsyncExitStack() as clients:

        async def joined(kind: UserCodeKind, *scope: str) -> Joined:
            client = ExecutionClient(api_url, listed(world.conn, t.FleetToken(kind, 0, scope)))
            clients.push_async_callback(client.close)
            return client, (await client.register(identity(kind, f"a {kind}", {}))).service_id

        yield joined


def claim(service_id: int, *queues: str) -> m.Claim:
    return m.Claim(service_id=service_id, request_key="k", slots=1, queues=list(queues))


async def test_a_worker_claims_from_the_queues_of_its_fleet_only(join: Fleet, world: World) -> None:
    """R-SE1: the token of the cheapest worker is not good for the tries of all others."""
    run = world.run(world.add_dag())
    world.dispatch(run, 1, queue="mine")
    world.dispatch(run, 2, 2, queue="foreign")
    client, me = await join("worker", "mine", "also mine")
    for queues in (["foreign"], ["mine", "foreign"]):
        with pytest.raises(ApiRefused, match="is for the queues mine, also mine and cannot serve foreign") as no:
            await client.claim(claim(me, *queues))
        assert no.value.status == 403
    assert world.one("select count(*) from dispatch where worker_id is not null") == 0
    assert [a.epoch for a in (await client.claim(claim(me, "mine"))).assignments] == [1]


async def test_the_scope_outlives_renewals(world: World) -> None:
    """R-SE1"""
    state = replace(key_state(world.conn), listed=LISTED)
    tokens = t.Tokens(state)
    own = tokens.for_service(t.FleetToken("worker", 3, ("mine",), JTI), 12)
    assert tokens.verify(own) == t.ServiceToken("worker", 12, 3, ("mine",))
    tokens.use(replace(state, keys={**state.keys, 9: b"n" * 32}))
    renewed = tokens.renewed(own)
    assert renewed is not None
    assert tokens.verify(renewed) == t.ServiceToken("worker", 12, 3, ("mine",))


@pytest.mark.parametrize(
    ("kind", "detail"),
    [
        ("worker", {"queues": ["mine", "foreign"]}),
        ("triggerer", {"queues": ["foreign"]}),
        ("processor", {"bundles": [{"name": "foreign"}]}),
    ],
)
async def test_a_service_that_would_be_refused_later_does_not_register(
    api_url: str, world: World, kind: UserCodeKind, detail: dict[str, Any]
) -> None:
    """R-SE1, R-UX1: it is told before it says that it is ready."""
    client = ExecutionClient(api_url, listed(world.conn, t.FleetToken(kind, 0, ("mine",))))
    try:
        with pytest.raises(ApiRefused, match=r"cannot serve foreign\. Make one that can: evenflow tokens create"):
            await client.register(identity(kind, f"a {kind}", detail))
        assert world.one("select count(*) from service where name = %s", f"a {kind}") == 0
        mine = {what: ["mine"] if what == "queues" else [{"name": "mine"}] for what in detail}
        await client.register(identity(kind, f"a {kind}", mine))
    finally:
        await client.close()


@pytest.mark.parametrize(
    ("kind", "detail"),
    [
        ("worker", {"slots": 100, "queues": ["mine", "foreign"]}),
        ("triggerer", {"queues": ["foreign"]}),
        ("processor", {"bundles": [{"name": "foreign"}]}),
    ],
)
async def test_a_beat_says_nothing_beyond_the_scope_either(
    join: Fleet, world: World, kind: UserCodeKind, detail: dict[str, Any]
) -> None:
    """R-SE1, R-AS2: slots for a foreign queue would have its autoscaler end the workers that it really has."""
    client, me = await join(kind, "mine")
    with pytest.raises(ApiRefused, match="cannot serve foreign") as no:
        await client.beat(me, m.Beat(detail=detail))
    assert no.value.status == 403
    assert world.one("select detail from service where service_id = %s", me) == {}


async def test_a_triggerer_claims_from_the_queues_of_its_fleet_only(join: Fleet, world: World) -> None:
    """R-SE1: one that names no queue serves those of its token, not all."""
    run = world.run(world.add_dag())
    for index, queue in enumerate(("mine", "foreign")):
        world.conn.execute(
            "insert into deferral (run_key, task_index, map_index, epoch, queue, trigger, sealed, holds, pool_slots, retake,"
            " retake_slots, began_at, ran_s, ready_at)"
            " values (%s, %s, -1, %s, %s, 'x.Waits', '', '{}', 0, '{}', 0, now(), 0, now())",
            [run, index, index + 1, queue],
        )
    client, me = await join("triggerer", "mine")
    with pytest.raises(ApiRefused, match="cannot serve foreign"):
        await client.claim_triggers(ClaimTriggers(service_id=me, request_key="k", capacity=5, queues=["foreign"]))
    await client.claim_triggers(ClaimTriggers(service_id=me, request_key="k", capacity=5))
    assert world.all("select queue from deferral where triggerer_id = %s", me) == ["mine"]


async def test_a_processor_delivers_the_bundles_of_its_fleet_only(join: Fleet, world: World) -> None:
    """R-SE1: who reads one team's DAG files cannot put code on the workers of others."""
    client, me = await join("processor", "etl")
    seen = [m.FileSeen(file="a.py", fingerprint="1")]
    foreign = [
        client.files_seen(m.FilesSeen(bundle="finance", files=seen)),
        client.lease_files(m.FilesLease(service_id=me, bundles=["etl", "finance"], limit=1, lease_s=9.0)),
        client.file_parsed(m.ParsedFile(bundle="finance", file="a.py", fingerprint="1", seconds=0.1)),
    ]
    for call in foreign:
        with pytest.raises(ApiRefused, match="is for the bundles etl and cannot serve finance") as no:
            await call
        assert no.value.status == 403
    await client.files_seen(m.FilesSeen(bundle="etl", files=seen))
    leased = await client.lease_files(m.FilesLease(service_id=me, bundles=["etl"], limit=1, lease_s=9.0))
    assert [file.file for file in leased.files] == ["a.py"]


async def test_code_is_read_by_those_whose_queues_run_it(join: Fleet, world: World) -> None:
    """R-SE1: tasks of the DAG are in the queues "default" and "big"."""
    world.add_dag()
    for queue, may in (("big", True), ("default", True), ("foreign", False)):
        client, _ = await join("worker", queue)
        assert await _reads(client) == may, queue


async def test_code_that_an_assignment_names_is_read_whatever_its_queue(join: Fleet, world: World) -> None:
    """R-SE1: as of a callback, which runs in another queue than the task that it is about; when the try is over it is not."""
    run = world.run(world.add_dag())
    world.dispatch(run, 1, queue="elsewhere")
    client, me = await join("worker", "elsewhere")
    with pytest.raises(ApiRefused, match=r"no code .* that this service may read"):
        await client.get_code(CODE_HASH)
    assert len((await client.claim(claim(me, "elsewhere"))).assignments) == 1
    assert await client.get_code(CODE_HASH)
    world.end(1)
    with pytest.raises(ApiRefused):
        await client.get_code(CODE_HASH)


async def test_a_processor_reads_the_code_of_its_bundles(join: Fleet, world: World) -> None:
    """R-SE1"""
    key = world.add_dag(DagSpec(dag_id="d", tasks=(TaskSpec(task_id="t", operator="python"),)))
    world.conn.execute("update dag_version set bundle = 'etl' where version_key = %s", [key])
    mine, _ = await join("processor", "etl")
    other, _ = await join("processor", "finance")
    assert await mine.get_code(CODE_HASH)
    with pytest.raises(ApiRefused):
        await other.get_code(CODE_HASH)
    files = {"b.py": b"2"}
    await other.put_code(archive_hash(files), pack(files))  # its name says what it is, so it can replace nothing


async def _reads(client: ExecutionClient) -> bool:
    try:
        return bool(await client.get_code(CODE_HASH))
    except ApiRefused:
        return False
