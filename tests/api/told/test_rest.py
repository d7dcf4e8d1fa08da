"""REST: what people and tools see and ask for."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import aiohttp
import pytest

from evenflow.api.service import ApiService
from evenflow.client.rest import RestClient
from evenflow.contracts.rest.system import StartPace
from evenflow.core.model import DagSpec, RunParamSpec, Schedule, TaskSpec
from evenflow.errors import ApiRefused
from tests.api.world import SPEC, World
from tests.tokens import operator_token

SCHEDULED = DagSpec(
    dag_id="nightly",
    tasks=(TaskSpec(task_id="only", operator="python", display_name="The only one"),),
    display_name="Every night's news",
    owner_links={"ada": "mailto:ada@example.com"},
    schedule=Schedule(kind="cron", cron="0 3 * * *", timezone="Europe/Berlin"),
    params={
        "day": RunParamSpec(required=True, schema={"type": "string"}),
        "n": RunParamSpec(default=3, schema={"type": "integer"}),
    },
    tags=("a", "b"),
    owner="ada",
    description="Every night.",
    doc="# Long text",
    max_active_tasks=None,
)


@pytest.mark.parametrize(
    ("path", "body", "flaw"),
    [
        (
            "dags/sales/runs",
            '{"params": {"n": %s}}' % ("[" * 500 + "]" * 500),
            "The parameter 'n' is nested more than 32 levels deep",
        ),
        ("dags/sales/runs", '{"params": {"n": NaN}}', "The parameter 'n' holds nan"),
        ("dags/sales/runs", r'{"params": {"\ud800": 1}}', "holds half a character"),
        ("assets/events", r'{"asset": "x", "extra": {"n": "\ud800"}}', "The extra of the event holds half a character"),
        ("variables/v", r'{"value": "\ud800"}', "The variable 'v' holds half a character"),
    ],
)
async def test_what_could_not_be_shown_is_not_stored(
    api_url: str, operator_token: str, world: World, path: str, body: str, flaw: str
) -> None:
    """R-SE2: one such run would keep the list of all from being shown."""
    world.add_dag()
    header = {"Authorization": f"Bearer {operator_token}", "Content-Type": "application/json"}
    method = "PUT" if path.startswith("variables") else "POST"
    async with aiohttp.request(method, f"{api_url}/api/v1/{path}", data=body, headers=header) as answer:
        assert answer.status == 422
        assert flaw in (await answer.json())["detail"]
    assert world.one("select count(*) from dag_run") == 0


# -- DAGs --------------------------------------------------------------------------------------------------------------


async def test_dags_by_name_with_their_newest_run(rest: RestClient, world: World) -> None:
    world.add_dag(SCHEDULED)
    version = world.add_dag()
    world.run(version, "old", state="success")
    world.run(version, "new", state="failed")
    page = await rest.list_dags()
    assert (page.limit, page.next, page.more) == (100, None, False)
    nightly, sales = page.items
    assert (nightly.dag_id, nightly.schedule, nightly.timezone, nightly.tags, nightly.owner) == (
        "nightly",
        "0 3 * * *",
        "Europe/Berlin",
        ["a", "b"],
        "ada",
    )
    assert (nightly.description, nightly.last_run_id, nightly.last_run_state) == ("Every night.", None, None)
    assert (sales.dag_id, sales.schedule, sales.last_run_id, sales.last_run_state) == ("sales", None, "new", "failed")


async def test_retired_dags_show_only_when_asked_for(rest: RestClient, world: World) -> None:
    world.add_dag()
    world.conn.execute("update dag set is_active = false")
    assert (await rest.list_dags()).items == []
    assert [dag.is_active for dag in (await rest.list_dags(retired=True)).items] == [False]
    with pytest.raises(ApiRefused, match="does not define it any more") as refused:
        await rest.trigger_run("sales")
    assert refused.value.status == 409


async def test_pages(rest: RestClient, world: World) -> None:
    for number in range(5):
        world.add_dag(DagSpec(dag_id=f"dag{number}", tasks=SPEC.tasks[:1]))
    first = await rest.list_dags(limit=2)
    assert ([dag.dag_id for dag in first.items], first.more) == (["dag0", "dag1"], True)
    second = await rest.list_dags(limit=2, cursor=first.next)
    last = await rest.list_dags(limit=2, cursor=second.next)
    assert ([dag.dag_id for dag in last.items], last.more, last.next) == (["dag4"], False, None)
    with pytest.raises(ApiRefused, match=r"^limit is at most 1,000, not \d+$"):
        await rest.list_dags(limit=1_001)


async def test_a_dag_in_detail(rest: RestClient, world: World) -> None:
    world.add_dag(SCHEDULED)
    world.add_dag()
    nightly = await rest.get_dag("nightly")
    assert (nightly.doc, nightly.max_active_runs, nightly.max_active_tasks) == ("# Long text", 16, None)
    assert (nightly.display_name, nightly.tasks[0].display_name) == ("Every night's news", "The only one")
    assert nightly.owner_links == {"ada": "mailto:ada@example.com"}
    day, n = nightly.params
    assert (day.name, day.required, day.json_schema, n.default) == ("day", True, {"type": "string"}, 3)
    sales = await rest.get_dag("sales")
    assert (sales.display_name, sales.tasks[0].display_name, sales.owner_links) == ("sales", "extract", {})
    assert [(t.task_id, t.upstream, t.mapped, t.retries) for t in sales.tasks] == [
        ("extract", [], False, 2),
        ("clean", ["extract"], True, 0),
        ("load", ["extract", "clean"], False, 0),
    ]
    with pytest.raises(ApiRefused, match=r"There is no DAG 'nope'\. To see all, type: evenflow dags list") as refused:
        await rest.get_dag("nope")
    assert refused.value.status == 404


async def test_pausing_and_unpausing(rest: RestClient, world: World) -> None:
    world.add_dag(SCHEDULED)
    assert (await rest.set_paused("nightly", is_paused=True)).is_paused
    assert world.one("select is_paused from dag where dag_id = 'nightly'") is True
    world.conn.execute("update dag set next_run_at = now() - interval '40 days', next_logical = now() - interval '41 days'")
    dag = await rest.set_paused("nightly", is_paused=False)
    assert not dag.is_paused
    assert dag.next_run_at is not None
    assert dag.next_logical is not None
    assert datetime.now(UTC) - dag.next_run_at < timedelta(days=1), "without catchup the nights in between are passed over"
    assert dag.next_logical < dag.next_run_at


async def test_dates_that_count_as_done_get_no_run(rest: RestClient, world: World) -> None:
    """R-AF1: what another scheduler has run is not caught up with here."""
    world.add_dag(replace(SCHEDULED, catchup=True))
    until = datetime.now(UTC) - timedelta(days=3)
    dag = await rest.skip_dates("nightly", until=until)
    assert dag.next_logical is not None
    assert until < dag.next_logical <= until + timedelta(days=1), "the first date after it, also with catchup"
    assert (await rest.skip_dates("nightly", until=until - timedelta(days=9))).next_logical == dag.next_logical, "never back"
    all_done = await rest.skip_dates("nightly")
    assert all_done.next_run_at is not None
    assert all_done.next_run_at > datetime.now(UTC)
    with pytest.raises(ApiRefused, match="in the future"):
        await rest.skip_dates("nightly", until=datetime.now(UTC) + timedelta(days=1))


# -- triggering and cancelling -----------------------------------------------------------------------------------------


async def test_a_run_is_left_for_the_schedulers(rest: RestClient, world: World) -> None:
    world.add_dag(SCHEDULED)
    version = world.add_dag(SCHEDULED.__class__.from_json(SCHEDULED.to_json().replace("Every night", "Every  night")))
    world.conn.execute("listen inbox")
    run = await rest.trigger_run(
        "nightly", run_id="my run:1", params={"day": "mon"}, logical_date=datetime(2026, 1, 1, tzinfo=UTC), priority=7
    )
    assert (run.run_id, run.state, run.run_type, run.version_number, run.priority) == ("my run:1", "queued", "manual", 2, 7)
    assert run.params == {"day": "mon", "n": 3}
    assert run.logical_date == datetime(2026, 1, 1, tzinfo=UTC)
    assert world.one("select state::text, version_key, params from dag_run") == ("queued", version, {"day": "mon", "n": 3})
    assert world.one("select count(*) from task_instance") == 0
    assert len(list(world.conn.notifies(timeout=5, stop_after=1))) == 1
    assert (await rest.get_run("nightly", "my run:1")).tasks_by_state == {"none": 1}


async def test_a_run_has_a_name_of_its_own(rest: RestClient, world: World) -> None:
    world.add_dag()
    names = {(await rest.trigger_run("sales")).run_id for _ in range(5)}
    assert len(names) == 5
    assert all(name.startswith("manual__20") for name in names)
    name = names.pop()
    with pytest.raises(ApiRefused, match=r"has a run .* already") as refused:
        await rest.trigger_run("sales", run_id=name)
    assert refused.value.status == 409


@pytest.mark.parametrize("params", [{}, {"day": 7}, {"day": "mon", "other": 1}])
async def test_params_are_checked(rest: RestClient, world: World, params: dict[str, object]) -> None:
    world.add_dag(SCHEDULED)
    with pytest.raises(ApiRefused) as refused:
        await rest.trigger_run("nightly", params=params)
    assert refused.value.status == 422
    assert world.one("select count(*) from dag_run") == 0


@pytest.mark.parametrize("run_id", ["", "a/b", "x" * 251, " lead", "new\nline"])
async def test_run_ids_are_checked(rest: RestClient, world: World, run_id: str) -> None:
    world.add_dag()
    with pytest.raises(ApiRefused, match=r"^run_id has 1 to 250 characters, no slash, and no space but single ones inside, not "):
        await rest.trigger_run("sales", run_id=run_id)


async def test_cancelling_leaves_word_for_the_schedulers(rest: RestClient, world: World) -> None:
    run = world.run(world.add_dag())
    assert (await rest.cancel_run("sales", "r1")).state == "running"
    assert world.one("select run_key, kind::text, epoch, payload from report") == (run, "cancel", 0, {"actor": "ada"})
    assert world.one("select state::text from dag_run") == "running", "the API changes no state"
    world.conn.execute("update dag_run set state = 'success'")
    with pytest.raises(ApiRefused, match="has ended already: success") as refused:
        await rest.cancel_run("sales", "r1")
    assert refused.value.status == 409
    with pytest.raises(ApiRefused, match="has no run 'r2'"):
        await rest.cancel_run("sales", "r2")


async def test_a_cancel_says_what_it_touches_before_it_is_done(rest: RestClient, world: World) -> None:
    """In counts and names, as clears and marks say it, and nothing is changed."""
    version = world.add_dag()
    run = world.run(version)
    world.dispatch(run, 1)
    epoch = world.one("select epoch from dispatch")
    world.conn.execute(
        "insert into try_record (run_key, task_index, map_index, epoch, kind, try_number, value)"
        " select run_key, task_index, map_index, %s, 'spark_ui', try_number, %s from task_instance where task_index = 0",
        [epoch, json.dumps({"application_id": "app-7"})],
    )
    would = await rest.preview_cancel("sales", "r1")
    assert would.told == (
        "3 task instances of 1 run: 1 at work, killed; 2 waiting, never started. "
        "With them ends: Spark application app-7 of extract."
    )
    assert world.one("select count(*) from report") == 0
    every = await rest.cancel_runs("sales", state=None, dry_run=True)
    assert every.effect == would
    cleared = await rest.clear("sales", "r1", tasks=["extract"], dry_run=True)
    assert cleared.effect.told == (
        "1 task instance of 1 run: 1 at work, killed first. With them ends: Spark application app-7 of extract."
    )
    await rest.cancel_run("sales", "r1")
    assert world.one("select count(*) from report") == 1


async def test_all_runs_of_a_dag_are_cancelled_at_once(rest: RestClient, world: World) -> None:
    """R-HA19: one request, and what is asked twice is done once."""
    version, other = world.add_dag(), world.add_dag(SCHEDULED)
    world.run(other, "b")
    for run_id, state in (("q1", "queued"), ("q2", "queued"), ("r", "running"), ("s", "success")):
        world.run(version, run_id, state=state)
    assert (await rest.cancel_runs("sales", state=None, dry_run=True)).runs == 3
    assert (await rest.cancel_runs("sales", state="queued", dry_run=True)).runs == 2
    assert (await rest.cancel_runs("sales", state="queued")).runs == 2
    assert (await rest.cancel_runs("sales", state=None)).runs == 1
    again = await rest.cancel_runs("sales", state=None)
    assert (again.runs, again.more) == (0, False)
    await rest.cancel_run("sales", "r")
    assert world.one("select count(*), count(distinct run_key) from report") == (3, 3)
    with pytest.raises(ApiRefused, match="nothing"):
        await rest.cancel_runs("nothing", state=None)


# -- runs --------------------------------------------------------------------------------------------------------------


async def test_runs_newest_first_and_filtered(rest: RestClient, world: World) -> None:
    sales, other = world.add_dag(), world.add_dag(SCHEDULED)
    world.run(sales, "a", state="success")
    world.run(other, "b")
    world.run(sales, "c")
    assert [run.run_id for run in (await rest.list_runs()).items] == ["c", "b", "a"]
    assert [run.run_id for run in (await rest.list_runs(dag_id="sales")).items] == ["c", "a"]
    assert [run.run_id for run in (await rest.list_runs(dag_id="sales", state="success")).items] == ["a"]
    page = await rest.list_runs(limit=1)
    assert ([run.run_id for run in page.items], page.more) == (["c"], True)
    with pytest.raises(ApiRefused, match=r"^state is one of queued, running, success, failed, not 'sleeping'\.$"):
        await rest.list_runs(state="sleeping")


async def test_a_run_in_detail(rest: RestClient, world: World) -> None:
    """R-ST6: people see every instance, also those that have no row."""
    run = world.run(world.add_dag())
    world.conn.execute("update dag_run set started_at = now() - interval '9 seconds'")
    world.instance(run, 0, state="success")
    world.conn.execute("insert into mapped_task (run_key, task_index, length) values (%s, 1, 1000)", [run])
    world.dispatch(run, 7, task=1, map_index=4)
    world.instance(run, 1, 5, state="success")
    world.instance(run, 2, state="none")
    world.conn.execute(
        "insert into task_progress (run_key, task_index, map_index, epoch, payload) values (%s, 1, 4, 7, %s), (%s, 1, 5, 6, '{}')",
        [run, '{"label": "stage 1", "done": 3, "total": 9}', run],
    )
    detail = await rest.get_run("sales", "r1")
    assert detail.tasks_by_state == {"success": 2, "queued": 1, "scheduled": 998, "none": 1}
    assert (await rest.count_by_task("sales", "r1")).tasks == {
        "extract": {"success": 1},
        "clean": {"success": 1, "queued": 1, "scheduled": 998},
        "load": {"none": 1},
    }
    assert detail.elapsed_s is not None
    assert 9 <= detail.elapsed_s < 15
    (progress,) = detail.progress
    assert (progress.task_id, progress.map_index, progress.label, progress.done, progress.total) == ("clean", 4, "stage 1", 3, 9)
    world.conn.execute("update mapped_task set virtual_state = 'skipped'")
    assert (await rest.get_run("sales", "r1")).tasks_by_state["skipped"] == 998


async def test_tasks_of_a_run_untouched_ones_included(rest: RestClient, world: World) -> None:
    """R-ST6"""
    run = world.run(world.add_dag())
    world.instance(run, 0, state="success")
    world.conn.execute("insert into mapped_task (run_key, task_index, length) values (%s, 1, 5)", [run])
    world.dispatch(run, 7, task=1, map_index=2, tries=1)
    world.instance(run, 2, state="none", tries=0)
    page = await rest.list_tasks("sales", "r1")
    assert [(t.task_id, t.map_index, t.state, t.try_number) for t in page.items] == [
        ("extract", -1, "success", 1),
        ("clean", 0, "scheduled", 0),
        ("clean", 1, "scheduled", 0),
        ("clean", 2, "queued", 1),
        ("clean", 3, "scheduled", 0),
        ("clean", 4, "scheduled", 0),
        ("load", -1, "none", 0),
    ]
    first = await rest.list_tasks("sales", "r1", limit=3)
    part = await rest.list_tasks("sales", "r1", limit=2, cursor=first.next)
    assert ([t.map_index for t in part.items], part.more) == ([2, 3], True)
    waiting = await rest.list_tasks("sales", "r1", task_id="clean", state="scheduled")
    assert [t.map_index for t in waiting.items] == [0, 1, 3, 4]
    assert world.one("select count(*) from task_instance") == 3, "looking creates no rows"


async def test_tasks_of_a_run_that_has_not_begun(rest: RestClient, world: World) -> None:
    world.run(world.add_dag(), state="queued")
    tasks = (await rest.list_tasks("sales", "r1")).items
    assert [(t.task_id, t.map_index, t.state) for t in tasks] == [
        ("extract", -1, "none"),
        ("clean", -1, "none"),
        ("load", -1, "none"),
    ]
    assert (await rest.get_run("sales", "r1")).tasks_by_state == {"none": 3}
    assert (await rest.count_by_task("sales", "r1")).tasks == {}


# -- the system --------------------------------------------------------------------------------------------------------


async def test_status(rest: RestClient, world: World, worker: int, api: ApiService) -> None:
    run = world.run(world.add_dag())
    world.dispatch(run, 1)
    world.dispatch(run, 2, task=1, map_index=0, queue="big")
    world.conn.execute("update dispatch set worker_id = %s where epoch = 2", [worker])
    world.conn.execute("insert into report (run_key, kind, epoch, at) values (%s, 'exit', 1, now() - interval '4 seconds')", [run])
    world.conn.execute("update service set beat_at = now() - interval '20 seconds' where service_id = %s", [worker])
    status = await rest.get_status()
    assert [(s.kind, s.healthy, s.state) for s in status.services] == [("api", True, "active"), ("worker", False, "active")]
    assert status.services[1].beat_age_s > 19
    assert [(q.queue, q.waiting, q.running) for q in status.queues] == [("big", 0, 1), ("default", 1, 0)]
    assert status.queues[0].oldest_waiting_s is None
    assert status.queues[1].oldest_waiting_s is not None
    assert [q.trouble is None for q in status.queues] == [True, False], "the worker is silent, so none serves what waits"
    assert "Start one: evenflow worker --queues default" in (status.queues[1].trouble or "")
    assert status.missing == ["scheduler", "processor", "worker"]
    assert status.inbox == 1
    assert status.oldest_report_s is not None
    assert status.oldest_report_s > 3
    assert status.database.server_version.startswith("18")
    assert status.database.database_bytes > 1_000_000
    assert status.database.schema_version >= 1
    assert status.pace is None
    for name, pace in (("s1", '{"starts": 40, "late_s": 0.01}'), ("s2", '{"starts": 2, "late_s": 0.5}'), ("s3", '{"starts": 7}')):
        scheduler = world.service("scheduler", name)
        world.conn.execute(
            "update service set detail = jsonb_build_object('pace', %s::jsonb) where service_id = %s", [pace, scheduler]
        )
    world.conn.execute("update service set beat_at = now() - interval '20 seconds' where name = 's3'")
    assert (await rest.get_status()).pace == StartPace(starts=42, late_s=0.5), "of those that live"


async def test_health_needs_no_token(api_url: str) -> None:
    async with RestClient(api_url, "nothing") as anyone:
        assert await anyone.is_ready()


async def test_the_name_in_the_token_stands_in_the_history(api_url: str, world: World) -> None:
    world.run(world.add_dag())
    async with RestClient(api_url, operator_token(world.conn, name="bob")) as bob:
        await bob.cancel_run("sales", "r1")
    assert world.one("select payload ->> 'actor' from report") == "bob"


async def test_runs_by_their_date(rest: RestClient, world: World) -> None:
    """R-UX1: a name goes before a date; a day is one of UTC; a moment has its offset."""
    world.add_dag()
    for hour in (0, 18):
        await rest.trigger_run("sales", run_id=f"at {hour}", logical_date=datetime(2026, 3, 1, hour, tzinfo=UTC))
    await rest.trigger_run("sales", run_id="next", logical_date=datetime(2026, 3, 2, tzinfo=UTC))
    await rest.trigger_run("sales", run_id="2026-04-01")
    await rest.trigger_run("sales", run_id="else", logical_date=datetime(2026, 4, 1, tzinfo=UTC))

    async def of(name: str, dag_id: str | None = None) -> list[str]:
        return [run.run_id for run in (await rest.find_run(name, dag_id=dag_id)).items]

    assert await of("2026-03-01", "sales") == await of("2026-03-01") == ["at 0", "at 18"]
    assert await of("2026-03-01T19:00:00+01:00", "sales") == ["at 18"]
    assert await of("2026-03-02", "sales") == ["next"]
    assert await of("2026-04-01", "sales") == ["2026-04-01"]
    assert await of("2026-03-02", "other") == await of("2026-03-03") == await of("9999-12-31") == []


async def test_a_refused_file_may_define_what_is_asked_for(rest: RestClient, world: World) -> None:
    """R-UX1"""
    insert = "insert into dag_file (bundle, file, fingerprint, error) values ('main', %s, '1', %s)"
    world.conn.execute(insert, ["etl/attrok.py", "SyntaxError: invalid syntax"])
    world.conn.execute(insert, ["two.py", "The DAG 'second' has no task."])
    for dag_id, file in (("attrok", "etl/attrok.py"), ("second", "two.py")):
        with pytest.raises(
            ApiRefused,
            match=rf"no DAG '{dag_id}'\. The file {file}, which may define it, is refused: evenflow dags list says why\.",
        ):
            await rest.trigger_run(dag_id)
        with pytest.raises(ApiRefused, match=f"The file {file}, which may define it, is refused"):
            await rest.explain(dag_id, "r", "t")
    with pytest.raises(ApiRefused, match=r"There is no DAG 'first'\. To see all"):
        await rest.trigger_run("first")


async def test_a_date_in_place_of_a_run_is_answered_with_the_run_of_that_date(rest: RestClient, world: World) -> None:
    """R-UX1"""
    world.add_dag()
    for hour in (6, 18):
        await rest.trigger_run("sales", run_id=f"at {hour}", logical_date=datetime(2026, 3, 1, hour, tzinfo=UTC))
    with pytest.raises(ApiRefused, match=r"has no run '2026-03-01'\. Of that date it has 'at 6', 'at 18'\. To see its runs"):
        await rest.get_run("sales", "2026-03-01")
    with pytest.raises(ApiRefused, match=r"Of that date it has 'at 18'\. To see"):
        await rest.get_run("sales", "2026-03-01T19:00:00+01:00")
    for other in ("2026-03-02", "9999-12-31", "0001-01-01", "at 7"):
        with pytest.raises(ApiRefused, match=f"has no run '{other}'. To see its runs"):
            await rest.get_run("sales", other)
