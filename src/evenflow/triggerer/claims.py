"""Claims triggers for free capacity: one long poll at a time, repeated once it is answered and there is room."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from evenflow.core.limits import CLAIM_SLOTS
from evenflow.membership.claiming import Polls
from evenflow.membership.limits import CLAIM_WAIT
from evenflow.triggerer.in_hand import TriggersInHand
from evenflow.wire.triggers import ClaimTriggers, TriggersAnswer


class TriggerClaimApi(Protocol):
    async def claim_triggers(self, message: ClaimTriggers) -> TriggersAnswer: ...


class TriggerPolls:
    """``answered`` is called with every answer; the assignments in it are this triggerer's from then on."""

    def __init__(
        self, api: TriggerClaimApi, queues: list[str], in_hand: TriggersInHand, answered: Callable[[TriggersAnswer], None]
    ) -> None:
        self._queues, self._in_hand, self._answered = queues, in_hand, answered
        self.polls = Polls(api.claim_triggers)
        self.asks: str | None = None  # the request key of the newest claim: only its answer may be on its way

    async def run(self, service_id: int) -> None:
        """Claims until drained. Raises :class:`ApiRefused` when this service may not claim. Cancel it when the registration
        ends.
        """

        def claim(request_key: str) -> ClaimTriggers:
            self.asks = request_key
            return ClaimTriggers(
                service_id=service_id,
                request_key=request_key,
                capacity=min(max(self._in_hand.free, 1), CLAIM_SLOTS),
                queues=self._queues,
                wait_s=CLAIM_WAIT,
            )

        while not self.polls.draining.is_set():
            await self._in_hand.room.wait()
            answer = await self.polls.answer(claim)
            if answer is not None:
                self._answered(answer)
