"""What tries on a Spark Connect server leave there in all of ``evenflow up``, when nothing of their process says a last word
(R-SP6).
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from evenflow.sdk.secrets.connections import Connection
from evenflow.spark.session import session_for
from tests.running import RunningEvenflow, evenflow_json, running_evenflow
from tests.spark.servers import BEGINS_S, connect_server
from tests.waiting import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.system]

DAG_FILE = """
import os
from pathlib import Path

from evenflow import DAG, task

with DAG("asks"):

    @task.spark
    def count(*, spark, run_id) -> None:
        begun = Path({folder!r}, run_id)
        spark.registerProgressHandler(lambda **_: begun.write_text(str(os.getpid())))
        spark.sql("select count(*) from range(100000000000) a join range(1000) b where a.id % 7 = b.id % 3").collect()

    count()
"""


@dataclass
class System:
    running: RunningEvenflow
    server: Connection
    folder: Path

    def begin_query(self) -> tuple[str, int]:
        """The run, and the process whose query runs."""
        run: str = evenflow_json(self.running.home, "runs", "trigger", "asks")["run_id"]
        told = self.folder / run
        wait_until(lambda: told.exists() and told.read_text(), lambda: f"{self.task(run)}\n{self.running.log}", within_s=BEGINS_S)
        return run, int(told.read_text())

    def task(self, run: str) -> dict[str, Any]:
        (row,) = evenflow_json(self.running.home, "tasks", "list", f"asks/{run}")["tasks"]
        return dict(row)

    def calls(self, run: str) -> list[tuple[str, ...]]:
        told = evenflow_json(self.running.home, "runs", "show", f"asks/{run}")["callbacks"]
        return [tuple(str(call[name]) for name in ("event", "task_id", "try_number", "state")) for call in told]

    def has_ended_the_query(self, run: str) -> None:
        """The server, which would let it run for an hour, has one core: while it runs no other gets a row."""
        ended = [("clean_up", "count", "1", "success")]
        wait_until(lambda: self.calls(run) == ended, lambda: f"{self.calls(run)}\n{self.running.log}")
        with session_for(self.server, app_name="x", conf={}, progress=lambda *_: None) as spark:
            assert spark.range(3).count() == 3


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    folder = tmp_path_factory.mktemp("begun")
    with connect_server(folder) as uri, running_evenflow(EVENFLOW_CONN_SPARK_DEFAULT=uri) as running:
        (running.dags / "spark.py").write_text(DAG_FILE.format(folder=str(folder)))
        wait_until(lambda: evenflow_json(running.home, "dags", "list")["dags"], lambda: running.log)
        yield System(running, Connection.parse("spark_default", uri), folder)


def test_the_query_of_a_process_that_died_for_good_ends(system: System) -> None:
    run, process = system.begin_query()
    os.kill(process, signal.SIGKILL)
    wait_until(lambda: system.task(run)["state"] == "failed", lambda: system.running.log)
    assert "SIGKILL" in system.task(run)["reason"]
    system.has_ended_the_query(run)


@pytest.mark.parametrize(("how", "state"), [(["runs", "mark", "success"], "success"), (["runs", "cancel"], "failed")])
def test_the_query_of_a_lost_worker_ends_when_its_task_is_over(system: System, how: list[str], state: str) -> None:
    run, _ = system.begin_query()
    system.running.service("worker").kill()
    done = system.running.evenflow(*how, f"asks/{run}", "--yes")
    assert done.returncode == 0, done.stderr
    wait_until(lambda: system.task(run)["state"] == state, lambda: f"{system.task(run)}\n{system.running.log}")
    system.has_ended_the_query(run)
