"""DAG files: seen, leased, parsed; and what becomes of them."""

from __future__ import annotations

import asyncio
import dataclasses
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from evenflow.api import parsing
from evenflow.client.execution import ExecutionClient
from evenflow.client.rest import RestClient
from evenflow.core.model import DagSpec, DeadlineSpec, RetryRuleSpec, Schedule, TaskSpec
from evenflow.errors import ApiRefused
from evenflow.runtime.database_diagnosis import _wanted
from evenflow.runtime.findings import Severity
from evenflow.scheduler.duties.schedules import create_scheduled
from evenflow.store.db.sql import sql
from evenflow.store.scheduling.inbox import EXECUTOR_LOCK
from evenflow.store.serving.files import list_wanted
from evenflow.wire import messages as m
from evenflow.wire.code import pack
from tests.api.world import SPEC, World
from tests.waiting import until
from tests.world import CODE, CODE_HASH

pytestmark = pytest.mark.usefixtures("no_dag")

ONE = DagSpec(dag_id="one", tasks=(TaskSpec(task_id="a", operator="python", max_active_tis_per_dag=3),))
TWO = DagSpec(dag_id="two", tasks=(TaskSpec(task_id="a", operator="bash"),), max_active_runs=None)


async def see(processor: ExecutionClient, **files: str) -> None:
    seen = [m.FileSeen(file=f"{name}.py", fingerprint=fingerprint) for name, fingerprint in files.items()]
    await processor.files_seen(m.FilesSeen(bundle="main", files=seen))


async def lease(processor: ExecutionClient, limit: int = 10, lease_s: float = 60.0) -> list[str]:
    """By a processor that lives."""
    identity = m.Register(kind="processor", name="p", host="h", pid=1, version="0")
    service_id = (await processor.register(identity)).service_id
    answer = await processor.lease_files(m.FilesLease(service_id=service_id, bundles=["main"], limit=limit, lease_s=lease_s))
    return [leased.file for leased in answer.files]


async def parsed(processor: ExecutionClient, name: str, fingerprint: str, *specs: DagSpec | str, **other: object) -> m.ParsedAnswer:
    texts = [spec.to_json() if isinstance(spec, DagSpec) else spec for spec in specs]
    message = m.ParsedFile(
        bundle="main", file=f"{name}.py", fingerprint=fingerprint, seconds=0.1, specs=texts, **{"code_hash": CODE_HASH, **other}
    )
    return await processor.file_parsed(message)


@pytest.fixture(autouse=True)
async def _code(processor: ExecutionClient) -> None:
    await processor.put_code(CODE_HASH, pack(CODE))


# -- leasing -----------------------------------------------------------------------------------------------------------


async def test_files_are_leased_once_least_recently_parsed_first(processor: ExecutionClient, world: World) -> None:
    """R-HA8"""
    await see(processor, a="1", b="1", c="1", d="1")
    world.conn.execute("update dag_file set parsed = '1', parsed_at = now() where file = 'd.py'")
    world.conn.execute("update dag_file set parsed = '0', parsed_at = now() - interval '1 hour' where file = 'a.py'")
    world.conn.execute("update dag_file set parsed = '0', parsed_at = now() - interval '2 hours' where file = 'b.py'")
    assert await lease(processor, limit=2) == ["c.py", "b.py"]
    assert await lease(processor) == ["a.py"], "leased ones are skipped, and d.py has not changed"
    assert await lease(processor) == []
    world.conn.execute("update dag_file set lease_until = now() - interval '1 second' where file = 'b.py'")
    assert await lease(processor) == ["b.py"]


async def test_several_processors_share_the_files(processor: ExecutionClient) -> None:
    """R-HA8"""
    await see(processor, **{f"f{n}": "1" for n in range(60)})
    leased = [file for files in await asyncio.gather(*(lease(processor, limit=7) for _ in range(12))) for file in files]
    assert len(leased) == len(set(leased))
    assert len(leased) == 60


async def test_a_changed_file_is_leased_again(processor: ExecutionClient) -> None:
    await see(processor, a="1")
    assert await lease(processor) == ["a.py"]
    await parsed(processor, "a", "1", ONE)
    assert await lease(processor) == []
    await see(processor, a="2")
    assert await lease(processor) == ["a.py"]


