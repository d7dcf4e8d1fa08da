"""Connections and variables by REST: sealed at rest, masked when shown, their keys changed."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from evenflow.api import limits
from evenflow.api.vault import Vault
from evenflow.client.execution import ExecutionClient
from evenflow.client.rest import RestClient
from evenflow.core.ending import Ending
from evenflow.errors import ApiRefused, StaleEpoch
from evenflow.store.serving.sealed import ONCE, WAITING
from evenflow.wire import messages as m
from evenflow.wire import questions as q
from tests.api.world import World

URI = "postgresql://me:open-sesame@db:5433/sales?api_key=hush-hush&sslmode=require"


async def test_a_connection_is_sealed_and_shown_without_its_secrets(rest: RestClient, world: World, tmp_path: Path) -> None:
    stored = await rest.set_connection("warehouse", uri=URI, description="the big one")
    assert stored.uri == "postgresql://me:***@db:5433/sales?api_key=***&sslmode=require"
    assert (stored.conn_type, stored.login, stored.host, stored.port, stored.schema_) == ("postgres", "me", "db", 5433, "sales")
    assert (stored.changed_by, stored.dags) == ("ada", [])
    assert (await rest.get_connection("warehouse", reveal=True)).uri == URI
    assert [c.uri for c in (await rest.list_connections()).items] == [stored.uri]
    sealed = bytes(world.one("select sealed from sealed_value where kind = 'connection'"))
    assert b"open-sesame" not in sealed
    assert (tmp_path / "secrets.key").stat().st_mode & 0o777 == 0o600
    allowed = await rest.set_connection("warehouse", dags=["sales_*"])
    assert (allowed.dags, allowed.description, allowed.uri) == (["sales_*"], "the big one", stored.uri)
    with pytest.raises(ApiRefused, match=r"no connection 'warehose' in the database\. Did you mean 'warehouse'\?"):
        await rest.get_connection("warehose")
    await rest.delete_connection("warehouse")
    with pytest.raises(ApiRefused, match="no connection 'warehouse'"):
        await rest.get_connection("warehouse")


async def test_who_was_shown_a_secret_is_told(rest: RestClient, world: World) -> None:
    """R-SE5: of what was shown, not of what was looked at without its secrets, nor of what is not there."""
    await rest.set_connection("warehouse", uri=URI)
    await rest.set_variable("db_password", value="tiny")
    await rest.get_connection("warehouse")
    await rest.get_connection("warehouse", reveal=True)
    await rest.get_variable("db_password", reveal=True)
    with pytest.raises(ApiRefused):
        await rest.get_variable("missing", reveal=True)
    read = "select actor, action, object from audit_event where action like '%%.read' order by event_id"
    assert world.all(read) == [("ada", "connection.read", "warehouse"), ("ada", "variable.read", "db_password")]


@pytest.mark.parametrize(
    ("name", "uri"),
    [
        ("a b", "x://me:open-sesame@y"),
        ("c" * 251, "x://me:open-sesame@y"),
        ("ok", "postgresql://me:open-sesame@host:port/x"),
        ("ok", '{"conn_type": "x", "password": "open-sesame"'),
    ],
)
async def test_what_cannot_be_stored_is_refused_without_showing_it(
    rest: RestClient, world: World, caplog: pytest.LogCaptureFixture, name: str, uri: str
) -> None:
    """R-SE1"""
    with pytest.raises(ApiRefused) as refused:
        await rest.set_connection(name, uri=uri)
    assert refused.value.status == 422
    assert "open-sesame" not in str(refused.value) + caplog.text
    assert world.all("select name from sealed_value where kind = 'connection'") == []


async def test_a_connection_says_something(rest: RestClient) -> None:
    with pytest.raises(ApiRefused, match=r"The connection 'ok' is empty\. Write a URI"):
        await rest.set_connection("ok", uri="")


@pytest.mark.parametrize("name", ["my conn", " conn", "conn\n", "c\x07", "c" * 251])
async def test_the_name_of_a_connection_says_what_is_allowed(rest: RestClient, name: str) -> None:
    """R-CS10"""
    with pytest.raises(ApiRefused, match=r"has 1 to 250 characters: letters, digits and any of _ - \. : # ! \( \); '.*' is none"):
        await rest.set_connection(name, uri=URI)
    for fine in ("aws:default", "Größe.2", "a-b_c#!(1)"):
        await rest.set_connection(fine, uri=URI)


async def test_variables(rest: RestClient) -> None:
    await rest.set_variable("region", value="eu")
    await rest.set_variable("db_password", value="tiny")
    await rest.set_variable("settings", value='{"rows": 1, "token": "abcdefgh"}')
    shown = {v.name: v.value for v in (await rest.list_variables()).items}
    assert shown == {"region": "eu", "db_password": "***", "settings": '{"rows": 1, "token": "***"}'}
    assert (await rest.get_variable("db_password", reveal=True)).value == "tiny"
    with pytest.raises(ApiRefused, match="65,536"):
        await rest.set_variable("big", value="x" * 70_000)


async def test_rotation_seals_everything_anew(rest: RestClient, world: World, tmp_path: Path) -> None:
    await rest.set_variable("a", value="1")
    await rest.set_connection("c", uri=URI)
    keys, seals = (tmp_path / "secrets.key").read_text().split(), world.all("select sealed from sealed_value order by name")
    assert (await rest.rotate_secrets()).resealed == 2
    rotated = (tmp_path / "secrets.key").read_text().split()
    assert len(rotated) == 2
    assert rotated[1] == keys[0]
    assert world.all("select sealed from sealed_value order by name") != seals
    assert (await rest.rotate_secrets()).resealed == 2
    assert keys[0] not in (tmp_path / "secrets.key").read_text()
    assert (await rest.get_connection("c", reveal=True)).uri == URI


async def test_rotation_strands_nothing_that_waits(rest: RestClient, world: World, tmp_path: Path) -> None:
    """Only two keys are kept, and a task may wait for longer than until the second rotation."""
    vault = Vault(tmp_path / "secrets.key")
    run = world.run(world.add_dag())
    world.conn.execute(
        "insert into deferral (run_key, task_index, map_index, epoch, queue, trigger, sealed, holds, pool_slots, retake,"
        " retake_slots, began_at, ran_s, ready_at, event)"
        " select %s, 0, n, n, 'default', 't', %s, '{}', 0, '{}', 0, now(), 0, now(), e"
        " from unnest(array[1, 2], array[%s, null]::bytea[]) as x (n, e)",
        [run, vault.seal(WAITING, str(run), "said"), vault.seal(WAITING, str(run), "event")],
    )
    world.conn.execute(
        "insert into once_value (run_key, task_index, map_index, name, sealed, epoch) values (%s, 0, -1, 'a', %s, 1)",
        [run, vault.seal(ONCE, f"{run}/a", "kept")],
    )
    for kind, path in (
        ("exit", '{"outcome": "deferred", "defer": {"queue": "q", "sealed": %s}}'),
        ("event", '{"what": "event", "event": %s}'),
    ):
        text = json.dumps(base64.b64encode(vault.seal(WAITING, str(run), f"{kind} in quarantine")).decode())
        world.conn.execute(
            "insert into report (run_key, kind, epoch, payload, held) values (%s, %s, 9, %s, true)", [run, kind, path % text]
        )
    for _ in range(3):
        await rest.rotate_secrets()
    reports = world.conn.execute(
        "select payload #>> '{defer,sealed}', payload ->> 'event', payload from report order by report_id"
    ).fetchall()
    assert [vault.open(WAITING, str(run), base64.b64decode(seal or event)) for seal, event, _ in reports] == [
        "exit in quarantine",
        "event in quarantine",
    ]
    assert reports[0][2]["defer"]["queue"] == "q"
    rows = world.conn.execute("select sealed, event from deferral order by map_index").fetchall()
    assert [[vault.open(WAITING, str(run), seal) for seal in row if seal] for row in rows] == [["said", "event"], ["said"]]
    assert vault.open(ONCE, f"{run}/a", world.one("select sealed from once_value")) == "kept"


async def test_a_secret_that_was_moved_to_another_name_does_not_open(rest: RestClient, world: World) -> None:
    """R-SE1: a writer of the database puts another's password into a connection that his DAG may use."""
    await rest.set_connection("prod", uri=URI)
    await rest.set_connection("mine", uri="http://host")
    world.conn.execute("update sealed_value set sealed = (select sealed from sealed_value where name = 'prod') where name = 'mine'")
    mine = await rest.get_connection("mine", reveal=True)
    assert "or under another name" in (mine.problem or "")
    assert not mine.host


