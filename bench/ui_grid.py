"""ui_grid: how soon the grid of a DAG with 100 runs of 200 tasks is on the screen of a real browser, on a real `evenflow up`.

``paint_s``: from the click on the DAG's name until the frame after the first in which the grid has its cells; the browser has the
code already. ``api_s``: an answer of the API with all 100 runs, to a client that asks over one connection.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import measure
from asking import Asking
from finished_runs import add_finished_runs
from playwright.sync_api import Page
from server import open_connection

from evenflow.runtime.embedded import EmbeddedPostgres
from tests.running import RunningEvenflow, running_evenflow
from tests.ui.browsing import chromium, logged_in, settled
from tests.ui.seed import ask
from tests.waiting import wait_until

CASE = "ui_grid"
PAINT_S, API_S = 1.0, 0.15  # medians
RUNS, TASKS = 100, 200
DAG_FILE = """
from evenflow import dag, task


@dag(schedule=None)
def wide():
    @task
    def step(before=None):
        pass

    first = step()
    for number in range(1, {tasks}):
        step.override(task_id=f"step_{{number}}")(first)


wide()
"""
# Answers when the grid has been painted, seconds from the click.
PAINTED = """
() => new Promise(done => {
    const begin = performance.now();
    const look = () => {
        if (document.querySelector(".grid-cell .mark"))
            requestAnimationFrame(() => requestAnimationFrame(() => done((performance.now() - begin) / 1000)));
        else requestAnimationFrame(look);
    };
    document.querySelector('main a[href="/dags/wide"]').click();
    look();
})
"""


def run(*, runs: int, of_runs: int = RUNS, tasks: int = TASKS) -> Iterator[dict[str, Any]]:
    """``runs``: how often each is measured, ten times at least. Smaller ``of_runs`` and ``tasks`` are for tests."""
    times = max(10, runs)
    with running_evenflow() as system, chromium() as browser:
        (system.dags / "wide.py").write_text(DAG_FILE.format(tasks=tasks))
        wait_until(lambda: len(ask(system, "GET", "dags")["items"]) == 1, lambda: system.log)
        with open_connection(EmbeddedPostgres(system.home).url(), "bench") as conn:
            added = add_finished_runs(conn, ["wide"], of_runs)
            conn.execute("analyze")
        api = measure.quantiles(_answers(system, times, of_runs, tasks))
        paint = measure.quantiles(_paints(logged_in(browser, system), times), 3)
    assert api is not None
    assert paint is not None
    ok = added == of_runs * tasks and paint["median"] <= PAINT_S and api["median"] <= API_S
    yield {"ok": ok, "load": measure.load(), "cells": added, "paint_s": paint, "api_s": api}


def _answers(system: RunningEvenflow, times: int, of_runs: int, tasks: int) -> list[float]:
    asking = Asking(system.api_url, system.token)
    answers = [asking.get(f"dags/wide/grid?limit={of_runs}") for _ in range(times + 1)]
    found = json.loads(answers[-1][1])
    assert (len(found["runs"]), len(found["tasks"])) == (of_runs, tasks)
    return [took for took, _ in answers[1:]]


def _paints(page: Page, times: int) -> list[float]:
    taken = []
    for _ in range(times + 1):
        page.goto("/dags")
        settled(page)
        taken.append(float(page.evaluate(PAINTED)))
    return taken[1:]
