"""Executors: their queues and slots, what is refused, and who may get their tries (R-EX1, R-ST1)."""

from __future__ import annotations

import asyncio

import pytest

from evenflow.api.service import ApiService
from evenflow.api.specs import check_resources
from evenflow.client.execution import ExecutionClient
from evenflow.client.rest import RestClient
from evenflow.core.model import DagSpec, TaskSpec
from evenflow.errors import ApiRefused, DagError
from evenflow.wire import messages as m
from tests.api.world import World
from tests.waiting import until

EXECUTORS = {"worker": [], "batch": ["etl"]}


def worker_of(*queues: str, handed: bool = False) -> m.Register:
    detail = {"slots": 4, "queues": list(queues), **({"handed": True} if handed else {})}
    return m.Register(kind="worker", name="w", host="h", pid=1, version="0", detail=detail)


async def test_executors_are_made_changed_and_deleted(rest: RestClient, world: World) -> None:
    """R-ST1: what is not said stays."""
    made = await rest.set_executor("batch", kind="celery", queues=["etl"], slots=8, options={"send_again": "2m"})
    assert (made.kind, made.queues, made.slots, made.used, made.options) == ("celery", ["etl"], 8, 0, {"send_again": "2m"})
    changed = await rest.set_executor("batch", slots=9)
    assert (changed.queues, changed.slots, changed.options) == (["etl"], 9, {"send_again": "2m"})
    assert [each.name for each in (await rest.list_executors()).items] == ["batch", "worker"]
    assert (await rest.set_executor("worker", slots=3)).slots == 3
    assert (await rest.delete_executor("batch")).queues == ["etl"]
    with pytest.raises(ApiRefused, match="evenflow executors list"):
        await rest.get_executor("batch")
    assert world.all("select action from audit_event where object in ('batch', 'worker') order by event_id") == [
        "executor.set",
        "executor.set",
        "executor.set",
        "executor.delete",
    ]


async def test_what_makes_no_executor_is_refused_with_what_to_type(rest: RestClient) -> None:
    await rest.set_executor("batch", kind="celery", queues=["etl"])
    with pytest.raises(ApiRefused, match=r"is of the executor .batch.,.*evenflow executors show batch"):
        await rest.set_executor("more", kind="native", queues=["etl"])
    with pytest.raises(ApiRefused, match="Delete it first: evenflow executors delete batch"):
        await rest.set_executor("batch", kind="native")
    with pytest.raises(ApiRefused, match="one of native, celery, kubernetes"):
        await rest.set_executor("new", kind="condor", queues=["q"])
    with pytest.raises(ApiRefused, match="say its kind"):
        await rest.set_executor("new", slots=3)
    with pytest.raises(ApiRefused, match="--queue"):
        await rest.set_executor("new", kind="native")
    with pytest.raises(ApiRefused, match="no option 'speed'"):
        await rest.set_executor("batch", options={"speed": "1"})
    with pytest.raises(ApiRefused, match="time such as 90 or 2m"):
        await rest.set_executor("batch", options={"send_again": "soon"})
    with pytest.raises(ApiRefused, match="it stays"):
        await rest.delete_executor("worker")
    with pytest.raises(ApiRefused, match="none of its own"):
        await rest.set_executor("worker", queues=["q"])


async def test_a_worker_that_would_get_nothing_is_refused(client: ExecutionClient, rest: RestClient) -> None:
    """R-EX1: one that asks for what is sent, and one that is handed what nobody sends."""
    await rest.set_executor("batch", kind="celery", queues=["etl"])
    with pytest.raises(ApiRefused, match=r"Start this worker without that queue .* or .*evenflow executors delete batch"):
        await client.register(worker_of("default", "etl"))
    with pytest.raises(ApiRefused, match="evenflow executors set NAME --kind KIND --queue default"):
        await client.register(worker_of("default", handed=True))
    await client.register(worker_of("etl", handed=True))


async def test_a_worker_whose_queue_has_gone_gets_nothing_more_of_it(
    client: ExecutionClient, rest: RestClient, world: World
) -> None:
    """R-EX1: it goes on with its other queues; whoever is handed the try gets it."""
    asking = (await client.register(worker_of("default", "etl"))).service_id
    await rest.set_executor("batch", kind="celery", queues=["etl"])
    handed = (await client.register(worker_of("etl", handed=True))).service_id
    version = world.add_dag()
    sent, other = world.dispatch(world.run(version), queue="etl"), world.dispatch(world.run(version, "r2"))
    claim = m.Claim(service_id=asking, request_key="a", slots=5, resume_slots=0, queues=["default", "etl"])
    assert [each.epoch for each in (await client.claim(claim)).assignments] == [other]
    one = m.Claim(service_id=handed, request_key="b", slots=1, resume_slots=0, queues=["etl"], epochs=[sent])
    assert [each.epoch for each in (await client.claim(one)).assignments] == [sent]


# -- resumes of what is sent ---------------------------------------------------------------------------------------------


def resumes_of(worker: int, key: str, *queues: str, number: int = 1, handed: bool = True, wait_s: float = 0.0) -> m.Claim:
    named = {"service_id": worker, "request_key": key, "queues": list(queues), "wait_s": wait_s, "handed": handed}
    return m.Claim(slots=0, resume_slots=number, **named)


async def claimed(client: ExecutionClient, claim: m.Claim) -> list[int]:
    return [each.epoch for each in (await client.claim(claim)).assignments]


