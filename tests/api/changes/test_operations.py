"""Clearing and marking over REST: what would be touched, what is left for the schedulers, what is refused, and history."""

from __future__ import annotations

import dataclasses

import pytest

from evenflow.client.rest import RestClient
from evenflow.errors import ApiRefused
from tests.api.world import SPEC, World


@pytest.fixture
def run_key(world: World) -> int:
    """extract and load have ended; of the three instances of clean only the first has a row."""
    run = world.run(world.add_dag())
    for task, map_index, state in ((0, -1, "success"), (1, 0, "failed"), (2, -1, "upstream_failed")):
        world.instance(run, task, map_index, state=state)
    world.conn.execute("insert into mapped_task (run_key, task_index, length, virtual_state) values (%s, 1, 3, 'skipped')", [run])
    return run


async def test_a_dry_run_says_what_would_be_touched(rest: RestClient, world: World, run_key: int) -> None:
    would = await rest.clear("sales", "r1", tasks=["clean"], downstream=True, dry_run=True)
    assert [(i.task_id, i.map_index, i.state) for i in would.instances] == [
        ("clean", 0, "failed"),
        ("clean", 1, "skipped"),
        ("clean", 2, "skipped"),
        ("load", -1, "upstream_failed"),
    ]
    assert (would.dry_run, would.runs, would.more, would.total, would.counted) == (True, ["r1"], False, 4, True)
    failed = await rest.clear("sales", "r1", only="failed", dry_run=True)
    assert [(i.task_id, i.map_index) for i in failed.instances] == [("clean", 0), ("load", -1)]
    assert world.one("select count(*) from report") == 0


async def test_it_leaves_word_for_the_schedulers(rest: RestClient, world: World, run_key: int) -> None:
    await rest.clear("sales", "r1", tasks=["clean"], map_indexes=[1], only="failed")
    await rest.mark("sales", "r1", state="success", tasks=["extract"], upstream=True)
    assert world.all("select kind::text, payload from report order by report_id") == [
        ("operate", world.one("select payload from report order by report_id limit 1")),
        ("operate", world.one("select payload from report order by report_id desc limit 1")),
    ]
    first, second = world.all("select payload from report order by report_id")
    assert (first["event"], first["actor"], first["tasks"], first["map_indexes"], first["only"]) == (
        "clear",
        "ada",
        ["clean"],
        [1],
        "failed",
    )
    assert (second["event"], second["upstream"]) == ("mark_success", True)


async def test_other_runs_of_the_dag(rest: RestClient, world: World) -> None:
    version = world.add_dag()
    for day in (1, 2, 3):
        key = world.run(version, f"r{day}", state="success")
        world.conn.execute("update dag_run set logical_date = %s, clears = 1 where run_key = %s", [f"2026-04-0{day} 00:00+00", key])
        world.instance(key, 0, state="success")
    assert (await rest.clear("sales", "r2", future=True, dry_run=True)).runs == ["r2", "r3"]
    assert (await rest.clear("sales", "r2", past=True, future=True)).runs == ["r2", "r1", "r3"]
    assert world.one("select count(*) from report") == 3


@pytest.mark.parametrize(
    ("scope", "status", "words"),
    [
        ({"tasks": ["nothing"]}, 404, "has no task 'nothing'"),
        ({"tasks": ["load"], "map_indexes": [0]}, 422, "is not mapped"),
        ({"map_indexes": [0]}, 422, "needs a task"),
        ({"only": "green"}, 422, "only"),
    ],
)
async def test_refusals(rest: RestClient, run_key: int, scope: dict[str, object], status: int, words: str) -> None:
    with pytest.raises(ApiRefused, match=words) as refused:
        await rest.clear("sales", "r1", **scope)
    assert refused.value.status == status


async def test_runs_that_cannot_be_touched(rest: RestClient, world: World) -> None:
    version = world.add_dag()
    world.run(version, "new", state="queued")
    ending = world.run(version, "ending")
    world.conn.execute("update dag_run set cancelled_by = 'bob' where run_key = %s", [ending])
    with pytest.raises(ApiRefused, match="has not begun"):
        await rest.clear("sales", "new")
    with pytest.raises(ApiRefused, match="is being cancelled"):
        await rest.clear("sales", "ending")


