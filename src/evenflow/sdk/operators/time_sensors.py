"""Sensors that wait for a point in time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, time, timedelta
from typing import Any, ClassVar

from evenflow.errors import BadSetting
from evenflow.sdk.airflow_names import WeekDay
from evenflow.sdk.clock import clock
from evenflow.sdk.context import Context
from evenflow.sdk.operators.sensors import BaseSensorOperator
from evenflow.sdk.triggers import BaseTrigger, DateTimeTrigger


class DateTimeSensor(BaseSensorOperator):
    """Waits until ``target_time``, a datetime or ISO 8601 text, in UTC without a time zone."""

    operator_name = "sensor"
    template_fields: ClassVar[Sequence[str]] = ("target_time",)

    def __init__(self, *, task_id: str, target_time: datetime | str, **options: Any) -> None:
        super().__init__(task_id=task_id, **options)
        self.target_time = target_time.isoformat() if isinstance(target_time, datetime) else target_time

    def poke(self, context: Context) -> bool:
        return clock().now() >= self._target()

    def trigger(self, context: Context) -> BaseTrigger:
        return DateTimeTrigger(self._target())

    def _target(self) -> datetime:
        target = datetime.fromisoformat(self.target_time)
        return target if target.tzinfo else target.replace(tzinfo=UTC)


class TimeDeltaSensor(BaseSensorOperator):
    """Waits until ``delta`` after the end of the run's data interval, or after its ``run_after`` when it has none."""

    operator_name = "sensor"

    def __init__(self, *, task_id: str, delta: timedelta, **options: Any) -> None:
        super().__init__(task_id=task_id, **options)
        if not isinstance(delta, timedelta):
            raise BadSetting(f"Task {task_id!r}: delta must be a timedelta, not {delta!r}.")
        self.delta = delta

    def poke(self, context: Context) -> bool:
        return clock().now() >= self._target(context)

    def trigger(self, context: Context) -> BaseTrigger:
        return DateTimeTrigger(self._target(context))

    def _target(self, context: Context) -> datetime:
        from_when: datetime = context["data_interval_end"] or context["dag_run"].run_after
        return from_when + self.delta


class TimeSensor(BaseSensorOperator):
    """Waits until ``target_time`` of the day of its first look, in the time zone of the DAG's schedule or its own."""

    operator_name = "sensor"

    def __init__(self, *, task_id: str, target_time: time, **options: Any) -> None:
        super().__init__(task_id=task_id, **options)
        if not isinstance(target_time, time):
            raise BadSetting(f"Task {task_id!r}: target_time must be a datetime.time, not {target_time!r}.")
        self.target_time = target_time

    def poke(self, context: Context) -> bool:
        return clock().now() >= self._target(context)

    def trigger(self, context: Context) -> BaseTrigger:
        return DateTimeTrigger(self._target(context))

    def _target(self, context: Context) -> datetime:
        from zoneinfo import ZoneInfo

        zone = self.target_time.tzinfo or ZoneInfo(context["dag"].header.spec.schedule.timezone)
        first_day = (clock().now().astimezone(zone) - timedelta(seconds=self.waited_s)).date()
        return datetime.combine(first_day, self.target_time.replace(tzinfo=None), zone)


class DayOfWeekSensor(BaseSensorOperator):
    """Waits for one of the days ``week_day``: English names, or numbers from 1 for Monday to 7.

    With ``use_task_logical_date`` the day of the run's logical date counts, not today; UTC either way.
    """

    operator_name = "sensor"

    def __init__(
        self, *, task_id: str, week_day: str | int | Iterable[str | int], use_task_logical_date: bool = False, **options: Any
    ) -> None:
        super().__init__(task_id=task_id, **options)
        days = [week_day] if isinstance(week_day, (str, int)) else list(week_day)
        self.week_days = frozenset(_day_number(task_id, day) for day in days)
        self.use_task_logical_date = use_task_logical_date

    def poke(self, context: Context) -> bool:
        logical = context["logical_date"] if self.use_task_logical_date else None
        return (logical or clock().now()).astimezone(UTC).isoweekday() in self.week_days

    def trigger(self, context: Context) -> BaseTrigger | None:
        if (self.use_task_logical_date and context["logical_date"]) or not self.week_days:
            return None  # it does not change
        today = clock().now().astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        days = (today + timedelta(days=after) for after in range(1, 8))
        return DateTimeTrigger(next(day for day in days if day.isoweekday() in self.week_days))


def _day_number(task_id: str, day: str | int) -> int:
    number = WeekDay.__members__.get(day.upper(), 0) if isinstance(day, str) else day
    if number not in tuple(WeekDay):
        raise BadSetting(f"Task {task_id!r}: {day!r} is no day of the week. Type for example: week_day='monday'")
    return number
