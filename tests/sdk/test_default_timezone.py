"""What a DAG file says without a time zone is in the default one, which whoever loads it is told (R-HA6)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from evenflow import DAG, CronDataIntervalTimetable, DeadlineAlert, EmptyOperator, EventsTimetable
from evenflow.core.model import DagSpec
from evenflow.sdk.default_timezone import set_default_timezone


@pytest.fixture
def kathmandu() -> Iterator[None]:
    set_default_timezone("Asia/Kathmandu")
    yield
    set_default_timezone("UTC")


def spec(**options: object) -> DagSpec:
    with DAG("d", **options) as dag:  # type: ignore[arg-type]
        EmptyOperator(task_id="work")
    return dag.to_spec()


@pytest.mark.usefixtures("kathmandu")
def test_what_names_no_zone_is_in_the_default_one() -> None:
    found = spec(
        schedule="0 6 * * *",
        start_date=datetime(2026, 1, 1),
        end_date=datetime(2026, 2, 1),
        deadline=DeadlineAlert.done_by("07:00", callback=print),
    )
    assert (found.schedule.timezone, found.start_date, found.end_date) == (
        "Asia/Kathmandu",
        "2026-01-01T00:00:00+05:45",
        "2026-02-01T00:00:00+05:45",
    )
    assert (found.deadlines[0].timezone, found.default_timezone) == ("Asia/Kathmandu", "Asia/Kathmandu")
    assert spec(schedule=CronDataIntervalTimetable("@daily")).schedule.timezone == "Asia/Kathmandu"
    assert spec(schedule=EventsTimetable([datetime(2026, 1, 1, 5, 45)])).schedule.dates == ("2026-01-01T00:00:00+00:00",)


@pytest.mark.usefixtures("kathmandu")
def test_what_names_a_zone_is_in_that() -> None:
    found = spec(
        schedule="0 6 * * *", start_date=datetime(2026, 1, 1, tzinfo=ZoneInfo("Europe/Berlin")), end_date=datetime(2026, 2, 1)
    )
    assert (found.schedule.timezone, found.end_date) == ("Europe/Berlin", "2026-02-01T00:00:00+01:00")
    assert spec(schedule=CronDataIntervalTimetable("@daily", "UTC")).schedule.timezone == "UTC"


def test_it_is_utc_where_nobody_says_otherwise_and_then_no_part_of_the_spec() -> None:
    found = spec(schedule="0 6 * * *", start_date=datetime(2026, 1, 1))
    assert (found.schedule.timezone, found.start_date) == ("UTC", "2026-01-01T00:00:00+00:00")
    assert "timezone" not in found.to_json()
