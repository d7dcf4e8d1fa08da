"""What people ask the API for, as the scheduler carries it out, and as the API shows it then."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from evenflow.client.rest import RestClient, every
from evenflow.core.model import DagSpec, MapInput, Mapping, TaskSpec
from evenflow.scheduler.advance import advance
from evenflow.store.db.sql import sql
from tests.apis import running_api
from tests.scheduler.world import World
from tests.tokens import operator_token


@pytest.fixture
async def rest(world: World, database_url: str, tmp_path: Path) -> AsyncIterator[RestClient]:
    async with (
        running_api(database_url, tmp_path) as api,
        RestClient(f"http://127.0.0.1:{api.port}", operator_token(world.conn)) as client,
    ):
        yield client


def tasks(count: int, **fields: Any) -> tuple[TaskSpec, ...]:
    return tuple(TaskSpec(task_id=f"t{i}", operator="python", **fields) for i in range(count))


# -- the priority of a run ---------------------------------------------------------------------------------------------


async def test_a_run_of_higher_priority_overtakes_a_backlog(world: World, rest: RestClient) -> None:
    """R-ST3: the run's priority comes before that of the task."""
    await rest.set_pool("default_pool", slots=2)
    world.add_dag(DagSpec(dag_id="backlog", tasks=tasks(20, priority_weight=1_000), max_active_tasks=None))
    world.add_dag(DagSpec(dag_id="urgent", tasks=tasks(3, priority_weight=1), max_active_tasks=None))
    await rest.trigger_run("backlog", run_id="b")
    world.advance()
    await rest.trigger_run("urgent", run_id="u", priority=1)
    assert (await rest.get_run("urgent", "u")).priority == 1
    world.advance()
    names = dict(world.conn.execute("select run_key, run_id from dag_run").fetchall())
    order: list[str] = []
    for _ in range(7):
        (one,) = world.claim(1)
        order.append(names[one.run_key])
        world.report([one])
        world.advance()
    assert order == ["b", "u", "u", "u", "b", "b", "b"], "one ran; then the urgent run has what frees, at the workers too"
    world.audit()


async def test_a_run_of_lower_priority_gives_way(world: World, rest: RestClient) -> None:
    await rest.set_pool("default_pool", slots=0)
    for dag_id in ("first", "later"):
        world.add_dag(DagSpec(dag_id=dag_id, tasks=tasks(2), max_active_tasks=None))
    await rest.trigger_run("first", run_id="f", priority=-5)
    await rest.trigger_run("later", run_id="l")
    world.advance()
    await rest.set_pool("default_pool", slots=2)
    world.advance()
    started = {t.run_key for t in world.claim()}
    assert world.conn.execute("select run_id from dag_run where run_key = any(%s)", [list(started)]).fetchall() == [("l",)]


async def test_among_waiting_runs_of_a_dag_the_one_of_higher_priority_begins_first(world: World, rest: RestClient) -> None:
    """R-ST3, one level up: max_active_runs."""
    world.add_dag(DagSpec(dag_id="d", tasks=tasks(1), max_active_runs=1))
    for run_id, priority in (("a", 0), ("b", 0), ("urgent", 3), ("c", -1)):
        await rest.trigger_run("d", run_id=run_id, priority=priority)
        world.advance()
    ran = []
    while tries := world.claim(1):
        ran += [world.conn.execute("select run_id from dag_run where run_key = %s", [t.run_key]).fetchone()[0] for t in tries]
        world.report(tries)
        world.advance()
    assert ran == ["a", "urgent", "b", "c"]


# -- fast_follow -------------------------------------------------------------------------------------------------------


async def test_without_fast_follow_only_a_sweep_selects(world: World, rest: RestClient) -> None:
    """R-HA16: then what an event makes ready waits as a lane, what it frees as a wake; the end is the same."""

    def chain(dag_id: str) -> DagSpec:
        linked = (TaskSpec(task_id=f"t{i}", operator="python", upstream=(i - 1,) if i else ()) for i in range(3))
        return DagSpec(dag_id=dag_id, tasks=tuple(linked), max_active_tasks=1)

    def turn(*, sweep: bool) -> int:
        return advance(world.conn, world.catalog, sweep=sweep).starts

    for dag_id in ("with", "without"):
        world.add_dag(chain(dag_id))
    followed = world.trigger("with")
    assert turn(sweep=True) == 1
    while tries := world.claim():
        world.report(tries)
        turn(sweep=False)
    assert world.run_state(followed) == "success", "no sweep was needed"

    await rest.set_setting("fast_follow", value=False)
    left = world.trigger("without")
    assert (turn(sweep=False), turn(sweep=True)) == (0, 1)
    for last in (False, False, True):
        world.report(world.claim())
        assert turn(sweep=False) == 0
        lanes, wakes = world.conn.execute(
            "select (select count(*) from lane), (select count(*) from wake where released > 0)"
        ).fetchone()
        assert (lanes, wakes > 0) == (0 if last else 1, True)
        world.audit()
        assert turn(sweep=True) == (0 if last else 1)
    assert world.states(left) == world.states(followed)
    assert world.run_state(left) == "success"
    world.audit()


