"""Explanations through the API: the routes and their refusals."""

from __future__ import annotations

import dataclasses

import pytest

from evenflow.client.rest import RestClient
from evenflow.core.people.roles import Role
from evenflow.core.people.scopes import PersonScope
from evenflow.core.why import AwaitsUpstreams, AwaitsWorker
from evenflow.errors import ApiRefused
from tests.api.world import SPEC, World
from tests.tokens import operator_token


async def test_why(rest: RestClient, world: World) -> None:
    """R-ST10."""
    run = world.run(world.add_dag())
    world.dispatch(run, 7, 0)
    world.instance(run, 1, state="none", tries=0)
    world.instance(run, 2, state="none", tries=0)
    extract = await rest.explain("sales", "r1", "extract")
    assert (extract.state, extract.run_state, extract.map_index) == ("queued", "running", -1)
    assert isinstance(extract.reasons[0], AwaitsWorker)
    assert extract.reasons[0].queue == "default"
    assert extract.reasons[0].told is not None
    assert extract.reasons[0].told.sentence == "No worker that serves the queue default is alive."
    assert extract.reasons[0].told.cure == "evenflow worker --queues default"
    load = await rest.explain("sales", "r1", "load")
    waits = next(reason for reason in load.reasons if isinstance(reason, AwaitsUpstreams))
    assert [(up.task_id, up.states) for up in waits.upstreams] == [("extract", {"queued": 1}), ("clean", {"none": 1})]


async def test_why_is_refused_with_words(rest: RestClient, world: World) -> None:
    world.run(world.add_dag())
    for run_id, task_id, map_index, status, said in (
        ("nope", "load", -1, 404, r"no task 'load' in a run 'nope' of DAG 'sales'\. See: evenflow runs list sales"),
        ("r1", "nope", -1, 404, r"The run 'r1' of DAG 'sales' has no task 'nope'\. To see its tasks: evenflow tasks list sales/r1"),
        ("r1", "load", 3, 404, "is not mapped"),
        ("r1", "load", -2, 422, "map_index is at least -1, not -2"),
    ):
        with pytest.raises(ApiRefused, match=said) as refused:
            await rest.explain("sales", run_id, task_id, map_index=map_index)
        assert refused.value.status == status


async def test_runs_by_name_alone(rest: RestClient, world: World) -> None:
    world.run(world.add_dag(), "nightly")
    world.run(world.add_dag(dataclasses.replace(SPEC, dag_id="billing")), "nightly", state="success")
    found = (await rest.find_run("nightly")).items
    assert [(run.dag_id, run.run_id, run.state) for run in found] == [
        ("billing", "nightly", "success"),
        ("sales", "nightly", "running"),
    ]
    assert (await rest.find_run("nope")).items == []


async def test_plan_of_an_idle_system(rest: RestClient, world: World) -> None:
    found = await rest.get_plan(limit=5)
    assert (found.starting, found.starts, found.waiting, found.blocked, found.complete) == (0, [], [], [], True)
    world.run(world.add_dag(), state="queued")
    assert (await rest.get_plan()).unapplied["runs"] == 1
    with pytest.raises(ApiRefused, match=r"^limit is at most 1,000, not 100000$"):
        await rest.get_plan(limit=100_000)


async def test_what_would_follow_is_asked_of_a_pool_that_one_may_see(rest: RestClient, api_url: str, world: World) -> None:
    """R-ST10, R-SE3: of others it is as if there were none."""
    world.pool("etl", 3)
    assert (await rest.get_plan(pool="etl", slots=9)).starting == 0
    with pytest.raises(ApiRefused, match="Give pool and slots"):
        await rest.get_plan(pool="etl")
    with pytest.raises(ApiRefused, match="Give pool and slots"):
        await rest.get_plan(slots=9)
    with pytest.raises(ApiRefused, match="There is no pool 'nope'"):
        await rest.get_plan(pool="nope", slots=9)
    async with RestClient(api_url, operator_token(world.conn, role=Role.VIEWER, scope=PersonScope(pools=("mine",)))) as eve:
        with pytest.raises(ApiRefused, match="There is no pool 'etl'"):
            await eve.get_plan(pool="etl", slots=9)
