"""Callbacks of a whole Evenflow: called on a worker, shown with their run, and called again when their worker is killed."""

from __future__ import annotations

import base64
import json
import signal
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psutil
import pytest

from tests.running import RunningEvenflow
from tests.sdk.operators.test_notifiers import Web, web  # noqa: F401
from tests.waiting import wait_until
from tests.worker.world import runs

DAGS = """
from pathlib import Path
import os, time
from datetime import timedelta
from evenflow import DAG, BaseNotifier, DeadlineAlert, DeadlineReference, task

HERE = Path({here!r})

def say(context):
    ti = context["ti"]
    print("called for", ti.task_id, "try", ti.try_number, "because", context["exception"], ti.xcom_pull("good"))

class Told(BaseNotifier):
    template_fields = ("text",)
    def __init__(self, text):
        self.text = text
    def notify(self, context):
        print("told:", self.text)

def hang(context):
    with open(HERE / "pids", "a") as out:
        out.write(f"{{os.getpid()}}.\\n")
    while not (HERE / "go").exists():
        time.sleep(0.02)
    print("went on")

with DAG("calling", on_failure_callback=Told("{{{{ dag.dag_id }}}} {{{{ state }}}} {{{{ reason }}}}"),
         deadline=DeadlineAlert(DeadlineReference.DAGRUN_QUEUED_AT, timedelta(seconds=-1), name="at once")):
    @task
    def good():
        return 41
    @task(on_failure_callback=say)
    def bad(n):
        raise ValueError("no")
    bad(good())

with DAG("hanging"):
    @task(on_success_callback=hang)
    def quick(): ...
    quick()
"""


@pytest.fixture
def up(evenflow_up: RunningEvenflow, tmp_path: Path) -> RunningEvenflow:
    (evenflow_up.dags / "calling.py").write_text(DAGS.format(here=str(tmp_path)))
    return evenflow_up


def shown(up: RunningEvenflow, dag_id: str, run_id: str) -> dict[str, Any]:
    run: dict[str, Any] = json.loads(up.evenflow("runs", "show", dag_id, run_id, "--json").stdout)
    return run


def ended(up: RunningEvenflow, dag_id: str, run_id: str, count: int) -> list[dict[str, Any]]:
    calls = shown(up, dag_id, run_id)["callbacks"]
    return calls if len(calls) == count and all(call["state"] in ("success", "failed") for call in calls) else []


def test_called_with_the_context_and_shown(up: RunningEvenflow) -> None:
    """R-CS4: with XComs and templates of the run that calls, its output in a log of its own, all of it found from that run."""
    up.evenflow("run", "dags/calling.py", "--dag", "calling", "--run-id", "r1")
    of_task, of_dag = wait_until(lambda: ended(up, "calling", "r1", 2), "both callbacks")
    assert [(c["event"], c["task_id"], c["state"]) for c in (of_task, of_dag)] == [
        ("on_failure_callback", "bad", "success"),
        ("on_failure_callback", None, "success"),
    ]
    logs = [up.evenflow("tasks", "logs", "evenflow_callbacks", "callback", "--run", c["run_id"]).stdout for c in (of_task, of_dag)]
    assert "called for bad try 1 because ValueError: no 41" in logs[0]
    assert "told: calling failed task_failure" in logs[1]
    text = up.evenflow("runs", "show", "calling", "r1").stdout
    assert "Missed its deadline 'at once'" in text
    assert "evenflow tasks logs evenflow_callbacks callback" in text
    assert "evenflow_callbacks" not in up.evenflow("dags", "list").stdout
    assert "evenflow_callbacks" not in up.evenflow("runs", "list").stdout


def test_a_rule_tells_by_a_signed_webhook(up: RunningEvenflow, web: Web) -> None:  # noqa: F811
    """R-CS4: without a function in the DAG file, once, with a link to the page; what it has told is found from the run."""
    key = base64.b64encode(b"0123456789abcdef01234567").decode()
    for name, uri in (("hook", web.url), ("hook_key", f"hmac://:{quote(key, safe='')}@webhook")):
        (up.home / name).write_text(uri)
        assert up.evenflow("connections", "set", name, "--file", str(up.home / name)).returncode == 0
    rule = ("--on", "task_failed", "--by", "webhook", "--connection", "hook", "--dag", "calling", "--signed-by", "hook_key")
    done = up.evenflow("notifications", "set", "on call", *rule)
    assert done.stdout.startswith("on call tells task failed by webhook."), done.stderr
    up.evenflow("run", "dags/calling.py", "--dag", "calling", "--run-id", "r2")
    calls = wait_until(lambda: ended(up, "calling", "r2", 3), "the callbacks of the run, and of the rule")
    assert [(c["event"], c["task_id"], c["state"]) for c in calls][2:] == [("rule on call", "bad", "success")]
    ((_, headers, told),) = web.received
    assert (told["task_id"], told["state"], told["reason"]) == ("bad", "failed", "ValueError: no")
    assert told["url"] == f"{up.api_url}/dags/calling/runs/r2/tasks/bad"
    assert {name.lower(): value for name, value in headers.items()}["webhook-signature"].startswith("v1,")
    assert up.evenflow("notifications", "delete", "on call").returncode == 0


def test_a_callback_survives_its_worker(up: RunningEvenflow, tmp_path: Path) -> None:
    """R-CS4, R-CS7: the worker is killed with the callback's process in it; another one calls again. Its run ended before."""
    assert up.evenflow("run", "dags/calling.py", "--dag", "hanging", "--run-id", "h1").returncode == 0
    pids = tmp_path / "pids"
    wait_until(lambda: pids.exists() and pids.read_text().count(".") == 1, "the callback's process")
    first = int(pids.read_text().split(".")[0])
    worker = next(p for p in psutil.Process(first).parents() if p.ppid() == up.process.pid)
    worker.send_signal(signal.SIGKILL)
    wait_until(lambda: pids.read_text().count(".") == 2, "the second call")
    wait_until(lambda: not runs(first), "the end of the first process")
    (tmp_path / "go").touch()
    (call,) = wait_until(lambda: ended(up, "hanging", "h1", 1), "the end of the callback")
    assert call["state"] == "success"
    assert "went on" in up.evenflow("tasks", "logs", "evenflow_callbacks", "callback", "--run", call["run_id"]).stdout