async def test_another_key_is_told_and_hides_nothing_else(rest: RestClient, tmp_path: Path) -> None:
    await rest.set_variable("lost", value="1")
    (tmp_path / "secrets.key").unlink()
    await rest.set_variable("new", value="2")
    found = {v.name: (v.value, v.problem is None) for v in (await rest.list_variables()).items}
    assert found == {"lost": ("", False), "new": ("2", True)}


async def test_a_try_gets_what_its_dag_may_use_while_it_runs(rest: RestClient, client: ExecutionClient, world: World) -> None:
    await rest.set_connection("warehouse", uri=URI, dags=["sal?s"])
    await rest.set_variable("other", value="x", dags=["finance"])
    world.dispatch(world.run(world.add_dag()), 1)
    token = world.try_token(1)
    assert await client.ask(token, "connection", q.AskNamed(name="warehouse")) == q.Found(text=URI)
    assert await client.ask(token, "connection", q.AskNamed(name="none")) == q.Found()
    for question, message in (
        ("variable", q.AskNamed(name="other")),
        ("set_variable", q.SetVariable(name="other", text="mine")),
        ("delete_variable", q.AskNamed(name="other")),
    ):
        with pytest.raises(ApiRefused, match="'other' is not for DAG 'sales'"):
            await client.ask(token, question, message)
    world.end(1)
    with pytest.raises(StaleEpoch):
        await client.ask(token, "connection", q.AskNamed(name="warehouse"))


