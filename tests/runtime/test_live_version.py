"""A run stays on its version, with every service as a real process."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.running import RunningEvenflow, evenflow_json
from tests.waiting import wait_until

pytestmark = pytest.mark.system

DAG = """
import time
from pathlib import Path

from evenflow import DAG, task

with DAG("lasting"):

    @task
    def hold() -> None:
        while not Path({go!r}).exists():
            time.sleep(0.05)

    @task
    def say() -> str:
        print("this is {version}")
        return "{version}"

    hold() >> say()
"""


def test_a_file_changes_while_its_run_runs(evenflow_up: RunningEvenflow, tmp_path: Path) -> None:
    """The run ends with the code that it began with, also in tasks that start after the change; the next run has the new one."""
    file, go = evenflow_up.dags / "lasting.py", tmp_path / "go"
    file.write_text(DAG.format(go=str(go), version="the old code"))
    wait_until(lambda: _versions(evenflow_up) == [1])
    assert evenflow_up.evenflow("dags", "trigger", "lasting", "--run-id", "first").returncode == 0
    wait_until(lambda: _state(evenflow_up, "first", "hold") == "running")
    file.write_text(DAG.format(go=str(go), version="the new code"))
    wait_until(lambda: _versions(evenflow_up) == [2, 1])
    go.touch()
    wait_until(lambda: _state(evenflow_up, "first", "say") == "success")
    assert "this is the old code" in evenflow_up.evenflow("tasks", "logs", "lasting", "say", "--run", "first").stdout
    assert evenflow_up.evenflow("dags", "trigger", "lasting", "--run-id", "second").returncode == 0
    wait_until(lambda: _state(evenflow_up, "second", "say") == "success")
    assert "this is the new code" in evenflow_up.evenflow("tasks", "logs", "lasting", "say", "--run", "second").stdout
    diff = evenflow_up.evenflow("dags", "diff", "lasting").stdout
    assert '-        return "the old code"' in diff
    assert '+        return "the new code"' in diff


def _versions(up: RunningEvenflow) -> list[int]:
    done = up.evenflow("dags", "versions", "lasting", "--json")
    return (
        [version["version_number"] for version in evenflow_json(up.home, "dags", "versions", "lasting")["versions"]]
        if done.stdout
        else []
    )


def _state(up: RunningEvenflow, run_id: str, task_id: str) -> str | None:
    tasks = evenflow_json(up.home, "tasks", "list", "lasting", "--run", run_id)
    items = tasks["tasks"] if isinstance(tasks, dict) else tasks
    return next((task["state"] for task in items if task["task_id"] == task_id), None)
