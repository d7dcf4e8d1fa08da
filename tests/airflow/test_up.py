"""R-AF1: a DAG file written for Airflow runs on ``evenflow up`` as it is, beside a file of Evenflow's in the same folder."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.otlp import OtlpReceiver, receiving
from tests.running import RunningEvenflow, running_evenflow
from tests.sdk.operators.test_notifiers import Web, web  # noqa: F401
from tests.waiting import wait_until

pytestmark = [pytest.mark.system, pytest.mark.timeout(900), pytest.mark.xdist_group("airflow")]

DAGS = Path(__file__).parent / "dags"
OWN = "from evenflow import DAG, task\n\nwith DAG('own'):\n\n    @task\n    def here() -> int:\n        return 1\n\n    here()\n"


@pytest.fixture(scope="module")
def collector() -> Iterator[OtlpReceiver]:
    with receiving() as receiver:
        yield receiver


@pytest.fixture(scope="module")
def running(airflow_python: Path, collector: OtlpReceiver) -> Iterator[RunningEvenflow]:
    environments = {"EVENFLOW_ENVIRONMENTS": json.dumps({"airflow": str(airflow_python)}), "EVENFLOW_DAGS_ENVIRONMENT": "airflow"}
    with running_evenflow(**environments, EVENFLOW_TRACES_URL=collector.url) as running:
        (running.dags / "own.py").write_text(OWN)
        for file in DAGS.glob("*.py"):
            (running.dags / file.name).write_text(file.read_text(encoding="utf-8"))
        yield running


def _asked(running: RunningEvenflow, *arguments: str) -> str:
    done = running.evenflow(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _await_dag(running: RunningEvenflow, dag_id: str) -> None:
    wait_until(lambda: f'"{dag_id}"' in _asked(running, "dags", "list", "--json"), f"DAG {dag_id}", within_s=400)


def _run(running: RunningEvenflow, dag_id: str) -> str:
    """Its state at the end."""
    _await_dag(running, dag_id)
    _asked(running, "runs", "trigger", dag_id, "--run-id", "one")

    def state() -> str:
        return str(json.loads(_asked(running, "runs", "show", dag_id, "--run", "one", "--json"))["state"])

    wait_until(lambda: state() in ("success", "failed"), f"the end of a run of {dag_id}", within_s=400)
    return state()


def test_a_taskflow_dag_with_mapping_xcom_retries_and_bash(running: RunningEvenflow) -> None:
    assert _run(running, "taskflow") == "success"
    log = _asked(running, "tasks", "logs", "taskflow", "told", "--run", "one")
    assert "total=6" in log
    first = _asked(running, "tasks", "logs", "taskflow", "total", "--run", "one", "--try", "1")
    assert "ValueError: once more" in first
    assert "site-packages/airflow" not in first, "how the SDK got there helps nobody"


def test_a_dag_for_airflow_2_finds_its_old_settings_and_entries_of_the_context(running: RunningEvenflow) -> None:
    assert _run(running, "classic") == "success"
    assert re.search(r"on=20\d\d 20\d\d-\d\d-\d\d 20\d{6}", _asked(running, "tasks", "logs", "classic", "said", "--run", "one"))


def test_a_branch_a_deferred_sensor_and_a_variable(running: RunningEvenflow) -> None:
    """R-AF3: the trigger of the provider runs in a triggerer, and its task returns directly."""
    assert _run(running, "waits") == "success"
    shown = json.loads(_asked(running, "tasks", "list", "waits", "--run", "one", "--json"))["tasks"]
    states = {task["task_id"]: (task["state"], task["try_number"]) for task in shown}
    assert states == {"which": ("success", 1), "soon": ("success", 1), "never": ("skipped", 0), "after": ("success", 1)}
    wait_until(
        lambda: "waits success" in _asked(running, "variables", "show", "told", "--reveal"), "the DAG's callback", within_s=100
    )
    assert "Pausing task as DEFERRED" in _asked(running, "tasks", "logs", "waits", "soon", "--run", "one")


def test_what_a_task_has_begun_is_stopped_when_its_run_is_cancelled(running: RunningEvenflow, tmp_path: Path) -> None:
    _await_dag(running, "kills")
    _asked(running, "runs", "trigger", "kills", "--run-id", "one", "--param", f"marks={tmp_path}")
    wait_until((tmp_path / "started").exists, "the task", within_s=400)
    _asked(running, "runs", "cancel", "kills", "--run", "one")
    wait_until((tmp_path / "stopped").exists, "its on_kill", within_s=100)


def test_a_file_of_evenflow_runs_in_the_same_folder(running: RunningEvenflow) -> None:
    assert _run(running, "own") == "success"


def _dates(running: RunningEvenflow, dag_id: str, n: int) -> list[tuple[str, str, str]]:
    """The dates of the runs of a DAG that have succeeded, in order, once there are ``n``."""

    def runs() -> list[dict[str, str]]:
        shown = json.loads(_asked(running, "runs", "list", dag_id, "--limit", "500", "--json"))["runs"]
        return sorted((run for run in shown if run["state"] == "success"), key=lambda run: run["logical_date"])

    _await_dag(running, dag_id)
    wait_until(lambda: len(runs()) == n, f"{n} runs of {dag_id}", within_s=400)
    return [(run["logical_date"], run["data_interval_start"], run["data_interval_end"]) for run in runs()]


def test_timetables_that_are_code_make_runs_with_their_dates(running: RunningEvenflow) -> None:
    """R-AF1: more than a processor computes at once, so it computed them in parts while the DAG caught up."""
    days = [datetime(2025, 1, 1, tzinfo=UTC) + timedelta(days=2 * n) for n in range(152)]
    found = [tuple(map(datetime.fromisoformat, dates)) for dates in _dates(running, "after_lunch", len(days))]
    assert found == [(day, day, day + timedelta(days=2)) for day in days]
    months = [datetime.fromisoformat(logical) for logical, *_ in _dates(running, "months", 3)]
    assert months == [datetime(2025, month, 1, tzinfo=UTC) for month in (1, 2, 3)]


def test_a_missed_deadline_calls_what_its_dag_says(running: RunningEvenflow) -> None:
    """R-AF1: functions that are synchronous, with a context, and those that are not."""
    assert _run(running, "late") == "success"
    for name, value in (("late", "too late in one"), ("later", "told later")):
        wait_until(lambda line=value, of=name: line in _asked(running, "variables", "show", of, "--reveal"), value, within_s=200)


def test_a_rule_tells_of_a_dag_and_its_tasks_hear_of_its_trace(running: RunningEvenflow, web: Web, collector: OtlpReceiver) -> None:  # noqa: F811
    """R-CS4, R-AF1: nothing in the file says so."""
    (running.home / "hook").write_text(web.url)
    _asked(running, "connections", "set", "hook", "--file", str(running.home / "hook"))
    rule = ("--on", "task_failed", "--by", "webhook", "--connection", "hook", "--tag", "nightly")
    _asked(running, "notifications", "set", "broken", *rule)
    assert _run(running, "told") == "failed"
    wait_until(lambda: web.received, "the message", within_s=100)
    ((_, _, message),) = web.received
    assert (message["dag_id"], message["task_id"], message["reason"]) == ("told", "fails", "ValueError: no such shop")
    assert message["url"] == f"{running.api_url}/dags/told/runs/one/tasks/fails"
    said = json.loads(_asked(running, "xcoms", "show", "told", "traced", "--run", "one", "--json"))["value"]
    trace_id = json.loads(_asked(running, "runs", "show", "told", "--run", "one", "--json"))["trace_id"]
    spans = wait_until(lambda: [span for span in collector.named("run") if span.trace_id.hex() == trace_id], "the trace")
    assert said in {f"00-{trace_id}-{span.span_id.hex()}-01" for span in spans}