@pytest.fixture
async def celery_worker(client: ExecutionClient, rest: RestClient) -> int:
    """Of the queue ``etl``."""
    await rest.set_executor("batch", kind="celery", queues=["etl"])
    return (await client.register(worker_of("etl", handed=True))).service_id


async def test_a_worker_beside_celery_gets_the_resumes_that_it_asks_for_sent_or_not(
    client: ExecutionClient, celery_worker: int, world: World
) -> None:
    """R-DQ3: as many as it has slots for, in their order, no first start, and an answer that was lost comes again."""
    run = world.run(world.add_dag())
    world.dispatch(run, 1, queue="etl", priority=9)
    for number, priority in ((1, 5), (2, 7), (3, 3), (4, 1)):
        world.resume(run, 100 + number, 1, number, queue="etl", priority=priority)
    world.conn.execute("update dispatch set sent_at = now(), sends = 1 where epoch in (1, 102, 103)")
    assert await claimed(client, resumes_of(celery_worker, "a", "etl", number=3)) == [102, 101, 103]
    assert await claimed(client, resumes_of(celery_worker, "a", "etl", number=3)) == [102, 101, 103]
    assert await claimed(client, resumes_of(celery_worker, "b", "etl")) == [104]
    assert await claimed(client, resumes_of(celery_worker, "c", "etl")) == []
    assert world.one("select sent_at is not null from dispatch where epoch = 1"), "its message is under way"


@pytest.mark.parametrize(
    "kept",
    [
        "insert into service_state (kind, name, state, actor) values ('worker', 'w', 'frozen', 'me')",
        "insert into service_state (kind, name, state, actor) values ('queue', 'etl', 'frozen', 'me')",
        "update service set fence = 1, fence_until = now() + interval '1 minute'",
        "update executor set kind = 'kubernetes' where name = 'batch'",
        "update dispatch set avoid = (select max(service_id) from service)",
    ],
)
async def test_a_worker_beside_celery_gets_no_resume_that_it_may_not_have(
    client: ExecutionClient, celery_worker: int, world: World, kept: str
) -> None:
    """R-AS4, R-DQ7: what keeps a resume from a native worker; and nothing of it is sent again for that."""
    world.resume(world.run(world.add_dag()), 101, queue="etl")
    world.conn.execute("update dispatch set sent_at = now(), sends = 1")
    world.conn.execute(kept)
    assert await claimed(client, resumes_of(celery_worker, "a", "etl")) == []
    assert world.all("select sends from dispatch where sent_at is not null and worker_id is null") == [1]


async def test_a_worker_that_asks_for_all_its_tries_gets_no_resume_of_what_is_sent(
    client: ExecutionClient, rest: RestClient, world: World
) -> None:
    """R-EX1: a queue is of one executor, its resumes too."""
    asking = (await client.register(worker_of("default", "etl"))).service_id
    await rest.set_executor("batch", kind="celery", queues=["etl"])
    world.resume(world.run(world.add_dag()), 101, queue="etl")
    assert await claimed(client, resumes_of(asking, "a", "etl", handed=False)) == []


async def test_of_many_that_wait_for_resumes_one_gets_what_was_sent_at_once(
    client: ExecutionClient, celery_worker: int, world: World, api: ApiService
) -> None:
    """R-DQ1, R-DQ3: a launcher may be quicker than the API, so nobody concludes from what is not sent yet that there is nothing."""
    workers = [celery_worker] + [(await client.register(worker_of("etl", handed=True))).service_id for _ in range(3)]
    asked = [resumes_of(worker, "a", "etl", wait_s=30) for worker in workers]
    waits = [asyncio.create_task(claimed(client, claim)) for claim in asked]
    await until(lambda: api._claims.waiting == len(waits), "all to wait")
    with world.conn.transaction():
        world.resume(world.run(world.add_dag()), 101, queue="etl", notify=False)
        world.conn.execute("update dispatch set sent_at = now(), sends = 1")
        world.conn.execute("notify resumes")
    done, waiting = await asyncio.wait(waits, timeout=20, return_when=asyncio.FIRST_COMPLETED)
    assert [each.result() for each in done] == [[101]]
    for each in waiting:
        each.cancel()


@pytest.mark.parametrize(
    ("task", "said"),
    [
        (
            TaskSpec(task_id="t", operator="python", queue="etl", executor="worker"),
            "its queue 'etl' is of the executor 'batch', not of",
        ),
        (TaskSpec(task_id="t", operator="python", executor="batch"), "give it a queue of 'batch' with queue=: etl"),
        (TaskSpec(task_id="t", operator="python", executor="bach"), "no executor 'bach'. Did you mean 'batch'?"),
    ],
)
def test_an_executor_that_is_not_that_of_the_queue_is_refused(task: TaskSpec, said: str) -> None:
    """R-EX1: with what to write."""
    with pytest.raises(DagError) as refused:
        check_resources(DagSpec(dag_id="d", tasks=(task,)), {"default_pool"}, EXECUTORS)
    assert said in str(refused.value)


def test_an_executor_that_is_that_of_the_queue_is_right() -> None:
    task = TaskSpec(task_id="t", operator="python", queue="etl", executor="batch")
    check_resources(DagSpec(dag_id="d", tasks=(task,)), {"default_pool"}, EXECUTORS)
