"""Executors: their queues and slots, what is refused, and who may get their tries (R-EX1, R-ST1)."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from evenflow.api.specs import check_resources
from evenflow.client.execution import ExecutionClient
from evenflow.client.rest import RestClient
from evenflow.core.model import DagSpec, TaskSpec
from evenflow.errors import ApiRefused, DagError
from evenflow.wire import messages as m
from tests.api.world import World

EXECUTORS = {"worker": [], "batch": ["etl"]}


@pytest.fixture
async def rest(api_url: str, operator_token: str) -> AsyncIterator[RestClient]:
    async with RestClient(api_url, operator_token) as client:
        yield client


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
