"""What a malicious DAG may send with the token of one of its tries, and what a run may be given: it harms nobody else."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from evenflow.client.execution import ExecutionClient
from evenflow.client.rest import RestClient
from evenflow.core.ending import Ending
from evenflow.errors import ApiRefused, EvenflowError, StaleEpoch
from evenflow.wire import messages as m
from evenflow.wire import questions as q
from tests.api.world import World

DEEP = b"[" * 60_000 + b"]" * 60_000  # PostgreSQL's parser of JSON goes as deep as its stack


async def test_json_that_is_too_deep_for_the_database(client: ExecutionClient, world: World) -> None:
    """It is refused for good, like any that is not JSON; taken for an outage, it would be sent again and again."""
    run = world.run(world.add_dag())
    world.dispatch(run, 1)
    with pytest.raises(ApiRefused) as refused:
        await client.push_xcom(world.try_token(1), m.XComPush(key="deep", value=DEEP))
    assert refused.value.status == 422


async def test_a_deep_result_does_not_hold_up_the_reports_of_others(client: ExecutionClient, world: World) -> None:
    run = world.run(world.add_dag())
    world.dispatch(run, 1)
    world.dispatch(run, 2, task=1)
    reports = [
        m.Report(token=world.try_token(1), age_s=0.0, ending=Ending(outcome="success", result=DEEP)),
        m.Report(token=world.try_token(2), age_s=0.0, ending=Ending(outcome="success", result=b"1")),
    ]
    answer = await client.report(m.Reports(reports=reports))
    assert (answer.accepted, answer.refused_at) == (1, [0])


@pytest.mark.parametrize("run_id", ["../../etc", "a/b", "scheduled__2026-01-01", "x\0y", "", " x", "x" * 300])
async def test_names_that_people_may_not_give_either(client: ExecutionClient, world: World, run_id: str) -> None:
    world.dispatch(world.run(world.add_dag()), 1)
    with pytest.raises(ApiRefused) as refused:
        await client.ask(world.try_token(1), "trigger", q.AskTrigger(dag_id="sales", run_id=run_id))
    assert refused.value.status == 422


async def test_nobody_triggers_the_dag_of_callbacks(client: ExecutionClient, rest: RestClient, world: World) -> None:
    """Its runs are made by schedulers alone, each with what it calls."""
    world.dispatch(world.run(world.add_dag()), 1)
    with pytest.raises(ApiRefused):
        await client.ask(world.try_token(1), "trigger", q.AskTrigger(dag_id="evenflow_callbacks"))
    with pytest.raises(ApiRefused):
        await rest.trigger_run("evenflow_callbacks")


@pytest.mark.parametrize(
    "logical_date",
    [datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14))), datetime(9999, 12, 31, 23, tzinfo=timezone(timedelta(hours=-14)))],
)
async def test_dates_that_are_none_in_utc(client: ExecutionClient, rest: RestClient, world: World, logical_date: datetime) -> None:
    """In the database they would be rows that nobody can read any more."""
    world.dispatch(world.run(world.add_dag()), 1)
    with pytest.raises(ApiRefused):
        await rest.trigger_run("sales", logical_date=logical_date)
    for question in (
        q.AskTrigger(dag_id="sales", logical_date=logical_date.isoformat()),
        q.AskStates(dag_id="sales", logical_dates=[logical_date.isoformat()], task_ids=[]),
    ):
        with pytest.raises(ApiRefused) as refused:
            await client.ask(world.try_token(1), "trigger" if isinstance(question, q.AskTrigger) else "states", question)
        assert refused.value.status == 422
    assert len((await rest.list_runs()).items) == 1


async def test_a_try_that_is_over_is_told_nothing(client: ExecutionClient, world: World) -> None:
    """Its token is signed for days; a copy of it is good for nothing once the try has ended."""
    world.dispatch(world.run(world.add_dag()), 1)
    token = world.try_token(1)
    await client.push_xcom(token, m.XComPush(key="k", value=b"1"))
    world.end(1)
    with pytest.raises(StaleEpoch):
        await client.ask(token, "previous_run", q.AskPreviousRun())
    with pytest.raises(StaleEpoch):
        await client.ask(token, "states", q.AskStates(dag_id="sales", logical_dates=[], task_ids=[]))
    with pytest.raises(EvenflowError):
        await client.pull_xcom(token, m.XComPull(task_id="extract", key="k", map_index=-1))
