"""Data intervals, catch-up and summer time of scheduled runs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenflow.core.model import Schedule
from evenflow.core.timetable import Run, next_run, parse_schedule
from evenflow.errors import BadSchedule


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def cron(expression: str, timezone: str = "UTC") -> Schedule:
    return Schedule(kind="cron", cron=expression, timezone=timezone)


DAILY = cron("@daily")


def test_a_run_covers_the_interval_before_it() -> None:
    run = next_run(DAILY, at("2026-01-01T00:00Z"), None, None, True, at("2026-01-01T12:00Z"))
    assert run == Run(at("2026-01-01T00:00Z"), at("2026-01-01T00:00Z"), at("2026-01-02T00:00Z"), at("2026-01-02T00:00Z"))


def test_the_first_interval_begins_at_the_first_tick_from_the_start_date_on() -> None:
    run = next_run(DAILY, at("2026-01-01T06:00Z"), None, None, True, at("2026-02-01T00:00Z"))
    assert run is not None
    assert run.logical_date == at("2026-01-02T00:00Z")


def test_catchup_makes_every_run() -> None:
    now, after, logical = at("2026-01-05T12:00Z"), None, []
    while (run := next_run(DAILY, at("2026-01-01T00:00Z"), None, after, True, now)) and run.run_after <= now:
        logical.append(run.logical_date)
        after = run.logical_date
    assert logical == [at(f"2026-01-0{day}T00:00Z") for day in (1, 2, 3, 4)]


def test_without_catchup_only_the_newest_complete_interval_is_made() -> None:
    run = next_run(DAILY, at("2020-01-01T00:00Z"), None, None, False, at("2026-01-05T12:00Z"))
    assert run is not None
    assert (run.logical_date, run.run_after) == (at("2026-01-04T00:00Z"), at("2026-01-05T00:00Z"))
    following = next_run(DAILY, at("2020-01-01T00:00Z"), None, run.logical_date, False, at("2026-01-05T12:00Z"))
    assert following is not None
    assert following.run_after == at("2026-01-06T00:00Z")


def test_an_interval_that_ends_now_is_complete() -> None:
    run = next_run(DAILY, None, None, None, False, at("2026-01-05T00:00Z"))
    assert run is not None
    assert run.run_after == at("2026-01-05T00:00Z")


def test_a_start_date_in_the_future_is_waited_for() -> None:
    run = next_run(DAILY, at("2026-03-01T00:00Z"), None, None, False, at("2026-01-05T00:00Z"))
    assert run is not None
    assert run.logical_date == at("2026-03-01T00:00Z")


def test_no_interval_begins_after_the_end_date() -> None:
    end = at("2026-01-02T00:00Z")
    last = next_run(DAILY, at("2026-01-01T00:00Z"), end, at("2026-01-01T00:00Z"), True, at("2026-01-05T00:00Z"))
    assert last is not None
    assert last.logical_date == end
    assert next_run(DAILY, at("2026-01-01T00:00Z"), end, end, True, at("2026-01-05T00:00Z")) is None


def test_a_manual_dag_has_no_next_run() -> None:
    assert next_run(Schedule(), None, None, None, True, at("2026-01-05T00:00Z")) is None


def test_days_follow_the_time_zone_across_its_changes() -> None:
    """R-HA12"""
    schedule, start = cron("0 6 * * *", "Europe/Berlin"), at("2025-10-24T00:00Z")
    after, ends = None, []
    for _ in range(4):
        run = next_run(schedule, start, None, after, True, start)
        assert run is not None
        after = run.logical_date
        ends.append(run.run_after.isoformat(timespec="minutes"))
    assert ends == ["2025-10-25T04:00+00:00", "2025-10-26T05:00+00:00", "2025-10-27T05:00+00:00", "2025-10-28T05:00+00:00"]


def test_the_hosts_time_zone_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    """R-HA12"""
    import time

    found, start = set(), at("2025-03-08T00:00Z")
    for host in ("UTC", "Asia/Kathmandu", "America/St_Johns"):
        monkeypatch.setenv("TZ", host)
        time.tzset()
        found.add(next_run(cron("30 2 * * *", "America/St_Johns"), start, None, None, True, start))
    monkeypatch.undo()
    time.tzset()
    assert len(found) == 1


EXPRESSIONS = st.sampled_from(["* * * * *", "*/7 3 * * *", "0 0 29 2 *", "0 0 * * 5L", "* * * 1 *", "59 23 31 12 *", "30 2 * * *"])
NOWS = st.datetimes(datetime(2022, 1, 1), datetime(2032, 1, 1)).map(lambda moment: moment.replace(tzinfo=UTC))


@given(EXPRESSIONS, NOWS, st.sampled_from(["UTC", "Europe/Berlin", "America/St_Johns"]))
@settings(max_examples=100, deadline=None)
def test_the_newest_complete_interval_is_the_newest(expression: str, now: datetime, zone_name: str) -> None:
    run = next_run(cron(expression, zone_name), None, None, None, False, now)
    assert run is not None
    assert run.run_after <= now
    parsed, zone = parse_schedule(expression, zone_name)
    assert parsed.next(run.logical_date, zone) == run.run_after
    assert parsed.next(run.run_after, zone) > now


@given(EXPRESSIONS, NOWS)
@settings(max_examples=50, deadline=None)
def test_runs_follow_one_another_without_a_gap(expression: str, start: datetime) -> None:
    runs: list[Run] = []
    for _ in range(5):
        run = next_run(cron(expression), start, None, runs[-1].logical_date if runs else None, True, start)
        assert run is not None
        runs.append(run)
    assert all(first.data_interval_end == second.data_interval_start for first, second in pairwise(runs))


def test_a_rare_schedule_is_found_without_walking_through_its_ticks() -> None:
    """44,640 ticks each January: the search must not visit them all in the middle of June."""
    import time

    begin = time.process_time()
    run = next_run(cron("* * * 1 *"), None, None, None, False, at("2026-06-15T00:00Z"))
    assert run is not None
    assert run.run_after == at("2026-01-31T23:59Z")
    assert time.process_time() - begin < timedelta(seconds=0.5).total_seconds()


def test_an_unknown_time_zone_says_so() -> None:
    for name in ("Mars/Olympus", "", "../etc/passwd"):
        with pytest.raises(BadSchedule, match="does not exist here"):
            parse_schedule("@daily", name)
