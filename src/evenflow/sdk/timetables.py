"""When a DAG runs, for ``schedule=``: choices that a cron expression or a timedelta alone cannot express."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Protocol

from evenflow.core.limits import MAX_DATES
from evenflow.core.model import Schedule
from evenflow.core.timetable import check_schedule
from evenflow.errors import BadSchedule, BadSetting
from evenflow.sdk.default_timezone import default_zone


class Timetable(Protocol):
    """A value of ``schedule=`` beside text and timedelta."""

    def to_schedule(self, zone: tzinfo | None) -> Schedule:
        """``zone`` is that of the DAG's ``start_date``."""
        ...


class CronTriggerTimetable:
    """A run at each tick of a cron expression, as with the expression alone. Its logical date is the tick; its data interval is the
    time ``interval`` before that. ``run_immediately``: without a ``start_date``, the first run is for the last passed tick.
    """

    def __init__(
        self, cron: str, *, timezone: str | tzinfo | None = None, interval: timedelta = timedelta(), run_immediately: bool = False
    ) -> None:
        self._schedule = _crons((cron,), timezone, interval, run_immediately)

    def to_schedule(self, zone: tzinfo | None) -> Schedule:
        return self._schedule


class MultipleCronTriggerTimetable:
    """A run at each tick of any of several cron expressions; coinciding ticks make one run."""

    def __init__(
        self, *crons: str, timezone: str | tzinfo | None = None, interval: timedelta = timedelta(), run_immediately: bool = False
    ) -> None:
        if not crons:
            raise BadSchedule(
                "It has no cron expression. Type for example: MultipleCronTriggerTimetable('0 6 * * *', '0 18 * * *')"
            )
        self._schedule = _crons(crons, timezone, interval, run_immediately)

    def to_schedule(self, zone: tzinfo | None) -> Schedule:
        return self._schedule


class CronDataIntervalTimetable:
    """A run for the time between two ticks of a cron expression, made at the second and named by the first: Airflow 2's meaning of
    a bare expression.
    """

    def __init__(self, cron: str, timezone: str | tzinfo | None = None) -> None:
        self._schedule = _checked(Schedule(kind="cron", cron=cron, timezone=zone_name(timezone)))

    def to_schedule(self, zone: tzinfo | None) -> Schedule:
        return self._schedule


class DeltaTriggerTimetable:
    """A run every ``delta`` of real time, counted from ``start_date``, as with a timedelta alone."""

    def __init__(self, delta: timedelta, *, interval: timedelta = timedelta()) -> None:
        self._schedule = _checked(
            Schedule(kind="delta", every_s=delta.total_seconds(), trigger=True, window_s=interval.total_seconds())
        )

    def to_schedule(self, zone: tzinfo | None) -> Schedule:
        return self._schedule


class DeltaDataIntervalTimetable:
    """A run for each ``delta`` of real time, made when it has passed and named by its beginning."""

    def __init__(self, delta: timedelta) -> None:
        self._schedule = _checked(Schedule(kind="delta", every_s=delta.total_seconds()))

    def to_schedule(self, zone: tzinfo | None) -> Schedule:
        return self._schedule


class EventsTimetable:
    """A run at each of these instants. An instant without a time zone is in that of ``start_date``, else in the default one."""

    def __init__(self, event_dates: Iterable[datetime]) -> None:
        self._dates = list(event_dates)
        if not 1 <= len(self._dates) <= MAX_DATES:
            raise BadSchedule(f"It has {len(self._dates):,} dates, not 1 to {MAX_DATES:,}. Use a cron expression for a rhythm.")

    def to_schedule(self, zone: tzinfo | None) -> Schedule:
        aware = (date if date.tzinfo else date.replace(tzinfo=zone or default_zone()) for date in self._dates)
        return Schedule(kind="dates", dates=tuple(date.isoformat() for date in sorted({d.astimezone(UTC) for d in aware})))


_PLAIN = {"@once": "once", "@continuous": "continuous"}


def schedule_of(value: str | timedelta | Timetable, zone: tzinfo | None) -> Schedule:
    """Returns the meaning of ``schedule=``; ``zone`` is that of ``start_date``. Raises :class:`BadSchedule`."""
    if isinstance(value, timedelta):
        return DeltaTriggerTimetable(value).to_schedule(zone)
    if not isinstance(value, str):
        return value.to_schedule(zone)
    if value in _PLAIN:
        return Schedule(kind=_PLAIN[value])
    return CronTriggerTimetable(value, timezone=zone).to_schedule(zone)


def zone_name(zone: str | tzinfo | None) -> str:
    """Returns the name of a zone, by default the default one. Raises :class:`BadSetting` for a zone with unknown summer time."""
    zone = zone or default_zone()
    name = zone if isinstance(zone, str) else "UTC" if zone == UTC else getattr(zone, "key", None)
    if name is None:
        raise BadSetting(
            f"the time zone {zone!r} of start_date has no name, so its summer time is not known. "
            "Type: from zoneinfo import ZoneInfo, and tzinfo=ZoneInfo('Europe/Berlin')"
        )
    return str(name)


def _crons(crons: tuple[str, ...], timezone: str | tzinfo | None, interval: timedelta, run_immediately: bool) -> Schedule:
    return _checked(
        Schedule(
            kind="cron",
            cron=crons[0],
            also=crons[1:],
            timezone=zone_name(timezone),
            trigger=True,
            window_s=interval.total_seconds(),
            run_immediately=run_immediately,
        )
    )


def _checked(schedule: Schedule) -> Schedule:
    check_schedule(schedule)
    return schedule
