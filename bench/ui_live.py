"""ui_live: how soon a page in a real browser shows what has happened, on a real `evenflow up`.

``state_to_screen_s``: from a task's event, as the database has its time, until the page of its run shows that state or a later one.
``log_to_screen_s``: from a line that a running task prints until the page of the task shows it. All clocks are this host's.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import measure
from playwright.sync_api import Page, expect

from tests.running import RunningEvenflow, running_evenflow
from tests.ui.browsing import chromium, logged_in, settled
from tests.ui.seed import ask, state_of, trigger
from tests.waiting import wait_until

CASE = "ui_live"
STATE_S, LOG_S = 0.5, 1.0  # p95
TASKS, LINES = 40, 60
DAG_FILE = f"""
import time

from evenflow import dag, task


@dag(schedule=None)
def steps():
    @task
    def step(before=None):
        time.sleep(0.2)

    last = None
    for number in range({TASKS}):
        last = step.override(task_id=f"step_{{number}}")(last)


@dag(schedule=None)
def talk():
    @task
    def say():
        time.sleep(5)
        for number in range({LINES}):
            print(f"said at {{time.time():.6f}}", flush=True)
            time.sleep(0.23)

    say()


steps()
talk()
"""
# Keeps when each text of these elements was first there.
WATCH = """
selector => {
    window.shown = [];
    const known = new Map();
    const look = () => {
        const at = (performance.timeOrigin + performance.now()) / 1000;
        for (const one of document.querySelectorAll(selector)) {
            const text = one.innerText;
            const key = text.split("\\n")[0];
            if (known.get(key) !== text) { known.set(key, text); window.shown.push([text, at]); }
        }
    };
    new MutationObserver(look).observe(document.body, {subtree: true, childList: true, characterData: true});
    look();
}
"""


def run() -> Iterator[dict[str, Any]]:
    load = measure.load()
    with running_evenflow() as system, chromium() as browser:
        (system.dags / "steps.py").write_text(DAG_FILE)
        wait_until(lambda: len(ask(system, "GET", "dags")["items"]) == 2, lambda: system.log)
        page = logged_in(browser, system)
        states = measure.quantiles(_states(system, page), 3)
        lines = measure.quantiles(_lines(system, page), 3)
    assert states is not None
    assert lines is not None
    ok = states["p95"] <= STATE_S and lines["p95"] <= LOG_S
    yield {"ok": ok, "load": load, "state_to_screen_s": states, "log_to_screen_s": lines}


def _states(system: RunningEvenflow, page: Page) -> list[float]:
    trigger(system, "steps", "watched")
    page.goto("/dags/steps/runs/watched")
    settled(page)
    page.evaluate(WATCH, "main tbody tr")
    wait_until(lambda: state_of(system, "steps", "watched") == "success", lambda: system.log)
    _succeeded(page)
    shown: dict[str, list[tuple[str, float]]] = {}
    for text, at in page.evaluate("window.shown"):
        task_id, state, *_ = text.split()
        shown.setdefault(task_id, []).append((state, at))
    begun = min(at for seen in shown.values() for _, at in seen)
    took = []
    for task_id, seen in shown.items():
        for event in ask(system, "GET", f"dags/steps/runs/watched/tasks/{task_id}/events")["items"]:
            at = datetime.fromisoformat(event["at"]).timestamp()
            if event["state"] in ("running", "success") and at > begun:  # of others it is gone before a person could see it
                later = {"running": ("running", "success"), "success": ("success",)}[event["state"]]
                took.append(min(screen for state, screen in seen if state in later and screen > at - 1) - at)
    return took


def _succeeded(page: Page) -> None:
    expect(page.locator(".head .state")).to_have_text("success", timeout=120_000)


def _lines(system: RunningEvenflow, page: Page) -> list[float]:
    trigger(system, "talk", "watched")
    page.goto("/dags/talk/runs/watched/tasks/say")
    settled(page)
    page.evaluate(WATCH, ".line")
    _succeeded(page)
    shown = {text.split("said at ")[1].split()[0]: at for text, at in page.evaluate("window.shown") if "said at " in text}
    return [at - float(said) for said, at in shown.items()]
