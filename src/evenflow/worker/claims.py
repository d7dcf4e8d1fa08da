"""Claims work for free slots: one long poll at a time, repeated once it is answered and a slot is free.

When only slots for resumes are left, a second poll asks for resumes and stands until it is answered: so a resume finds this worker
however long its ordinary slots are busy (R-DQ3).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Protocol

from evenflow.membership.claiming import Polls
from evenflow.membership.limits import CLAIM_WAIT
from evenflow.wire.messages import Claim, ClaimAnswer
from evenflow.worker.tries import Tries


class ClaimApi(Protocol):
    async def claim(self, message: Claim) -> ClaimAnswer: ...


class TryClaims(Protocol):
    """How a worker gets its tries: it claims them, or they are handed to it."""

    polls: Polls[Claim, ClaimAnswer]

    async def run(self, service_id: int, *, resumes: bool) -> None:
        """Claims under this registration, until drained. ``resumes``: the API knows resumes. Raises :class:`ApiRefused` when this
        worker may not claim. Cancel it when the registration ends.
        """


class TryPolls:
    """``answered`` is called with every answer; the assignments in it are this worker's from then on."""

    def __init__(self, api: ClaimApi, queues: list[str], tries: Tries, answered: Callable[[ClaimAnswer], None]) -> None:
        self._queues, self._tries, self._answered = queues, tries, answered
        self.polls = Polls(api.claim)
        self._heard = asyncio.Event()

    async def run(self, service_id: int, *, resumes: bool) -> None:
        loops = [self._ask_for_work(service_id, resumes=resumes)]
        if resumes:
            loops.append(self._ask_for_resumes(service_id))
        await together(loops)

    async def _ask_for_work(self, service_id: int, *, resumes: bool) -> None:
        while not self.polls.draining.is_set():
            await self._tries.room.wait()
            await self._ask(service_id, lambda: self._room(resumes=resumes))

    async def _ask_for_resumes(self, service_id: int) -> None:
        drained = asyncio.ensure_future(self.polls.draining.wait())
        try:
            while not self.polls.draining.is_set():
                await first(self._tries.resumes_only, drained)
                if self._unasked > 0:
                    await self._ask(service_id, lambda: (0, max(self._unasked, 1)))
                else:  # a standing poll takes resumes, too
                    self._heard.clear()
                    await first(self._heard, drained)
        finally:
            drained.cancel()

    def _room(self, *, resumes: bool) -> tuple[int, int | None]:
        slots = max(self._tries.free, 1)
        return slots, max(self._unasked - slots, 0) if resumes else None

    @property
    def _unasked(self) -> int:
        """Free slots of either kind that no poll asks to fill."""
        asked = sum(claim.slots + (claim.resume_slots or 0) for claim in self.polls.under_way)
        return self._tries.free + self._tries.spare - asked

    async def _ask(self, service_id: int, room: Callable[[], tuple[int, int | None]]) -> None:
        def claim(request_key: str) -> Claim:
            slots, resume_slots = room()
            return Claim(
                service_id=service_id,
                request_key=request_key,
                slots=slots,
                resume_slots=resume_slots,
                queues=self._queues,
                wait_s=CLAIM_WAIT,
            )

        answer = await self.polls.answer(claim)
        if answer is not None:
            self._answered(answer)
            self._heard.set()


async def together(loops: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Returns when all have ended. No poll is left after this call, also when it raises."""
    running = [asyncio.ensure_future(loop) for loop in loops]
    try:
        await asyncio.gather(*running)
    finally:
        for each in running:
            each.cancel()


async def first(event: asyncio.Event, other: asyncio.Future[Any]) -> None:
    """Returns as soon as ``event`` is set or ``other`` is done."""
    if not event.is_set():
        waiting = asyncio.ensure_future(event.wait())
        try:
            await asyncio.wait({waiting, other}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
