"""What a person is asked, and answers, in a real browser, while services die."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, expect

from tests.running import running_evenflow
from tests.ui.browsing import WITHIN_MS, logged_in, settled, violations
from tests.ui.seed import ask
from tests.waiting import wait_until

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("ui")]
expect.set_options(timeout=WITHIN_MS)

RELEASE = """
from evenflow import Param, approve, dag, task

@dag()
def release():
    @task
    def deploy(answer: dict) -> str:
        return answer["answered_by"] + ": " + answer["values"]["reason"]

    deploy(approve("Deploy 1.4?", task_id="ask", body="All is green.", params={"reason": Param(type="string")}).output)

release()
"""


def test_a_person_is_asked_and_answers(browser: Browser) -> None:
    """R-DQ9, R-HA: nothing runs while it waits, so the deaths of scheduler and triggerer are nothing to it; Home leads to the
    question, the answer to the end of the run.
    """
    with running_evenflow() as evenflow:
        (evenflow.dags / "release.py").write_text(RELEASE)
        wait_until(lambda: evenflow.evenflow("runs", "trigger", "release", "--run-id", "r").returncode == 0, "the DAG is known")
        wait_until(lambda: ask(evenflow, "GET", "approvals")["items"], "the question")
        for service in [evenflow.service(kind) for kind in ("scheduler", "triggerer")]:
            service.kill()
        page = logged_in(browser, evenflow)
        page.get_by_role("link", name="Deploy 1.4?").click()
        asked = page.get_by_role("region", name="What it asks")
        expect(asked).to_contain_text("All is green.")
        expect(asked.get_by_role("button", name="Approve")).to_be_disabled()
        settled(page)
        assert violations(page) == []
        asked.get_by_label("reason").fill("all green")
        asked.get_by_role("button", name="Approve").click()
        expect(asked).to_have_count(0)
        wait_until(lambda: ask(evenflow, "GET", "dags/release/runs/r")["state"] == "success", "the end of the run")
        assert ask(evenflow, "GET", "dags/release/runs/r/tasks/deploy/xcoms/return_value")["value"].endswith(": all green")
        page.goto("/")
        settled(page)
        expect(page.get_by_text("Waiting for people")).to_have_count(0)
        refused = evenflow.evenflow("approve", "release/r", "ask", "reject")
        assert refused.returncode != 0
        assert "answered 'approve' to task 'ask' first" in refused.stderr
        assert page.flaws == []  # type: ignore[attr-defined]
