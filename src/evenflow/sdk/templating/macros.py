"""``macros`` of the context: functions for templates, under Airflow's names.

They are namespaces and not modules, so that a template gets ``macros.uuid.uuid4()`` and not the imports of the module ``uuid``.
"""

from __future__ import annotations

import json as _json
import random as _random
import time as _time
import uuid as _uuid
from collections.abc import Callable
from datetime import datetime as _datetime
from datetime import timedelta as _timedelta
from types import SimpleNamespace
from typing import Any


def ds_add(ds: str, days: int) -> str:
    """Returns the day ``days`` after ``ds`` (before, when negative), both as YYYY-MM-DD."""
    moved = _datetime.strptime(str(ds), "%Y-%m-%d") + _timedelta(days=days)  # noqa: DTZ007 - a day, in no zone
    return moved.strftime("%Y-%m-%d") if days else str(ds)


def ds_format(ds: str, input_format: str, output_format: str) -> str:
    """Returns ``ds``, read by one format of ``strptime`` and written by another."""
    return _datetime.strptime(str(ds), input_format).strftime(output_format)  # noqa: DTZ007 - a day, in no zone


def datetime_diff_for_humans(dt: _datetime, since: _datetime | None = None) -> str:
    """Returns the time between two moments in words: "2 days ago", "in 3 hours"; with ``since`` "2 days before", "3 hours
    after".
    """
    other = since or _datetime.now(dt.tzinfo)
    seconds = (dt - other).total_seconds()
    name, size = next((name, size) for name, size in _UNITS if abs(seconds) >= size or size == 1)
    count = int(abs(seconds) // size)
    shown = f"{count} {name}{'' if count == 1 else 's'}"
    if since is not None:
        return f"{shown} {'before' if seconds < 0 else 'after'}"
    return f"{shown} ago" if seconds <= 0 else f"in {shown}"


_UNITS = (
    ("year", 31_536_000),
    ("month", 2_592_000),
    ("week", 604_800),
    ("day", 86_400),
    ("hour", 3_600),
    ("minute", 60),
    ("second", 1),
)


def ds_of(moment: _datetime) -> str:
    return moment.strftime("%Y-%m-%d")


def ds_nodash_of(moment: _datetime) -> str:
    return moment.strftime("%Y%m%d")


def ts_of(moment: _datetime) -> str:
    return moment.isoformat()


def ts_nodash_of(moment: _datetime) -> str:
    return moment.strftime("%Y%m%dT%H%M%S")


def ts_nodash_with_tz_of(moment: _datetime) -> str:
    return moment.isoformat().replace("-", "").replace(":", "")


def _or_none(of: Callable[[_datetime], str]) -> Callable[[_datetime | None], str | None]:
    return lambda moment: None if moment is None else of(moment)


# Filters of templates: {{ data_interval_end | ds }}. A value that is missing without a logical date stays none, as in Airflow.
FILTERS: dict[str, Any] = {
    "ds": _or_none(ds_of),
    "ds_nodash": _or_none(ds_nodash_of),
    "ts": _or_none(ts_of),
    "ts_nodash": _or_none(ts_nodash_of),
    "ts_nodash_with_tz": _or_none(ts_nodash_with_tz_of),
}

MACROS = SimpleNamespace(
    datetime=_datetime,
    timedelta=_timedelta,
    ds_add=ds_add,
    ds_format=ds_format,
    datetime_diff_for_humans=datetime_diff_for_humans,
    random=_random.random,
    json=SimpleNamespace(dumps=_json.dumps, loads=_json.loads),
    time=SimpleNamespace(time=_time.time, strftime=_time.strftime, gmtime=_time.gmtime, localtime=_time.localtime),
    uuid=SimpleNamespace(UUID=_uuid.UUID, uuid1=_uuid.uuid1, uuid3=_uuid.uuid3, uuid4=_uuid.uuid4, uuid5=_uuid.uuid5),
)
