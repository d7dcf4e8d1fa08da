"""Bounds of a value, written beside the type of a field, as in ``retries: Annotated[int, Between(0, MAX_RETRIES)]``.

An author's options and a spec that arrives are checked by the same bounds, so one rule holds for both. The text of a bound says
what a value must be.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from ipaddress import ip_network
from typing import Any, ClassVar

from evenflow.core.json_values import flaw_of
from evenflow.core.limits import FIRST_YEAR, INT32_MAX, LAST_YEAR


@dataclass(frozen=True, slots=True)
class Bound:
    """The interface of all bounds."""

    def flaw(self, value: Any) -> str | None:
        """Returns what is wrong with ``value``, in the words that follow its name, or None."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Between(Bound):
    """A number, both ends included. NaN is never between them."""

    least: float
    most: float

    def flaw(self, value: Any) -> str | None:
        if self.least <= value <= self.most:
            return None
        return f"{_shown(value)} is {f'above {_shown(self.most)}' if value > self.most else f'not {self}'}"

    def __str__(self) -> str:
        if self.most == INT32_MAX:
            return f"of at least {_shown(self.least)}"
        if 0 < self.least < 1:  # 0 is the bound in practice
            return f"above 0 and at most {_shown(self.most)}"
        return f"from {_shown(self.least)} to {_shown(self.most)}"


@dataclass(frozen=True, slots=True)
class OneOf(Bound):
    """One of a few words."""

    words: Sequence[str]

    def flaw(self, value: Any) -> str | None:
        return None if value in self.words else f"{value!r:.80} is not {self}"

    def __str__(self) -> str:
        return f"one of {', '.join(self.words)}"


@dataclass(frozen=True, slots=True)
class Size(Bound):
    """A size of at most ``most`` units."""

    unit: ClassVar[str]
    most: int

    def size_of(self, value: Any) -> int:
        return len(value)

    def flaw(self, value: Any) -> str | None:
        size = self.size_of(value)
        return f"{size:,} {self.unit} (limit {self.most:,})" if size > self.most else None

    def __str__(self) -> str:
        return f"at most {self.most:,} {self.unit}"


@dataclass(frozen=True, slots=True)
class Items(Size):
    """The length of a list or a dict."""

    unit: ClassVar[str] = "items"


@dataclass(frozen=True, slots=True)
class Bytes(Size):
    """The size of a text in UTF-8."""

    unit: ClassVar[str] = "bytes"

    def size_of(self, value: Any) -> int:
        return len(value.encode(errors="surrogatepass"))


@dataclass(frozen=True, slots=True)
class JsonBytes(Size):
    """The size of a value as JSON that every reader can read again."""

    unit: ClassVar[str] = "bytes of JSON"

    def size_of(self, value: Any) -> int:
        return len(json.dumps(value, default=str))

    def flaw(self, value: Any) -> str | None:
        return flaw_of(value) or Size.flaw(self, value)


@dataclass(frozen=True, slots=True)
class Chars(Size):
    """The length of a text. A text that must have a character may not be blank, either."""

    unit: ClassVar[str] = "characters"
    least: int = 0
    printable: bool = False
    without: str = ""  # a character that it must not contain
    begins: tuple[str, ...] = ()  # the allowed beginnings

    def flaw(self, value: Any) -> str | None:
        too_long = Size.flaw(self, value)
        fits = (not self.least or value.strip()) and (not self.printable or value.isprintable())
        if too_long or (fits and value.lower().startswith(self.begins or "") and not (self.without and self.without in value)):
            return too_long
        return f"{value!r:.300} is not {self}"

    def __str__(self) -> str:
        what = f"{'printable ' if self.printable else ''}characters"
        text = f"a string of {f'{self.least:,} to' if self.least else 'at most'} {self.most:,} {what}"
        without = f" without {self.without!r}" if self.without else ""
        return text + without + (f" that begins with one of: {', '.join(self.begins)}" if self.begins else "")


@dataclass(frozen=True, slots=True)
class Iso8601(Bound):
    """ISO 8601 with a UTC offset, far enough from the first and the last date that intervals around it can be computed."""

    def flaw(self, value: Any) -> str | None:
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            return f"{value!r:.300} is no ISO 8601 time"
        if moment.tzinfo is None:
            return f"{value!r} has no UTC offset"
        if not FIRST_YEAR <= moment.year <= LAST_YEAR:
            return f"{value!r} is not of the years {FIRST_YEAR} to {LAST_YEAR}; for no end, leave it out"
        return None

    def __str__(self) -> str:
        return f"an ISO 8601 time with a UTC offset, of the years {FIRST_YEAR} to {LAST_YEAR}"


def _shown(number: float) -> str:
    return f"{number:,}" if isinstance(number, int) else f"{number:,.15g}"


@dataclass(frozen=True, slots=True)
class Networks(Bound):
    """A text of addresses and networks, with commas between; empty: none."""

    def flaw(self, value: Any) -> str | None:
        for part in filter(None, value.split(",")):
            try:
                ip_network(part.strip())
            except ValueError:
                return f"{part.strip()!r:.300} is not an address such as 10.0.0.7, or a network such as 10.1.0.0/16"
        return None
