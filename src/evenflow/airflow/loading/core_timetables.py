"""Timetables that files have from Airflow's core, as Airflow 2 told them to: each is one of the SDK's."""

from __future__ import annotations

from typing import Any

from airflow import sdk
from airflow.sdk.definitions.timetables.simple import ContinuousTimetable, NullTimetable, OnceTimetable
from airflow.timetables import events, interval, simple, trigger


def of_sdk(timetable: Any) -> Any:
    """Returns the SDK's form of a timetable, or what it got. Compares the exact class, because a derived one may mean anything."""
    match type(timetable):
        case simple.NullTimetable:
            return NullTimetable()
        case simple.OnceTimetable:
            return OnceTimetable()
        case simple.ContinuousTimetable:
            return ContinuousTimetable()
        case events.EventsTimetable:
            return sdk.EventsTimetable(timetable.event_dates)
        case interval.CronDataIntervalTimetable:
            return sdk.CronDataIntervalTimetable(timetable._expression, timetable._timezone)
        case interval.DeltaDataIntervalTimetable:
            return sdk.DeltaDataIntervalTimetable(timetable._delta)
        case trigger.DeltaTriggerTimetable:
            return sdk.DeltaTriggerTimetable(timetable._delta, interval=timetable._interval)
        case trigger.CronTriggerTimetable:
            return sdk.CronTriggerTimetable(timetable._expression, **_shared(timetable))
        case trigger.MultipleCronTriggerTimetable:
            crons = timetable._timetables
            return sdk.MultipleCronTriggerTimetable(*(each._expression for each in crons), **_shared(crons[0]))
        case _:
            return timetable


def _shared(cron: Any) -> dict[str, Any]:
    return {"timezone": cron._timezone, "interval": cron._interval, "run_immediately": cron._run_immediately}
