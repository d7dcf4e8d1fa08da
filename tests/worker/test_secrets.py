"""Connections and variables of a running try: who gets them, and that nobody sees what is secret in them."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from evenflow.api.vault import Vault
from evenflow.core.model import DagSpec, TaskSpec
from evenflow.masker import Masker
from evenflow.worker.limits import AT_ONCE
from tests.waiting import until
from tests.worker.world import World

Store = Callable[..., None]

URI = "postgresql://me:s3cr3t%2Fpass%20word@db/sales?api_key=another-secret&plain=visible"


@pytest.fixture
def store(world: World, tmp_path: Path) -> Store:
    vault = Vault(tmp_path / "secrets.key")

    def put(kind: str, name: str, text: str, dags: Sequence[str] = ()) -> None:
        world.conn.execute(
            "insert into sealed_value (kind, name, sealed, dags, changed_by) values (%s, %s, %s, %s, 'ada')",
            [kind, name, vault.seal(kind, name, text), list(dags)],
        )

    return put


HEAD = "from evenflow import Connection, Variable, get_connection, mask_secret\nimport sys, time\n"


@pytest.mark.usefixtures("worker")
async def test_a_connection_of_the_database_reaches_the_task_and_no_log(world: World, store: Store) -> None:
    """R-SEC: the value reaches the function; the log, the reason and the history have stars."""
    store("connection", "warehouse", URI)
    epoch = world.task(
        """
        conn = get_connection("warehouse")
        assert (conn.login, conn.password, conn.host, conn.schema) == ("me", "s3cr3t/pass word", "db", "sales")
        print("password", conn.password, "uri", conn.uri, "key", conn.extra["api_key"], conn.extra["plain"])
        sys.stdout.write("in pieces s3cr3t/"); sys.stdout.flush(); time.sleep(0.05); print("pass word end")
        raise ValueError(f"cannot log in with {conn.password}")
        """,
        head=HEAD,
    )
    ended = await world.exit_of(epoch)
    assert ended["reason"] == "ValueError: cannot log in with ***"
    log = await world.logged(epoch, "ValueError: cannot log in")
    assert "password *** uri postgresql://me:***@db/sales?api_key=***&plain=visible key *** visible" in log
    assert "in pieces *** end" in log
    for secret in ("s3cr3t", "another-secret"):
        assert secret not in log
        assert not world.one("select 1 from report where payload::text like %s", f"%{secret}%")


@pytest.mark.usefixtures("worker")
async def test_variables(world: World, store: Store) -> None:
    store("variable", "region", "eu")
    store("variable", "limits", '{"rows": 10, "password": "hidden-one"}')
    epoch = world.task(
        """
        print("it is", Variable.get("limits", deserialize_json=True)["password"])
        Variable.set("made", "by a task", description="d")
        return [Variable.get("region"), Variable.get("none", default=None), Variable.get("made")]
        """,
        head=HEAD,
    )
    assert (await world.exit_of(epoch))["outcome"] == "success"
    assert world.xcom(epoch) == ["eu", None, "by a task"]
    assert "it is ***" in await world.logged(epoch, "it is")
    assert world.one("select changed_by from sealed_value where name = 'made'") == "task d.t"
    assert b"by a task" not in bytes(world.one("select sealed from sealed_value where name = 'made'"))


@pytest.mark.usefixtures("worker")
async def test_what_is_for_other_dags_is_refused(world: World, store: Store) -> None:
    store("connection", "bank", URI, dags=["finance_*"])
    store("variable", "theirs", "x", dags=["finance_*"])
    epoch = world.task("get_connection('bank')", head=HEAD)
    assert (await world.exit_of(epoch))["reason"] == (
        "ApiRefused: The connection 'bank' is not for DAG 'd'. To let it, type: evenflow connections allow bank d"
    )
    epoch = world.task("Variable.set('theirs', 'mine now')", head=HEAD)
    assert "is not for DAG 'd'" in (await world.exit_of(epoch))["reason"]


@pytest.mark.usefixtures("worker")
async def test_mask_secret(world: World) -> None:
    epoch = world.task("mask_secret({'a': ['token-of-mine']})\nprint('it is token-of-mine')\nprint('done')", head=HEAD)
    assert "it is ***" in await world.logged(epoch, "done")


@pytest.mark.usefixtures("worker")
async def test_rendered_fields_are_stored_masked(world: World, store: Store) -> None:
    store("connection", "warehouse", URI)
    source = """
