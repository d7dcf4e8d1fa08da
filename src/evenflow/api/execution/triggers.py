"""Routes by which triggerers claim triggers and report their results."""

from __future__ import annotations

import msgspec

from evenflow.api import limits
from evenflow.api.execution.endpoint import Call
from evenflow.api.refusals import Forbidden, Refused, too_large
from evenflow.api.tokens import Tokens, TriggerToken
from evenflow.api.triggers import TriggerClaims, store
from evenflow.api.vault import Vault
from evenflow.core.limits import INT32_MAX, MAX_ASSET_EXTRA_BYTES
from evenflow.errors import StaleEpoch
from evenflow.store.db.connect import AsyncPool
from evenflow.store.serving import triggers
from evenflow.wire.questions import Done, TellWatched
from evenflow.wire.triggers import ClaimTriggers, TriggerReports, TriggerReportsAnswer, TriggersAnswer


class TriggerRoutes:
    def __init__(self, pool: AsyncPool, tokens: Tokens, vault: Vault, claims: TriggerClaims) -> None:
        self._pool, self._tokens, self._vault, self._claims = pool, tokens, vault, claims

    async def claim(self, call: Call) -> TriggersAnswer:
        message: ClaimTriggers = call.message
        call.speaks_for(message.service_id)
        if not message.request_key or message.capacity < 1:
            raise Refused(422, "bad_value", "A claim of triggers needs a request_key and a capacity of at least one.")
        call.within_scope(message.queues)
        if not message.queues:  # all queues that its fleet may serve
            message.queues = list(call.of_service.scope)
        return await self._claims.claim(message, hung_up=call.hung_up)

    async def report(self, call: Call) -> TriggerReportsAnswer:
        message: TriggerReports = call.message
        if len(message.reports) > limits.REPORTS:
            raise Refused(413, "too_large", f"{len(message.reports):,} reports in one batch; send at most {limits.REPORTS:,}.")
        return await store(self._pool, self._tokens, self._vault, message.reports)

    async def watched(self, call: Call) -> Done:
        message: TellWatched = call.message
        if not isinstance(call.token, TriggerToken):
            raise Forbidden("Only a trigger tells of the asset that it watches; a task names it in outlets=.")
        if not 1 <= message.number <= INT32_MAX:
            raise Refused(422, "bad_value", "What a trigger tells is numbered from 1 on.")
        extra = msgspec.json.encode(message.extra)
        if len(extra) > MAX_ASSET_EXTRA_BYTES:
            raise too_large("The extra of the event", MAX_ASSET_EXTRA_BYTES)
        async with self._pool.connection() as conn:
            if not await triggers.tell_watched(conn, call.token, message.number, extra.decode()):
                raise StaleEpoch("This trigger is over: its task has resumed or ended, or another triggerer runs it.")
        return Done()
