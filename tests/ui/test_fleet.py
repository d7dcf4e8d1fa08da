"""The page of fleets in a real browser: what an autoscaler did, in sentences."""

from __future__ import annotations

import json

import psutil
import pytest
from playwright.sync_api import Browser, expect

from tests.running import RunningEvenflow, running_evenflow
from tests.ui.browsing import PHONE, WITHIN_MS, logged_in, settled, violations
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


WORKS = """
import time
from evenflow import dag, task

@dag()
def works():
    @task
    def long():
        time.sleep(600)

    @task(queue="gpu")
    def nowhere():
        pass

    long()
    nowhere()

works()
"""


def shown(running: RunningEvenflow, *command: str) -> str:
    done = running.evenflow(*command)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_steps_of_a_fleet_are_sentences_and_say_what_the_command_line_says(browser: Browser) -> None:
    """R-AS2: the decision, its reason and what was seen; and of another fleet why no autoscaler looks after it."""
    with running_evenflow(None, "--autoscale", "0..1") as running:
        (running.dags / "counted.py").write_text(COUNTED)
        (running.dags / "works.py").write_text(WORKS)
        wait_until(lambda: {"counted", "works"} <= set(shown(running, "dags", "list").split()), "the DAGs are there")
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
        expect(page.get_by_role("article", name=f"Fleet {fleet}")).to_contain_text("Bounds0 to 1")
        shown(running, "run", "works", "--unpause", "--detach")
        worker = page.get_by_role("region", name=f"Workers of {fleet}").get_by_role("row", name=f"{fleet}-1")
        expect(worker).to_have_text(f"{fleet}-1yes10", timeout=WITHIN_MS)
        shown(running, "pause", "--worker", f"{fleet}-1")
        expect(worker).to_have_text(f"{fleet}-1yes10out of service", timeout=WITHIN_MS)
        article = page.get_by_role("article", name=f"Fleet {fleet}")
        expect(article).to_contain_text("Out of service1", timeout=WITHIN_MS)
        expect(article).to_contain_text("Running1")
        assert (violations(page), page.flaws) == ([], [])  # type: ignore[attr-defined]


def test_a_worker_out_of_service_and_a_queue_without_one_are_told(browser: Browser) -> None:
    """R-DQ10, R-HA4: what waits where no worker is says so on the home page, too. A worker with work is paused, taken back and
    drained by buttons; one that dies is lost.
    """
    with running_evenflow(None, "--workers", "1") as running:
        (running.dags / "works.py").write_text(WORKS)
        wait_until(lambda: "works" in shown(running, "dags", "list"), "the DAG is there")
        shown(running, "run", "works", "--unpause", "--detach")
        wait_until(lambda: "running" in shown(running, "tasks", "list", "works"), "it runs")
        page = logged_in(browser, running)
        expect(page.locator(".troubles")).to_contain_text("The queue gpu has no worker. Start one: evenflow worker --queues gpu")
        page.get_by_role("link", name="The queue gpu has no worker").click()
        expect(page.get_by_role("row", name="gpu")).to_contain_text("The queue gpu has no worker")
        assert violations(page) == []
        page.goto("/fleet")
        worker = page.get_by_role("region", name="Services").get_by_role("row", name="worker-1")
        expect(worker).to_contain_text("1 of")
        shown(running, "pause", "--worker", "worker-1")
        expect(worker).to_contain_text("paused", timeout=WITHIN_MS)
        for button, said, verb, then in (
            ("Activate", "takes on work again", "Activate it", "active"),
            ("Drain", "nothing is killed", "Drain it", "draining"),
        ):
            worker.get_by_role("button", name=button).click()
            expect(page.get_by_role("dialog")).to_contain_text(said)
            page.get_by_role("button", name=verb).click()
            expect(worker).to_contain_text(then, timeout=WITHIN_MS)
        process = running.service("worker")
        supervisor = psutil.Process(running.process.pid)
        supervisor.suspend()  # else it would start another worker under this name
        process.kill()
        expect(worker).to_contain_text("lost", timeout=WITHIN_MS)
        page.set_viewport_size(PHONE)
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        assert (violations(page), page.flaws) == ([], [])  # type: ignore[attr-defined]
        supervisor.resume()
