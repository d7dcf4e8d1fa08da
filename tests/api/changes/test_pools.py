"""Pools: their slots, their policy, and how they go."""

from __future__ import annotations

import pytest

from evenflow.client.rest import RestClient
from evenflow.core.model import DagSpec, TaskSpec
from evenflow.errors import ApiRefused
from tests.api.world import World

GPU = DagSpec(dag_id="train", tasks=(TaskSpec(task_id="fit", operator="python", pool="gpu"),))
WAKES = "select name, released from wake join concurrency_limit using (limit_id)"


def patience(world: World) -> float | None:
    return world.one("select patience_s from concurrency_limit where kind = 'pool' and name = 'gpu'")


async def test_pools_are_made_and_changed(rest: RestClient, world: World) -> None:
    pools = [(p.name, p.slots, p.policy) for p in (await rest.list_pools()).items]
    assert pools == [("callback_pool", 16, "backfill"), ("default_pool", 128, "backfill")]
    world.conn.execute(
        "insert into dag_file (bundle, file, fingerprint, parsed, error) values ('main', 'a.py', 'x', 'x', 'no pool gpu')"
    )
    made = await rest.set_pool("gpu", slots=2, description="Two cards")
    assert (made.slots, made.used, made.description, made.policy) == (2, 0, "Two cards", "backfill")
    assert world.one("select parsed from dag_file") is None, "what was refused for want of it is parsed again"
    assert (await rest.set_pool("gpu", slots=1)).description == "Two cards"
    with pytest.raises(ApiRefused, match="slots"):
        await rest.set_pool("gpu", slots=-1)


async def test_more_room_wakes_the_schedulers(rest: RestClient, world: World) -> None:
    """R-ST4: a limit that is raised takes effect at once."""
    await rest.set_pool("gpu", slots=2)
    await rest.set_pool("gpu", slots=1)
    assert world.all(WAKES) == []
    world.conn.execute("update concurrency_limit set released_at = now() - interval '1 hour'")
    world.conn.execute("listen inbox")
    await rest.set_pool("gpu", slots=5)
    assert world.all(WAKES) == [("gpu", 0)]
    assert len(list(world.conn.notifies(timeout=5, stop_after=1))) == 1
    assert world.one("select released_at > now() - interval '1 minute' from concurrency_limit where name = 'gpu'")


async def test_the_policy_stays_until_another_is_given(rest: RestClient, world: World) -> None:
    """R-ST11: stored as the patience of the pool; one that lets more pass wakes the schedulers."""
    assert (await rest.set_pool("gpu", slots=2, policy="reserve-after=600")).policy == "reserve-after=10m"
    assert patience(world) == 600
    assert (await rest.set_pool("gpu", slots=2)).policy == "reserve-after=10m"
    assert (await rest.set_pool("gpu", slots=2, policy="strict")).policy == "strict"
    assert patience(world) == 0
    assert world.all(WAKES) == [], "it has become stricter"
    for permissive in ("reserve-after=1m", "backfill"):
        world.conn.execute("delete from wake")
        assert (await rest.set_pool("gpu", slots=2, policy=permissive)).policy == permissive
        assert world.all(WAKES) == [("gpu", 0)]
    assert patience(world) is None
    with pytest.raises(
        ApiRefused, match=r"'often' is no policy of a pool. Type backfill, strict, or for example reserve-after=10m"
    ) as no:
        await rest.set_pool("gpu", slots=2, policy="often")
    assert no.value.status == 422


async def test_what_deferred_tasks_do_with_their_slots(rest: RestClient) -> None:
    """R-DQ2: pools that people make hold; the default pool releases, and each can be told otherwise."""
    assert {p.name: p.while_deferred for p in (await rest.list_pools()).items} == {
        "callback_pool": "release",
        "default_pool": "release",
    }
    assert (await rest.set_pool("gpu", slots=2)).while_deferred == "hold"
    assert (await rest.set_pool("gpu", slots=2, while_deferred="release")).while_deferred == "release"
    assert (await rest.set_pool("gpu", slots=3)).while_deferred == "release", "it stays until another is given"
    assert (await rest.set_pool("default_pool", slots=128, while_deferred="hold")).while_deferred == "hold"
    with pytest.raises(ApiRefused, match="'keep' is nothing that a pool can do") as no:
        await rest.set_pool("gpu", slots=2, while_deferred="keep")
    assert no.value.status == 422


async def test_a_pool_that_is_in_use_is_not_deleted(rest: RestClient, world: World) -> None:
    await rest.set_pool("gpu", slots=2, policy="strict")
    old = world.add_dag(GPU)
    with pytest.raises(ApiRefused, match=r"in use: by task fit of DAG train. Give these tasks another pool") as no:
        await rest.delete_pool("gpu")
    assert no.value.status == 409
    world.add_dag(DagSpec(dag_id="train", tasks=(TaskSpec(task_id="fit", operator="python"),)))
    run = world.run(old, "r7")
    with pytest.raises(ApiRefused, match="task fit of DAG train in its run r7"):
        await rest.delete_pool("gpu")
    world.conn.execute("update dag_run set state = 'success' where run_key = %s", [run])
    assert (await rest.delete_pool("gpu")).slots == 2
    assert [pool.name for pool in (await rest.list_pools()).items] == ["callback_pool", "default_pool"]
    with pytest.raises(ApiRefused, match=r"There is no pool 'gpu'. To see all, type: evenflow pools list") as no:
        await rest.delete_pool("gpu")
    assert no.value.status == 404
    assert (await rest.set_pool("gpu", slots=3)).policy == "backfill", "made anew, it remembers nothing"


async def test_the_default_pool_stays(rest: RestClient) -> None:
    with pytest.raises(ApiRefused, match="takes every task that names no other"):
        await rest.delete_pool("default_pool")


async def test_the_pool_of_callbacks_stays(rest: RestClient) -> None:
    with pytest.raises(ApiRefused, match=r"evenflow_callbacks"):
        await rest.delete_pool("callback_pool")
