"""Built-in triggers through all of ``evenflow up``: with connections of the database, and without their secrets in any log."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.running import RunningEvenflow, evenflow_json, running_evenflow
from tests.triggers.conftest import Server
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

SECRET = "hunter2-hunter2"
DAGS = """
import os, subprocess, sqlite3
from evenflow import DAG, ExternalTaskSensor, FileSensor, HttpSensor, SqlSensor, get_current_context, task, wait_for
from evenflow.triggers.process import ProcessTrigger, identity_of, recording_exit

HERE = {home!r}

with DAG("waits"):
    FileSensor(task_id="file", filepath=HERE + "/arrived", deferrable=True, poke_interval=0.2)
    how = dict(http_conn_id="jobs", deferrable=True, poke_interval=0.2)
    HttpSensor(task_id="http", endpoint="7", field="state", values=["done"], **how)
    HttpSensor(task_id="refused", endpoint="refused", **how)
    SqlSensor(task_id="sql", conn_id="shop", sql="select count(*) from orders", deferrable=True, poke_interval=0.2)
    ExternalTaskSensor(
        task_id="external", external_dag_id="other", external_task_id="done", deferrable=True, poke_interval=0.2,
        execution_date_fn=lambda date: __import__("datetime").datetime.fromisoformat("2026-03-01T00:00:00+00:00"),
    )

    @task
    async def process():
        def start():
            file = os.path.join(HERE, "exit")
            script = "while [ ! -e " + HERE + "/arrived ]; do sleep 0.1; done; exit 3"
            started = subprocess.Popen(recording_exit(["sh", "-c", script], file), start_new_session=True)
            return dict(identity_of(started.pid), exit_file=file)

        process = get_current_context()["ti"].once("start", start)
        return (await wait_for(ProcessTrigger(**process, poll_interval=0.2)))["exit_code"]

    process()

with DAG("other"):
    @task
    def done():
        pass
    done()
"""


@pytest.fixture
def running() -> Iterator[RunningEvenflow]:
    with running_evenflow() as running:
        yield running


def test_each_kind(running: RunningEvenflow, server: Server) -> None:
    """R-DQ1: sensors of a file, a service, a database and another DAG, and an awaited process, are deferred and come back."""
    home = running.home
    server.at = {"/7": (200, {"state": "running"}), "/refused": (404, {})}
    with_orders(home)
    for name, uri in (("jobs", f"http://me:{SECRET}@127.0.0.1:{server.port}"), ("shop", f"sqlite:///{home}/shop.db")):
        (home / name).write_text(uri)
        stored = running.evenflow("connections", "set", name, "--file", str(home / name))
        assert stored.returncode == 0, stored.stderr
    (running.dags / "waits.py").write_text(DAGS.format(home=str(home)))
    wait_until(lambda: len(evenflow_json(home, "dags", "list")["dags"]) >= 2, lambda: running.log)
    run = evenflow_json(home, "runs", "trigger", "waits")["run_id"]

    def states() -> dict[str, str]:
        return {row["task_id"]: row["state"] for row in evenflow_json(home, "tasks", "list", f"waits/{run}")["tasks"]}

    wait_until(lambda: set(states().values()) == {"deferred"}, states)
    (home / "arrived").touch()
    with_orders(home, "insert into orders values (1)")
    server.at = {"/7": (200, {"state": "done"}), "/refused": (403, {})}
    triggered = running.evenflow("runs", "trigger", "other", "--logical-date", "2026-03-01T00:00:00+00:00")
    assert triggered.returncode == 0, triggered.stderr
    ended = {**dict.fromkeys(("file", "http", "sql", "external", "process"), "success"), "refused": "failed"}
    wait_until(lambda: states() == ended, states)
    assert evenflow_json(home, "xcoms", "show", f"waits/{run}", "process")["value"] == 3
    log = running.evenflow("tasks", "logs", f"waits/{run}", "refused").stdout
    assert "answered with status 403" in log
    assert SECRET not in log + running.log
    assert {asked.headers.get("Authorization", "")[:6] for asked in server.asked} == {"Basic "}


def with_orders(home: Path, statement: str = "create table orders (id int)") -> None:
    import sqlite3

    shop = sqlite3.connect(home / "shop.db")
    with shop:
        shop.execute(statement)
    shop.close()