async def test_history(rest: RestClient, world: World, run_key: int) -> None:
    world.conn.execute(
        "insert into run_event (run_key, event, state, actor) values (%s, 'start', 'running', 'scheduler')", [run_key]
    )
    for event, detail in (("grant", None), ("clear", '{"actor": "ada"}')):
        world.conn.execute(
            "insert into task_event (run_key, task_index, map_index, epoch, try_number, event, state, detail)"
            " values (%s, 1, 0, 7, 1, %s, 'none', %s)",
            [run_key, event, detail],
        )
    (begun,) = (await rest.list_run_events("sales", "r1")).items
    assert (begun.event, begun.state, begun.actor) == ("start", "running", "scheduler")
    events = (await rest.list_task_events("sales", "r1", "clean", map_index=0)).items
    assert [(e.event, e.actor) for e in events] == [("grant", None), ("clear", "ada")]
    assert (await rest.list_task_events("sales", "r1", "clean", map_index=1)).items == []


async def test_a_run_is_deleted_with_all_that_there_is_of_it(rest: RestClient, world: World, run_key: int) -> None:
    with pytest.raises(ApiRefused, match="has not ended"):
        await rest.delete_run("sales", "r1")
    world.conn.execute(
        "insert into run_event (run_key, event, state, actor) values (%s, 'start', 'running', 'scheduler')", [run_key]
    )
    world.conn.execute("update dag_run set state = 'failed' where run_key = %s", [run_key])
    assert (await rest.delete_run("sales", "r1")).run_id == "r1"
    tables = world.all(
        "select table_name from information_schema.columns join information_schema.tables using (table_schema, table_name)"
        " where table_schema = 'public' and column_name = 'run_key' and table_type = 'BASE TABLE'"
    )
    left = {table: world.one(f"select count(*) from {table} where run_key = %s", run_key) for table in tables}
    assert {table: n for table, n in left.items() if n} == {}
    with pytest.raises(ApiRefused, match="has no run 'r1'"):
        await rest.delete_run("sales", "r1")


async def test_a_run_that_ended_before_it_began_is_cleared_as_a_whole(rest: RestClient, world: World) -> None:
    run = world.run(world.add_dag(), state="failed")
    world.conn.execute("update dag_run set cancelled_by = 'bob', started_at = null where run_key = %s", [run])
    would = await rest.clear("sales", "r1", only="failed", dry_run=True)
    assert [(i.task_id, i.state) for i in would.instances] == [("extract", "none"), ("clean", "none"), ("load", "none")]
    assert (await rest.clear("sales", "r1", only="running", dry_run=True)).instances == []
    with pytest.raises(ApiRefused, match=r"before it began: nothing can be marked\. To have it run: evenflow runs clear sales r1"):
        await rest.mark("sales", "r1", state="success")


async def test_a_rerun_of_a_cancelled_run_touches_what_never_ran(rest: RestClient, world: World) -> None:
    run = world.run(world.add_dag(), state="failed")
    world.conn.execute("update dag_run set cancelled_by = 'bob', started_at = now() where run_key = %s", [run])
    world.instance(run, 0, state="failed")
    world.instance(run, 2, state="skipped")
    world.conn.execute("update task_instance set try_number = 0, tries_before = 0 where task_index = 2")
    world.conn.execute("insert into mapped_task (run_key, task_index, length, virtual_state) values (%s, 1, 2, 'skipped')", [run])
    would = await rest.clear("sales", "r1", only="failed", dry_run=True)
    assert [(i.task_id, i.map_index) for i in would.instances] == [("extract", -1), ("clean", 0), ("clean", 1), ("load", -1)]
    world.conn.execute("update task_instance set reason = 'marked skipped by ada', ended_by = 'mark' where task_index = 2")
    would = await rest.clear("sales", "r1", only="failed", tasks=["extract", "load"], dry_run=True)
    assert [i.task_id for i in would.instances] == ["extract"]


