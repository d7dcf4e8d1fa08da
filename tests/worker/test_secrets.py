"""Connections and variables of a running try: who gets them, and that nobody sees what is secret in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from evenflow.api.vault import Vault
from evenflow.core.model import DagSpec, TaskSpec
from tests.worker.world import World

Store = Callable[..., None]

URI = "postgresql://me:s3cr3t%2Fpass%20word@db/sales?api_key=another-secret&plain=visible"


@pytest.fixture
def store(world: World, tmp_path: Path) -> Store:
    vault = Vault(tmp_path / "secrets.key")

    def put(kind: str, name: str, text: str, dags: Sequence[str] = ()) -> None:
        world.db.execute(
            "insert into sealed_value (kind, name, sealed, dags, changed_by) values (%s, %s, %s, %s, 'ada')",
            [kind, name, vault.seal(text), list(dags)],
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
    epoch = world.dispatch(world.run(world.version(spec, {"dag.py": source.encode()}), {"n": "{{ ds }}"}))
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
    assert reason.startswith("VariableNotFound: Variable 'nowhere' is not defined (defined: none). Give a default, or type: export")
    assert reason.endswith("For all workers, type: evenflow variables set nowhere")
