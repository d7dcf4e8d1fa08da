"""Computes the next run of a scheduled DAG.

Two flavours, as in Airflow. A **trigger** schedule makes a run *at* each tick: its logical date is the tick, its data interval is
empty, or the window before the tick. An **interval** schedule makes a run *for* the time between two ticks: the first is its
logical date, and the run is created at the second, when the data of the interval exists. The ticks come from

* ``cron``: one expression or several, in a time zone (:mod:`evenflow.core.cron` has the rules for summer time),
* ``delta``: a fixed number of seconds of real time, counted from ``start_date``, without one from 1970,
* ``dates``: given instants.

The runs of ``code``, a timetable that an author wrote, are those of a :class:`~evenflow.core.forecast.Forecast`.

``once`` makes one run, at ``start_date`` or as soon as the DAG is known. ``continuous`` makes the next run when the last has
ended; its data interval begins where the last one ended. ``watch`` does that while a DAG that is on waits for the asset.
``manual`` and ``assets`` have no ticks.

The first tick at or after ``start_date`` is the first one, none is later than ``end_date``. With ``catchup`` every tick gets its
run. Without it, only the newest of the passed ticks gets one, for a new DAG and after a pause or an outage of the scheduler. A
trigger schedule without ``start_date`` begins with the first tick after the DAG became known.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import lru_cache
from typing import NamedTuple, Protocol

from evenflow.core.cron import Cron
from evenflow.core.forecast import Forecast, TimetableRun
from evenflow.core.likeness import meant_or
from evenflow.core.model import DagSpec, Schedule
from evenflow.errors import BadSchedule

KINDS = ("manual", "cron", "delta", "dates", "once", "continuous", "assets", "code", "watch")
ENDLESS = ("continuous", "watch")  # the kinds of which one run follows the end of another
TICKING = ("cron", "delta", "dates")  # the kinds whose past runs can be computed

_OFFSET = re.compile(r"[+-](0\d|1[0-4]):[0-5]\d")  # from Greenwich, in a zone that has no other name
_INSTANT = timedelta(microseconds=1)
_MINUTE = timedelta(minutes=1)
_DAY = timedelta(days=1)
_NOTHING = timedelta()
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_CACHED_SCHEDULES = 4096  # parsed once and kept: one for each distinct expression in use


class Past(NamedTuple):
    """What came before the next run: the last scheduled run, if there was one, whatever happened to it since; and when the DAG was
    first seen. A schedule that is code has a ``forecast``, too.
    """

    logical_date: datetime | None = None
    interval_end: datetime | None = None
    known_since: datetime | None = None
    forecast: Forecast = Forecast()

    def up_to(self, date: datetime) -> Past:
        """Returns this past as if dates up to this one had been run, too; it only goes forward."""
        if self.logical_date is not None and self.logical_date >= date:
            return self
        return self._replace(logical_date=date, interval_end=max(self.interval_end or date, date))


class Ticks(Protocol):
    """Instants in order. None: there is no such tick."""

    def next(self, after: datetime) -> datetime | None: ...
    def newest(self, until: datetime) -> datetime | None: ...


def next_run(
    schedule: Schedule,
    start_date: datetime | None,
    end_date: datetime | None,
    after: datetime | None,
    catchup: bool,
    now: datetime,
    *,
    after_end: datetime | None = None,
    known_since: datetime | None = None,
) -> TimetableRun | None:
    """Returns the next run of ``schedule``, due or not, or None when there is none.

    ``after`` is the logical date of the last scheduled run and ``after_end`` the end of its data interval, both None without such a
    run; the next run is later. ``known_since`` is when the DAG was first seen. All times are aware. Raises :class:`BadSchedule` for
    an expression or a time zone that does not exist.
    """
    match schedule.kind:
        case "once":
            tick = (start_date or known_since or now) if after is None else None
            return None if tick is None or _is_later(tick, end_date) else _exact(tick.astimezone(UTC))
        case "continuous" | "watch":
            begin = after_end or after or start_date or known_since or now
            begin = begin if after is None else max(begin, after + _INSTANT)  # a run of another schedule's tick may be empty
            begin, end = begin.astimezone(UTC), max(begin + _INSTANT, now).astimezone(UTC)  # no two runs begin at one instant
            return None if _is_later(end, end_date) else TimetableRun(begin, begin, end, end)
        case "cron" | "delta" | "dates":
            ticks = ticks_of(schedule, start_date)
            if schedule.kind == "dates" or schedule.trigger:
                return _next_trigger(schedule, ticks, start_date, end_date, after, catchup, now, known_since)
            return _next_interval(ticks, start_date, end_date, after, catchup, now)
        case _:
            return None


def next_of(spec: DagSpec, past: Past, now: datetime) -> TimetableRun | None:
    """Returns :func:`next_run` of a DAG, or what its forecast says."""
    end_date = _instant(spec.end_date)
    if spec.schedule.kind == "code":
        return past.forecast.next(past.logical_date, end_date, spec.catchup, now)
    return next_run(
        spec.schedule,
        _instant(spec.start_date),
        end_date,
        past.logical_date,
        spec.catchup,
        now,
        after_end=past.interval_end,
        known_since=past.known_since,
    )


def due_runs(spec: DagSpec, past: Past, now: datetime, most: int) -> tuple[list[TimetableRun], TimetableRun | None]:
    """Returns the due runs of a DAG with this past, the earliest first and at most ``most``, and the run after them."""
    most = min(most, 1) if spec.schedule.kind in ENDLESS else most  # its next run is due when this one has ended
    runs: list[TimetableRun] = []
    run = next_of(spec, past, now)
    while run is not None and run.run_after <= now and len(runs) < most:
        runs.append(run)
        past = past._replace(logical_date=run.logical_date, interval_end=run.data_interval_end)
        run = next_of(spec, past, now)
    return runs, run


def runs_between(schedule: Schedule, start_date: datetime | None, first: datetime, last: datetime) -> Iterator[TimetableRun]:
    """Yields the runs with logical dates from ``first`` to ``last``, both included, in order, whatever was run before.

    ``start_date`` is only the instant from which ``delta`` counts.
    """
    ticks = ticks_of(schedule, start_date)
    window = timedelta(seconds=schedule.window_s)
    is_trigger = schedule.kind == "dates" or schedule.trigger
    tick = ticks.next(first + (window if is_trigger else _NOTHING) - _INSTANT)
    while tick is not None:
        end = tick if is_trigger else ticks.next(tick)
        if end is None or (logical := tick - window if is_trigger else tick) > last:
            return
        yield TimetableRun(logical, logical, end, end)
        tick = ticks.next(tick)


def manual_interval(spec: DagSpec, logical_date: datetime) -> tuple[datetime, datetime]:
    """Returns the data interval of a manual run with this logical date: the newest interval that had ended by then."""
    schedule = spec.schedule
    logical_date = logical_date.astimezone(UTC)
    if schedule.trigger:
        return logical_date - timedelta(seconds=schedule.window_s), logical_date
    if schedule.kind in ("cron", "delta"):
        ticks = ticks_of(schedule, _instant(spec.start_date))
        end = ticks.newest(logical_date)
        start = None if end is None else ticks.newest(end - _INSTANT)
        if start is not None and end is not None:
            return start, end
    return logical_date, logical_date


def describe(schedule: Schedule) -> str | None:
    """Describes a schedule in a few words; None when no run begins by itself."""
    match schedule.kind:
        case "cron":
            return " and ".join((schedule.cron or "", *schedule.also))
        case "delta":
            return f"every {timedelta(seconds=schedule.every_s or 0)}"
        case "dates":
            return f"on {len(schedule.dates)} dates"
        case "once" | "continuous":
            return f"@{schedule.kind}"
        case "assets":
            return "assets"
        case "code":
            return schedule.code
        case "watch":
            return f"while a DAG waits for {schedule.watch}"
        case _:
            return None


def check_schedule(schedule: Schedule) -> None:
    """Raises :class:`BadSchedule` when a schedule cannot make runs."""
    if schedule.kind not in KINDS:
        raise BadSchedule(f"The schedule kind {schedule.kind!r} is not known here. There are: {', '.join(KINDS)}.")
    if schedule.kind == "delta" and not (schedule.every_s and schedule.every_s >= 1):
        raise BadSchedule("The time between two runs must be at least a second. Type for example: schedule=timedelta(hours=2)")
    if schedule.kind == "watch" and not (schedule.watch and schedule.watch_key):
        raise BadSchedule("A DAG that watches needs the asset that it watches, and a key.")
    if schedule.kind in TICKING:
        ticks_of(schedule, None)


def ticks_of(schedule: Schedule, start_date: datetime | None) -> Ticks:
    """Returns the ticks of a schedule. Raises :class:`BadSchedule` for one without ticks, or one that makes no sense."""
    match schedule.kind:
        case "cron":
            found = [_CronTicks(*parse_schedule(text, schedule.timezone)) for text in (schedule.cron or "", *schedule.also)]
            return found[0] if len(found) == 1 else _Merged(found)
        case "delta":
            return _DeltaTicks(timedelta(seconds=schedule.every_s or 0), start_date or _EPOCH)
        case "dates":
            return _DateTicks([datetime.fromisoformat(text).astimezone(UTC) for text in schedule.dates])
        case _:
            raise BadSchedule(f"The schedule is {describe(schedule) or 'by hand'}: it names no times.")


@lru_cache(maxsize=_CACHED_SCHEDULES)
def parse_schedule(expression: str, timezone: str) -> tuple[Cron, tzinfo]:
    """Raises :class:`BadSchedule` for an expression or a time zone that does not exist."""
    return Cron.parse(expression), _zone(timezone)


def _zone(timezone: str) -> tzinfo:
    from zoneinfo import ZoneInfo, available_timezones

    if offset := _OFFSET.fullmatch(timezone):
        return datetime.fromisoformat(f"1970-01-01T00:00{offset[0]}").tzinfo or UTC
    try:
        return ZoneInfo(timezone)
    except (ValueError, OSError, KeyError) as error:  # ZoneInfoNotFoundError is a KeyError
        raise BadSchedule(
            f"The time zone {timezone!r} does not exist here: {error}. "
            + meant_or(timezone, available_timezones(), "Use an IANA name such as 'Europe/Berlin'.")
        ) from None


def _next_trigger(
    schedule: Schedule,
    ticks: Ticks,
    start_date: datetime | None,
    end_date: datetime | None,
    after: datetime | None,
    catchup: bool,
    now: datetime,
    known_since: datetime | None,
) -> TimetableRun | None:
    window = timedelta(seconds=schedule.window_s)
    tick = None
    if after is not None:
        tick = ticks.next(after + window)
    else:
        begin = start_date or known_since or now
        if start_date is None and schedule.run_immediately:
            tick = ticks.newest(begin)
        tick = tick or ticks.next(begin - _INSTANT)
    if tick is not None and start_date is not None and tick < start_date:
        tick = ticks.next(start_date - _INSTANT)
    if tick is None:
        return None
    if not catchup and (newest := ticks.newest(now)) is not None:
        tick = max(tick, newest)
    return None if _is_later(tick, end_date) else TimetableRun(tick - window, tick - window, tick, tick)


def _next_interval(
    ticks: Ticks, start_date: datetime | None, end_date: datetime | None, after: datetime | None, catchup: bool, now: datetime
) -> TimetableRun | None:
    earliest = [ticks.next(instant) for instant in (after, start_date and start_date - _INSTANT) if instant is not None]
    if not catchup or not earliest:
        end = ticks.newest(now)  # of the newest interval that has ended
        earliest.append(None if end is None else ticks.newest(end - _INSTANT))
    start = max((tick for tick in earliest if tick is not None), default=None)
    if start is None or _is_later(start, end_date):
        return None
    following = ticks.next(start)
    return None if following is None else TimetableRun(start, start, following, following)


def _instant(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def _exact(tick: datetime) -> TimetableRun:
    return TimetableRun(tick, tick, tick, tick)


def _is_later(instant: datetime, end_date: datetime | None) -> bool:
    return end_date is not None and instant > end_date


class _CronTicks:
    def __init__(self, cron: Cron, zone: tzinfo) -> None:
        self._cron, self._zone = cron, zone
        self._after = self._next = _EPOCH  # the last result: of several expressions, most stay the same from tick to tick

    def next(self, after: datetime) -> datetime:
        if not self._after <= after < self._next:
            self._after, self._next = after, self._cron.next(after, self._zone)
        return self._next

    def newest(self, until: datetime) -> datetime:
        """Searches forward from the last days that match, then by bisection. So there is one direction of search, and no second
        rule for summer time that could disagree with the first.
        """
        until = until.astimezone(UTC)
        day = self._cron.day_until(until.astimezone(self._zone).date() + _DAY)
        while (low := self.next(_midnight(day) - _DAY)) > until:
            day = self._cron.day_until(day - _DAY)
        high = min(until, _midnight(day) + 3 * _DAY)  # low is a tick, and no tick comes after high
        while high - low >= _MINUTE:
            following = self.next(low)  # few ticks of most expressions are left here
            if following > until:
                return low
            low = following
            middle = low + (high - low) / 2
            tick = self.next(middle)
            if tick <= until:
                low = tick
            else:
                high = middle
        return low


def _midnight(day: date) -> datetime:
    """Returns midnight in Greenwich, which is less than a day from midnight anywhere."""
    return datetime.combine(day, time.min, UTC)


class _DeltaTicks:
    """Instants at whole multiples of ``step`` from ``anchor``, also before it."""

    def __init__(self, step: timedelta, anchor: datetime) -> None:
        self._step, self._anchor = step, anchor.astimezone(UTC)

    def next(self, after: datetime) -> datetime:
        return self.newest(after) + self._step

    def newest(self, until: datetime) -> datetime:
        return self._anchor + (until - self._anchor) // self._step * self._step


class _DateTicks:
    def __init__(self, dates: list[datetime]) -> None:
        self._dates = dates

    def next(self, after: datetime) -> datetime | None:
        place = bisect_right(self._dates, after)
        return self._dates[place] if place < len(self._dates) else None

    def newest(self, until: datetime) -> datetime | None:
        place = bisect_right(self._dates, until)
        return self._dates[place - 1] if place else None


class _Merged:
    def __init__(self, parts: list[_CronTicks]) -> None:
        self._parts = parts

    def next(self, after: datetime) -> datetime:
        return min(part.next(after) for part in self._parts)

    def newest(self, until: datetime) -> datetime:
        return max(part.newest(until) for part in self._parts)
