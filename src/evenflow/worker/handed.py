"""Claims of tries that others hand to this worker: a message of a broker says which, or whoever made this process.

The hint may be late, or one of two: the claim decides, and what is refused is nobody's loss. One claim is under way at a time, for
all that was handed meanwhile: a burst costs two requests, and one try alone waits for nobody.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from enum import Enum, StrEnum, auto

from evenflow.core.limits import CLAIM_SLOTS
from evenflow.errors import ApiRefused
from evenflow.fleet.claiming import Polls
from evenflow.wire.messages import Claim, ClaimAnswer
from evenflow.worker import limits
from evenflow.worker.claims import ClaimApi, first
from evenflow.worker.tries import Tries


class Handed(StrEnum):
    """What became of a try that was handed to a worker."""

    ENDED = "ended"  # it ran here; its end is reported
    GONE = "gone"  # another worker has it, or it is over: nothing is to be done
    LATER = "later"  # this worker may not have it, or not now; it is sent again


class _Claimed(Enum):
    """What an answer says of a try that is not done with."""

    OURS = auto()
    BUSY = auto()  # somebody has it locked: to be asked for again


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
        self._unclaimed: dict[int, asyncio.Future[Handed | _Claimed]] = {}  # by epoch
        self._more = asyncio.Event()  # some came since the last claim

    async def run(self, service_id: int, *, resumes: bool) -> None:
        """What is not claimed when this is cancelled is claimed under the next registration. Resumes are handed as others are."""
        drained = asyncio.ensure_future(self.polls.draining.wait())
        try:
            while not self.polls.draining.is_set():
                await first(self._more, drained)
                self._more.clear()
                while self._unclaimed and not self.polls.draining.is_set():
                    await self._claim(service_id, list(self._unclaimed)[:CLAIM_SLOTS])
        finally:
            drained.cancel()
            self._more.set()
        self._settle(self._unclaimed, Handed.LATER)

    async def take(self, epoch: int) -> Handed:
        """Claim this try; returns when it has ended, or cannot be had. Raises :class:`ApiRefused` when it may claim nothing."""
        became = await self._become(epoch)
        while became is _Claimed.BUSY:
            await asyncio.sleep(limits.HANDED_BUSY)
            became = await self._become(epoch)
        if became is _Claimed.OURS:
            await self._tries.ended(epoch)
            return Handed.ENDED
        return became

    async def _become(self, epoch: int) -> Handed | _Claimed:
        """What the next claim says of it."""
        if epoch in self._unclaimed or epoch in self._tries.epochs:
            return Handed.GONE  # a second message: who brought the first waits for it
        if self.polls.draining.is_set():
            return Handed.LATER
        claimed: asyncio.Future[Handed | _Claimed] = asyncio.get_running_loop().create_future()
        self._unclaimed[epoch] = claimed
        self._more.set()
        try:
            return await claimed
        finally:
            if self._unclaimed.get(epoch) is claimed:  # who waited is gone
                del self._unclaimed[epoch]

    async def _claim(self, service_id: int, epochs: Sequence[int]) -> None:
        def claim(request_key: str) -> Claim:
            return Claim(
                service_id=service_id,
                request_key=request_key,
                slots=len(epochs),
                resume_slots=0,
                queues=self._queues,
                epochs=list(epochs),
            )

        try:
            answer = await self.polls.answer(claim)
        except ApiRefused as error:
            self._settle(epochs, error)
            return
        if answer is None:  # drained
            return
        self._answered(answer)
        given, busy = {assignment.epoch for assignment in answer.assignments}, set(answer.busy)
        self._settle(given, _Claimed.OURS)
        self._settle(busy, _Claimed.BUSY)
        self._settle(set(epochs) - given - busy, Handed.LATER if answer.limited or answer.state != "active" else Handed.GONE)

    def _settle(self, epochs: Collection[int], became: Handed | _Claimed | ApiRefused) -> None:
        for epoch in list(epochs):
            claimed = self._unclaimed.pop(epoch, None)
            if claimed is None or claimed.done():
                continue
            if isinstance(became, ApiRefused):
                claimed.set_exception(became)
            else:
                claimed.set_result(became)