async def test_a_file_that_ends_whoever_loads_it_is_broken(processor: ExecutionClient, world: World) -> None:
    """R-SE2: three leases without a result are one error, until the content changes. Who gives one back loses none."""
    over = "update dag_file set lease_until = now() - interval '1 second'"
    await see(processor, a="1", b="1")
    for _ in range(3):
        assert await lease(processor) == ["a.py", "b.py"]
        await parsed(processor, "b", "1")
        world.conn.execute("update dag_file set parsed = null where file = 'b.py'")
        world.conn.execute(over)
    assert await lease(processor) == ["b.py"]
    (error,) = world.all("select error from dag_file where file = 'a.py'")
    assert error == (
        "a.py was given to processors 3 times, and no result came of it: loading it may end whoever does. Change the file."
    )
    world.conn.execute(over)
    assert await lease(processor) == ["b.py"]
    await see(processor, a="2", b="1")
    assert await lease(processor) == ["a.py"]
    await parsed(processor, "a", "2", ONE)
    assert world.one("select error, leases from dag_file where file = 'a.py'") == (None, 0)


async def test_ids_that_two_files_want_are_listed(processor: ExecutionClient, world: World) -> None:
    """R-SE2: for ``evenflow doctor``, until one of them is renamed."""
    await see(processor, a="1", b="1")
    await parsed(processor, "a", "1", ONE)
    await parsed(processor, "b", "1", ONE, TWO)
    assert list_wanted(world.conn, limit=10) == [("one", "main", "b.py", "main", "a.py")]
    found = _wanted(world.conn, None)
    assert (found.verdict, found.found) == (Severity.WARN, "one is a.py (bundle main)'s, and b.py (bundle main) wants it")
    await see(processor, a="1", b="2")
    await parsed(processor, "b", "2", TWO)
    assert list_wanted(world.conn, limit=10) == []
    assert _wanted(world.conn, None).verdict is Severity.OK


# -- parsing -----------------------------------------------------------------------------------------------------------


async def test_a_file_becomes_dags_and_versions(processor: ExecutionClient, world: World) -> None:
    await see(processor, a="1")
    world.conn.execute("listen dag")
    world.conn.execute("listen inbox")
    assert await parsed(processor, "a", "1", ONE, TWO) == m.ParsedAnswer()
    assert {n.channel for n in world.conn.notifies(timeout=5, stop_after=2)} == {"dag", "inbox"}
    rows = world.all("select dag_id, version_number, spec_hash, code_hash, v.file from dag_version v order by dag_id")
    assert rows == [("one", 1, ONE.hash(), CODE_HASH, "a.py"), ("two", 1, TWO.hash(), CODE_HASH, "a.py")]
    assert world.all("select dag_id, task_index, task_id, operator from task join dag_version using (version_key) order by 1") == [
        ("one", 0, "a", "python"),
        ("two", 0, "a", "bash"),
    ]
    assert world.all("select dag_id, bundle, file, is_paused, is_active, next_run_at from dag order by dag_id") == [
        ("one", "main", "a.py", False, True, None),
        ("two", "main", "a.py", False, True, None),
    ]
    assert world.one("select parsed, parse_seconds, lease_until, error from dag_file") == ("1", pytest.approx(0.1), None, None)


async def test_the_same_result_twice_makes_one_version(processor: ExecutionClient, world: World) -> None:
    await see(processor, a="1")
    await asyncio.gather(*(parsed(processor, "a", "1", ONE) for _ in range(6)))
    assert world.one("select count(*) from dag_version") == 1
    changed = dataclasses.replace(ONE, description="new")
    await see(processor, a="2")
    await parsed(processor, "a", "2", changed)
    await see(processor, a="3")
    await parsed(processor, "a", "3", ONE)
    assert world.all("select version_number from dag_version order by 1") == [1, 2]
    assert world.one("select version_number from dag join dag_version using (version_key)") == 1, "back to what it was"


async def test_a_result_for_an_older_content_is_dropped(processor: ExecutionClient, world: World) -> None:
    await see(processor, a="2")
    assert await parsed(processor, "a", "1", ONE) == m.ParsedAnswer()
    assert await parsed(processor, "gone", "1", ONE) == m.ParsedAnswer()
    assert world.one("select count(*) from dag") == 0
    assert await lease(processor) == ["a.py"]


