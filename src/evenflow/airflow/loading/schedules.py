"""Turns the timetable of an Airflow DAG into a schedule of Evenflow."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, timedelta
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

from evenflow.airflow.loading.assets import condition_of
from evenflow.airflow.loading.refusals import DagRefusals
from evenflow.core.model import Schedule

_CURE = "Say when it runs by a cron expression, a timedelta, EventsTimetable or assets."


def schedule_of(timetable: Any, refusals: DagRefusals) -> Schedule:
    """Compares the exact class, because a derived one may mean anything."""
    kind = type(timetable)
    if kind is NullTimetable:
        return Schedule()
    if kind is OnceTimetable:
        return Schedule(kind="once")
    if kind is ContinuousTimetable:
        return Schedule(kind="continuous")
    if kind is AssetTriggeredTimetable:
        return Schedule(kind="assets", assets=condition_of(timetable.asset_condition, refusals))
    if kind is AssetOrTimeSchedule:
        return replace(schedule_of(timetable.timetable, refusals), assets=condition_of(timetable.asset_condition, refusals))
    if kind is EventsTimetable:
        dates = sorted({date.astimezone(UTC) for date in timetable.event_dates})
        return Schedule(kind="dates", dates=tuple(date.isoformat() for date in dates))
    if kind in (DeltaTriggerTimetable, DeltaDataIntervalTimetable):
        window = seconds_of(getattr(timetable, "_interval", None) or getattr(timetable, "interval", None), refusals)
        is_trigger = kind is DeltaTriggerTimetable
        return Schedule(kind="delta", every_s=seconds_of(timetable.delta, refusals), trigger=is_trigger, window_s=window)
    if kind is MultipleCronTriggerTimetable:
        first, *others = timetable._timetables
        return replace(_cron(first, refusals), also=tuple(other.expression for other in others))
    if kind in (CronTriggerTimetable, CronDataIntervalTimetable):
        return _cron(timetable, refusals)
    refusals.add(f"timetable {kind.__module__}.{kind.__qualname__}", _CURE)
    return Schedule()


def _cron(timetable: Any, refusals: DagRefusals) -> Schedule:
    found = Schedule(kind="cron", cron=timetable.expression, timezone=zone_name(timetable.timezone, refusals))
    if isinstance(timetable, CronDataIntervalTimetable):
        return found
    at_once = timetable.run_immediately
    if isinstance(at_once, timedelta):
        refusals.add("run_immediately with a timedelta", "Say run_immediately=True or False.")
    return replace(found, trigger=True, window_s=seconds_of(timetable.interval, refusals), run_immediately=at_once is True)


def seconds_of(delta: Any, refusals: DagRefusals) -> float:
    if delta is None:
        return 0.0
    if isinstance(delta, relativedelta):
        if delta.years or delta.months or any((delta.year, delta.month, delta.day, delta.weekday)):
            refusals.add(f"interval of months or years ({delta!r})", "Say it by a cron expression, such as '0 0 1 * *'.")
        delta = timedelta(
            days=delta.days, hours=delta.hours, minutes=delta.minutes, seconds=delta.seconds, microseconds=delta.microseconds
        )
    return float(delta.total_seconds())


def zone_name(zone: Any, refusals: DagRefusals) -> str:
    name = zone if isinstance(zone, str) else getattr(zone, "name", None) or getattr(zone, "key", None)
    if not name or name[0] in "+-":
        refusals.add(f"time zone {zone!r}", "Name a zone, such as pendulum.timezone('Europe/Berlin'): its summer time is known.")
        return "UTC"
    return str(name)
