"""Cron expressions: five fields (minute, hour, day of month, month, day of week) and the next instant they name.

Grammar. A field is a list (``1,15``) of values, ranges (``1-5``), and either with a step (``*/15``, ``0-30/10``; ``5/15`` is from 5
to the end). Months and days of the week may be named (``JAN``, ``MON-FRI``); Sunday is 0 and 7. The day of month may be ``L``, the
last day, or ``LW``, the last that is no weekend; the day of week ``5L``, the last Friday, or ``MON#2``, the second Monday. When
both day fields are restricted either may match; when one of them begins with ``*`` both must. ``@hourly`` and the like are in
:data:`PRESETS`.

Summer time, as Debian's cron has it. An expression whose minute and hour fields do not begin with ``*`` names times of the day: it
runs once for each, also on the days when the clocks change. A time that the clocks jump over is taken at the first minute after the
jump, one that occurs twice at its first occurrence. Any other expression names a rhythm: it follows real time, so that ``*/15 * * *
*`` runs every 15 minutes throughout, in both of two equal hours and in none that is skipped.
"""

from __future__ import annotations

from calendar import monthrange
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, tzinfo

from evenflow.core.likeness import did_you_mean
from evenflow.core.quantities import counted
from evenflow.errors import BadSchedule

PRESETS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@quarterly": "0 0 1 */3 *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}

_MINUTE = timedelta(minutes=1)
_DAY = timedelta(days=1)
_DAY_MINUTES = 24 * 60
_FAR = 3 * _DAY_MINUTES
_MONTHS = {
    name: number
    for number, name in enumerate(["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"], start=1)
}
_WEEKDAYS = {name: number for number, name in enumerate(["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"])}


@dataclass(frozen=True, slots=True)
class Field:
    """One of the five: what its values are called, and their bounds."""

    name: str
    low: int
    high: int
    names: dict[str, int]