async def test_what_a_run_that_is_marked_failed_would_touch(rest: RestClient, world: World, run_key: int) -> None:
    world.instance(run_key, 2, 0, state="running")
    would = await rest.mark("sales", "r1", state="failed", dry_run=True)
    assert [(i.task_id, i.state) for i in would.instances] == [("load", "running")]
    world.conn.execute("update dag_run set state = 'success' where run_key = %s", [run_key])
    assert (await rest.mark("sales", "r1", state="failed", dry_run=True)).instances == []
    world.conn.execute("update dag_run set state = 'failed', started_at = now() where run_key = %s", [run_key])
    with pytest.raises(ApiRefused, match="has ended already: failed"):
        await rest.mark("sales", "r1", state="failed")


async def test_a_mark_that_changes_nothing_says_so(rest: RestClient, world: World, run_key: int) -> None:
    """It is so already, or there is nothing that is meant; a run that was marked failed is taken back, and only the run changes."""
    world.instance(run_key, 0, state="success")
    done = await rest.mark("sales", "r1", state="success", tasks=["extract"])
    assert (done.already, done.instances) == (True, [])
    with pytest.raises(ApiRefused, match="To see those that it has: evenflow tasks list sales/r1"):
        await rest.mark("sales", "r1", state="success", tasks=["clean"], map_indexes=[9])
    world.instance(run_key, 2, state="skipped")
    world.conn.execute("delete from report")
    world.conn.execute("update dag_run set state = 'failed', started_at = now(), marked_failed_by = 'ada'")
    done = await rest.mark("sales", "r1", state="success")
    assert (done.already, done.instances, world.one("select count(*) from report")) == (False, [], 1)
    world.conn.execute("update task_instance set state = 'success'")
    world.conn.execute("update mapped_task set virtual_state = 'success'")
    world.conn.execute("update dag_run set state = 'success', reason = null")
    assert (await rest.mark("sales", "r1", state="success")).already


async def test_what_is_asked_for_twice_waits_once(rest: RestClient, world: World, run_key: int) -> None:
    """R-HA19."""
    for _ in range(2):
        await rest.clear("sales", "r1", tasks=["extract"])
    assert world.one("select count(*) from report") == 1
    await rest.clear("sales", "r1", tasks=["load"])
    assert world.one("select count(*) from report") == 2


async def test_what_many_runs_would_lose_is_one_question(rest: RestClient, world: World, run_key: int) -> None:
    """R-HA19: of a year of runs the first page is shown, in the order of the runs, and all are asked for in one statement."""
    version = world.one("select version_key from dag_run")
    world.conn.execute(
        "insert into dag_run (dag_id, run_id, version_key, run_type, state, run_after)"
        " select 'sales', 'y' || n, %s, 'manual', 'success', now() + n * interval '1 h' from generate_series(1, 3000) n",
        [version],
    )
    world.conn.execute(
        "insert into task_instance (run_key, task_index, state) select run_key, 0, 'success' from dag_run where run_id <> 'r1'"
    )
    answer = await rest.clear("sales", "r1", future=True)
    assert (len(answer.runs), len(answer.instances), answer.more) == (3001, 1000, True)
    assert (answer.total, answer.counted) == (3005, True)
    assert [i.run_id for i in answer.instances[:6]] == ["r1", "r1", "r1", "r1", "r1", "y1"]
    assert world.one("select count(*) from report") == 3001


async def test_how_many_is_told_up_to_a_bound(rest: RestClient, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-UX1: exactly where counting is cheap, else at least how many; of runs of several versions, too."""
    for dag_version in (world.add_dag(), world.add_dag(dataclasses.replace(SPEC, description="newer"))):
        key = world.run(dag_version, f"v{dag_version}", state="success")
        world.conn.execute(
            "insert into mapped_task (run_key, task_index, length, virtual_state) values (%s, 1, 60000, 'success')", [key]
        )
    first = world.one("select run_id from dag_run order by run_key limit 1")
    one = await rest.clear("sales", first, tasks=["clean"], dry_run=True)
    both = await rest.clear("sales", first, tasks=["clean"], past=True, future=True, dry_run=True)
    assert [(len(some.instances), some.total, some.counted) for some in (one, both)] == [
        (1000, 60_000, True),
        (1000, 100_000, False),
    ]
