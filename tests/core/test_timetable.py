"""Data intervals, catch-up and summer time of scheduled runs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenflow.core.model import DagSpec, Schedule
from evenflow.core.timetable import Past, TimetableRun, due_runs, manual_interval, next_run, parse_schedule, runs_between
from evenflow.errors import BadSchedule


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def cron(expression: str, timezone: str = "UTC") -> Schedule:
    return Schedule(kind="cron", cron=expression, timezone=timezone)


DAILY = cron("@daily")


def test_a_run_covers_the_interval_before_it() -> None:
    run = next_run(DAILY, at("2026-01-01T00:00Z"), None, None, True, at("2026-01-01T12:00Z"))
    assert run == TimetableRun(at("2026-01-01T00:00Z"), at("2026-01-01T00:00Z"), at("2026-01-02T00:00Z"), at("2026-01-02T00:00Z"))


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
    runs: list[TimetableRun] = []
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


def test_a_hundred_seldom_schedules_are_found_at_once() -> None:
    """Sundays that are the 29th of February, 28 years apart: a scheduler looks for them, and all other DAGs wait."""
    import time

    many = tuple(f"{minute} * 29 2 */7" for minute in range(60)) + tuple(f"{minute} 3 29 2 */7" for minute in range(40))
    spec = DagSpec(
        dag_id="d", tasks=(), schedule=Schedule(kind="cron", cron="* * 29 2 */7", also=many, timezone="America/Santiago")
    )
    begin = time.process_time()
    runs, following = due_runs(spec, Past(), at("2026-06-15T00:00Z"), 16)
    assert [run.run_after for run in runs] == [at("2004-03-01T02:59Z")]
    assert following is not None
    assert following.run_after == at("2032-02-29T03:00Z")
    assert manual_interval(spec, at("2095-01-01T00:00Z"))[1] == at("2088-03-01T02:59Z")
    assert time.process_time() - begin < timedelta(seconds=2).total_seconds()


def test_an_unknown_time_zone_says_so() -> None:
    for name in ("Mars/Olympus", "", "../etc/passwd"):
        with pytest.raises(BadSchedule, match="does not exist here"):
            parse_schedule("@daily", name)


# -- the other kinds, and the other flavour ----------------------------------------------------------------------------


def ticks(schedule: Schedule, start: str, count: int, **more: Any) -> list[str]:
    """``run_after`` of the first runs with catchup, in UTC."""
    found: list[TimetableRun] = []
    for _ in range(count):
        last = found[-1] if found else None
        after, after_end = (last.logical_date, last.data_interval_end) if last else (None, None)
        run = next_run(schedule, at(start), None, after, True, at(start), after_end=after_end, **more)
        if run is None:
            break
        found.append(run)
    return [run.run_after.strftime("%m-%d %H:%M") for run in found]


def trigger(expression: str, timezone: str = "UTC", **more: Any) -> Schedule:
    return Schedule(kind="cron", cron=expression, timezone=timezone, trigger=True, **more)


def test_a_trigger_stands_for_its_tick() -> None:
    """As Airflow 3's CronTriggerTimetable."""
    run = next_run(trigger("@daily"), at("2026-01-01T06:00Z"), None, None, True, at("2026-01-01T12:00Z"))
    tick = at("2026-01-02T00:00Z")
    assert run == TimetableRun(tick, tick, tick, tick)
    wide = next_run(trigger("@daily", window_s=86400.0), at("2026-01-01T06:00Z"), None, None, True, at("2026-01-01T12:00Z"))
    assert wide == TimetableRun(at("2026-01-01T00:00Z"), at("2026-01-01T00:00Z"), tick, tick)
    assert ticks(trigger("@daily", window_s=86400.0), "2026-01-01T00:00Z", 3) == ["01-01 00:00", "01-02 00:00", "01-03 00:00"]


def test_a_trigger_without_a_start_begins_when_the_dag_is_known() -> None:
    seen = at("2026-01-05T12:30Z")
    later = at("2026-01-05T13:00:01Z")
    first = next_run(trigger("@hourly"), None, None, None, False, seen, known_since=seen)
    due = next_run(trigger("@hourly"), None, None, None, False, later, known_since=seen)
    assert first is not None
    assert first == due
    assert first.run_after == at("2026-01-05T13:00Z")
    at_once = next_run(trigger("@hourly", run_immediately=True), None, None, None, False, seen, known_since=seen)
    assert at_once is not None
    assert at_once.run_after == at("2026-01-05T12:00Z")


def test_without_catchup_a_trigger_takes_the_newest_tick() -> None:
    run = next_run(trigger("@daily"), at("2020-01-01T00:00Z"), None, None, False, at("2026-01-05T12:00Z"))
    assert run is not None
    assert run.run_after == at("2026-01-05T00:00Z")
    following = next_run(trigger("@daily"), at("2020-01-01T00:00Z"), None, run.logical_date, False, at("2026-01-05T12:00Z"))
    assert following is not None
    assert following.run_after == at("2026-01-06T00:00Z")


def test_several_crons_are_one_schedule() -> None:
    schedule = trigger("0 6 * * *", also=("0 18 * * *", "0 6 * * MON"))
    assert ticks(schedule, "2026-01-05T00:00Z", 3) == ["01-05 06:00", "01-05 18:00", "01-06 06:00"]  # a Monday


def test_deltas_count_from_the_start_in_real_time() -> None:
    every = Schedule(kind="delta", every_s=36 * 3600.0, trigger=True)
    assert ticks(every, "2026-03-28T06:00+01:00", 3) == ["03-28 05:00", "03-29 17:00", "03-31 05:00"]  # over a change in Berlin
    interval = next_run(Schedule(kind="delta", every_s=3600.0), at("2026-01-01T00:10Z"), None, None, False, at("2026-01-02T00:00Z"))
    assert interval is not None
    assert (interval.logical_date, interval.run_after) == (at("2026-01-01T22:10Z"), at("2026-01-01T23:10Z"))


