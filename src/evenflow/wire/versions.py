"""Which versions of the messages this program speaks, so that programs of two releases can work together or say why they cannot.

A field may be added without a new version: who does not know it ignores it, who misses it has its default. What cannot be said
that way (a new word in a ``Literal``, a question, another meaning) raises ``WIRE``, and is sent only to who has said to speak that.
``OLDEST_WIRE`` is raised when what came before is not spoken any more.
"""

from __future__ import annotations

from dataclasses import dataclass

WIRE = 3  # 1: before services had tokens of their own; 2: before tries could be deferred
OLDEST_WIRE = 2
RESUMES_WIRE = 3  # from which on tries are deferred and resume


@dataclass(frozen=True, slots=True)
class Spoken:
    oldest: int
    newest: int

    def __str__(self) -> str:
        return f"{self.newest}" if self.oldest == self.newest else f"{self.oldest} to {self.newest}"

    def agreed(self, other: Spoken) -> int | None:
        """The newest version that both speak; None: there is none."""
        newest = min(self.newest, other.newest)
        return newest if newest >= max(self.oldest, other.oldest) else None


OURS = Spoken(OLDEST_WIRE, WIRE)
