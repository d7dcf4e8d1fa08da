"""The time zone of times without one: a setting of the database, passed to each loader of DAG files; UTC without it.

A process has one value, set before the first DAG is made, because a file must mean the same wherever it is loaded.
"""

from __future__ import annotations

from datetime import UTC, tzinfo

from evenflow.core.settings import UTC as UTC_NAME

_name = UTC_NAME


def set_default_timezone(name: str) -> None:
    global _name
    _name = name


def default_timezone() -> str:
    """Returns the name of the default time zone."""
    return _name


def default_zone() -> tzinfo:
    if _name == UTC_NAME:
        return UTC
    from zoneinfo import ZoneInfo

    return ZoneInfo(_name)