async def test_a_try_is_told_similar_names_of_what_its_dag_may_use(rest: RestClient, client: ExecutionClient, world: World) -> None:
    """R-CS10: where it asks for them, and nothing else."""
    await rest.set_connection("warehouse", uri=URI, dags=["sal?s"])
    await rest.set_connection("warehosen", uri=URI, dags=["finance"])
    await rest.set_connection("shop", uri=URI)
    await rest.set_variable("warehoses", value="x")
    world.dispatch(world.run(world.add_dag()), 1)
    token = world.try_token(1)
    asked = q.AskNamed(name="warehose", similar=True)
    assert await client.ask(token, "connection", asked) == q.Found(similar=["warehouse"])
    assert await client.ask(token, "variable", asked) == q.Found(similar=["warehoses"])
    assert await client.ask(token, "connection", q.AskNamed(name="warehouse", similar=True)) == q.Found(text=URI)


async def test_only_tries_and_operators_may_ask(
    client: ExecutionClient, rest: RestClient, worker_token: str, operator_token: str, api_url: str
) -> None:
    """A worker's own token, with which it claims any DAG's tries, gives no secrets; neither does REST."""
    await rest.set_connection("warehouse", uri=URI)
    for token in (worker_token, operator_token):
        with pytest.raises(ApiRefused) as refused:
            await client.ask(token, "connection", q.AskNamed(name="warehouse"))
        assert refused.value.status == 403
    async with RestClient(api_url, worker_token) as intruder:
        with pytest.raises(ApiRefused) as refused:
            await intruder.get_connection("warehouse", reveal=True)
        assert refused.value.status == 403


async def test_the_run_before(client: ExecutionClient, world: World) -> None:
    version = world.add_dag()
    before, run = world.run(version, state="success"), world.run(version, "r2")
    world.conn.execute("update dag_run set data_interval_start = '2026-02-28 00:00+00' where run_key = %s", [before])
    world.dispatch(run, 1)
    answer = await client.ask(world.try_token(1), "previous_run", q.AskPreviousRun())
    assert answer.data_interval_start == "2026-02-28T00:00:00+00:00"
    assert answer.end_date is None


async def test_links_of_a_try_for_people(rest: RestClient, client: ExecutionClient, world: World) -> None:
    """R-AF1: they come one by one, and only such as a page may link to are taken."""
    world.dispatch(world.run(world.add_dag()), 1)
    token = world.try_token(1)
    assert (await rest.get_links("sales", "r1", "extract")).model_dump() == {"links": {}, "try_number": None}
    for link in ({"Job": "https://jobs.example/1"}, {"Log": "http://logs.example/@1"}, {"Job": "https://jobs.example/2"}):
        await client.ask(token, "record", q.KeepRecord(kind="links", value=dict(link)))
    bad = (
        "javascript:alert(1)",
        "https://a.example/\n",
        1,
        "https://me:open-sesame@a.example/",
        "https://a.example@b.example",
        "https:///a",
    )
    for link in ({" ": "https://a.example"}, *({"Job": url} for url in bad)):
        with pytest.raises(ApiRefused, match="A link has a name, and a URL of HTTP or HTTPS"):
            await client.ask(token, "record", q.KeepRecord(kind="links", value=dict(link)))
    told = await rest.get_links("sales", "r1", "extract")
    assert (told.links, told.try_number) == ({"Job": "https://jobs.example/2", "Log": "http://logs.example/@1"}, 1)
    for number in range(limits.TRY_LINKS + 5):
        await client.ask(token, "record", q.KeepRecord(kind="links", value={f"n{number}": "https://a.example"}))
    assert len((await rest.get_links("sales", "r1", "extract")).links) == limits.TRY_LINKS
    with pytest.raises(ApiRefused, match="There is no task 'none'"):
        await rest.get_links("sales", "r1", "none")


