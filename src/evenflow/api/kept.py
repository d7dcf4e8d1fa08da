"""An answer that everybody may ask for, read once in a while however many do."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Generic, TypeVar

T = TypeVar("T")


class SharedReading(Generic[T]):
    """What ``read`` returns, or raises, for ``kept_s`` since it began. Who comes while it is being read gets what comes of that."""

    def __init__(self, read: Callable[[], Awaitable[T]], *, kept_s: float, at_most_s: float) -> None:
        self._read, self._kept_s, self._at_most_s = read, kept_s, at_most_s
        self._reading: asyncio.Task[T] | None = None
        self._until = 0.0

    async def get(self) -> T:
        """Raises what ``read`` raised, or :class:`TimeoutError` when that takes too long."""
        if self._reading is None or (self._reading.done() and monotonic() >= self._until):
            self._until = monotonic() + self._kept_s
            self._reading = asyncio.create_task(self._read_in_time(), name="a reading for all")
            self._reading.add_done_callback(_taken)
        return await asyncio.shield(self._reading)

    async def _read_in_time(self) -> T:
        async with asyncio.timeout(self._at_most_s):
            return await self._read()


def _taken(reading: asyncio.Task[T]) -> None:
    """An error that nobody waits for any more is no news: the next one to ask reads again."""
    if not reading.cancelled():
        reading.exception()
