"""Times with a zone, under the names of ``airflow.sdk.timezone``: ``from evenflow import timezone``, then ``timezone.utcnow()``."""

from __future__ import annotations

import datetime as dt
from typing import Any

from evenflow.sdk.default_timezone import default_zone

utc = dt.UTC


def utcnow() -> dt.datetime:
    return dt.datetime.now(utc)


def utc_epoch() -> dt.datetime:
    return dt.datetime.fromtimestamp(0, utc)


def datetime(*parts: Any, **named: Any) -> dt.datetime:
    """Works like ``datetime.datetime``, in UTC unless ``tzinfo`` says otherwise."""
    return dt.datetime(*parts, **{"tzinfo": utc, **named})  # noqa: DTZ001  # it has a zone


def parse(text: str, timezone: dt.tzinfo | None = None) -> dt.datetime:
    """Reads a time in ISO 8601; without an offset it is in ``timezone``, else in the default zone. Raises :class:`ValueError`."""
    return make_aware(dt.datetime.fromisoformat(text), timezone)


def make_aware(value: dt.datetime, timezone: dt.tzinfo | None = None) -> dt.datetime:
    return value.replace(tzinfo=timezone or default_zone()) if value.tzinfo is None else value


def make_naive(value: dt.datetime, timezone: dt.tzinfo | None = None) -> dt.datetime:
    return value.astimezone(timezone or default_zone()).replace(tzinfo=None)


def convert_to_utc(value: dt.datetime | None) -> dt.datetime | None:
    return None if value is None else make_aware(value).astimezone(utc)


def coerce_datetime(value: dt.datetime | None) -> dt.datetime | None:
    return None if value is None else make_aware(value)


def is_localized(value: dt.datetime) -> bool:
    return value.utcoffset() is not None


def is_naive(value: dt.datetime) -> bool:
    return value.utcoffset() is None


def parse_timezone(name: str | int) -> dt.tzinfo:
    """Returns a zone by its name, or by its offset in seconds. Raises :class:`zoneinfo.ZoneInfoNotFoundError`."""
    from zoneinfo import ZoneInfo

    return dt.timezone(dt.timedelta(seconds=name)) if isinstance(name, int) else ZoneInfo(name)
