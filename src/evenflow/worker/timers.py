"""Timers of a try that count only time in which it could run: frozen time does not count."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

Action = Callable[[], None]


class Timers:
    """The timers of one try. Seconds are by the event loop's clock."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._set: list[tuple[asyncio.TimerHandle, Action]] = []
        self._paused: list[tuple[float, Action]] | None = None  # what is left of each

    def after(self, seconds: float, action: Action) -> None:
        if self._paused is not None:
            self._paused.append((seconds, action))
        else:
            self._set.append((self._loop.call_later(seconds, action), action))

    def pause(self, at: float) -> None:
        """Pauses the timers since ``at``, which may be in the past: nothing that was due later has happened."""
        self._paused = [(handle.when() - at, action) for handle, action in self._set if handle.when() > at]
        self._cancel()

    def go_on(self) -> None:
        paused, self._paused = self._paused or [], None
        for left, action in paused:
            self.after(left, action)

    def end(self) -> None:
        self._cancel()
        self._paused = []

    def _cancel(self) -> None:
        for handle, _ in self._set:
            handle.cancel()
        self._set.clear()