async def test_unknown_code_is_asked_for(processor: ExecutionClient, world: World) -> None:
    await see(processor, a="1")
    assert (await parsed(processor, "a", "1", ONE, code_hash="f" * 64)).need_code
    assert world.one("select count(*) from dag") == 0
    assert (await parsed(processor, "a", "1", ONE, code_hash=None)).errors
    assert world.one("select count(*) from dag") == 0


async def test_a_parse_error_is_kept_and_the_dags_stay(
    processor: ExecutionClient, world: World, api_url: str, operator_token: str
) -> None:
    await see(processor, a="1")
    await parsed(processor, "a", "1", ONE)
    await see(processor, a="2")
    await parsed(processor, "a", "2", error="Traceback\0 ...\nSyntaxError: no", error_line=7)
    assert world.one("select is_active from dag") is True
    async with RestClient(api_url, operator_token) as rest:
        (error,) = (await rest.list_parse_errors()).items
        assert (error.file, error.error, error.error_line) == ("a.py", "Traceback ...\nSyntaxError: no", 7)
        await see(processor, a="3")
        await parsed(processor, "a", "3", ONE)
        assert (await rest.list_parse_errors()).items == []


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("{", "cannot be read"),
        ("[]", "cannot be read"),
        ('{"format": 99}', "format 99 is not known here"),
        ('{"format": 1, "dag_id": 5, "tasks": []}', "cannot be read"),
        ('{"format": 1, "dag_id": "x", "tasks": [], "colour": 1}', "cannot be read"),
        ('{"format": 1, "dag_id": "a/b", "tasks": []}', "without '/'"),
        ('{"format": 1, "dag_id": "x\\u0000", "tasks": []}', "NUL"),
        ('{"format": 1, "dag_id": "x", "tasks": [], "start_date": "soon"}', "no ISO 8601 time"),
        ('{"format": 1, "dag_id": "x", "tasks": [], "start_date": "2026-01-01T00:00:00"}', "no UTC offset"),
        ('{"format": 1, "dag_id": "x", "tasks": [], "schedule": {"kind": "cron", "cron": "99 * * * *"}}', "99"),
        ('{"format": 1, "dag_id": "x", "tasks": [], "schedule": {"kind": "moon"}}', "schedule kind 'moon'"),
    ],
)
async def test_specs_that_make_no_sense(processor: ExecutionClient, world: World, spec: str, said: str) -> None:
    await see(processor, a="1")
    (error,) = (await parsed(processor, "a", "1", spec, TWO)).errors
    assert said in error
    assert world.all("select dag_id from dag") == ["two"], "the others of the file are stored"
    assert said in world.one("select error from dag_file")


@pytest.mark.parametrize(
    ("task", "said"),
    [
        ({"pool": "gpu"}, "there is no pool 'gpu'. Make it with: evenflow pools set gpu SLOTS"),
        (
            {"pool": "default_pol"},
            "there is no pool 'default_pol'. Did you mean 'default_pool'? Make it with: evenflow pools set default_pol SLOTS",
        ),
        ({"executor": "moon"}, "there is no executor 'moon'. Make it with: evenflow executors set moon --kind"),
        ({"upstream": (5,)}, "depends on a task that does not exist"),
        ({"upstream": (1,)}, "has a cycle"),
        ({"pool_slots": 0}, "pool_slots: 0 is not of at least 1"),
        ({"pool_slots": 2**40}, "pool_slots: 1,099,511,627,776 is above 2,147,483,647"),
        ({"retries": 40_000}, "retries: 40,000 is above 1,000"),
        ({"retry_delay": -1e300}, "retry_delay: -1e+300 is not from 0 to 86,400"),
        ({"retry_rules": (RetryRuleSpec(delay=-1e300),)}, "retry_rules, delay: -1e+300 is not from 0"),
        ({"outlets": ("\u4e2d" * 501,)}, "outlets: 1,503 bytes (limit 1,500)"),
        ({"callbacks": ("on_success_callback",) * 101}, "callbacks: 101 items (limit 60)"),
        ({"task_id": "last"}, "two tasks with one task_id"),
        ({"task_id": "x" * 251}, "251 characters (limit 250)"),
    ],
)
async def test_tasks_that_make_no_sense(processor: ExecutionClient, world: World, task: dict[str, object], said: str) -> None:
    await see(processor, a="1")
    first = TaskSpec(**{"task_id": "first", "operator": "python", **task})
    spec = DagSpec(dag_id="x", tasks=(first, TaskSpec(task_id="last", operator="python", upstream=(0,))))
    (error,) = (await parsed(processor, "a", "1", spec)).errors
    assert said in error
    assert world.one("select count(*) from dag") == 0


