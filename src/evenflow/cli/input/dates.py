"""Dates that people type."""

from __future__ import annotations

from datetime import UTC, date, datetime, time

from evenflow.errors import ParamError


def end_of(text: str) -> datetime:
    """Returns the last moment of ``--to``: for a day its end, because cron and presets may have many dates in it."""
    try:
        if len(text) <= len("2026-01-31"):
            return datetime.combine(date.fromisoformat(text), time.max, UTC)
        return aware(datetime.fromisoformat(text))
    except ValueError:
        raise ParamError(f"--to {text!r} is no date. Type for example: --to 2026-01-31, or --to 2026-01-31T06:00+00:00") from None


def span(from_: datetime | None, to: str | None) -> dict[str, datetime | None]:
    """Returns the fields of a request for ``--from`` and ``--to``."""
    return {"from_date": None if from_ is None else aware(from_), "to_date": None if to is None else end_of(to)}


def aware(at: datetime) -> datetime:
    """Returns the instant, which is in UTC unless it has an offset."""
    return at if at.tzinfo else at.replace(tzinfo=UTC)
