"""Past dates and runs by hand, from the command line, on a whole Evenflow."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.running import RunningEvenflow
from tests.waiting import wait_until

DAGS = """
from evenflow import CronDataIntervalTimetable, Param, dag, task

@task
def work(n: int) -> int:
    return n

@dag(schedule=CronDataIntervalTimetable("0 0 1 1 *"), is_paused_upon_creation=False)
def yearly(n: int = Param(1, type="integer", minimum=1)):
    work(n)

yearly()
"""


@pytest.fixture(scope="session")
def up(evenflow_up: RunningEvenflow) -> RunningEvenflow:
    (evenflow_up.dags / "yearly.py").write_text(DAGS)
    return evenflow_up


def answer(up: RunningEvenflow, *command: str) -> Any:
    done = up.evenflow(*command, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_backfill_from_its_plan_to_its_end(up: RunningEvenflow) -> None:
    wait_until(lambda: up.evenflow("dags", "show", "yearly").returncode == 0)
    years = ("--from", "2010-01-01", "--to", "2012-12-31")
    planned = up.evenflow("backfill", "create", "yearly", *years, "--dry-run")
    assert "3 of 3 dates would get a run." in planned.stdout
    made = answer(up, "backfill", "create", "yearly", *years, "--reverse", "--max-active-runs", "1", "--param", "n=7")
    number = str(made["backfill_id"])
    wait_until(lambda: answer(up, "backfill", "show", number)["backfill"]["ended_at"])
    shown = answer(up, "backfill", "show", number)
    assert [(r["logical_date"][:4], r["state"]) for r in shown["runs"]] == [
        ("2012", "success"),
        ("2011", "success"),
        ("2010", "success"),
    ]
    run = answer(up, "runs", "show", "yearly", shown["runs"][0]["run_id"])
    assert (run["run_type"], run["params"], run["backfill_id"]) == ("backfill", {"n": 7}, made["backfill_id"])
    again = up.evenflow("backfill", "create", "yearly", *years, "--dry-run")
    assert "0 of 3 dates would get a run." in again.stdout
    assert "over" in up.evenflow("backfill", "list", "yearly").stdout
    assert "is over" in up.evenflow("backfill", "pause", number).stderr


def test_a_run_by_hand_with_everything(up: RunningEvenflow) -> None:
    wait_until(lambda: up.evenflow("dags", "show", "yearly").returncode == 0)
    date = "2001-01-01T00:00:00+00:00"
    run = answer(
        up, "runs", "trigger", "yearly", "--conf", '{"n": 2}', "--logical-date", date, "--note", "for Bob", "--run-id", "bob"
    )
    assert (run["params"], run["note"], run["run_type"]) == ({"n": 2}, "for Bob", "manual")
    assert run["data_interval_start"] == "2000-01-01T00:00:00Z"
    refused = up.evenflow("runs", "trigger", "yearly", "--logical-date", date)
    assert "already: 'bob'" in refused.stderr
    assert "Type for example: --param n=1" in up.evenflow("runs", "trigger", "yearly", "--param", "n=0").stderr
    assert "--conf must be a JSON object" in up.evenflow("runs", "trigger", "yearly", "--conf", "[1]").stderr
    assert answer(up, "runs", "note", "yearly", "bob", "seen")["note"] == "seen"
    assert "seen" in up.evenflow("runs", "list", "yearly").stdout