@pytest.mark.parametrize(
    ("dag", "said"),
    [
        ({"dagrun_timeout": 1e300}, "dagrun_timeout: 1e+300 is above 31,622,400"),
        ({"max_consecutive_failed_dag_runs": 2**40}, "max_consecutive_failed_dag_runs: 1,099,511,627,776 is above 1,000"),
        (
            {"deadlines": (DeadlineSpec(name="n", reference="queued_at", interval=1e300),)},
            "deadline 'n', interval: 1e+300 is above 31,622,400",
        ),
        (
            {"deadlines": (DeadlineSpec(name="n", reference="queued_at", callbacks=10**9),)},
            "deadline 'n', callbacks: 1,000,000,000 is above 10",
        ),
        (
            {"deadlines": (DeadlineSpec(name="n", reference="time_of_day", at="07:00", timezone="Mars/Base"),)},
            'the database cannot follow a deadline of it: time zone "Mars/Base" not recognized',
        ),
        ({"deadlines": (DeadlineSpec(name="n", reference="fixed_datetime", at="soon"),)}, "the database cannot follow a deadline"),
    ],
)
async def test_what_no_run_could_begin_with(processor: ExecutionClient, world: World, dag: dict[str, object], said: str) -> None:
    """What the database would refuse for each new run, in a transaction with the runs of others, comes no further than here."""
    await see(processor, a="1")
    tasks = (TaskSpec(task_id="a", operator="python"),)
    (error,) = (await parsed(processor, "a", "1", DagSpec(dag_id="x", tasks=tasks, **dag), TWO)).errors
    assert said in error
    assert world.all("select dag_id from dag") == ["two"]


async def test_forged_specs_are_errors_of_their_file(processor: ExecutionClient, world: World) -> None:
    """R-SE2. Each of these held an API server for ever, or was answered with a 500 that the processor sent again without end."""
    await see(processor, a="1")
    forged = (
        '{"format":1,"dag_id":"x","tasks":[],"groups":[{"group_id":"g","parent":0}]}',
        '{"format":1,"dag_id":"y","tasks":[],"schedule":{"kind":"delta","every_s":1e308}}',
        '{"format":1,"dag_id":"z","tasks":[],"start_date":"9999-12-31T00:00:00+00:00"}',
        "[" * 60_000 + "]" * 60_000,
    )
    answer = await parsed(processor, "a", "1", *forged, TWO)
    assert len(answer.errors) == len(forged)
    assert world.all("select dag_id from dag") == ["two"]
    assert world.one("select error from dag_file") == "\n".join(answer.errors)


async def test_no_file_defines_a_dag_of_evenflows_own(processor: ExecutionClient, world: World) -> None:
    """R-SE2. A file that did took over the callbacks of everybody."""
    await see(processor, a="1")
    own = dataclasses.replace(ONE, dag_id="evenflow_callbacks")
    (error,) = (await parsed(processor, "a", "1", own)).errors
    assert error.startswith("The DAG id 'evenflow_callbacks' begins with 'evenflow_', as those of Evenflow's own DAGs do.")
    assert world.one("select count(*) from dag") == 0


# -- whose DAG ---------------------------------------------------------------------------------------------------------


async def test_a_dag_belongs_to_one_file(processor: ExecutionClient, world: World) -> None:
    await see(processor, a="1", b="1")
    await parsed(processor, "a", "1", ONE)
    (error,) = (await parsed(processor, "b", "1", ONE, TWO)).errors
    assert error == "The DAG 'one' of b.py (bundle 'main') is already defined in a.py (bundle 'main'), which keeps it. Rename one."
    assert world.all("select dag_id, file from dag order by 1") == [("one", "a.py"), ("two", "b.py")]


