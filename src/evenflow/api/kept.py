"""An answer that many callers share: it is read at most once in a while, however many callers ask."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Generic, TypeVar

T = TypeVar("T")


class SharedReading(Generic[T]):
    """Keeps what ``read`` returns or raises for ``kept_s`` since it began. Callers that arrive during a read share its outcome."""

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
    """Marks an error that no caller waits for as seen: the next caller reads again."""
    if not reading.cancelled():
        reading.exception()
