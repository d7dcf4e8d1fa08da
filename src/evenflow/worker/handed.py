"""Claims of tries that other processes hand to this worker: a message of a broker names the try, or the starter of this process.

The hint may be late, or a repetition: the claim decides, and a refused claim does no harm. One claim at a time asks for all tries
that were handed meanwhile: a burst costs two requests, and a single try does not wait.

A resume that comes as a message waits behind all messages before it. So a worker with slots for resumes also asks for resumes
itself, whether they were sent or not (R-DQ3). These slots come on top of the sender's places, and no other try takes one.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from enum import Enum, StrEnum, auto

from evenflow.core.limits import CLAIM_SLOTS
from evenflow.errors import ApiRefused
from evenflow.membership.claiming import Polls
from evenflow.membership.limits import CLAIM_WAIT
from evenflow.wire.messages import Claim, ClaimAnswer
from evenflow.worker import limits
from evenflow.worker.claims import ClaimApi, first, together
from evenflow.worker.tries import Tries


class Handed(StrEnum):
    """How the handing of a try to a worker ended."""

    ENDED = "ended"  # it ran here; its end is reported
    GONE = "gone"  # another worker has it, or it is over: the sender has nothing to do
    LATER = "later"  # this worker may not have it, or not now; it is sent again


class _Claimed(Enum):
    """What an answer says of a try that is not done."""

    OURS = auto()
    BUSY = auto()  # another transaction has it locked: the worker asks again


class Intake:
    """Whether handing tries to this worker is useful, for processes that follow it. This is only a hint: the claim decides."""

    def __init__(self) -> None:
        self._is_open = True
        self._changed = asyncio.Event()

    def set(self, *, is_open: bool) -> None:
        if is_open != self._is_open:
            self._is_open = is_open
            self._changed.set()
            self._changed = asyncio.Event()

    async def follow(self) -> AsyncIterator[bool]:
        """Yields whether the worker takes tries, now and at each change."""
        while True:
            changed = self._changed
            yield self._is_open
            await changed.wait()


class HandedTries:
    """``answered`` is called with every answer; the assignments in it are this worker's from then on."""

    def __init__(self, api: ClaimApi, queues: Sequence[str], tries: Tries, answered: Callable[[ClaimAnswer], None]) -> None:
        self._queues, self._tries, self._answered = list(queues), tries, answered
        self.polls = Polls(api.claim)
        self._unclaimed: dict[int, asyncio.Future[Handed | _Claimed]] = {}  # by epoch
        self._more = asyncio.Event()  # tries came since the last claim
        self._leaving = asyncio.Event()

    async def run(self, service_id: int, *, resumes: bool) -> None:
        """Claims handed tries, resumes included. A try without a claim when this is cancelled is claimed under the next
        registration.
        """
        loops = [self._claim_handed(service_id)]
        if resumes and self._tries.resume_slots:
            loops.append(self._ask_while_staying(service_id))
        await together(loops)

    def leave(self) -> None:
        """Asks for no resumes from now on. What is handed over is still claimed."""
        self._leaving.set()

    async def _ask_while_staying(self, service_id: int) -> None:
        """A resume whose answer is cut off by the end comes with a beat."""
        asking = asyncio.ensure_future(self._ask_for_resumes(service_id))
        try:
            await first(self._leaving, asking)
            if asking.done():
                asking.result()
        finally:
            asking.cancel()

    async def _ask_for_resumes(self, service_id: int) -> None:
        def claim(request_key: str) -> Claim:
            return Claim(
                service_id=service_id,
                request_key=request_key,
                slots=0,
                resume_slots=max(self._tries.spare, 1),
                queues=self._queues,
                wait_s=CLAIM_WAIT,
                handed=True,
            )

        drained = asyncio.ensure_future(self.polls.draining.wait())
        try:
            while not self.polls.draining.is_set():
                await first(self._tries.resume_room, drained)
                answer = await self.polls.answer(claim)
                if answer is not None:
                    self._answered(answer)
        finally:
            drained.cancel()

    async def _claim_handed(self, service_id: int) -> None:
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
        """Claims this try. Returns when it has ended, or cannot be had. Raises :class:`ApiRefused` when this worker may claim
        nothing.
        """
        became = await self._become(epoch)
        while became is _Claimed.BUSY:
            await asyncio.sleep(limits.HANDED_BUSY)
            became = await self._become(epoch)
        if became is _Claimed.OURS:
            await self._tries.ended(epoch)
            return Handed.ENDED
        return became

    async def _become(self, epoch: int) -> Handed | _Claimed:
        """Returns what the next claim says of the try."""
        if epoch in self._unclaimed or epoch in self._tries.epochs:
            return Handed.GONE  # a second message: the sender of the first waits for the try
        if self.polls.draining.is_set():
            return Handed.LATER
        claimed: asyncio.Future[Handed | _Claimed] = asyncio.get_running_loop().create_future()
        self._unclaimed[epoch] = claimed
        self._more.set()
        try:
            return await claimed
        finally:
            if self._unclaimed.get(epoch) is claimed:  # the waiting sender is gone
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
