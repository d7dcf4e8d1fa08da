"""The clock of Evenflow's own tasks: the real one, or in tests one that moves only when it is told to."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    stands_still: bool  # while a try runs; a pause then ends the try's process, as in mode reschedule

    def now(self) -> datetime: ...

    def monotonic(self) -> float:
        """Returns seconds, of which only differences have a meaning."""
        ...

    def pause(self, seconds: float) -> None:
        """Returns later, or raises :class:`TaskRescheduled` when the clock stands still."""
        ...


class RealClock:
    stands_still = False

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    def pause(self, seconds: float) -> None:
        time.sleep(seconds)


_clock: Clock = RealClock()


def clock() -> Clock:
    """Returns the clock of this process."""
    return _clock


@contextmanager
def going_by(other: Clock) -> Iterator[None]:
    global _clock
    before, _clock = _clock, other
    try:
        yield
    finally:
        _clock = before
