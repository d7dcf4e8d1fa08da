"""Partitions of assets, by time and by keys."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from evenflow.core.model import AssetSpec, DagSpec
from evenflow.core.partitions import Partitions

AT = datetime(2026, 1, 30, 23, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("every", "days", "first", "last", "how_many"),
    [
        ("hour", 1, "2026-01-30T23", "2026-01-31T23", 25),
        ("day", 30, "2026-01-30", "2026-03-01", 31),
        ("month", 400, "2026-01", "2027-03", 15),
    ],
)
def test_a_range_has_every_partition_once_and_in_order(every: str, days: int, first: str, last: str, how_many: int) -> None:
    """R-SP1: what is missing is known by what there should be."""
    by = Partitions(every=every)
    found = list(by.between(AT, AT + timedelta(days=days)))
    assert (found[0], found[-1], len(found)) == (first, last, how_many)
    assert found == sorted(set(found))
    assert all(by.flaw_of(each) is None and by.of(by.start_of(each)) == each for each in found)
    assert list(by.between(AT, AT - timedelta(days=days))) == []


def test_times_are_utc() -> None:
    assert Partitions(every="day").of(AT.astimezone(timezone(timedelta(hours=9)))) == "2026-01-30"


def test_the_newest_that_is_over_is_the_one_before_now() -> None:
    for every, over in (("hour", "2026-01-30T22"), ("day", "2026-01-29"), ("month", "2025-12")):
        by = Partitions(every=every)
        assert by.of(by.last_over(AT)) == over


@pytest.mark.parametrize("wrong", ["2026-1-31", "2026-01-32", "2026-01", "2026-01-31T00", "", "de", " 2026-01-31"])
def test_what_is_no_day_is_told_how_one_is_written(wrong: str) -> None:
    assert Partitions(every="day").flaw_of(wrong) == "is no day. Write it as 2026-01-31"


def test_a_key_is_one_of_those_that_are_declared() -> None:
    by = Partitions(param="country", keys=("de", "fr"))
    assert by.flaw_of("de") is None
    assert by.flaw_of("xx") == "is none of its partitions, which are: de, fr"


def test_a_spec_keeps_them() -> None:
    for partitions in (None, Partitions(every="day"), Partitions(param="country", keys=("de", "fr"))):
        spec = DagSpec(dag_id="d", tasks=(), assets=(AssetSpec(name="a", uri="a", partitions=partitions),))
        assert DagSpec.from_json(spec.to_json()) == spec