from evenflow import DAG, BashOperator
with DAG("d", user_defined_macros={"who": "ada"}):
    BashOperator(task_id="t", bash_command="echo {{ who }} {{ ds }} {{ conn.warehouse.password }}", env={"A": "{{ params }}"})
"""
    spec = DagSpec(dag_id="d", tasks=(TaskSpec(task_id="t", operator="bash"),))
    epoch = world.dispatch(world.run(world.add_dag(spec, {"dag.py": source.encode()}), params={"n": "{{ ds }}"}))
    assert (await world.exit_of(epoch))["outcome"] == "success"
    assert world.one("select fields from rendered where epoch = %s", epoch) == {
        "bash_command": "echo ada 2026-03-01 ***",
        "env": "{'A': \"{'n': '{{ ds }}'}\"}",
        "cwd": "None",
    }
    assert "ada 2026-03-01 ***" in await world.logged(epoch, "ada")


@pytest.mark.usefixtures("worker")
async def test_a_name_that_is_not_defined(world: World) -> None:
    epoch = world.task("return Variable.get('nowhere')", head=HEAD)
    reason = (await world.exit_of(epoch))["reason"]
    assert reason.startswith("VariableNotFound: Variable 'nowhere' is not defined. Give a default, or type: export")
    assert reason.endswith("For all workers, type: evenflow variables set nowhere")


@pytest.mark.usefixtures("worker")
async def test_a_name_that_is_nearly_right(world: World, store: Store) -> None:
    """R-CS10: the database tells what was meant, of what the DAG may use."""
    store("connection", "warehouse", URI)
    store("connection", "warehosen", URI, dags=["finance_*"])
    reason = (await world.exit_of(world.task("get_connection('warehose')", head=HEAD)))["reason"]
    assert reason.startswith("ConnectionNotFound: Connection 'warehose' is not defined. Did you mean 'warehouse'? Add warehose = ")


async def downstream_of(world: World, source: str, first: TaskSpec, second: TaskSpec) -> tuple[int, str]:
    """The epoch of the second task of this file, when its log says that it is done, and that log."""
    version = world.add_dag(DagSpec(dag_id="d", tasks=(first, second)), {"dag.py": source.encode()})
    run = world.run(version)
    await world.exit_of(world.dispatch(run))
    epoch = world.dispatch(run, task=1)
    return epoch, await world.logged(epoch, "that is all")


@pytest.mark.usefixtures("worker")
async def test_a_result_with_a_secret_is_masked_where_it_is_pulled(world: World, store: Store) -> None:
    """The task downstream never asked for the connection, and its worker learns from the mark of the value."""
    store("connection", "warehouse", URI)
    source = (
        HEAD
        + """
from evenflow import DAG, task
with DAG("d"):
    @task
    def give():
        return {"plain": "hello-world", "nested": [get_connection("warehouse").password]}
    @task
    def take(given):
        print("given", given["nested"][0], "n", len(given))
        print("that is all")
    take(give())
"""
    )
    tasks = (TaskSpec(task_id="give", operator="python"), TaskSpec(task_id="take", operator="python", upstream=(0,)))
    _, log = await downstream_of(world, source, *tasks)
    assert "given *** n 2" in log


LEAK = """
    conn = get_connection("warehouse")
    secret = conn.password
    print(secret)
    print(repr(secret), conn.uri, {"p": secret})
    os.write(1, secret.encode()); os.write(2, secret.encode())
    logging.getLogger("any").warning("with %s", secret)
    subprocess.run(["echo", secret])
    warnings.warn(secret)
    Variable.set("kept", secret, description=f"it is {secret}")
    ti.progress(f"at {secret}", 1, 2)
    print("nearly")
    {end}
