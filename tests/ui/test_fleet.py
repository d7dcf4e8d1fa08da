"""The page of fleets in a real browser: what an autoscaler did, in sentences."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import Browser, expect

from tests.running import RunningEvenflow, running_evenflow
from tests.ui.browsing import WITHIN_MS, logged_in, settled, violations
from tests.waiting import wait_until

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("ui")]

COUNTED = """
from evenflow import dag, task

@dag()
def counted():
    @task
    def one():
        return 1

    one()

counted()
"""


def shown(running: RunningEvenflow, *command: str) -> str:
    done = running.evenflow(*command)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_steps_of_a_fleet_are_sentences_and_say_what_the_command_line_says(browser: Browser) -> None:
    """R-AS2: the decision, its reason and what was seen; and of another fleet why no autoscaler looks after it."""
    with running_evenflow(None, "--autoscale", "0..1") as running:
        (running.dags / "counted.py").write_text(COUNTED)
        wait_until(lambda: "counted" in shown(running, "dags", "list"), "the DAG is there")
        shown(running, "autoscaler", "set", "far", "--target", "kubernetes", "--of-target.deployment", "w", "--queue", "far")
        shown(running, "run", "counted", "--unpause")
        listed = json.loads(shown(running, "autoscaler", "list", "--json"))["fleets"]
        [fleet] = {each["name"] for each in listed} - {"far"}
        decided = "0 workers to 1: 1 task here, and there is no worker"
        assert decided in shown(running, "autoscaler", "steps", fleet)
        page = logged_in(browser, running)
        page.goto("/fleet")
        settled(page)
        steps = page.get_by_role("region", name=f"Steps of {fleet}")
        expect(steps).to_contain_text(decided, timeout=WITHIN_MS)
        expect(steps).to_contain_text("seen: 0 tasks running, 1 waiting; 0 slots")
        expect(page.get_by_role("article", name="Fleet far")).to_contain_text("Set EVENFLOW_KUBERNETES", timeout=WITHIN_MS)
        assert (violations(page), page.flaws) == ([], [])  # type: ignore[attr-defined]
