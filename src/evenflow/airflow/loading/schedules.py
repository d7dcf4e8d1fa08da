"""Turns the timetable of an Airflow DAG into a schedule of Evenflow."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from airflow.sdk import (
    AssetOrTimeSchedule,
    CronDataIntervalTimetable,
    CronTriggerTimetable,
    DeltaDataIntervalTimetable,
    DeltaTriggerTimetable,
    EventsTimetable,
    MultipleCronTriggerTimetable,
)
from airflow.sdk.definitions.timetables.assets import AssetTriggeredTimetable
from airflow.sdk.definitions.timetables.simple import ContinuousTimetable, NullTimetable, OnceTimetable
from dateutil.relativedelta import relativedelta
from pendulum.tz.timezone import FixedTimezone

from evenflow.airflow.loading.assets import condition_of
from evenflow.airflow.loading.core_timetables import of_sdk
from evenflow.airflow.loading.refusals import DagRefusals
from evenflow.airflow.loading.watches import WatchTimetable
from evenflow.core.limits import MAX_NAME_CHARS
from evenflow.core.model import Schedule

CRONS = (CronTriggerTimetable, CronDataIntervalTimetable)
DELTAS = (DeltaTriggerTimetable, DeltaDataIntervalTimetable)


def schedule_of(timetable: Any, refusals: DagRefusals) -> Schedule:
    """Compares the exact class, because a derived one may mean anything: it is code, as are times that cannot be said here."""
    timetable = of_sdk(timetable)
    kind = type(timetable)
    if kind is NullTimetable:
        return Schedule()
    if kind is OnceTimetable:
        return Schedule(kind="once")
    if kind is ContinuousTimetable:
        return Schedule(kind="continuous")
    if kind is WatchTimetable:
        return Schedule(kind="watch", watch=timetable.asset, watch_key=timetable.key)
    if kind is AssetTriggeredTimetable:
        return Schedule(kind="assets", assets=condition_of(timetable.asset_condition, refusals))
    if kind is AssetOrTimeSchedule:
        return replace(schedule_of(timetable.timetable, refusals), assets=condition_of(timetable.asset_condition, refusals))
    if kind is EventsTimetable:
        dates = sorted({date.astimezone(UTC) for date in timetable.event_dates})
        return Schedule(kind="dates", dates=tuple(date.isoformat() for date in dates))
    if kind in DELTAS and not _is_by_calendar(timetable):
        window = seconds_of(getattr(timetable, "interval", None), refusals)
        is_trigger = kind is DeltaTriggerTimetable
        return Schedule(kind="delta", every_s=seconds_of(timetable.delta, refusals), trigger=is_trigger, window_s=window)
    if kind is MultipleCronTriggerTimetable and not _is_by_calendar(timetable.timetables[0]):
        first, *others = timetable.timetables
        return replace(_cron(first, refusals), also=tuple(other.expression for other in others))
    if kind in CRONS and not _is_by_calendar(timetable):
        return _cron(timetable, refusals)
    return _code(timetable, refusals)


def is_built_in(timetable: Any) -> bool:
    """Returns whether Airflow's core has code for a timetable of the SDK."""
    return type(timetable) in (*CRONS, *DELTAS, MultipleCronTriggerTimetable)


def _is_by_calendar(timetable: Any) -> bool:
    """Returns whether its times depend on the calendar, or on when it was seen, in a way that a schedule cannot say."""
    deltas = (getattr(timetable, "delta", None), getattr(timetable, "interval", None))
    at_once = getattr(timetable, "run_immediately", False)
    return any(isinstance(delta, relativedelta) and _has_months(delta) for delta in deltas) or not isinstance(at_once, bool)


def _has_months(delta: relativedelta) -> bool:
    return any((delta.years, delta.months, delta.year, delta.month, delta.day, delta.weekday))


def _code(timetable: Any, refusals: DagRefusals) -> Schedule:
    kind = type(timetable)
    name = f"timetable {kind.__module__}.{kind.__qualname__}"
    if getattr(timetable, "partitioned", False) or not (is_built_in(timetable) or hasattr(timetable, "next_dagrun_info")):
        refusals.add(name, "Say when it runs by a cron expression, a timedelta, assets or a Timetable of your own.")
    elif getattr(timetable, "asset_condition", None):
        refusals.add(f"{name} with assets", "Say AssetOrTimeSchedule(timetable=..., assets=...) of airflow.sdk.")
    summary = getattr(timetable, "summary", None) or kind.__name__
    return Schedule(kind="code", code=str(summary)[:MAX_NAME_CHARS])


def _cron(timetable: Any, refusals: DagRefusals) -> Schedule:
    found = Schedule(kind="cron", cron=timetable.expression, timezone=zone_name(timetable.timezone, refusals))
    if isinstance(timetable, CronDataIntervalTimetable):
        return found
    window = seconds_of(timetable.interval, refusals)
    return replace(found, trigger=True, window_s=window, run_immediately=timetable.run_immediately)


def seconds_of(delta: Any, refusals: DagRefusals) -> float:
    if delta is None:
        return 0.0
    if isinstance(delta, relativedelta):
        if _has_months(delta):
            refusals.add(f"duration of months or years ({delta!r})", "Say it by a timedelta.")
        delta = timedelta(
            days=delta.days, hours=delta.hours, minutes=delta.minutes, seconds=delta.seconds, microseconds=delta.microseconds
        )
    return float(delta.total_seconds())


def zone_name(zone: Any, refusals: DagRefusals) -> str:
    if isinstance(zone, timezone | FixedTimezone) and zone is not UTC:
        return datetime(1970, 1, 1, tzinfo=zone).isoformat()[-6:]
    name = zone if isinstance(zone, str) else getattr(zone, "name", None) or getattr(zone, "key", None) or str(zone)
    return str(name)
