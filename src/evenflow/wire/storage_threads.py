"""Threads for calls that may never return, for example to a network file system that is away: nothing waits for such a thread, not
even the end of the process.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TypeVar

T = TypeVar("T")


class StorageThreads:
    """Runs at most ``calls`` at once; a hanging call keeps its turn."""

    def __init__(self, calls: int) -> None:
        self._turns = asyncio.Semaphore(calls)

    async def run(self, within_s: float, function: Callable[..., T], *args: object, undo: Callable[[], None] | None = None) -> T:
        """Returns or raises what ``function`` does, or raises :class:`TimeoutError` after ``within_s``. A call that no caller waits
        for any longer continues, and ``undo`` follows it.
        """
        try:
            async with asyncio.timeout(within_s) as within:
                return await self._call(function, args, undo)
        except TimeoutError:
            if within.expired():
                raise TimeoutError(f"it did not answer within {within_s:g} s") from None
            raise

    async def _call(self, function: Callable[..., T], args: tuple[object, ...], undo: Callable[[], None] | None) -> T:
        await self._turns.acquire()
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()

        def settle(set_it: Callable[[], None]) -> None:
            self._turns.release()
            if not answer.done():
                set_it()
            elif undo is not None:
                _start(undo)

        def call() -> None:
            try:
                found = partial(answer.set_result, function(*args))
            except BaseException as error:
                found = partial(answer.set_exception, error)
            with suppress(RuntimeError):  # the loop is closed, and no caller waits
                loop.call_soon_threadsafe(settle, found)

        _start(call)
        return await answer


def _start(call: Callable[[], None]) -> None:
    threading.Thread(target=call, name="object storage", daemon=True).start()