async def test_values_and_rendered_fields_for_people(rest: RestClient, client: ExecutionClient, world: World) -> None:
    """What is secret is told to be there, and not shown."""
    world.dispatch(world.run(world.add_dag()), 1)
    token = world.try_token(1)
    await client.push_xcom(token, m.XComPush(key="open", value=b"[1, 2]"))
    await client.push_xcom(token, m.XComPush(key="closed", value=b'"hush"', secret=True))
    stored = m.StoredObject(name=f"1-{'0' * 16}.json", size=300_000, length=7)
    await client.push_xcom(token, m.XComPush(key="large", value=b"null", stored=stored))
    found = {x.key: (x.size, x.length, x.is_secret, x.is_stored) for x in (await rest.list_xcoms("sales", "r1")).items}
    assert found == {"closed": (6, None, True, False), "large": (300_000, 7, False, True), "open": (6, 2, False, False)}
    assert (await rest.list_xcoms("sales", "r1", task_id="load")).items == []
    assert [(await rest.get_xcom("sales", "r1", "extract", key)).value for key in ("open", "closed", "large")] == [
        [1, 2],
        None,
        None,
    ]
    with pytest.raises(ApiRefused, match="has nothing under 'none'"):
        await rest.get_xcom("sales", "r1", "extract", "none")

    await client.ask(token, "rendered", q.Rendered(fields={"sql": "select \0 1"}))
    assert (await rest.get_rendered("sales", "r1", "extract")).fields == {"sql": "select \ufffd 1"}
    assert (await rest.get_rendered("sales", "r1", "load")).fields == {}
    with pytest.raises(ApiRefused, match="There is no task 'none'"):
        await rest.get_rendered("sales", "r1", "none")


async def test_what_a_try_says_of_its_work_is_kept_once_and_goes_with_its_run(client: ExecutionClient, world: World) -> None:
    """R-SP4: history counts an application once, whatever is said twice."""
    run = world.run(world.add_dag())
    world.dispatch(run, 1)
    cost = {"application_id": "app-1", "cores": 4, "stages": 3, "wall_s": 2.5, "run_s": 6.0, "gc_s": 0.5}
    cost |= {"input_bytes": 10, "output_bytes": 20, "shuffle_bytes": 30, "spilled_bytes": 40}
    for application in ("app-1", "app-2"):
        said = q.KeepRecord(kind="spark_cost", value=cost | {"application_id": application})
        await client.ask(world.try_token(1), "record", said)
    rows = world.conn.execute(
        "select run_key, try_number, application_id, cores, wall_us, task_us, spilled_bytes"
        " from evenflow_reporting_v1.spark_applications"
    ).fetchall()
    assert rows == [(run, 1, "app-1", 4, 2_500_000, 6_000_000, 40)]
    with pytest.raises(ApiRefused) as refused:
        await client.ask(world.try_token(1), "record", q.KeepRecord(kind="spark_cost", value={"x": "y" * limits.TRY_RECORD}))
    assert refused.value.status == 413


@pytest.mark.parametrize("name", ["../secrets.key", "2-0000000000000000.json", "1-0000000000000000.json/../x", "s3://x/1-0.json"])
async def test_a_try_refers_to_its_own_objects_only(client: ExecutionClient, world: World, name: str) -> None:
    world.dispatch(world.run(world.add_dag()), 1)
    token, stored = world.try_token(1), m.StoredObject(name=name, size=1)
    with pytest.raises(ApiRefused, match="is not one of this try"):
        await client.push_xcom(token, m.XComPush(key="k", value=b"null", stored=stored))
    report = m.Report(token=token, stored=stored, ending=Ending(outcome="success", result=b"null"))
    assert "is not one of this try" in (await client.report(m.Reports(reports=[report]))).refused[0]


async def test_what_cannot_be_stored_is_told_before_anything_is(rest: RestClient) -> None:
    """An import is one of a whole file, or of nothing: each refusal of storing is one of checking, and checking stores nothing."""
    for kind, name, text, description in (
        ("connection", "a/b", URI, None),
        ("connection", "a b", URI, None),
        ("connection", "a", "no uri", None),
        ("connection", "a", URI, "x" * 1_001),
        ("variable", "a/b", "1", None),
        ("variable", "a", "x" * 100_000, None),
    ):
        with pytest.raises(ApiRefused):
            await rest.check_secret(kind=kind, name=name, text=text, description=description)
    assert (await rest.check_secret(kind="connection", name="a", text=URI)).name == "a"
    assert (await rest.list_connections()).items == []
