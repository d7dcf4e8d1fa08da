"""The versions of the messages that this program speaks, so that programs of two releases can work together or say why they cannot.

A field may be added without a new version: a reader that does not know it ignores it, and a reader that misses it uses its default.
A change that is not possible this way (a new word in a ``Literal``, a question, another meaning) raises ``WIRE``, and is sent only
to programs that speak that version. ``OLDEST_WIRE`` is raised when older versions are no longer supported.
"""

from __future__ import annotations

from dataclasses import dataclass

WIRE = 3  # 1: before services had tokens of their own; 2: before tries could be deferred
OLDEST_WIRE = 2
RESUMES_WIRE = 3  # from this version on tries are deferred and resume


@dataclass(frozen=True, slots=True)
class Spoken:
    oldest: int
    newest: int

    def __str__(self) -> str:
        return f"{self.newest}" if self.oldest == self.newest else f"{self.oldest} to {self.newest}"

    def agreed(self, other: Spoken) -> int | None:
        """Returns the newest version that both speak, or None."""
        newest = min(self.newest, other.newest)
        return newest if newest >= max(self.oldest, other.oldest) else None


OURS = Spoken(OLDEST_WIRE, WIRE)