# -- a mapped task of 100,000 ------------------------------------------------------------------------------------------

LENGTH = 100_000


def mapped(dag_id: str, length: int) -> DagSpec:
    each = TaskSpec(task_id="each", operator="python", upstream=(0,), mapping=Mapping(inputs=(MapInput(name="x", length=length),)))
    last = TaskSpec(task_id="last", operator="python", upstream=(1,))
    return DagSpec(dag_id=dag_id, tasks=(*tasks(1), each, last), max_active_tasks=3)


def expand(world: World, dag_id: str, length: int) -> tuple[int, int]:
    """Runs the first task; answers the run, and how many statements the transaction took that expanded the second."""
    world.add_dag(mapped(dag_id, length))
    run = world.trigger(dag_id)
    world.advance()
    world.report(world.claim())
    execute, sent = world.conn.execute, []

    def counted(statement: Any, *arguments: Any, **options: Any) -> Any:
        sent.append(statement)
        return execute(statement, *arguments, **options)

    world.conn.execute = counted
    advance(world.conn, world.catalog)
    world.conn.execute = execute
    return run, len(sent)


def buffers(world: World, run: int, after: int, **filters: str | None) -> int:
    """What a page of 100 costs, behind an instance of the mapped task."""
    params = {"run_key": run, "task_id": None, "limit": 100, "after": f"[1, {after}]", **filters}
    statement = sql("views/list_tasks_in_state" if "state" in filters else "views/list_tasks")
    (plan,) = world.conn.execute(b"explain (analyze, buffers, format json) " + statement, params).fetchone()[0]
    return plan["Plan"]["Shared Hit Blocks"] + plan["Plan"]["Shared Read Blocks"]


@pytest.mark.system
async def test_a_mapped_task_of_100_000_is_one_item_and_people_see_every_instance(world: World, rest: RestClient) -> None:
    """R-ST6: nothing is written for an instance that waits, and every one is shown."""
    expand(world, "warm", 10)
    _, few = expand(world, "small", 10)
    run, many = expand(world, "large", LENGTH)
    assert many == few, "as many statements for 100,000 as for 10"
    rows = "select count(*), count(*) filter (where task_index = 1) from {} where run_key = %s"
    assert world.conn.execute(rows.format("task_instance"), [run]).fetchone() == (5, 3), "t0, three that started, last"
    assert world.conn.execute(rows.format("task_event"), [run]).fetchone()[1] == 3
    lanes = "select count(*), sum(ready), (select count(*) from ready_task join lane using (lane_id) where run_key = %s)"
    assert world.conn.execute(f"{lanes} from lane where run_key = %s", [run, run]).fetchone() == (1, LENGTH - 3, 0)
    world.report([t for t in world.claim() if t.run_key == run])
    world.advance()
    run_id = world.conn.execute("select run_id from dag_run where run_key = %s", [run]).fetchone()[0]
    seen = [(t.task_id, t.map_index, t.state) async for t in every(rest.list_tasks, "large", run_id, limit=1_000)]
    states = {0: "success", 1: "success", 2: "success", 3: "queued", 4: "queued", 5: "queued"}
    assert seen == [
        ("t0", -1, "success"),
        *(("each", index, states.get(index, "scheduled")) for index in range(LENGTH)),
        ("last", -1, "none"),
    ]
    waiting = every(rest.list_tasks, "large", run_id, state="scheduled", task_id="each", limit=1_000)
    assert [t.map_index async for t in waiting] == list(range(6, LENGTH))
    assert (await rest.get_run("large", run_id)).tasks_by_state == {"success": 4, "queued": 3, "scheduled": LENGTH - 6, "none": 1}
    world.audit()


def test_a_page_costs_the_same_wherever_it_is(world: World) -> None:
    """R-ST6: in buffers, which are what a page reads."""
    run, _ = expand(world, "large", LENGTH)
    world.conn.execute("analyze")
    for filters in ({}, {"state": "scheduled"}):
        first, last = buffers(world, run, 10, **filters), buffers(world, run, LENGTH - 100, **filters)
        assert max(first, last) <= 600, "a handful for each of a hundred"
        assert last <= first * 1.2
