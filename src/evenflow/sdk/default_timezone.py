"""The time zone of what names none: a setting of the database, told to whoever loads a DAG file; UTC where nobody tells it.

One value a process, set before the first DAG is made: a file must mean the same wherever it is loaded.
"""

from __future__ import annotations

from datetime import UTC, tzinfo

from evenflow.core.settings import UTC as UTC_NAME

_name = UTC_NAME


def set_default_timezone(name: str) -> None:
    global _name
    _name = name


def default_timezone() -> str:
    """Its name."""
    return _name


def default_zone() -> tzinfo:
    if _name == UTC_NAME:
        return UTC
    from zoneinfo import ZoneInfo

    return ZoneInfo(_name)
