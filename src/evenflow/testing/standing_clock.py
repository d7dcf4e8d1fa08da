"""A clock that moves only when it is told to."""

from __future__ import annotations

from datetime import datetime, timedelta

from evenflow.errors import TaskRescheduled


class StandingClock:
    """``paused`` says whether a try has paused since that was last set to false."""

    stands_still = True

    def __init__(self, now: datetime) -> None:
        self._began, self._now = now, now
        self.paused = False

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return (self._now - self._began).total_seconds()

    def pause(self, seconds: float) -> None:
        self.paused = True
        raise TaskRescheduled(seconds)

    def move(self, seconds: float) -> None:
        self._now += timedelta(seconds=seconds)
