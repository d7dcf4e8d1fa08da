"""R-AF1: a task of Airflow runs in the process of its try, and ends as it would under the SDK's own supervisor."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.airflow.conftest import run_inside

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def tries(airflow_python: Path) -> dict[str, Any]:
    told = [json.loads(line) for line in run_inside(airflow_python, "tries.py").splitlines()]
    return {each["task_id"]: each for each in told}


@pytest.mark.parametrize(
    ("task_id", "outcome", "reason"),
    [
        ("returns", "success", None),
        ("raises", "failed", "ValueError: broken"),
        ("unheard", "failed", "ValueError: broken"),
        (
            "lacks",
            "failed",
            "AirflowNotFoundException: The conn_id `warehouse` isn't defined. Type: evenflow connections set warehouse. If there "
            "is one for other DAGs, let this one use it, too: evenflow connections allow warehouse DAG",
        ),
        (
            "dateless",
            "failed",
            "KeyError: 'ds'. This run has no logical date, so it has no dates at all. "
            "Type: evenflow runs trigger DAG --logical-date DATE",
        ),
        ("skips", "skipped", "not today"),
        ("exits", "failed", "The task has failed."),
        ("closes", "success", None),
        ("awaits", "success", None),
        ("outside", "success", None),
        ("mapped", "success", None),
        ("defers", "deferred", None),
    ],
)
def test_how_it_ends(tries: dict[str, Any], task_id: str, outcome: str, reason: str | None) -> None:
    ending = tries[task_id]["ending"]
    assert (ending["outcome"], ending["reason"]) == (outcome, reason), tries[task_id]["log"]
    assert tries[task_id]["status"] == 0


def test_values_that_it_asked_for_itself_in_threads_and_in_another_python(tries: dict[str, Any]) -> None:
    results = {task_id: tries[task_id]["ending"]["result"] for task_id in ("returns", "awaits", "outside")}
    assert results == {"returns": "b'5'", "awaits": "b'\"hello-hello-hello\"'", "outside": "b'\"hello from outside\"'"}


def test_its_log_has_what_it_prints_and_logs_in_order(tries: dict[str, Any]) -> None:
    log = tries["returns"]["log"]
    assert 0 <= log.index("printed\n") < log.index("INFO mine: logged 1")
    assert "ValueError: broken" in tries["raises"]["log"]
    assert "::group::" not in log
    assert "RecursionError" not in log


def test_a_process_that_ends_itself_has_no_ending(tries: dict[str, Any]) -> None:
    assert (tries["vanishes"]["status"], tries["vanishes"]["ending"]) == (7, None)


@pytest.mark.parametrize(("task_id", "cleans_up"), [("bash", True), ("sleeps", False)])
def test_sigterm_stops_what_it_has_begun_and_ends_it(tries: dict[str, Any], task_id: str, cleans_up: bool) -> None:
    assert tries[task_id]["status"] == -signal.SIGTERM
    assert ("said cleaning_up" in tries[task_id]["log"]) == cleans_up
