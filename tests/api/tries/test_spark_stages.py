"""What the stages of a try on Spark take, by REST: while it runs, when it has ended, and where nothing is known (R-SP3)."""

from __future__ import annotations

from typing import Any

import pytest

from evenflow.client.execution import ExecutionClient
from evenflow.client.rest import RestClient
from evenflow.errors import ApiRefused
from evenflow.wire import questions as q
from tests.api.world import World

APPLICATION = {"application_id": "local-17", "is_local": True, "cores": 4, "memory_mib": 1024}
SLOW = {"stage_id": 1, "name": "join", "tasks": 8, "done_tasks": 8, "wall_s": 40.0, "median_task_s": 5.0, "longest_task_s": 39.0}


async def tells(client: ExecutionClient, world: World, *stages: dict[str, Any], epoch: int = 1) -> None:
    value = {**APPLICATION, "stages": list(stages)}
    await client.ask(world.try_token(epoch), "record", q.KeepRecord(kind="spark_stages", value=value))


def ends(world: World, epoch: int = 1) -> None:
    world.conn.execute("delete from dispatch where epoch = %s", [epoch])


async def test_what_a_try_has_told_last_is_shown_with_what_helps(rest: RestClient, client: ExecutionClient, world: World) -> None:
    world.dispatch(world.run(world.add_dag()), 1)
    await tells(client, world, {"stage_id": 0, "tasks": 4, "done_tasks": 1})
    live = await rest.get_spark_stages("sales", "r1", "extract")
    assert (live.try_number, live.runs, live.advice) == (1, True, [])
    assert [(stage.stage_id, stage.done_tasks, stage.gc_s) for stage in live.application.stages] == [(0, 1, 0.0)]
    await tells(client, world, {"stage_id": 0, "tasks": 4, "done_tasks": 4}, SLOW)
    ends(world)
    told = await rest.get_spark_stages("sales", "r1", "extract", try_number=1)
    assert (told.runs, [stage.name for stage in told.application.stages]) == (False, ["", "join"])
    assert told.at > live.at
    assert told.advice[0].stage_id == 1
    assert told.advice[0].text.startswith("Some rows cost more than others")


async def test_of_a_try_that_runs_and_has_told_nothing_no_earlier_one_is_shown(
    rest: RestClient, client: ExecutionClient, world: World
) -> None:
    run = world.run(world.add_dag())

    async def refused(try_number: int | None = None) -> str:
        with pytest.raises(ApiRefused) as caught:
            await rest.get_spark_stages("sales", "r1", "extract", try_number=try_number)
        return str(caught.value)

    world.dispatch(run, 1)
    world.instance(run, 0, state="running", epoch=1)
    assert "Try 1 of extract runs, and has told no stages of Spark so far. They are told every 5 s" in await refused()
    await tells(client, world, SLOW)
    ends(world)
    world.dispatch(run, 2, tries=2)
    world.instance(run, 0, state="running", epoch=2, tries=2)
    said = await refused()
    assert "Try 2 of extract runs" in said
    assert "Those of try 1 are there: --try 1" in said
    assert "Try 2 of extract runs" in await refused(2)
    assert (await rest.get_spark_stages("sales", "r1", "extract", try_number=1)).try_number == 1
    assert "Try 7 of extract has not told any stages of Spark" in await refused(7)
    world.instance(run, 0, state="failed", epoch=2, tries=2)
    assert (await rest.get_spark_stages("sales", "r1", "extract")).try_number == 1


@pytest.mark.parametrize("value", [{}, {**APPLICATION, "cores": "many"}, {**APPLICATION, "stages": [3]}])
async def test_authors_may_tell_anything(rest: RestClient, client: ExecutionClient, world: World, value: dict[str, Any]) -> None:
    world.dispatch(world.run(world.add_dag()), 1)
    await client.ask(world.try_token(1), "record", q.KeepRecord(kind="spark_stages", value=value))
    with pytest.raises(ApiRefused, match="What try 1 of the task 'extract' has told are no stages of Spark"):
        await rest.get_spark_stages("sales", "r1", "extract")


async def test_there_is_no_such_task(rest: RestClient, world: World) -> None:
    world.run(world.add_dag())
    with pytest.raises(ApiRefused, match=r"There is no task 'extrct' in run 'r1' of DAG 'sales'\. Did you mean"):
        await rest.get_spark_stages("sales", "r1", "extrct")


COST = {
    "application_id": "local-17",
    "cores": 4,
    "wall_s": 3,
    "stages": 1,
    "run_s": 7.5,
    "gc_s": 0.0,
    "input_bytes": 1,
    "output_bytes": 2,
    "shuffle_bytes": 0,
    "spilled_bytes": 0,
}


@pytest.mark.parametrize(
    "wrong", [{"cores": "many"}, {"cores": 2**31}, {"wall_s": 1e308}, {"gc_s": -1.0}, {"input_bytes": 2**63}, {"run_s": None}]
)
async def test_what_an_application_took_is_numbers(client: ExecutionClient, world: World, wrong: dict[str, Any]) -> None:
    """R-SP4: the view of all costs is read by the history pipeline, which one author must not stop for all others."""
    world.dispatch(world.run(world.add_dag()), 1)
    with pytest.raises(ApiRefused, match="What an application of Spark took"):
        await client.ask(world.try_token(1), "record", q.KeepRecord(kind="spark_cost", value={**COST, **wrong}))
    await client.ask(world.try_token(1), "record", q.KeepRecord(kind="spark_cost", value=COST))
    rows = world.conn.execute("select cores, wall_us, task_us from evenflow_reporting_v1.spark_applications").fetchall()
    assert rows == [(4, 3_000_000, 7_500_000)]