async def test_two_files_that_claim_one_dag_at_once(processor: ExecutionClient, world: World) -> None:
    names = [f"f{n}" for n in range(8)]
    await see(processor, **dict.fromkeys(names, "1"))
    answers = await asyncio.gather(*(parsed(processor, name, "1", ONE) for name in names))
    assert sorted(len(answer.errors) for answer in answers) == [0, *[1] * 7]


@pytest.mark.parametrize("b_first", [True, False])
async def test_a_dag_moves_to_another_file(processor: ExecutionClient, world: World, b_first: bool) -> None:
    await see(processor, a="1", b="1")
    await parsed(processor, "a", "1", ONE)
    await parsed(processor, "b", "1", TWO)
    await see(processor, a="2", b="2")
    assert sorted(await lease(processor)) == ["a.py", "b.py"]
    for name in "ba" if b_first else "ab":
        await parsed(processor, name, "2", *([ONE, TWO] if name == "b" else []))
    for again in await lease(processor):
        assert (again, b_first) == ("b.py", True), "refused as long as a.py had it, it is parsed again"
        await parsed(processor, "b", "2", ONE, TWO)
    assert world.all("select dag_id, file, is_active from dag order by 1") == [("one", "b.py", True), ("two", "b.py", True)]
    assert world.one("select count(*) from dag_file where error is not null") == 0


async def test_a_dag_stays_its_bundles_until_an_operator_gives_it_away(
    processor: ExecutionClient, world: World, api_url: str, operator_token: str
) -> None:
    """R-SE2, R-SE5. Secrets are allowed by id: whoever waits for the file to be gone for a moment gets nothing."""

    async def parsed_in(bundle: str, fingerprint: str) -> list[str]:
        seen = m.FileSeen(file="one.py", fingerprint=fingerprint)
        await processor.files_seen(m.FilesSeen(bundle=bundle, files=[seen]))
        message = m.ParsedFile(
            bundle=bundle, file="one.py", fingerprint=fingerprint, seconds=0.1, specs=[ONE.to_json()], code_hash=CODE_HASH
        )
        return (await processor.file_parsed(message)).errors

    assert await parsed_in("payroll", "1") == []
    await processor.files_seen(m.FilesSeen(bundle="payroll", files=[]))
    (error,) = await parsed_in("mine", "1")
    assert error.endswith("which keeps it. Rename one, or give it away: evenflow dags release one --to mine.")
    assert world.one("select bundle from dag") == "payroll"
    async with RestClient(api_url, operator_token) as rest:
        assert (await rest.release_dag("one", bundle="mine")).bundle == "mine"
    assert await lease(processor) == []
    assert await parsed_in("mine", "2") == []
    assert world.all("select bundle, file, is_active from dag") == [("mine", "one.py", True)]
    assert world.all("select bundle from dag_version order by version_number") == ["payroll", "mine"], "no bundle runs as the other"
    assert world.all("select action, object from audit_event where action like 'dag.%%'") == [("dag.release", "one")]
    assert (await parsed_in("payroll", "2"))[0].startswith("The DAG 'one' of one.py (bundle 'payroll') is already defined")


async def test_a_move_stands_in_the_audit(processor: ExecutionClient, world: World) -> None:
    """R-SE5. Within a bundle a DAG moves as its author likes."""
    await see(processor, a="1")
    await parsed(processor, "a", "1", ONE)
    await see(processor, b="1")
    assert (await parsed(processor, "b", "1", ONE)).errors == []
    (detail,) = world.all("select detail from audit_event where action = 'dag.move' and object = 'one'")
    assert detail == {"from_bundle": "main", "from_file": "a.py", "bundle": "main", "file": "b.py"}


async def test_no_bundle_is_called_evenflow(processor: ExecutionClient, world: World) -> None:
    """R-SE2. What is in it stands in no list of DAGs."""
    with pytest.raises(ApiRefused, match="No bundle is called 'evenflow'"):
        await processor.files_seen(m.FilesSeen(bundle="evenflow", files=[]))