MINUTE, HOUR = Field("minute", 0, 59, {}), Field("hour", 0, 23, {})
DAY_OF_MONTH, MONTH, DAY_OF_WEEK = (
    Field("day of month", 1, 31, {}),
    Field("month", 1, 12, _MONTHS),
    Field("day of week", 0, 7, _WEEKDAYS),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cron:
    """A parsed expression. Days of the week are 0 (Sunday) to 6."""

    text: str
    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    last_day: bool
    last_workday: bool
    months: frozenset[int]
    weekdays: frozenset[int]
    nth_weekdays: frozenset[tuple[int, int]]
    last_weekdays: frozenset[int]
    both_days: bool  # day of month and day of week must both match
    by_clock: bool  # names times of the day, not a rhythm
    _known_days: dict[tuple[int, int], tuple[int, ...]] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def parse(cls, text: str) -> Cron:
        """Raises :class:`BadSchedule`, which says what is wrong with which field."""
        expression = PRESETS.get(text.strip().lower(), text)
        fields = expression.upper().split()
        if len(fields) != 5:
            if near := did_you_mean(text.strip().lower(), PRESETS) if text.strip().startswith("@") else "":
                raise BadSchedule(f"{text!r} is not a schedule.{near}")
            names = "minute, hour, day of month, month, day of week"
            raise _bad(text, f"it has {counted(len(fields), 'field')}, not 5 ({names}), and is none of {', '.join(PRESETS)}")
        minute, hour, day, month, weekday = fields
        day_terms = set(day.split(","))
        plain_days = ",".join(term for term in day.split(",") if term not in ("L", "LW"))
        plain_weekdays, nth, last = _split_weekdays(text, weekday)
        cron = cls(
            text=text,
            minutes=_values(text, MINUTE, minute),
            hours=_values(text, HOUR, hour),
            days=_values(text, DAY_OF_MONTH, plain_days) if plain_days else frozenset(),
            last_day="L" in day_terms,
            last_workday="LW" in day_terms,
            months=_values(text, MONTH, month),
            weekdays=frozenset(value % 7 for value in _values(text, DAY_OF_WEEK, plain_weekdays))
            if plain_weekdays
            else frozenset(),
            nth_weekdays=nth,
            last_weekdays=last,
            both_days=day.startswith("*") or weekday.startswith("*"),
            by_clock=not minute.startswith("*") and not hour.startswith("*"),
        )
        if not cron._has_a_day():
            raise _bad(text, "no date ever matches its day and month fields")
        return cron

    def next(self, after: datetime, zone: tzinfo) -> datetime:
        """The first instant after ``after`` (aware) that the expression names in ``zone``, in UTC."""
        after = after.astimezone(UTC)
        return self._next_by_clock(after, zone) if self.by_clock else self._next_by_rhythm(after, zone)

    def _next_by_clock(self, after: datetime, zone: tzinfo) -> datetime:
        # instant_of never falls as the wall clock rises, so no time before this one can lie after `after`.
        wall = after.astimezone(zone).replace(tzinfo=None, second=0, microsecond=0)
        while True:
            wall += _MINUTE
            while skip := self._minutes_to_skip(wall):
                wall += timedelta(minutes=skip)
            instant = instant_of(wall, zone)
            if instant > after:
                return instant

    def _next_by_rhythm(self, after: datetime, zone: tzinfo) -> datetime:
        instant = after.replace(second=0, microsecond=0) + _MINUTE
        while True:
            local = instant.astimezone(zone)
            skip = self._minutes_to_skip(local)
            if not skip:
                return instant
            instant = _skip(instant, local, skip, zone)

    def _minutes_to_skip(self, wall: datetime) -> int:
        """0 when the expression matches; else how many minutes from ``wall`` on cannot match, by the wall clock."""
        if not self.matches_day(today := wall.date()):
            return (self.day_from(today) - today).days * _DAY_MINUTES - wall.hour * 60 - wall.minute
        if wall.hour not in self.hours:
            return 60 - wall.minute
        return next((m for m in range(60 - wall.minute) if wall.minute + m in self.minutes), 60 - wall.minute)

    def matches_day(self, day: date) -> bool:
        if day.month not in self.months:
            return False
        in_month, in_week = self._matches_day_of_month(day), self._matches_weekday(day)
        return (in_month and in_week) if self.both_days else (in_month or in_week)

    def day_from(self, day: date) -> date:
        """The first that matches from this one on. Raises :class:`ValueError` when that is beyond all time."""
        year, month, least = day.year, day.month, day.day
        while (found := next((number for number in self._days_of(year, month) if number >= least), None)) is None:
            year, month, least = (year, month + 1, 1) if month < 12 else (year + 1, 1, 1)
        return date(year, month, found)

    def day_until(self, day: date) -> date:
        """The last that matches up to this one."""
        year, month, most = day.year, day.month, day.day
        while (found := next((number for number in reversed(self._days_of(year, month)) if number <= most), None)) is None:
            year, month, most = (year, month - 1, 31) if month > 1 else (year - 1, 12, 31)
        return date(year, month, found)

    def _days_of(self, year: int, month: int) -> tuple[int, ...]:
        """Those of a month that match. They follow from how it begins and how long it is: so decades are passed over in no time."""
        if month not in self.months:
            return ()
        begins_and_length = monthrange(year, month)
        if (known := self._known_days.get(begins_and_length)) is None:
            days = (date(year, month, number) for number in range(1, begins_and_length[1] + 1))
            known = self._known_days[begins_and_length] = tuple(day.day for day in days if self.matches_day(day))
        return known

    def _matches_day_of_month(self, day: date) -> bool:
        if day.day in self.days:
            return True
        if not (self.last_day or self.last_workday) or day.day < 26:  # the last workday is the 26th at the earliest
            return False
        last = (day.replace(day=28) + 4 * _DAY).replace(day=1) - _DAY
        last_workday = last - timedelta(days=max(0, last.weekday() - 4))
        return (self.last_day and day == last) or (self.last_workday and day == last_workday)

    def _matches_weekday(self, day: date) -> bool:
        weekday = day.isoweekday() % 7
        if weekday in self.weekdays or (weekday, (day.day + 6) // 7) in self.nth_weekdays:
            return True
        return weekday in self.last_weekdays and (day + 7 * _DAY).month != day.month

    def _has_a_day(self) -> bool:
        # In 28 years every date falls on every day of the week.
        return any(self._days_of(year, month) for year in range(2000, 2028) for month in range(1, 13))


def instant_of(wall: datetime, zone: tzinfo) -> datetime:
    """When a clock in ``zone`` first shows ``wall`` (naive, whole minutes) or, if it jumps over it, the first minute after the
    jump; in UTC.
    """
    while True:
        instant = wall.replace(tzinfo=zone, fold=0).astimezone(UTC)
        if instant.astimezone(zone).replace(tzinfo=None) == wall:
            return instant
        wall += _MINUTE


def _skip(instant: datetime, local: datetime, minutes: int, zone: tzinfo) -> datetime:
    """``instant`` plus at most ``minutes``: as far as the clocks are not changed on the way, or, where they show nothing but other
    days, until two days before.
    """
    if minutes > _FAR and _is_unchanged(instant + _DAY, local, zone):  # else this day, or the one before, may come again
        return instant + timedelta(minutes=minutes) - 2 * _DAY
    for step in (minutes, 60 - local.minute):
        target = instant + timedelta(minutes=step)
        if step <= minutes and _is_unchanged(target, local, zone):
            return target
    return instant + _MINUTE


def _is_unchanged(later: datetime, local: datetime, zone: tzinfo) -> bool:
    return later.astimezone(zone).utcoffset() == local.utcoffset()


def _values(text: str, field: Field, source: str) -> frozenset[int]:
    values: set[int] = set()
    for term in source.split(","):
        base, slash, step_text = term.partition("/")
        step = _integer(text, field, step_text) if slash else 1
        if step < 1:
            raise _bad(text, f"the step of {term!r} in the {field.name} must be at least 1")
        if base == "*":
            low, high = field.low, field.high
        elif "-" in base:
            first, _, last = base.partition("-")
            low, high = _value(text, field, first), _value(text, field, last)
            if low > high:
                raise _bad(text, f"the range {base!r} of the {field.name} runs backwards")
        else:
            low = _value(text, field, base)
            high = field.high if slash else low
        values.update(range(low, high + 1, step))
    return frozenset(values)


def _split_weekdays(text: str, source: str) -> tuple[str, frozenset[tuple[int, int]], frozenset[int]]:
    """The plain terms of the day of week, its ``MON#2`` terms and its ``5L`` terms."""
    plain, nth, last = [], set(), set()
    for term in source.split(","):
        day, hash_sign, number = term.partition("#")
        if hash_sign:
            n = _integer(text, DAY_OF_WEEK, number)
            if not 1 <= n <= 5:
                raise _bad(text, f"{term!r}: a month has no more than five of a day of the week")
            nth.add((_value(text, DAY_OF_WEEK, day) % 7, n))
        elif term.endswith("L") and term[:-1].isdigit():
            last.add(_value(text, DAY_OF_WEEK, term[:-1]) % 7)
        else:
            plain.append(term)
    return ",".join(plain), frozenset(nth), frozenset(last)


def _value(text: str, field: Field, source: str) -> int:
    if source in field.names:
        return field.names[source]
    value = _integer(text, field, source)
    if not field.low <= value <= field.high:
        raise _bad(text, f"the {field.name} {value} is not between {field.low} and {field.high}")
    return value


def _integer(text: str, field: Field, source: str) -> int:
    if not (source.isascii() and source.isdigit()):
        raise _bad(text, f"{source!r} is no {field.name}")
    return int(source)


def _bad(text: str, why: str) -> BadSchedule:
    return BadSchedule(f"{text!r} is not a schedule: {why}. Examples: '0 6 * * MON-FRI', '*/15 * * * *', '@daily'.")
