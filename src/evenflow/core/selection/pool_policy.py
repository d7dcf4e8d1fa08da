"""What a pool does when a task does not fit into its free slots: whether smaller tasks may pass it, and for how long."""

from __future__ import annotations

import re
from dataclasses import dataclass

from evenflow.errors import BadValue

MAX_PATIENCE_S = 30 * 86_400  # a task that may be passed for more than a month may as well be passed for ever
UNITS_S = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}

_TIME = re.compile(r"(?P<count>[0-9]{1,9})(?P<unit>[smhd]?)")


def parse_time(text: str) -> int | None:
    """Returns the seconds of 600, 10m, 2h or 1d; None for any other text."""
    found = _TIME.fullmatch(text)
    return None if found is None else int(found["count"]) * UNITS_S[found["unit"] or "s"]


def show_time(seconds: int) -> str:
    """Returns the time as :func:`parse_time` takes it, in the largest unit that fits."""
    unit, size = next((unit, size) for unit, size in UNITS_S.items() if seconds % size == 0)
    return f"{seconds // size}{unit}"


@dataclass(frozen=True, slots=True)
class PoolPolicy:
    """``patience_s`` is how many seconds smaller tasks may pass one that does not fit: None for ever, 0 not at all."""

    patience_s: float | None = None

    @classmethod
    def parse(cls, text: str) -> PoolPolicy:
        """Reads ``backfill``, ``strict``, or ``reserve-after=`` with a time: 600, 10m, 2h, 1d. Raises :class:`BadValue`."""
        if text == "backfill":
            return cls(None)
        if text == "strict":
            return cls(0.0)
        seconds = parse_time(text.removeprefix("reserve-after=")) if text.startswith("reserve-after=") else None
        if seconds is None:
            raise BadValue(f"{text!r} is no policy of a pool. Type backfill, strict, or for example reserve-after=10m")
        if seconds == 0:
            raise BadValue(f"{text!r} gives a task no time in which others may pass it. If none shall, type strict")
        if seconds > MAX_PATIENCE_S:
            raise BadValue(f"{text!r} is more than 30 days. If a task may be passed for so long, type backfill")
        return cls(float(seconds))

    def __str__(self) -> str:
        """Returns the policy as :meth:`parse` takes it, in the largest unit that fits."""
        if self.patience_s is None:
            return "backfill"
        seconds = round(self.patience_s)
        if seconds == 0:
            return "strict"
        return f"reserve-after={show_time(seconds)}"
