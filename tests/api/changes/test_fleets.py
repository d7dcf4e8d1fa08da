"""Fleets, as people say what they are to be."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from evenflow.client.rest import RestClient
from evenflow.core.scaling.policy import ScalingPolicy
from evenflow.errors import ApiRefused
from evenflow.store.serving import scaling
from tests.api.world import World
from tests.waiting import WAIT_FOR_LOCKS, until
from tests.world import at_once


def up(world: World, name: str, *queues: str, target: str = "native", slots: int = 4) -> None:
    """A fleet as `evenflow up` makes it on its host."""
    told: dict[str, Any] = {"target": target, "queues": queues, "options": {}, "by": "up"}
    assert at_once(scaling.set_fleet(world.awaited, name=name, policy=ScalingPolicy(max=3, slots=slots), **told))


async def test_what_is_not_said_of_a_fleet_stays(rest: RestClient) -> None:
    """R-AS2: its queues, its policy and what its target has to know; `default` has an option as at first again."""
    own = {"deployment": "etl", "namespace": "data"}
    policy = {"max": 20, "down_after": "300", "protect": ["tag:billing"]}
    made = await rest.set_fleet("etl", target="kubernetes", queues=["etl"], policy=policy, options=own)
    assert (made.target, made.policy, made.options) == (
        "kubernetes",
        {"max": 20, "down_after": 300.0, "protect": ["tag:billing"]},
        own,
    )
    changed = await rest.set_fleet("etl", policy={"min": 2})
    assert (changed.target, changed.queues, changed.options) == ("kubernetes", ["etl"], own)
    assert changed.policy == {"min": 2, "max": 20, "down_after": 300.0, "protect": ["tag:billing"]}
    moved = await rest.set_fleet("etl", options={"namespace": "reports"})
    assert moved.options == {"deployment": "etl", "namespace": "reports"}
    assert (await rest.set_fleet("etl", options={"namespace": ""})).options == {"deployment": "etl"}
    again = await rest.set_fleet("etl", queues=["etl", "reports"], policy={"down_after": "default", "protect": "default"})
    assert (again.queues, again.policy) == (["etl", "reports"], {"min": 2, "max": 20})


async def test_a_deployment_is_of_one_fleet(rest: RestClient) -> None:
    """R-AS2: each of two would set its own number, and take that of the other for one that a person has set."""
    etl = {"deployment": "workers", "namespace": "data"}
    await rest.set_fleet("etl", target="kubernetes", queues=["etl"], options=etl)
    with pytest.raises(ApiRefused, match="Deployment workers is that of fleet 'etl' already"):
        await rest.set_fleet("ml", target="kubernetes", queues=["ml"], options=etl)
    await rest.set_fleet("ml", target="kubernetes", queues=["ml"], options={**etl, "namespace": "ml"})
    await rest.set_fleet("etl", policy={"max": 3})
    with pytest.raises(ApiRefused, match="is that of fleet 'etl' already") as refused:  # without a namespace it may be this one
        await rest.set_fleet("ops", target="kubernetes", queues=["ops"], options={"deployment": "workers"})
    assert "name it for both: --option.namespace" in str(refused.value)
    await rest.set_fleet("ops", target="kubernetes", queues=["ops"], options={"deployment": "others"})
    with pytest.raises(ApiRefused, match="is that of fleet 'ops' already"):
        await rest.set_fleet("lab", target="kubernetes", queues=["lab"], options={"deployment": "others", "namespace": "lab"})


async def test_what_makes_no_fleet_is_refused_with_what_to_type(rest: RestClient, world: World) -> None:
    """R-AS2: also where what is new does not go with what stays."""
    with pytest.raises(ApiRefused, match="name each queue that its workers serve: --queue"):
        await rest.set_fleet("etl", policy={"max": 3})
    up(world, "etl", "etl")
    with pytest.raises(ApiRefused, match="4 workers at least and 3 at most"):
        await rest.set_fleet("etl", policy={"min": 4})
    with pytest.raises(ApiRefused, match="evenflow autoscaler delete etl"):
        await rest.set_fleet("etl", target="celery")


@pytest.mark.parametrize(
    ("target", "typed"),
    [
        (None, "EVENFLOW_QUEUES=etl,gpu evenflow up --autoscale 0..3. If"),
        ("native", "EVENFLOW_QUEUES=etl,gpu evenflow up --autoscale 0..3. If"),
        ("celery", "EVENFLOW_QUEUES=etl,gpu evenflow up --autoscale 0..3 --autoscale-target celery. If"),
    ],
)
async def test_a_fleet_that_no_host_would_start_is_refused(rest: RestClient, target: str | None, typed: str) -> None:
    """R-AS2: its queue would be said to get a worker soon, and no worker would come."""
    with pytest.raises(ApiRefused, match="is made by evenflow up there") as refused:
        await rest.set_fleet("etl", target=target, queues=["etl", "gpu"], policy={"max": 3})
    assert typed in str(refused.value)
    assert "name it here: --target kubernetes --of-target.deployment NAME" in str(refused.value)
    assert (await rest.list_fleets()).items == []


async def test_what_a_host_gives_its_workers_is_said_where_they_start(rest: RestClient, world: World) -> None:
    """R-AS2: their queues and slots are those of `evenflow up`; with others in the fleet its load would be another than it is."""
    up(world, "local@h", "default")
    for change, typed in (
        ({"queues": ["default", "gpu"]}, "EVENFLOW_QUEUES=default,gpu evenflow up --autoscale 0..3 --slots 4"),
        ({"policy": {"slots": 8}}, "EVENFLOW_QUEUES=default evenflow up --autoscale 0..3 --slots 8"),
        ({"policy": {"slots": "default"}}, "EVENFLOW_QUEUES=default evenflow up --autoscale 0..3 --slots 16"),
    ):
        with pytest.raises(ApiRefused, match="with which evenflow up was started") as refused:
            await rest.set_fleet("local@h", **change)
        assert typed in str(refused.value)
    changed = await rest.set_fleet("local@h", queues=["default"], policy={"slots": 4, "max": 5})
    assert (changed.queues, changed.max) == (["default"], 5)


async def _at_once(world: World, table: str, *changes: Coroutine[Any, Any, Any]) -> list[Any]:
    """Changes of a table (or several) that none of them may change before all of them wait."""
    with world.conn.transaction():
        world.conn.execute(f"lock table {table} in share row exclusive mode")
        tasks = [asyncio.create_task(change) for change in changes]
        await until(lambda: world.one(WAIT_FOR_LOCKS) == len(changes), "all changes wait")
    return await asyncio.gather(*tasks, return_exceptions=True)


def _codes(answers: list[Any]) -> list[str]:
    return sorted(answer.code if isinstance(answer, ApiRefused) else "set" for answer in answers)


async def test_of_two_that_take_a_queue_or_a_deployment_at_once_one_is_refused(rest: RestClient, world: World) -> None:
    """R-AS2: each would start workers for one load, or set another number of one Deployment."""
    own = [(name, {"queues": ["etl", name], "options": {"deployment": name}}) for name in ("one", "two")]
    answers = await _at_once(world, "fleet", *(rest.set_fleet(name, **told) for name, told in own))
    assert _codes(answers) == ["queue_taken", "set"], answers
    of_cluster = {"target": "kubernetes", "options": {"deployment": "workers"}}
    answers = await _at_once(world, "fleet", *(rest.set_fleet(name, queues=[name], **of_cluster) for name in ("ml", "lab")))
    assert _codes(answers) == ["deployment_taken", "set"], answers


async def test_of_two_that_change_one_fleet_at_once_both_count(rest: RestClient, world: World) -> None:
    """R-AS2: what is not said stays, also what was said a moment ago."""
    up(world, "etl", "etl")
    changes: list[dict[str, Any]] = [{"min": 2}, {"max": 9}]
    await _at_once(world, "fleet", *(rest.set_fleet("etl", policy=policy) for policy in changes))
    assert (await rest.get_fleet("etl")).policy == {"min": 2, "max": 9, "slots": 4}


async def test_of_two_executors_that_take_a_queue_at_once_one_is_refused(rest: RestClient, world: World) -> None:
    """R-EX1: the tries of a queue would be sent twice."""
    changes = (rest.set_executor(name, kind="celery", queues=["etl"]) for name in ("one", "two"))
    assert _codes(await _at_once(world, "executor", *changes)) == ["queue_taken", "set"]


async def test_a_queue_of_a_fleet_goes_to_no_executor_for_which_its_workers_get_nothing(rest: RestClient, world: World) -> None:
    """R-AS2: whichever was first, and of two at once; its workers would stay, and the tries would be sent elsewhere."""
    up(world, "etl", "etl", "reports")
    with pytest.raises(ApiRefused, match=r"Fleet 'etl' serves the queue reports, .* of kind celery") as refused:
        await rest.set_executor("batch", kind="celery", queues=["reports"])
    assert (refused.value.code, "evenflow autoscaler delete etl" in str(refused.value)) == ("queue_taken", True)
    assert "Let it serve others: EVENFLOW_QUEUES=QUEUE evenflow up --autoscale 0..3 on its host" in str(refused.value)
    await rest.set_executor("batch", kind="native", queues=["reports"])
    await rest.set_executor("pods", kind="kubernetes", queues=["heavy"])
    with pytest.raises(ApiRefused, match="serves the queue etl"):
        await rest.set_executor("pods", queues=["heavy", "etl"])
    with pytest.raises(ApiRefused, match="The queue heavy is of executor 'pods'"):
        await rest.set_fleet("far", queues=["heavy"], options={"deployment": "far"})
    await rest.set_executor("pods", queues=["heavy"], slots=3)
    ml = rest.set_fleet("ml", queues=["ml"], options={"deployment": "ml"})
    changes = (ml, rest.set_executor("gpu", kind="kubernetes", queues=["ml"]))
    assert _codes(await _at_once(world, "fleet, executor", *changes)) in (["other_executor", "set"], ["queue_taken", "set"])
