"""Triggers for tests: they are found by their paths, so they stand at the top of a module."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, ClassVar

from evenflow import BaseTrigger, TriggerEvent


class Says(BaseTrigger):
    """Fires ``after_s`` with ``payload``."""

    stopped: ClassVar[list[Any]] = []
    closed: ClassVar[list[Any]] = []

    def __init__(self, payload: Any, after_s: float = 0.0) -> None:
        self.payload, self.after_s = payload, after_s

    async def run(self) -> AsyncIterator[TriggerEvent]:
        await asyncio.sleep(self.after_s)
        yield TriggerEvent(self.payload)

    async def cleanup(self) -> None:
        self.closed.append(self.payload)

    async def on_kill(self) -> None:
        self.stopped.append(self.payload)

    class Inside(BaseTrigger):
        """In another class."""


class Breaks(BaseTrigger):
    async def run(self) -> AsyncIterator[TriggerEvent]:
        raise OSError("no route to host")
        yield TriggerEvent()


class Ends(BaseTrigger):
    async def run(self) -> AsyncIterator[TriggerEvent]:
        return
        yield TriggerEvent()


class Forgets(BaseTrigger):
    def __init__(self, path: str) -> None:
        self.its_path = path


class Asks(BaseTrigger):
    async def run(self) -> AsyncIterator[TriggerEvent]:
        yield TriggerEvent(await self.ask("waited", {}))


class Misleads(BaseTrigger):
    """Says of itself what is not so."""

    def __init__(self, said: Any = None) -> None:
        self.said = said

    def serialize(self) -> Any:
        return self.said