"""
ENDS = {
    "raises": "raise type('E' + 'rror', (Exception,), {})(secret) from ValueError(secret)",
    "exits": "sys.exit(secret)",
    "skips": "raise TaskSkipped(secret)",
    "fails": "raise TaskFailedForGood(secret)",
    "dies": "sys.stderr.write(secret); sys.stderr.flush(); os.kill(os.getpid(), 9)",
    "tells": "outlet_events['made'].extra = {'where': [secret]}; return None",
    "returns": "ti.xcom_push('other', [secret]); return {'deep': [secret]}",
}


def places_of(world: World, secrets: Sequence[str], *folders: Path) -> set[str]:
    """Every column of every table, and every file, in which one of the secrets stands."""
    found: set[str] = set()
    tables = world.conn.execute(
        "select relname from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r' order by 1"
    ).fetchall()
    for (table,) in tables:
        for row in world.conn.execute(f'select to_jsonb(t) from "{table}" t').fetchall():
            for column, value in row[0].items():
                text = json.dumps(value, ensure_ascii=False)
                raw = bytes.fromhex(value[2:]).decode("latin-1") if isinstance(value, str) and value.startswith("\\x") else ""
                if any(secret in text or secret in raw for secret in secrets):
                    found.add(f"{table}.{column}")
    for folder in folders:
        for file in folder.rglob("*"):
            if file.is_file() and any(secret.encode() in file.read_bytes() for secret in secrets):
                found.add(file.name)
    return found


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.usefixtures("worker")
async def test_a_secret_is_nowhere_but_in_results_that_are_marked(world: World, store: Store, tmp_path: Path, end: str) -> None:
    """A scan of the whole database and of the logs for the bytes of the secret, after a task has let it slip in every way."""
    store("connection", "warehouse", URI)
    body = LEAK.replace("{end}", ENDS[end])
    source = (
        HEAD
        + "import json, logging, os, subprocess, warnings\n"
        + "from evenflow import DAG, Asset, TaskFailedForGood, TaskSkipped, task\n"
        + "with DAG('d'):\n    @task(outlets=[Asset('made')])\n    def t(ti=None, outlet_events=None):"
        + body.replace("\n", "\n    ")
        + "\n    t()\n"
    )
    spec = DagSpec(dag_id="d", tasks=(TaskSpec(task_id="t", operator="python", outlets=("made",)),))
    epoch = world.dispatch(world.run(world.add_dag(spec, {"dag.py": source.encode()})))
    await world.exit_of(epoch)
    await world.logged(epoch, "nearly")
    await until(lambda: "***" in world.log(epoch), "the rest of the log")
    marked = {"xcom.value"} if end == "returns" else set()
    assert places_of(world, ["s3cr3t", "another-secret"], tmp_path / "logs") == marked
    assert world.one("select bool_and(secret) from xcom") is (True if marked else None)
    assert world.one("select description from sealed_value where name = 'kept'") == "it is ***"


@pytest.mark.usefixtures("worker")
async def test_a_log_says_when_not_all_secrets_are_masked(world: World) -> None:
    epoch = world.task("for number in range(3): mask_secret([f'a-secret-{n}' for n in range(1000)])\nprint('done')", head=HEAD)
    assert (await world.exit_of(epoch))["outcome"] == "success"
    assert (await world.logged(epoch, "done")).count("more secrets, or longer ones, than are masked") == 1


@pytest.mark.usefixtures("worker")
async def test_large_values_are_searched_in_threads(world: World, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-SE4: a worker that looks through 32 MiB on its event loop beats for no try meanwhile."""
    store("variable", "api_key", "s3cr3t-key")
    looked: list[tuple[bool, bool]] = []
    finds_in = Masker.finds_in

    def spied(self: Masker, data: bytes) -> bool:
        looked.append((len(data) > AT_ONCE, threading.current_thread() is threading.main_thread()))
        return finds_in(self, data)

    monkeypatch.setattr(Masker, "finds_in", spied)
    epoch = world.task(
        """
        key = Variable.get("api_key")
        ti.xcom_push("large", ["x" * 3_000_000, key])
        ti.xcom_push("small", "x")
        return ["x" * 3_000_000, key]
        """,
        head="from evenflow import Variable\n",
    )
    assert (await world.exit_of(epoch))["outcome"] == "success"
    assert sorted(looked) == [(False, True), (True, False), (True, False)]
    rows = world.conn.execute("select key, secret from xcom order by key").fetchall()
    assert rows == [("large", True), ("return_value", True), ("small", False)]
