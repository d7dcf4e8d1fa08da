"""Partitions of an asset: its parts by time (hours, days, months), or by keys, which a run parameter selects.

A partition is a text. A partition of time is as long as its unit needs: ``2026-01-31T06``, ``2026-01-31``, ``2026-01``, all in UTC,
so that texts sort as the times do. ``partition_of`` in ``schema.sql`` has the same rule for a run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from evenflow.core import limits
from evenflow.core.bounds import Chars, Items, OneOf

FORMATS = {"hour": "%Y-%m-%dT%H", "day": "%Y-%m-%d", "month": "%Y-%m"}

PartitionKey = Annotated[str, Chars(limits.MAX_NAME_CHARS, least=1, printable=True)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Partitions:
    """``every`` is hour, day or month; or ``keys`` lists the partitions, and a run belongs to the one that its parameter ``param``
    names.
    """

    every: Annotated[str, OneOf(("", *FORMATS))] = ""
    param: Annotated[str, Chars(limits.MAX_NAME_CHARS)] = ""
    keys: Annotated[tuple[PartitionKey, ...], Items(limits.MAX_PARTITION_KEYS)] = ()

    @classmethod
    def read(cls, raw: Mapping[str, Any]) -> Partitions:
        """Reads partitions from JSON."""
        return cls(**{**raw, "keys": tuple(raw.get("keys", ()))})

    def of(self, at: datetime) -> str:
        """Returns the partition of time that contains ``at``."""
        return at.astimezone(UTC).strftime(FORMATS[self.every])

    def between(self, first: datetime, last: datetime) -> Iterator[str]:
        """Yields the partitions from that of ``first`` to that of ``last``, in order."""
        at, end = first.astimezone(UTC), self.of(last)
        while (partition := self.of(at)) <= end:
            yield partition
            at = self._after(at)

    def _after(self, at: datetime) -> datetime:
        if self.every == "month":
            return (at.replace(day=1) + timedelta(days=32)).replace(day=1)
        return at + timedelta(hours=1 if self.every == "hour" else 24)

    def start_of(self, partition: str) -> datetime:
        return datetime.strptime(partition, FORMATS[self.every]).replace(tzinfo=UTC)

    def last_over(self, now: datetime) -> datetime:
        """Returns a moment in the newest partition whose time is over."""
        return self.start_of(self.of(now)) - timedelta(microseconds=1)

    def flaw_of(self, partition: str) -> str | None:
        """Returns what is wrong with a partition, as the rest of a sentence that begins with it, or None."""
        if self.keys:
            return None if partition in self.keys else f"is none of its partitions, which are: {', '.join(self.keys):.300}"
        try:
            is_one = self.of(self.start_of(partition)) == partition
        except ValueError:
            is_one = False
        return None if is_one else f"is no {self.every}. Write it as {self.of(datetime(2026, 1, 31, 6, tzinfo=UTC))}"
