"""What tries on a Spark Connect server leave there in all of ``evenflow up``, when nothing of their process says a last word
(R-SP6).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from evenflow.sdk.secrets.connections import Connection
from evenflow.spark.session import session_for
from tests.running import RunningEvenflow, evenflow_json, running_evenflow
from tests.spark.servers import BEGINS_S, connect_server
from tests.waiting import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.system]

GIVEN_UP_S = 300.0  # after so long a server gives up by itself what nobody asks for
DAG_FILE = """
import os
import signal
import threading
import time

from evenflow import DAG, task

with DAG("dies"):

    @task.spark
    def count(*, spark) -> None:
        begun = threading.Event()
        spark.registerProgressHandler(lambda *_: begun.set())

        def die():
            begun.wait()
            os.kill(os.getpid(), signal.SIGKILL)

        threading.Thread(target=die).start()
        spark.sql("select count(*) from range(100000000000) a join range(1000) b where a.id % 7 = b.id % 3").collect()

    count()
"""


@pytest.fixture
def system(tmp_path: Path) -> Iterator[tuple[RunningEvenflow, Connection]]:
    with connect_server(tmp_path) as uri, running_evenflow(EVENFLOW_CONN_SPARK_DEFAULT=uri) as running:
        (running.dags / "spark.py").write_text(DAG_FILE)
        wait_until(lambda: evenflow_json(running.home, "dags", "list")["dags"], lambda: running.log)
        yield running, Connection.parse("spark_default", uri)


def test_the_query_of_a_process_that_died_for_good_ends(system: tuple[RunningEvenflow, Connection]) -> None:
    """The server has one core: while the query runs no other gets a row."""
    running, server = system
    run = evenflow_json(running.home, "runs", "trigger", "dies")["run_id"]

    def ended() -> bool:
        (row,) = evenflow_json(running.home, "tasks", "list", f"dies/{run}")["tasks"]
        return bool(row["state"] == "failed")

    wait_until(ended, lambda: running.log, within_s=BEGINS_S)
    died = time.monotonic()
    with session_for(server, app_name="x", conf={}, progress=lambda *_: None) as spark:
        assert spark.range(3).count() == 3
    assert time.monotonic() - died < GIVEN_UP_S / 2

    def calls() -> list[tuple[str, str, int, str]]:
        told = evenflow_json(running.home, "runs", "show", f"dies/{run}")["callbacks"]
        return [(call["event"], call["task_id"], call["try_number"], call["state"]) for call in told]

    wait_until(lambda: calls() == [("clean_up", "count", 1, "success")], lambda: f"{calls()}\n{running.log}")
