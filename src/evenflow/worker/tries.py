"""The tries that this worker has in hand, and the slots that they take."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from evenflow.wire.messages import Assignment
from evenflow.worker.attempt import Attempt, Tools


class Tries:
    """``room`` is set while a slot is free."""

    def __init__(self, slots: int, tools: Tools) -> None:
        self._slots, self._tools = slots, tools
        self._attempts: dict[int, Attempt] = {}
        self.room = asyncio.Event()
        self.room.set()
        self._over = asyncio.Event()
        self._over.set()

    @property
    def free(self) -> int:
        return max(self._slots - len(self._attempts), 0)

    @property
    def epochs(self) -> list[int]:
        return list(self._attempts)

    def accept(self, assignments: Iterable[Assignment]) -> None:
        """Begin what is not in hand yet. What was assigned is begun even above the slots: it is nobody else's."""
        for assignment in assignments:
            if assignment.epoch not in self._attempts:
                attempt = self._attempts[assignment.epoch] = Attempt(assignment, self._tools, self._ended)
                self._over.clear()
                attempt.begin()
        if not self.free:
            self.room.clear()

    def end(self, epochs: Iterable[int], reason: str) -> None:
        """End those of ``epochs`` that are in hand, and report their exit."""
        for epoch in epochs:
            if (attempt := self._attempts.get(epoch)) is not None:
                attempt.end(reason)

    def abandon_all(self) -> None:
        """Kill all at once and report nothing."""
        for attempt in list(self._attempts.values()):
            attempt.abandon()

    async def over(self) -> None:
        """Returns when no try is in hand."""
        await self._over.wait()

    def _ended(self, attempt: Attempt) -> None:
        del self._attempts[attempt.epoch]
        if self.free:
            self.room.set()
        if not self._attempts:
            self._over.set()
