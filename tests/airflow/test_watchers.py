"""R-AF1: watchers of assets, by the standard provider's trigger and by one like a queue, whatever dies meanwhile."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.running import RunningEvenflow, running_evenflow
from tests.waiting import wait_until

pytestmark = [pytest.mark.system, pytest.mark.timeout(900), pytest.mark.xdist_group("airflow")]

DAGS = Path(__file__).parent / "dags"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is watched."""
    return tmp_path_factory.mktemp("watched")


@pytest.fixture(scope="module")
def running(airflow_python: Path, folder: Path) -> Iterator[RunningEvenflow]:
    settings = {"EVENFLOW_ENVIRONMENTS": json.dumps({"airflow": str(airflow_python)}), "EVENFLOW_DAGS_ENVIRONMENT": "airflow"}
    with running_evenflow(WATCHED=str(folder), **settings) as running:
        for name in ("lines_of_a_file.py", "watched.py"):
            (running.dags / name).write_text((DAGS / name).read_text(encoding="utf-8"))
        wait_until(lambda: _states(running) == {"flag": "running", "lines": "running"}, "both watchers", within_s=400)
        yield running


def _asked(running: RunningEvenflow, *arguments: str) -> Any:
    done = running.evenflow(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def _told(running: RunningEvenflow, asset: str) -> list[Any]:
    """The payloads of its events, the oldest first."""
    events = _asked(running, "assets", "events", asset)["events"]
    return [event["extra"]["payload"] for event in reversed(events)]


def _watchers(running: RunningEvenflow, begin: str) -> list[str]:
    return [dag["dag_id"] for dag in _asked(running, "dags", "list")["dags"] if dag["dag_id"].startswith(begin)]


def _states(running: RunningEvenflow) -> dict[str, str]:
    """Of the newest run of what watches each, by the watcher."""
    found = {}
    for dag_id in _watchers(running, "watch."):
        runs = _asked(running, "runs", "list", dag_id)["runs"]
        found[dag_id.split(".")[1]] = runs[0]["state"] if runs else ""
    return found


def test_events_of_triggers_are_events_of_assets_and_make_runs(running: RunningEvenflow, folder: Path) -> None:
    (folder / "flag").write_text("")
    wait_until(lambda: _told(running, "file") == [True], "the event of the file", within_s=200)
    assert not (folder / "flag").exists()
    (folder / "flag").write_text("")
    wait_until(lambda: _told(running, "file") == [True, True], "a watcher that goes on", within_s=200)
    (folder / "lines").write_text("a\nb\nc\n")
    wait_until(lambda: len(_told(running, "lines")) == 3, "all that it has yielded at once", within_s=200)
    assert _told(running, "lines") == [{"line": "a"}, {"line": "b"}, {"line": "c"}]

    def log() -> str:
        runs = [run["run_id"] for run in _asked(running, "runs", "list", "watched")["runs"] if run["state"] == "success"]
        return "".join(running.evenflow("tasks", "logs", "watched", "told", "--run", run).stdout for run in runs)

    wait_until(lambda: all(f"told: lines {{'line': '{line}'}}" in log() for line in "abc"), "runs with the events", within_s=200)


def test_a_triggerer_that_is_killed_loses_no_watcher(running: RunningEvenflow, folder: Path) -> None:
    before = len(_told(running, "file"))
    running.service("triggerer").kill()
    (folder / "flag").write_text("")
    wait_until(lambda: len(_told(running, "file")) == before + 1, "the next event", within_s=300)


def test_a_trigger_that_fails_is_told_of_and_begun_again(running: RunningEvenflow, folder: Path) -> None:
    with open(folder / "lines", "a") as file:
        file.write("break\n")
    (dag_id,) = wait_until(lambda: _watchers(running, "watch.lines"), "what watches the lines", within_s=200)

    def log() -> str:
        (run,) = wait_until(lambda: _asked(running, "runs", "list", dag_id)["runs"], "its run", within_s=200)
        return running.evenflow("tasks", "logs", dag_id, "watch", "--run", run["run_id"]).stdout

    wait_until(lambda: "ValueError: the queue is broken" in log(), "the error", within_s=200)
    with open(folder / "lines", "a") as file:  # which is read from its beginning again
        file.write("d\n")
    wait_until(lambda: {"line": "d"} in _told(running, "lines"), "an event after the failure", within_s=200)


def test_nothing_is_watched_for_a_dag_that_is_paused_or_gone(running: RunningEvenflow) -> None:
    assert running.evenflow("dags", "pause", "watched").returncode == 0
    wait_until(lambda: _states(running) == {"flag": "success", "lines": "success"}, "the end of both", within_s=200)
    assert running.evenflow("dags", "unpause", "watched").returncode == 0
    wait_until(lambda: _states(running) == {"flag": "running", "lines": "running"}, "both again", within_s=200)
    (running.dags / "watched.py").write_text("from airflow.sdk import DAG\n\nDAG('other')\n")
    wait_until(lambda: _states(running).get("flag", "success") == "success", "the end of a watcher that is gone", within_s=200)
