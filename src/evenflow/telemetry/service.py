"""The one lifecycle of everything that runs for long: start, ready, drain, stop. A service is its loops."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from typing import Any, ClassVar, Literal

from evenflow.core.service import ServiceKind
from evenflow.telemetry.vitals import Vitals

Loops = dict[str, Coroutine[Any, Any, None]]


class Service(ABC):
    """A long-running part of Evenflow, hosted by ``runtime.lifecycle``.

    ``start`` returns when the service is ready to do its work, or raises an :class:`EvenflowError`. ``drain`` stops taking new
    work and returns when all work in hand is done. ``stop`` ends it now, leaving nothing behind that another process could not
    pick up; it is called once, with or without a ``drain`` before, and does nothing when ``start`` raised. ``failed`` returns when
    the service cannot go on by itself, with the reason; while all is well it waits.

    What a service opens is pushed on ``_opened`` with how it is closed: also when it does not start, and last of all.
    """

    kind: ClassVar[str]  # a ServiceKind

    def __init__(self, name: str, vitals: Vitals | None = None) -> None:
        self.name = name
        self.vitals = vitals or Vitals(ServiceKind(self.kind), name)
        self._state: Literal["active", "draining"] = "active"
        self._ends_within_s: float | None = None  # how long its drain may take, if that is known
        self._opened = AsyncExitStack()
        self._loops: list[asyncio.Task[None]] = []

    @abstractmethod
    async def _begin(self) -> Loops:
        """Make what the work needs, and return its loops by name. None of them ends by itself unless the service fails."""

    @abstractmethod
    async def _finish(self) -> None:
        """Take nothing new, and return when what is in hand is done."""

    @abstractmethod
    async def _leave(self) -> None:
        """End what is in hand, and sign off, while the loops still turn."""

    async def start(self) -> None:
        try:
            loops = await self._begin()
        except BaseException:
            await self._opened.aclose()
            raise
        self._loops = [asyncio.create_task(loop, name=name) for name, loop in loops.items()]

    async def drain(self, within_s: float | None = None) -> None:
        """``within_s``: after so long it is stopped, whatever is in hand."""
        self._state, self._ends_within_s = "draining", within_s
        self.vitals.draining = True
        await self._finish()

    async def stop(self) -> None:
        if self._loops:  # else it did not start, and is closed
            await self._leave()
            await self._end_loops()
        await self._opened.aclose()

    async def failed(self) -> BaseException:
        done, _ = await asyncio.wait(self._loops, return_when=asyncio.FIRST_COMPLETED)
        ended = done.pop()
        return ended.exception() or RuntimeError(f"{ended.get_name()} ended by itself.")

    async def _end_loops(self) -> None:
        for loop in self._loops:
            loop.cancel()
        await asyncio.gather(*self._loops, return_exceptions=True)
