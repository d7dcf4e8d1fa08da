"""Claims triggers for free capacity: one long poll at a time, asked again as soon as it is answered and there is room."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from typing import Protocol

import structlog

from evenflow.errors import ApiRefused, ApiUnavailable
from evenflow.process.patience import Patience
from evenflow.triggerer import limits
from evenflow.triggerer.in_hand import TriggersInHand
from evenflow.wire.triggers import ClaimTriggers, TriggersAnswer

log = structlog.get_logger(__name__)


class TriggerClaimApi(Protocol):
    async def claim_triggers(self, message: ClaimTriggers) -> TriggersAnswer: ...


class Claims:
    """``answered`` hears every answer; the assignments in it are this triggerer's from then on."""

    def __init__(
        self, api: TriggerClaimApi, queues: list[str], in_hand: TriggersInHand, answered: Callable[[TriggersAnswer], None]
    ) -> None:
        self._api, self._queues, self._in_hand, self._answered = api, queues, in_hand, answered
        self._poll: asyncio.Task[TriggersAnswer] | None = None
        self._patience = Patience()
        self._draining = False

    async def run(self, service_id: int) -> None:
        """Claim until drained. Raises :class:`ApiRefused` when this service may not claim. Cancel it when the registration ends."""
        while not self._draining:
            await self._in_hand.room.wait()
            request_key = uuid.uuid4().hex
            while not self._draining:
                claim = ClaimTriggers(
                    service_id=service_id,
                    request_key=request_key,
                    capacity=min(max(self._in_hand.free, 1), limits.CLAIM),
                    queues=self._queues,
                    wait_s=limits.CLAIM_WAIT,
                )
                answer = await self._ask(claim)
                if answer is None:
                    await self._patience.wait()
                else:
                    self._patience.renew()
                    self._answered(answer)
                    break

    async def drain(self) -> None:
        """Claim no more. The control plane must know it first: then an answer with some is under way already, or never will be."""
        self._draining = True
        if (poll := self._poll) is not None:
            await asyncio.wait({poll}, timeout=limits.CLAIM_GRACE)
            poll.cancel()

    def halt(self) -> None:
        """Ask for nothing new; an answer that is under way is still heard."""
        self._draining = True

    async def _ask(self, claim: ClaimTriggers) -> TriggersAnswer | None:
        """The answer, or none, and then the same question should be asked again: it may have been heard."""
        self._poll = asyncio.ensure_future(self._api.claim_triggers(claim))
        try:
            return await self._poll
        except ApiUnavailable as error:
            log.warning("claims wait for the API", reason=str(error))
        except ApiRefused as error:
            if error.status < 500:
                raise
            log.warning("claim refused", reason=str(error))
        except asyncio.CancelledError:
            self._poll.cancel()
            if not self._draining:
                raise
        finally:
            self._poll = None
        return None
