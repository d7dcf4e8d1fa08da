"""What the web UI reads of DAGs: runs beside each other, the last runs of each, its code."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta

import pytest

from evenflow.api import limits
from evenflow.client.rest import RestClient
from evenflow.core.model import DagSpec, TaskSpec
from evenflow.errors import ApiRefused
from tests.api.world import World

FIRST = DagSpec(
    dag_id="d",
    tasks=(TaskSpec(task_id="a", operator="python"), TaskSpec(task_id="gone", operator="python", upstream=(0,))),
    tags=("sales",),
    owner="Ada",
)
SECOND = dataclasses.replace(
    FIRST, tasks=(TaskSpec(task_id="first", operator="python"), TaskSpec(task_id="a", operator="python", upstream=(0,)))
)


async def test_runs_of_several_versions_stand_in_one_grid(rest: RestClient, world: World) -> None:
    """The tasks are in the order of the newest version, and then those that only older ones have."""
    old = world.run(world.add_dag(FIRST), "old", state="success")
    new = world.run(world.add_dag(SECOND), "new")
    world.instance(old, 0, state="success")
    world.instance(old, 1, state="failed")
    world.instance(new, 0, state="running")
    grid = await rest.read_grid("d")
    assert (grid.tasks, grid.more) == (["first", "a", "gone"], False)
    assert [(run.run_id, run.version_number, run.states) for run in grid.runs] == [
        ("new", 2, {"running": [0], "none": [1]}),
        ("old", 1, {"success": [1], "failed": [2]}),
    ]


async def test_a_mapped_task_stands_in_each_state_of_its_instances(rest: RestClient, world: World) -> None:
    """Those that nobody has touched have no row, and are counted all the same."""
    run = world.run(world.add_dag())
    world.conn.execute("insert into mapped_task (run_key, task_index, length, virtual_state) values (%s, 1, 3, 'none')", [run])
    world.instance(run, 0, state="success")
    world.instance(run, 1, 0, state="success")
    world.instance(run, 1, 1, state="failed")
    (found,) = (await rest.read_grid("sales")).runs
    assert found.states == {"success": [0, 1], "failed": [1], "none": [1, 2]}


async def test_a_grid_has_as_many_runs_as_are_asked_for(rest: RestClient, world: World) -> None:
    version = world.add_dag(FIRST)
    for number in range(5):
        world.run(version, f"r{number}")
    grid = await rest.read_grid("d", limit=2, offset=1)
    assert ([run.run_id for run in grid.runs], grid.total, grid.more) == (["r3", "r2"], 5, True)
    with pytest.raises(ApiRefused, match="limit is at most 100"):
        await rest.read_grid("d", limit=101)
    with pytest.raises(ApiRefused, match="There is no DAG 'nope'"):
        await rest.read_grid("nope")


async def test_each_dag_of_a_list_has_its_last_runs_when_asked(rest: RestClient, world: World) -> None:
    version = world.add_dag(FIRST)
    for number in range(4):
        world.run(version, f"r{number}", state="success")
    (asked,) = (await rest.list_dags(recent=3)).items
    assert [(run.run_id, run.state) for run in asked.recent_runs] == [("r3", "success"), ("r2", "success"), ("r1", "success")]
    (other,) = (await rest.list_dags()).items
    assert other.recent_runs == []


@pytest.mark.parametrize(("search", "found"), [("D", ["d"]), ("sal", ["d", "sales"]), ("ADA", ["d"]), ("%", []), ("nope", [])])
async def test_dags_are_found_by_name_tag_and_owner(rest: RestClient, world: World, search: str, found: list[str]) -> None:
    world.add_dag(dataclasses.replace(FIRST, tags=("sales", "x")))
    world.add_dag(dataclasses.replace(FIRST, dag_id="sales", tags=(), owner="bob"))
    assert [dag.dag_id for dag in (await rest.list_dags(search=search)).items] == found


async def test_the_code_of_each_version_is_shown(rest: RestClient, world: World) -> None:
    """Its own file first; what is no text is named, and not shown."""
    world.add_dag(FIRST, {"z.py": b"x = 1\n", "a.py": b"import z\n", "b.bin": b"\xff\xfe"}, file="z.py")
    world.add_dag(SECOND, {"z.py": b"x = 2\n"})
    old, new = await rest.read_code("d", version=1), await rest.read_code("d")
    assert (old.version_number, old.file) == (1, "z.py")
    assert [(each.file, each.text) for each in old.files] == [("z.py", "x = 1\n"), ("a.py", "import z\n"), ("b.bin", None)]
    assert (new.version_number, new.files[0].text) == (2, "x = 2\n")
    with pytest.raises(ApiRefused, match="has no version 3"):
        await rest.read_code("d", version=3)


async def test_runs_of_a_year_are_counted_by_their_day(rest: RestClient, world: World) -> None:
    """By the logical date, which is not when they ran; what is older than a year is left out."""
    version = world.add_dag(FIRST)
    now = datetime.now(UTC).replace(hour=12)
    yesterday, old = now - timedelta(days=1), now - timedelta(days=400)
    took = {"started_at": now - timedelta(seconds=30), "ended_at": now}
    world.run(version, "good", state="success", logical_date=yesterday, **took)
    world.run(version, "bad", state="failed", logical_date=yesterday + timedelta(hours=1), started_at=now, ended_at=now)
    world.run(version, "now", state="running", logical_date=now)
    world.run(version, "old", state="success", logical_date=old, **took)
    calendar = await rest.read_calendar("d")
    assert not calendar.is_cut
    assert [(day.day, day.runs, day.success, day.failed, day.median_s, day.longest_s) for day in calendar.days] == [
        (f"{yesterday:%Y-%m-%d}", 2, 1, 1, 15.0, 30.0),
        (f"{now:%Y-%m-%d}", 1, 0, 0, None, None),
    ]


async def test_a_calendar_counts_the_newest_runs_alone_and_says_so(
    rest: RestClient, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "CALENDAR_RUNS", 2)
    version = world.add_dag(FIRST)
    for number in range(3):
        world.run(version, str(number))
    calendar = await rest.read_calendar("d")
    assert (sum(day.runs for day in calendar.days), calendar.is_cut) == (2, True)