async def test_dags_of_a_file_that_is_gone_are_retired(processor: ExecutionClient, world: World) -> None:
    await see(processor, a="1", b="1")
    await parsed(processor, "a", "1", ONE)
    await parsed(processor, "b", "1", TWO)
    await see(processor, b="1")
    assert world.all("select dag_id, is_active from dag order by 1") == [("one", False), ("two", True)]
    assert world.all("select file from dag_file") == ["b.py"]
    await see(processor, a="1", b="1")
    await parsed(processor, "a", "1", ONE)
    assert world.all("select is_active from dag") == [True, True]


async def test_a_dag_that_its_file_defines_no_more_is_retired(processor: ExecutionClient, world: World) -> None:
    await see(processor, a="1")
    await parsed(processor, "a", "1", ONE, TWO)
    await see(processor, a="2")
    await parsed(processor, "a", "2", TWO)
    assert world.all("select dag_id, is_active from dag order by 1") == [("one", False), ("two", True)]


# -- pausing, schedules, limits ----------------------------------------------------------------------------------------


async def test_pausing_is_the_operators_after_the_first_time(processor: ExecutionClient, world: World) -> None:
    await see(processor, a="1")
    await parsed(processor, "a", "1", dataclasses.replace(ONE, is_paused_upon_creation=True))
    assert world.one("select is_paused from dag where dag_id = 'one'") is True
    world.conn.execute("update dag set is_paused = false")
    await see(processor, a="2")
    await parsed(processor, "a", "2", dataclasses.replace(ONE, is_paused_upon_creation=True, description="x"))
    assert world.one("select is_paused from dag where dag_id = 'one'") is False


async def test_new_dags_are_paused_where_that_is_set(
    processor: ExecutionClient, world: World, api_url: str, operator_token: str
) -> None:
    """The setting counts when a DAG is seen first, and what the DAG says outweighs it."""
    eager = dataclasses.replace(TWO, dag_id="eager", is_paused_upon_creation=False)
    await see(processor, a="1")
    await parsed(processor, "a", "1", ONE)
    async with RestClient(api_url, operator_token) as rest:
        await rest.set_setting("dags_are_paused_at_creation", value=True)
        await see(processor, a="2")
        await parsed(processor, "a", "2", ONE, TWO, eager)
        expected = [("eager", False), ("one", False), ("two", True)]
        assert world.all("select dag_id, is_paused from dag order by 1") == expected
        await rest.set_paused("two", is_paused=False)
        await see(processor)
        await see(processor, a="3")
        await parsed(processor, "a", "3", dataclasses.replace(TWO, description="x"))
        assert world.one("select is_paused from dag where dag_id = 'two'") is False, "it comes back as it was"
        await rest.unset_setting("dags_are_paused_at_creation")
        await see(processor, a="4")
        await parsed(processor, "a", "4", dataclasses.replace(ONE, dag_id="late"))
    assert world.one("select is_paused from dag where dag_id = 'late'") is False


async def test_a_schedule_says_when_the_next_run_is_due(processor: ExecutionClient, world: World) -> None:
    hourly = dataclasses.replace(ONE, schedule=Schedule(kind="cron", cron="0 * * * *"))
    await see(processor, a="1")
    await parsed(processor, "a", "1", hourly)
    due, logical = world.one("select next_run_at, next_logical from dag where dag_id = 'one'")
    assert due - logical == timedelta(hours=1)
    assert timedelta(0) <= datetime.now(UTC) - due < timedelta(hours=1), "the newest interval that has ended"
    create_scheduled(world.conn)
    world.conn.execute("delete from dag_run")  # as retention and people do
    await see(processor, a="2")
    await parsed(processor, "a", "2", dataclasses.replace(hourly, description="x"))
    goes_on = logical + timedelta(hours=1)
    assert world.one("select next_logical from dag where dag_id = 'one'") == goes_on, "its runs go on where they were"
    await see(processor, a="3")
    await parsed(processor, "a", "3", ONE)
    assert world.one("select next_run_at, next_logical from dag where dag_id = 'one'") == (None, None)


