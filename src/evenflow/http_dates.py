"""Reads the ``Date`` header of HTTP answers, for triggers and for the client of Kubernetes. Neither may take it from the other, and
the core does not know HTTP.
"""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime


def told_time(date: str | None) -> datetime | None:
    """Returns the time that a header tells; None without a header, or where that is not a date. HTTP has times of UTC alone."""
    if date is None:
        return None
    try:
        return parsedate_to_datetime(date).replace(tzinfo=UTC)
    except ValueError:
        return None
