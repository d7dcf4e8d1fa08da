"""The loops of a service: begun together, watched, ended together. None of them ends by itself unless it fails."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any


class Loops:
    def __init__(self) -> None:
        self._tasks: list[asyncio.Task[None]] = []

    def begin(self, loops: Mapping[str, Coroutine[Any, Any, None]]) -> None:
        self._tasks = [asyncio.create_task(loop, name=name) for name, loop in loops.items()]

    async def failed(self) -> BaseException:
        """What the first one failed with that did."""
        done, _ = await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
        ended = done.pop()
        return ended.exception() or RuntimeError(f"{ended.get_name()} ended by itself.")

    async def end(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