async def test_a_dag_that_comes_back_goes_on_where_it_was(
    processor: ExecutionClient, world: World, api_url: str, operator_token: str
) -> None:
    """R-HA20: its file was gone for a while, people paused it, and the default time zone is another one."""
    hourly = dataclasses.replace(ONE, schedule=Schedule(kind="cron", cron="0 * * * *", trigger=True))
    await see(processor, a="1")
    await parsed(processor, "a", "1", hourly)
    world.conn.execute("update dag set next_run_at = now() - interval '1 hour', first_seen_at = now() - interval '1 day'")
    create_scheduled(world.conn)
    made = world.one("select logical_date from dag_run where dag_id = 'one'")
    world.conn.execute("delete from dag_run")
    query = "select last_logical, next_logical - last_logical from dag where dag_id = 'one'"
    await see(processor)
    await see(processor, a="2")
    await parsed(processor, "a", "2", hourly)
    assert world.all(query) == [(made, timedelta(hours=1))]
    async with RestClient(api_url, operator_token) as rest:
        await rest.set_paused("one", is_paused=True)
        await rest.set_paused("one", is_paused=False)
        assert world.all(query) == [(made, timedelta(hours=1))]
        await rest.set_setting("default_timezone", value="Asia/Kolkata")
    indian = dataclasses.replace(hourly, default_timezone="Asia/Kolkata")
    indian = dataclasses.replace(indian, schedule=dataclasses.replace(hourly.schedule, timezone="Asia/Kolkata"))
    assert (await parsed(processor, "a", "2", indian)).errors == []
    assert world.all(query) == [(made, timedelta(minutes=30))], "the ticks of that zone are half an hour apart from the others"
    create_scheduled(world.conn)
    assert world.one("select count(*) from dag_run where dag_id = 'one' and logical_date <= %s", made) == 0


async def test_limits_follow_the_newest_version(processor: ExecutionClient, world: World) -> None:
    def limits() -> list[tuple[str, str, int]]:
        return world.all(
            "select kind::text, name, capacity from concurrency_limit where kind in ('dag_task', 'dag_runs') order by 1, 2"
        )

    def task(limit: int | None) -> tuple[TaskSpec, ...]:
        return (TaskSpec(task_id="a", operator="python", max_active_tis_per_dag=limit),)

    await see(processor, a="1")
    await parsed(processor, "a", "1", ONE, TWO, SPEC)
    assert limits() == [("dag_runs", "one", 16), ("dag_runs", "sales", 16), ("dag_task", "one/a", 3)]
    world.conn.execute("update concurrency_limit set used = 2 where name = 'one/a'")
    world.run(world.one("select version_key from dag where dag_id = 'two'"))
    await see(processor, a="2")
    await parsed(
        processor,
        "a",
        "2",
        dataclasses.replace(ONE, tasks=task(2), max_active_runs=None),
        dataclasses.replace(TWO, max_active_runs=4),
    )
    assert limits() == [
        ("dag_runs", "one", 2**31 - 1),
        ("dag_runs", "sales", 16),
        ("dag_runs", "two", 4),
        ("dag_task", "one/a", 2),
    ]
    assert world.one("select used from concurrency_limit where name = 'two'") == 1, "a new limit counts the runs that run"
    assert world.all("select name, released from wake join concurrency_limit using (limit_id)") == [("one", 0)]
    world.conn.execute("delete from wake")
    await see(processor, a="3")
    await parsed(processor, "a", "3", dataclasses.replace(ONE, tasks=task(None)))
    assert world.one("select capacity, used from concurrency_limit where name = 'one/a'") == (2**31 - 1, 2)
    assert world.all("select name, released from wake join concurrency_limit using (limit_id)") == [("one/a", 0)]


def many(number: int, **limits: int) -> list[DagSpec]:
    return [DagSpec(dag_id=f"d{n}", tasks=(TaskSpec(task_id="a", operator="python"),), **limits) for n in range(number)]


def run_limits(world: World) -> list[int]:
    return world.all("select distinct capacity from concurrency_limit where kind = 'run'")


async def begin_runs(processor: ExecutionClient, world: World, number: int) -> None:
    """A run of each, with its limit, as a scheduler makes them."""
    await see(processor, a="1")
    await parsed(processor, "a", "1", *many(number, max_active_tasks=4))
    for version_key in world.all("select version_key from dag where dag_id ~ '^d[0-9]'"):
        run_key = world.run(version_key)
        world.conn.execute("insert into concurrency_limit (kind, run_key, name, capacity) values ('run', %s, '', 4)", [run_key])
    await see(processor, a="2")


