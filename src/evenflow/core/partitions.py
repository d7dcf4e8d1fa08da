"""Partitions of an asset: its parts by time (hours, days, months), or by keys that a run parameter says.

A partition is a text. Of a time it is as long as what it stands for: ``2026-01-31T06``, ``2026-01-31``, ``2026-01``, all in UTC,
and so texts sort as the times do. ``partition_of`` in ``schema.sql`` says which one a run stands for, in the same words.
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
    """``every`` hour, day or month; or ``keys``, of which a run has the one that its parameter ``param`` says."""

    every: Annotated[str, OneOf(("", *FORMATS))] = ""
    param: Annotated[str, Chars(limits.MAX_NAME_CHARS)] = ""
    keys: Annotated[tuple[PartitionKey, ...], Items(limits.MAX_PARTITION_KEYS)] = ()

    @classmethod
    def read(cls, raw: Mapping[str, Any]) -> Partitions:
        """As JSON has them."""
        return cls(**{**raw, "keys": tuple(raw.get("keys", ()))})

    def of(self, at: datetime) -> str:
        """The partition by time in which ``at`` is."""
        return at.astimezone(UTC).strftime(FORMATS[self.every])

    def between(self, first: datetime, last: datetime) -> Iterator[str]:
        """Those from the one of ``first`` to the one of ``last``, in order."""
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
        """A moment in the newest partition whose time is over."""
        return self.start_of(self.of(now)) - timedelta(microseconds=1)

    def flaw_of(self, partition: str) -> str | None:
        """What is wrong with it, as the rest of a sentence that begins with the partition; None: it is one."""
        if self.keys:
            return None if partition in self.keys else f"is none of its partitions, which are: {', '.join(self.keys):.300}"
        try:
            is_one = self.of(self.start_of(partition)) == partition
        except ValueError:
            is_one = False
        return None if is_one else f"is no {self.every}. Write it as {self.of(datetime(2026, 1, 31, 6, tzinfo=UTC))}"
