"""What the ``Date`` header of an answer tells."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from evenflow.http_dates import told_time


@pytest.mark.parametrize("zone", ["GMT", "-0000", "+0000"])
def test_a_date_is_of_utc_however_its_zone_is_written(zone: str) -> None:
    assert told_time(f"Fri, 27 Nov 2026 10:00:07 {zone}") == datetime(2026, 11, 27, 10, 0, 7, tzinfo=UTC)


@pytest.mark.parametrize("date", [None, "", "soon", "Fri, 99 Nov 2026 10:00:07 GMT"])
def test_what_is_no_date_tells_nothing(date: str | None) -> None:
    assert told_time(date) is None
