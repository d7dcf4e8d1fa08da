"""Claims of tries that others hand to this worker: a message of a broker says which, or whoever made this process.

The hint may be late, or one of two: the claim decides, and what is refused is nobody's loss.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from enum import StrEnum

from evenflow.fleet.claiming import Polls
from evenflow.wire.messages import Claim, ClaimAnswer
from evenflow.worker.claims import ClaimApi
from evenflow.worker.tries import Tries


class Handed(StrEnum):
    """What became of a try that was handed to a worker."""

    ENDED = "ended"  # it ran here; its end is reported
    GONE = "gone"  # another worker has it, or it is over: nothing is to be done
    LATER = "later"  # this worker may not have it, or not now; it is sent again


class Intake:
    """Whether it is of use to hand tries to this worker, for whoever follows that. A hint like a try itself: the claim decides."""

    def __init__(self) -> None:
        self._is_open = True
        self._changed = asyncio.Event()

    def set(self, *, is_open: bool) -> None:
        if is_open != self._is_open:
            self._is_open = is_open
            self._changed.set()
            self._changed = asyncio.Event()

    async def follow(self) -> AsyncIterator[bool]:
        """Whether it is open now, and whenever that has changed."""
        while True:
            changed = self._changed
            yield self._is_open
            await changed.wait()


class HandedTries:
    """``answered`` hears every answer; the assignments in it are this worker's from then on."""

    def __init__(self, api: ClaimApi, queues: Sequence[str], tries: Tries, answered: Callable[[ClaimAnswer], None]) -> None:
        self._queues, self._tries, self._answered = list(queues), tries, answered
        self.polls = Polls(api.claim)
        self.intake = Intake()
        self._service_id: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def run(self, service_id: int) -> None:
        """Claims are made under this registration, until drained. Cancel it when the registration ends."""
        self._service_id.set_result(service_id)
        try:
            await self.polls.draining.wait()
        finally:
            self._service_id = asyncio.get_running_loop().create_future()

    async def take(self, epoch: int) -> Handed:
        """Claim this try; returns when it has ended, or cannot be had. Raises :class:`ApiRefused` when it may claim nothing."""
        if self.polls.draining.is_set():
            return Handed.LATER
        service_id = await asyncio.shield(self._service_id)

        def claim(request_key: str) -> Claim:
            return Claim(service_id=service_id, request_key=request_key, slots=1, resume_slots=0, queues=self._queues, epoch=epoch)

        answer = await self.polls.answer(claim)
        if answer is None:
            return Handed.LATER
        self._answered(answer)
        if not answer.assignments:
            return Handed.LATER if answer.limited or answer.state != "active" else Handed.GONE
        await self._tries.ended(epoch)
        return Handed.ENDED
