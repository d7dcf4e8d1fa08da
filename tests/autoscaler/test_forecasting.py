"""A fleet looks ahead: what follows on what its workers have, by graphs and by history of the database."""

from __future__ import annotations

from dataclasses import replace

import pytest

from evenflow.core.mapping import MapInput
from evenflow.core.model import DagSpec, Mapping, TaskSpec
from evenflow.core.scaling.policy import Foresees
from tests.autoscaler.world import EAGER, Fleets

AHEAD = replace(EAGER, min=1, max=9, forecast=60.0)


def fan(width: int) -> DagSpec:
    first = TaskSpec(task_id="first", operator="python")
    after = (TaskSpec(task_id=f"t{n}", operator="python", upstream=(0,)) for n in range(width))
    return DagSpec(dag_id="d", tasks=(first, *after), max_active_tasks=100)


def history(fleets: Fleets, version: int, *, took_s: float, runs: int = 3) -> None:
    """Runs in which the first task took so long."""
    for _ in range(runs):
        run = fleets.run(version, state="success")
        fleets.instance(run, 0, state="success")
        ended = "update task_instance set ended_at = now(), started_at = now() - make_interval(secs => %s) where run_key = %s"
        fleets.conn.execute(ended, [took_s, run])


def runs_for(fleets: Fleets, version: int, seconds: float) -> int:
    """The first task of a new run, on a worker."""
    run = fleets.run(version)
    fleets.instance(run, 0, state="running")
    fleets.dispatch(run)
    fleets.busy("f-1", for_s=seconds)
    return run


async def grown(fleets: Fleets, version: int, seconds: float, **policy: object) -> int:
    """How large the fleet is after a look at it, while that task runs."""
    fleets.fleet(replace(AHEAD, **policy))  # type: ignore[arg-type]
    steering, conn = await fleets.autoscaler()
    async with conn:
        await steering.loop(conn)
        fleets.obey()
        runs_for(fleets, version, seconds)
        await steering.loop(conn)
        await steering.loop(conn)
    return fleets.replicas


async def test_a_fleet_grows_before_what_fans_out_is_there(fleets: Fleets) -> None:
    """R-AS1, R-AS2: ten tasks follow, and five workers with two slots each are there when they come; the reason says why."""
    version = fleets.add_dag(fan(10))
    history(fleets, version, took_s=100.0)
    assert await grown(fleets, version, 50.0, target_load=1.0, up_load=1.0) == 5
    detail = fleets.detail("grow")
    assert detail["reason"].endswith("; 9 more slots needed within 60 s: 10 after d.first")
    assert detail["load"] == {"running": 1, "aside": 0, "waiting": 0, "expected": 9, "ready": 2, "out_of_service": 0}


@pytest.mark.parametrize(
    ("seconds", "policy"),
    [
        (10.0, {}),  # it ends later
        (500.0, {}),  # nobody knows when it ends
        (50.0, {"foresees": Foresees.TIMERS}),
        (50.0, {"forecast": 0.0}),
    ],
)
async def test_a_fleet_does_not_grow_for_what_comes_later_nor_when_it_does_not_look(
    fleets: Fleets, seconds: float, policy: dict[str, object]
) -> None:
    version = fleets.add_dag(fan(10))
    history(fleets, version, took_s=100.0)
    assert await grown(fleets, version, seconds, **policy) == 1


async def test_what_has_no_history_or_is_held_back_is_not_foreseen(fleets: Fleets) -> None:
    """R-AS1: a pool with one slot, a DAG that is off, tasks that have begun."""
    version = fleets.add_dag(fan(10))
    assert await grown(fleets, version, 50.0) == 1
    history(fleets, version, took_s=100.0)
    for change, back in (
        (
            "update concurrency_limit set capacity = used + 1 where kind = 'pool'",
            "update concurrency_limit set capacity = 100 where kind = 'pool'",
        ),
        ("update dag set is_paused = true", "update dag set is_paused = false"),
        ("update dag_run set cancelled_by = 'me' where state = 'running'", "update dag_run set cancelled_by = null"),
        ("update task_instance set state = 'success' where task_index > 0", "select 1"),
    ):
        fleets.conn.execute(change)
        steering, conn = await fleets.autoscaler(change)
        async with conn:
            fleets.lapse()
            await steering.loop(conn)
        assert fleets.replicas == 1, change
        fleets.conn.execute(back)


async def test_a_mapped_task_is_foreseen_as_large_as_it_was_last(fleets: Fleets) -> None:
    load = TaskSpec(task_id="load", operator="python", upstream=(0,), mapping=Mapping(inputs=(MapInput(name="x", task=0),)))
    version = fleets.add_dag(DagSpec(dag_id="d", tasks=(TaskSpec(task_id="first", operator="python"), load), max_active_tasks=100))
    history(fleets, version, took_s=100.0)
    fleets.conn.execute("insert into mapped_task (run_key, task_index, length) select run_key, 1, 16 from dag_run")
    assert await grown(fleets, version, 50.0, target_load=1.0, up_load=1.0) == 8
