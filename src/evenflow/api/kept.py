"""Answers that many callers share: one that is read once in a while, those that are never older than the question, and waits."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Hashable
from functools import partial
from time import monotonic
from typing import Any, Generic, TypeVar

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


class SharedAnswers(Generic[T]):
    """Callers that ask the same before its reading has begun share what that returns or raises. Those that ask later share the next
    reading, which begins when this one has ended: no caller gets what was read before it asked. Nothing is kept.
    """

    def __init__(self) -> None:
        self._last: dict[Hashable, _SharedRead[T]] = {}

    async def get(self, question: Hashable, read: Callable[[], Awaitable[T]]) -> T:
        """``read`` of the first caller answers. Raises what it raised."""
        last = self._last.get(question)
        if last is None or last.has_begun:
            last = self._last[question] = _SharedRead(read, after=last)
            last.task.add_done_callback(partial(self._forget, question))
        return await asyncio.shield(last.task)

    def _forget(self, question: Hashable, ended: asyncio.Task[T]) -> None:
        if (last := self._last.get(question)) is not None and last.task is ended:
            del self._last[question]


class _SharedRead(Generic[T]):
    def __init__(self, read: Callable[[], Awaitable[T]], *, after: _SharedRead[T] | None) -> None:
        self.has_begun = False
        self.task = asyncio.create_task(self._run(read, after), name="a reading for all who ask")
        self.task.add_done_callback(_taken)

    async def _run(self, read: Callable[[], Awaitable[T]], after: _SharedRead[T] | None) -> T:
        if after is not None:
            await asyncio.wait([after.task])
        self.has_begun = True
        return await read()


class SharedWaits(Generic[T]):
    """Callers that wait for the same thing share one wait, whenever they come: for what only grows, as a log does."""

    def __init__(self) -> None:
        self._waits: dict[Hashable, asyncio.Task[T]] = {}

    async def get(self, what: Hashable, wait: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """``wait`` of the first caller answers. Raises what it raised."""
        waiting = self._waits.get(what)
        if waiting is None:
            waiting = self._waits[what] = asyncio.create_task(wait(), name="a wait for all")
            waiting.add_done_callback(partial(self._forget, what))
        return await asyncio.shield(waiting)

    def _forget(self, what: Hashable, ended: asyncio.Task[T]) -> None:
        del self._waits[what]
        _taken(ended)


def _taken(reading: asyncio.Task[Any]) -> None:
    """Marks an error that no caller waits for as seen: the next caller reads again."""
    if not reading.cancelled():
        reading.exception()
