"""Schedules that are code: their next runs come from a forecast."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from evenflow.core.forecast import Forecast, TimetableRun
from evenflow.core.limits import FORECAST_LOW, FORECAST_RUNS
from evenflow.core.model import DagSpec, Schedule, TaskSpec
from evenflow.core.timetable import Past, due_runs, next_run
from evenflow.errors import BadSchedule

DAY = timedelta(days=1)
BEGIN = datetime(2026, 6, 1, tzinfo=UTC)


def run(n: int) -> TimetableRun:
    """A run for the n-th day, an hour after its end."""
    start = BEGIN + n * DAY
    return TimetableRun(start, start, start + DAY, start + DAY + timedelta(hours=1))


def forecast(*days: int, is_whole: bool = False) -> Forecast:
    return Forecast(tuple(map(run, days)), is_whole)


def spec(*, catchup: bool, end_date: str | None = None) -> DagSpec:
    tasks = (TaskSpec(task_id="a", operator="python"),)
    return DagSpec(dag_id="d", tasks=tasks, schedule=Schedule(kind="code", code="Odd"), catchup=catchup, end_date=end_date)


def test_with_catchup_each_run_comes_in_order() -> None:
    """R-AF1"""
    runs, following = due_runs(spec(catchup=True), Past(BEGIN, forecast=forecast(1, 3, 4, 9)), BEGIN + 6 * DAY, 16)
    assert (runs, following) == ([run(1), run(3), run(4)], run(9))


def test_without_catchup_the_newest_that_has_passed_comes() -> None:
    runs, following = due_runs(spec(catchup=False), Past(forecast=forecast(1, 3, 4, 9)), BEGIN + 6 * DAY, 16)
    assert (runs, following) == ([run(4)], run(9))


def test_what_was_scheduled_does_not_come_again() -> None:
    runs, following = due_runs(spec(catchup=True), Past(run(3).logical_date, forecast=forecast(1, 3, 4)), BEGIN + 6 * DAY, 16)
    assert (runs, following) == ([run(4)], None)


def test_without_catchup_a_forecast_that_has_passed_makes_no_run_unless_none_follows() -> None:
    """A newer date may have passed, of which the forecast does not know yet."""
    late = BEGIN + 30 * DAY
    assert due_runs(spec(catchup=False), Past(forecast=forecast(1, 2)), late, 16) == ([], None)
    assert due_runs(spec(catchup=False), Past(forecast=forecast(1, 2, is_whole=True)), late, 16) == ([run(2)], None)
    assert due_runs(spec(catchup=False, end_date=run(1).logical_date.isoformat()), Past(forecast=forecast(1, 2)), late, 16) == (
        [run(1)],
        None,
    )


def test_more_is_computed_before_the_forecast_is_used_up() -> None:
    ahead = forecast(*range(FORECAST_RUNS))
    nearly = run(FORECAST_RUNS - FORECAST_LOW).logical_date
    assert not ahead.is_low(None, True, BEGIN)
    assert not ahead.is_low(nearly - DAY, True, BEGIN)
    assert ahead.is_low(nearly, True, BEGIN)
    assert not ahead._replace(is_whole=True).is_low(nearly, True, BEGIN)
    assert ahead.is_low(None, False, BEGIN + FORECAST_RUNS * DAY), "what has passed does not count without catchup"
    assert not ahead.is_low(None, True, BEGIN + FORECAST_RUNS * DAY)


def test_a_forecast_travels_as_json() -> None:
    found = forecast(1, 2, is_whole=True)
    assert Forecast.read(found.to_json()) == found


DATE = "2026-06-01T00:00:00+00:00"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[]", "cannot be read"),
        ("{", "cannot be read"),
        (json.dumps({"runs": [[DATE]], "is_whole": False}), "cannot be read"),
        (json.dumps({"runs": [[DATE, DATE, 3]], "is_whole": False}), "cannot be read"),
        (forecast(2, 1).to_json(), "after the one for 2026-06-03"),
        (forecast(*range(FORECAST_RUNS + 1)).to_json(), "101 runs at once"),
        (" " * 30_000, "30,000 characters"),
        (json.dumps({"runs": [[DATE, "2026-05-01T00:00:00+00:00", DATE]], "is_whole": False}), "ends before its begin"),
        (json.dumps({"runs": [["0001-06-01T00:00:00+00:00", DATE, DATE]], "is_whole": False}), "out of range"),
    ],
)
def test_a_forecast_that_makes_no_sense_is_refused(text: str, why: str) -> None:
    with pytest.raises(BadSchedule, match=why):
        Forecast.read(text)


def test_a_zone_may_be_an_offset() -> None:
    """R-AF1: DAG files of Airflow have such dates."""
    schedule = Schedule(kind="cron", cron="0 6 * * *", timezone="+05:30", trigger=True)
    found = next_run(schedule, BEGIN, None, None, True, BEGIN)
    assert found is not None
    assert found.run_after == BEGIN + timedelta(minutes=30)
    with pytest.raises(BadSchedule, match=r"'\+25:00' does not exist"):
        next_run(Schedule(kind="cron", cron="0 6 * * *", timezone="+25:00"), BEGIN, None, None, True, BEGIN)