async def test_the_executors_lock_is_held_for_one_statement(
    processor: ExecutionClient, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-HA19: however many DAGs of a file have other limits now, schedulers wait for one statement, after all that stores them."""
    await begin_runs(processor, world, 30)
    said: list[tuple[int, bytes]] = []
    execute = psycopg.AsyncCursor.execute

    async def recorded(cursor: Any, query: Any, *args: Any, **named: Any) -> Any:
        said.append((cursor.connection.info.backend_pid, query))
        return await execute(cursor, query, *args, **named)

    monkeypatch.setattr(psycopg.AsyncCursor, "execute", recorded)
    await parsed(processor, "a", "2", *many(30, max_active_tasks=2))
    at = [number for number, (_, query) in enumerate(said) if query == sql("dags/lock_executor")]
    assert len(at) == 1
    after = [query for pid, query in said[at[0] + 1 :] if pid == said[at[0]][0] and query != sql("tokens/read_keys")]
    assert after == [sql("dags/compare_limits")], "but for what the API looks at now and then over the same connection"
    assert sum(query == sql("dags/upsert") for _, query in said[: at[0]]) == 30
    assert run_limits(world) == [2]


async def test_nobody_waits_for_the_executors_lock_while_dags_are_stored(
    processor: ExecutionClient, world: World, database_url: str
) -> None:
    """R-HA19: while a scheduler keeps its lock the DAGs are stored already, and the file counts as parsed when their limits are."""
    await begin_runs(processor, world, 3)
    with psycopg.connect(database_url) as scheduler:
        scheduler.execute("select pg_advisory_xact_lock(%s)", [EXECUTOR_LOCK])
        storing = asyncio.create_task(parsed(processor, "a", "2", *many(3, max_active_tasks=2)))
        waiting = "select count(*) from pg_locks where locktype = 'advisory' and not granted"
        await until(lambda: world.one(waiting) == 1, "the API waits for the scheduler")
        newest = "select count(*) from dag join dag_version using (version_key) where spec::text like %s"
        assert world.one(newest, '%"max_active_tasks": 2%') + world.one(newest, '%"max_active_tasks":2%') == 3
        assert (run_limits(world), world.one("select parsed from dag_file")) == ([4], "1")
    await storing
    assert (run_limits(world), world.one("select parsed from dag_file")) == ([2], "2")


async def test_a_file_whose_limits_could_not_change_is_delivered_again(
    processor: ExecutionClient, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-HA19: who dies between DAGs and their limits leaves a file that is not parsed, so it is leased again."""
    await begin_runs(processor, world, 3)
    assert await lease(processor) == ["a.py"]

    async def die(*_: Any) -> None:
        raise ConnectionResetError("the server went away")

    with monkeypatch.context() as broken:
        broken.setattr(parsing, "change_limits", die)
        with pytest.raises(ApiRefused, match="failed at this request"):
            await parsed(processor, "a", "2", *many(3, max_active_tasks=2))
    assert (run_limits(world), world.one("select parsed from dag_file")) == ([4], "1")
    world.conn.execute("update dag_file set lease_until = now() - interval '1 second'")
    assert await lease(processor) == ["a.py"]
    await parsed(processor, "a", "2", *many(3, max_active_tasks=2))
    assert (run_limits(world), world.one("select parsed from dag_file")) == ([2], "2")
    assert await lease(processor) == []


async def test_a_file_that_changes_before_its_limits_do_is_parsed_anew(
    processor: ExecutionClient, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-HA19: limits of an older content never come after a newer one was seen."""
    await begin_runs(processor, world, 1)
    looks = 0
    outdated = parsing._outdated

    async def late(*args: Any) -> Any:
        nonlocal looks
        looks += 1
        if looks == 2:
            await see(processor, a="3")
        return await outdated(*args)

    with monkeypatch.context() as slow:
        slow.setattr(parsing, "_outdated", late)
        await parsed(processor, "a", "2", *many(1, max_active_tasks=2))
    assert (looks, run_limits(world), world.one("select parsed from dag_file")) == (2, [4], "1")
    await parsed(processor, "a", "3", *many(1, max_active_tasks=7))
    assert (run_limits(world), world.one("select parsed from dag_file")) == ([7], "3")
