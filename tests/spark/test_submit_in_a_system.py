"""``SparkSubmit`` in all of ``evenflow up``: what becomes of its driver when people end the task, and when services die (R-SP2,
R-SP6). Its ``spark-submit`` is a script, as what is looked at is not Spark.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evenflow.spark import driver
from tests.running import RunningEvenflow, evenflow_json, running_evenflow
from tests.waiting import wait_until

pytestmark = pytest.mark.system

SCRIPT = """#!{python}
import os, sys
at = sys.argv.index("--load-spark-defaults") + 1
os.execv(sys.executable, [sys.executable, *sys.argv[at:]])
"""
APPLICATION = """
import os, sys, time
ledger, go = sys.argv[1:]
with open(ledger, "a") as file:
    print(os.getpid(), file=file)
while not os.path.exists(go):
    time.sleep(0.05)
"""
DAG_FILE = """
from evenflow import DAG, SparkSubmit

for name in ("lost", "cancelled", "cleared"):
    args = [{home!r} + "/ledger-" + name, {home!r} + "/go-" + name]
    with DAG(name):
        SparkSubmit(task_id="app", application="app.py", args=args, retries=1, retry_delay=0)
"""


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningEvenflow]:
    folder = tmp_path_factory.mktemp("spark")
    program = folder / "bin" / "spark-submit"
    program.parent.mkdir()
    program.write_text(SCRIPT.format(python=sys.executable))
    program.chmod(0o755)
    connection = f"spark-local://?cores=1&spark_home={folder}&evidence={folder}/evidence"
    with running_evenflow(EVENFLOW_CONN_SPARK_DEFAULT=connection) as running:
        (running.dags / "app.py").write_text(APPLICATION)
        (running.dags / "spark.py").write_text(DAG_FILE.format(home=str(running.home)))
        wait_until(lambda: len(evenflow_json(running.home, "dags", "list")["dags"]) >= 3, lambda: running.log)
        yield running


def triggered(system: RunningEvenflow, name: str) -> tuple[str, list[int]]:
    """The run, and the pids in its ledger once it waits."""
    run = evenflow_json(system.home, "runs", "trigger", name)["run_id"]
    wait_until(lambda: task(system, name, run)["state"] == "deferred" and drivers(system, name))
    return run, drivers(system, name)


def task(system: RunningEvenflow, name: str, run: str) -> dict[str, Any]:
    (row,) = evenflow_json(system.home, "tasks", "list", f"{name}/{run}")["tasks"]
    found: dict[str, Any] = row
    return found


def drivers(system: RunningEvenflow, name: str) -> list[int]:
    path = Path(system.home, f"ledger-{name}")
    return [int(line) for line in path.read_text().split()] if path.exists() else []


def test_services_that_die_leave_the_driver_alone_and_find_it_again(system: RunningEvenflow) -> None:
    run, pids = triggered(system, "lost")
    for kind in ("triggerer", "worker", "scheduler"):
        os.kill(system.service(kind).pid, signal.SIGKILL)
    assert driver.born(pids[0]) is not None
    Path(system.home, "go-lost").touch()
    wait_until(lambda: task(system, "lost", run)["state"] == "success", lambda: json.dumps(task(system, "lost", run)), within_s=120)
    assert drivers(system, "lost") == pids


def test_who_cancels_a_run_ends_its_driver(system: RunningEvenflow) -> None:
    run, (pid,) = triggered(system, "cancelled")
    assert system.evenflow("runs", "cancel", f"cancelled/{run}").returncode == 0
    wait_until(lambda: task(system, "cancelled", run)["state"] == "failed", within_s=90)
    assert driver.born(pid) is None, "it is ended before the task counts as failed"


def test_who_clears_a_task_ends_its_driver_before_the_next_begins(system: RunningEvenflow) -> None:
    run, (pid,) = triggered(system, "cleared")
    cleared = system.evenflow("tasks", "clear", f"cleared/{run}", "app", "--yes")
    assert cleared.returncode == 0, cleared.stdout + cleared.stderr
    wait_until(lambda: len(drivers(system, "cleared")) == 2, within_s=90)
    assert driver.born(pid) is None
    Path(system.home, "go-cleared").touch()
    wait_until(lambda: task(system, "cleared", run)["state"] == "success", within_s=90)