def test_dates_are_given() -> None:
    dates = Schedule(kind="dates", dates=("2026-01-01T00:00+00:00", "2026-02-01T00:00+00:00", "2026-03-01T00:00+00:00"))
    assert ticks(dates, "2026-01-15T00:00Z", 5) == ["02-01 00:00", "03-01 00:00"]
    assert (
        next_run(dates, at("2026-01-01T00:00Z"), at("2026-02-15T00:00Z"), at("2026-02-01T00:00Z"), True, at("2026-06-01T00:00Z"))
        is None
    )


def test_once_and_continuous() -> None:
    once, start = Schedule(kind="once"), at("2026-01-01T00:00Z")
    assert ticks(once, "2026-01-01T00:00Z", 5) == ["01-01 00:00"]
    assert next_run(once, start, None, start, True, at("2026-06-01T00:00Z")) is None
    endless, now = Schedule(kind="continuous"), at("2026-01-01T05:00Z")
    first = next_run(endless, start, None, None, False, now)
    assert first == TimetableRun(start, start, now, now)
    second = next_run(endless, start, None, start, False, at("2026-01-01T07:00Z"), after_end=now)
    assert second is not None
    assert (second.data_interval_start, second.data_interval_end) == (now, at("2026-01-01T07:00Z"))


@pytest.mark.parametrize(
    ("expression", "zone", "start", "expected"),
    [
        # Berlin, 29 March 2026: 02:00 to 03:00 does not exist. A time of day is taken at the first minute after the jump.
        ("30 2 * * *", "Europe/Berlin", "2026-03-28T00:00Z", ["03-28 01:30", "03-29 01:00", "03-30 00:30"]),
        # A rhythm follows real time: 01:30, 03:00, 03:30 by the clock there.
        ("*/30 * * * *", "Europe/Berlin", "2026-03-29T00:30Z", ["03-29 00:30", "03-29 01:00", "03-29 01:30"]),
        # 25 October 2026: 02:00 to 03:00 occurs twice. A time of day is taken the first time only.
        ("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00Z", ["10-25 00:30", "10-26 01:30"]),
        ("*/30 * * * *", "Europe/Berlin", "2026-10-25T00:00Z", ["10-25 00:00", "10-25 00:30", "10-25 01:00", "10-25 01:30"]),
        # St. John's is 3:30 behind UTC, 2:30 in summer; 8 March and 1 November 2026.
        ("30 2 * * *", "America/St_Johns", "2026-03-07T00:00Z", ["03-07 06:00", "03-08 05:30", "03-09 05:00"]),
        ("30 1 * * *", "America/St_Johns", "2026-10-31T00:00Z", ["10-31 04:00", "11-01 04:00", "11-02 05:00"]),
        # Kathmandu is 5:45 ahead, always.
        ("0 6 * * *", "Asia/Kathmandu", "2026-03-28T12:00Z", ["03-29 00:15", "03-30 00:15"]),
        ("0 * * * *", "Asia/Kathmandu", "2026-03-29T00:00Z", ["03-29 00:15", "03-29 01:15"]),
    ],
)
def test_changes_of_the_clocks(expression: str, zone: str, start: str, expected: list[str]) -> None:
    """R-HA12. Written by hand from the rules of the zones."""
    assert ticks(trigger(expression, zone), start, len(expected)) == expected


def test_past_runs_of_both_flavours() -> None:
    first, last = at("2026-01-01T00:00Z"), at("2026-01-03T00:00Z")
    interval = list(runs_between(DAILY, None, first, last))
    assert [(r.logical_date.day, r.run_after.day) for r in interval] == [(1, 2), (2, 3), (3, 4)]
    triggered = list(runs_between(trigger("@daily"), None, first, last))
    assert [(r.logical_date.day, r.run_after.day) for r in triggered] == [(1, 1), (2, 2), (3, 3)]
    every = Schedule(kind="delta", every_s=86400.0, trigger=True)
    counted = list(runs_between(every, at("2025-12-25T06:00Z"), first, last))
    assert [r.logical_date.hour for r in counted] == [6, 6]
    with pytest.raises(BadSchedule, match="names no times"):
        list(runs_between(Schedule(), None, first, last))


def test_a_run_by_hand_covers_the_newest_interval() -> None:
    spec = DagSpec(dag_id="d", tasks=(), schedule=DAILY)
    assert manual_interval(spec, at("2026-01-05T12:00Z")) == (at("2026-01-04T00:00Z"), at("2026-01-05T00:00Z"))
    spec = DagSpec(dag_id="d", tasks=(), schedule=trigger("@daily"))
    assert manual_interval(spec, at("2026-01-05T12:00Z")) == (at("2026-01-05T12:00Z"), at("2026-01-05T12:00Z"))


def test_a_schedule_that_becomes_continuous_has_no_date_twice() -> None:
    """The tick that was run last is the end of its own data interval, and a continuous run begins where that ended."""
    tick, now = at("2026-01-05T00:00Z"), at("2026-01-05T12:00Z")
    run = next_run(Schedule(kind="continuous"), None, None, tick, False, now, after_end=tick)
    assert run is not None
    assert run.logical_date == tick + timedelta(microseconds=1)


def test_a_misspelt_time_zone_says_what_was_meant() -> None:
    with pytest.raises(BadSchedule, match=r"'Europe/Berln' does not exist here: .* Did you mean 'Europe/Berlin'\?$"):
        parse_schedule("@daily", "Europe/Berln")
