"""Time without waiting: a clock that moves only when it is told to, and an event loop whose time jumps, when all coroutines sleep,
to the first wake-up.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable
from concurrent.futures import Executor
from datetime import datetime, timedelta
from typing import Any, TypeVar, TypeVarTuple, Unpack

from evenflow.errors import TaskRescheduled

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_REAL_WAIT_S = 1.0  # for an answer from outside, before time jumps: a later answer comes later in the run, too


class StandingLoop(asyncio.SelectorEventLoop):
    """``move`` is called with every jump. While something outside is awaited (a socket, a thread), time stands still, for a
    second.
    """

    def __init__(self, move: Callable[[float], None]) -> None:
        self._now_s = 0.0
        self._outside = 0
        self._move = move
        super().__init__(_StandingSelector(self))

    def time(self) -> float:
        return self._now_s

    def jump(self, seconds: float) -> None:
        self._now_s += seconds
        self._move(seconds)

    @property
    def awaits_outside(self) -> bool:
        return self._outside > 0

    def run_in_executor(self, executor: Executor | None, func: Callable[[Unpack[Ts]], T], *args: *Ts) -> asyncio.Future[T]:
        future = super().run_in_executor(executor, func, *args)
        self._outside += 1
        future.add_done_callback(self._came_back)
        return future

    def _came_back(self, future: asyncio.Future[Any]) -> None:
        self._outside -= 1


class _StandingSelector(selectors.DefaultSelector):
    """Its first registration is the loop's own, by which threads wake the loop."""

    def __init__(self, loop: StandingLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None or timeout <= 0:
            return super().select(timeout)
        outside = self._loop.awaits_outside or len(self.get_map()) > 1
        ready = super().select(min(_REAL_WAIT_S, timeout) if outside else 0)
        if not ready:
            self._loop.jump(timeout)
        return ready


class StandingClock:
    """``paused``: a try has paused since that was last set to false."""

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
