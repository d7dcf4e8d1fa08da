"""The one lifecycle of all long-running parts: start, ready, drain, stop. A service is its loops."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from typing import Any, ClassVar, Literal

from evenflow.core.service import ServiceKind
from evenflow.telemetry.health import HealthMonitor

Loops = dict[str, Coroutine[Any, Any, None]]


class Service(ABC):
    """A long-running part of Evenflow, hosted by ``runtime.lifecycle``.

    ``start`` returns when the service is ready to do its work, or raises an :class:`EvenflowError`. ``drain`` stops taking new work
    and returns when all work in hand is done. ``stop`` ends it now, leaving nothing behind that another process could not pick up;
    it is called once, with or without a ``drain`` before, and does nothing when ``start`` raised. ``failed`` returns when the
    service cannot continue by itself, with the reason; while all is well it waits.

    A service pushes on ``_opened`` how each thing that it opens is closed. This runs last of all, and also after a failed start.
    """

    kind: ClassVar[str]  # a ServiceKind

    def __init__(self, name: str, health: HealthMonitor | None = None) -> None:
        self.name = name
        self.health = health or HealthMonitor(ServiceKind(self.kind), name)
        self._state: Literal["active", "draining"] = "active"
        self._ends_within_s: float | None = None  # how long its drain may take, if known
        self._opened = AsyncExitStack()
        self._loops: list[asyncio.Task[None]] = []

    @abstractmethod
    async def _begin(self) -> Loops:
        """Makes what the work needs, and returns its loops by name. A loop ends by itself only when the service fails."""

    @abstractmethod
    async def _finish(self) -> None:
        """Takes nothing new, and returns when the work in hand is done."""

    @abstractmethod
    async def _leave(self) -> None:
        """Ends the work in hand, and signs off, while the loops still run."""

    async def start(self) -> None:
        try:
            loops = await self._begin()
        except BaseException:
            await self._opened.aclose()
            raise
        self._loops = [asyncio.create_task(loop, name=name) for name, loop in loops.items()]

    async def drain(self, within_s: float | None = None) -> None:
        """``within_s``: after this time the caller stops the service, whatever is in hand."""
        self._state, self._ends_within_s = "draining", within_s
        self.health.draining = True
        await self._finish()

    async def stop(self) -> None:
        if self._loops:  # otherwise it did not start, and is closed
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
