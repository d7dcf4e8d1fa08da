"""Claims work for free slots: one long poll at a time, asked again as soon as it is answered and a slot is free.

When only slots for returns are left, there is a poll for them beside it, which stands until it is answered: what comes back from
waiting finds this worker however long its ordinary slots are busy (R-DQ3).
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from typing import Literal, Protocol

import structlog

from evenflow.errors import ApiRefused, ApiUnavailable
from evenflow.process.patience import Patience
from evenflow.wire.messages import Claim, ClaimAnswer
from evenflow.worker import limits
from evenflow.worker.tries import Tries

log = structlog.get_logger(__name__)


class ClaimApi(Protocol):
    async def claim(self, message: Claim) -> ClaimAnswer: ...


class Claims:
    """``answered`` hears every answer; the assignments in it are this worker's from then on."""

    def __init__(self, api: ClaimApi, queues: list[str], tries: Tries, answered: Callable[[ClaimAnswer], None]) -> None:
        self._api, self._queues, self._tries, self._answered = api, queues, tries, answered
        self._polls: dict[asyncio.Future[ClaimAnswer], Claim] = {}
        self._heard = asyncio.Event()
        self._draining = asyncio.Event()

    async def run(self, service_id: int, *, returns: bool) -> None:
        """Claim until drained; ``returns``: the API knows what they are. Raises :class:`ApiRefused` when this worker may not claim.
        Cancel it when the registration ends.
        """
        loops = [asyncio.ensure_future(self._ask_for_work(service_id, returns=returns))]
        if returns:
            loops.append(asyncio.ensure_future(self._ask_for_returns(service_id)))
        try:
            await asyncio.gather(*loops)
        finally:
            for loop in loops:
                loop.cancel()

    async def drain(self) -> None:
        """Claim no more. The control plane must know it first: then an answer with work is under way already, or never will be."""
        self._draining.set()
        if polls := set(self._polls):
            await asyncio.wait(polls, timeout=limits.CLAIM_GRACE)
            for poll in polls:
                poll.cancel()

    def halt(self) -> None:
        """Ask for nothing new; an answer that is under way is still heard."""
        self._draining.set()

    async def _ask_for_work(self, service_id: int, *, returns: bool) -> None:
        while not self._draining.is_set():
            await self._tries.room.wait()
            await self._ask(service_id, lambda: self._room(returns=returns))

    async def _ask_for_returns(self, service_id: int) -> None:
        drained = asyncio.ensure_future(self._draining.wait())
        try:
            while not self._draining.is_set():
                await _first(self._tries.returns_only, drained)
                if self._unasked > 0:
                    await self._ask(service_id, lambda: (0, max(self._unasked, 1)))
                else:  # a poll that stands takes returns, too
                    self._heard.clear()
                    await _first(self._heard, drained)
        finally:
            drained.cancel()

    def _room(self, *, returns: bool) -> tuple[int, int | None]:
        slots = max(self._tries.free, 1)
        return slots, max(self._unasked - slots, 0) if returns else None

    @property
    def _unasked(self) -> int:
        """Free slots of either kind that no poll has asked to fill."""
        asked = sum(claim.slots + (claim.resume_slots or 0) for claim in self._polls.values())
        return self._tries.free + self._tries.spare - asked

    async def _ask(self, service_id: int, room: Callable[[], tuple[int, int | None]]) -> None:
        """One claim, asked until it is answered: the same key again, for it may have been heard."""
        request_key, patience = uuid.uuid4().hex, Patience()
        while not self._draining.is_set():
            slots, resume_slots = room()
            claim = Claim(
                service_id=service_id,
                request_key=request_key,
                slots=slots,
                resume_slots=resume_slots,
                queues=self._queues,
                wait_s=limits.CLAIM_WAIT,
            )
            answer = await self._answer_to(claim)
            if answer is not None:
                self._answered(answer)
                self._heard.set()
                break
            await patience.wait()

    async def _answer_to(self, claim: Claim) -> ClaimAnswer | None:
        """The answer, or none, and then the same question should be asked again."""
        poll = asyncio.ensure_future(self._api.claim(claim))
        self._polls[poll] = claim
        try:
            return await poll
        except ApiUnavailable as error:
            log.warning("claims wait for the API", reason=str(error))
        except ApiRefused as error:
            if error.status < 500:
                raise
            log.warning("claim refused", reason=str(error))
        except asyncio.CancelledError:
            poll.cancel()
            if not self._draining.is_set():
                raise
        finally:
            del self._polls[poll]
        return None


async def _first(event: asyncio.Event, other: asyncio.Future[Literal[True]]) -> None:
    """Returns as soon as ``event`` is set or ``other`` done."""
    if not event.is_set():
        waiting = asyncio.ensure_future(event.wait())
        try:
            await asyncio.wait({waiting, other}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
