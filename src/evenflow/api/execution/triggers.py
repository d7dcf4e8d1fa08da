"""Routes by which triggerers claim triggers and report their results."""

from __future__ import annotations

from evenflow.api import limits
from evenflow.api.execution.endpoint import Call
from evenflow.api.refusals import Refused
from evenflow.api.tokens import Tokens
from evenflow.api.triggers import TriggerClaims, store
from evenflow.api.vault import Vault
from evenflow.store.db.connect import AsyncPool
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
