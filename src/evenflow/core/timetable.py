"""Which run of a scheduled DAG comes next.

As in Airflow, a scheduled run covers the interval between two ticks of its schedule. It is named by the first, its *logical date*,
and created at the second, when the data of the interval is there. The first tick at or after ``start_date`` begins the first
interval; no interval begins after ``end_date``. With ``catchup`` every interval gets its run; without it, intervals that had ended
before the newest one that has are passed over, both for a new DAG and for one that was paused or whose scheduler was down.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from evenflow.core.cron import Cron
from evenflow.core.model import Schedule
from evenflow.errors import BadSchedule

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

_INSTANT = timedelta(microseconds=1)
_MINUTE = timedelta(minutes=1)
_LOOKBACK_GROWTH = 4
_CACHED_SCHEDULES = 4096  # parsed once and kept: one for each distinct expression in use


class Run(NamedTuple):
    """A scheduled run to be created at ``run_after``; all times in UTC."""

    logical_date: datetime
    data_interval_start: datetime
    data_interval_end: datetime
    run_after: datetime


def next_run(
    schedule: Schedule,
    start_date: datetime | None,
    end_date: datetime | None,
    after: datetime | None,
    catchup: bool,
    now: datetime,
) -> Run | None:
    """The next run of ``schedule``, due or not, or None when there is none.

    ``after`` is the logical date of the last scheduled run, None when there was none: the next one's is later. All times are aware.
    Raises :class:`BadSchedule` for an expression or a time zone that does not exist.
    """
    if schedule.kind != "cron":
        return None
    cron, zone = parse_schedule(schedule.cron or "", schedule.timezone)
    earliest: list[datetime] = []
    if after is not None:
        earliest.append(cron.next(after, zone))
    if start_date is not None:
        earliest.append(_at_or_after(cron, zone, start_date))
    if not catchup or not earliest:
        earliest.append(_newest_complete(cron, zone, now))
    start = max(earliest)
    if end_date is not None and start > end_date:
        return None
    end = cron.next(start, zone)
    return Run(logical_date=start, data_interval_start=start, data_interval_end=end, run_after=end)


@lru_cache(maxsize=_CACHED_SCHEDULES)
def parse_schedule(expression: str, timezone: str) -> tuple[Cron, ZoneInfo]:
    """Raises :class:`BadSchedule` for an expression or a time zone that does not exist."""
    from zoneinfo import ZoneInfo

    try:
        zone = ZoneInfo(timezone)
    except (ValueError, OSError, KeyError) as error:  # ZoneInfoNotFoundError is a KeyError
        raise BadSchedule(
            f"The time zone {timezone!r} does not exist here: {error}. Use an IANA name such as 'Europe/Berlin'."
        ) from None
    return Cron.parse(expression), zone


def _at_or_after(cron: Cron, zone: ZoneInfo, instant: datetime) -> datetime:
    return cron.next(instant - _INSTANT, zone)


def _newest_complete(cron: Cron, zone: ZoneInfo, now: datetime) -> datetime:
    """The beginning of the newest interval that has ended by ``now``."""
    end = _newest_tick(cron, zone, now.astimezone(UTC))
    return _newest_tick(cron, zone, end - _INSTANT)


def _newest_tick(cron: Cron, zone: ZoneInfo, until: datetime) -> datetime:
    """The newest tick at or before ``until``.

    Found by searching forward from ever further back, then by bisection: with one direction of search there is no second rule for
    summer time that could disagree with the first.
    """
    lookback = _MINUTE
    while (low := cron.next(until - lookback, zone)) > until:
        lookback *= _LOOKBACK_GROWTH
    high = until  # low is a tick, and there is none after high
    while high - low >= _MINUTE:
        middle = low + (high - low) / 2
        tick = cron.next(middle, zone)
        if tick <= until:
            low = tick
        else:
            high = middle
    return low
