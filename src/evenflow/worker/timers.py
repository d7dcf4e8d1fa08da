"""What is to happen to a try after a while in which it could run: time in which it is frozen does not count."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

Action = Callable[[], None]


class Timers:
    """Of one try. Seconds by the event loop's clock."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._set: list[tuple[asyncio.TimerHandle, Action]] = []
        self._paused: list[tuple[float, Action]] | None = None  # what each had left

    def after(self, seconds: float, action: Action) -> None:
        if self._paused is not None:
            self._paused.append((seconds, action))
        else:
            self._set.append((self._loop.call_later(seconds, action), action))

    def pause(self, at: float) -> None:
        """Since ``at``, which may be a while ago: nothing that was due later has happened."""
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
