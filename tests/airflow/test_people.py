"""R-AF1: tasks of Airflow's that ask people are answered as Evenflow's own: by CLI and API, and in the web UI."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.running import RunningEvenflow, running_evenflow
from tests.ui.browsing import logged_in, settled, violations
from tests.ui.seed import ask
from tests.waiting import wait_until

pytestmark = [pytest.mark.system, pytest.mark.timeout(900), pytest.mark.xdist_group("airflow")]

ASKS = Path(__file__).parent / "dags" / "asks.py"


@pytest.fixture(scope="module")
def running(airflow_python: Path) -> Iterator[RunningEvenflow]:
    environments = json.dumps({"airflow": str(airflow_python)})
    with running_evenflow(EVENFLOW_ENVIRONMENTS=environments, EVENFLOW_DAGS_ENVIRONMENT="airflow") as running:
        (running.dags / "asks.py").write_text(ASKS.read_text(encoding="utf-8"))
        yield running


def _answered(running: RunningEvenflow, task: str, *answer: str) -> str:
    done = running.evenflow("approve", "asks/one", task, *answer)
    return done.stdout if done.returncode == 0 else f"refused: {done.stderr}"


def _asked(running: RunningEvenflow) -> dict[str, dict[str, Any]]:
    return {each["task_id"]: each for each in ask(running, "GET", "approvals")["items"]}


def _tasks(running: RunningEvenflow) -> dict[str, dict[str, Any]]:
    shown = json.loads(running.evenflow("tasks", "list", "asks", "--run", "one", "--json").stdout)["tasks"]
    return {each["task_id"]: each for each in shown}


def test_people_answer_what_airflows_operators_ask(running: RunningEvenflow, browser: Browser) -> None:
    trigger = ("runs", "trigger", "asks", "--run-id", "one")
    wait_until(lambda: running.evenflow(*trigger).returncode == 0, "the DAG is known", within_s=400)
    first = {"typed", "several", "rejected", "refused", "theirs", "ways"}
    wait_until(lambda: first <= _asked(running).keys(), "the questions", within_s=400)
    asked = _asked(running)
    assert [(param["name"], param["default"]) for param in asked["typed"]["params"]] == [("times", 2), ("what", "")]
    assert (asked["several"]["choices"], asked["several"]["multiple"]) == (["Berlin", "Rome", "Oslo"], True)
    assert (asked["theirs"]["who"], asked["theirs"]["may_answer"]) == (["grace"], False)

    assert "Only grace may answer" in _answered(running, "theirs", "Approve")
    assert "'Approve' to rejected" not in _answered(running, "rejected", "never")
    assert "one answer" in _answered(running, "refused", "Approve", "Reject")
    assert "'times'" in _answered(running, "typed", "OK", "--param", "times=often"), "it does not fit the form"
    assert "answered 'OK'" in _answered(running, "typed", "OK", "--param", "what=v1.4")
    assert "answered 'Reject'" in _answered(running, "rejected", "reject"), "capitals need not be typed"
    assert "answered 'Reject'" in _answered(running, "refused", "Reject")
    assert "answered 'left, right'" in _answered(running, "ways", "left", "right")
    assert "answered 'left, right' to task 'ways' first" in _answered(running, "ways", "left")

    page = logged_in(browser, running)
    page.goto("/dags/asks/runs/one/tasks/several/required_actions?map_index=-1")  # as the operator's own link says
    question = page.get_by_role("region", name="What it asks")
    answer = question.get_by_role("button", name="Answer")
    expect(answer).to_be_disabled()
    question.get_by_label("Oslo").check()
    question.get_by_label("Berlin").check()
    expect(question).to_contain_text("evenflow approve asks/one several Berlin Oslo")
    settled(page)
    assert violations(page) == []
    answer.click()
    expect(question).to_have_count(0)
    wait_until(lambda: "approved" in _asked(running), "the question of what comes next", within_s=400)
    assert _asked(running)["approved"]["subject"] == "v1.4?"
    page.goto("/dags/asks/runs/one/tasks/approved")
    question.get_by_role("button", name="Approve").click()
    expect(question).to_have_count(0)
    assert page.flaws == []  # type: ignore[attr-defined]

    wait_until(lambda: ask(running, "GET", "dags/asks/runs/one")["state"] == "failed", "the end of the run", within_s=400)
    tasks = _tasks(running)
    assert {name: task["state"] for name, task in tasks.items()} == {
        **dict.fromkeys(("typed", "several", "late", "approved", "told", "rejected", "ways", "to_the_left", "right"), "success"),
        **dict.fromkeys(("never", "refused", "theirs"), "failed"),
        **dict.fromkeys(("after", "back"), "skipped"),
    }
    told = running.evenflow("tasks", "logs", "asks", "told", "--run", "one").stdout
    for line in (
        "typed ['OK'] {'what': 'v1.4', 'times': 2} {'id': '",
        "several ['Berlin', 'Oslo'] {} {'id': '",
        "late ['no'] {'n': 7} None <class 'datetime.datetime'>",
        "approved ['Approve'] {} {'id': '",
    ):
        assert line in told
    notified = running.evenflow("tasks", "logs", "asks", "typed", "--run", "one").stdout
    link = "http://evenflow.example/dags/asks/runs/one/tasks/typed/required_actions?map_index=-1"
    assert f"Somebody says What to deploy? {link}" in notified
    assert "HITLTimeoutError" in str(tasks["never"]["reason"])
    assert "HITLRejectException" in str(tasks["refused"]["reason"])
