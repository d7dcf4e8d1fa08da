"""Routes by which processes without a database register and beat."""

from __future__ import annotations

from evenflow.api import limits
from evenflow.api.claims import Claims
from evenflow.api.execution.endpoint import Call
from evenflow.api.refusals import Forbidden, Refused
from evenflow.core.limits import BEAT_S, LEASE_S
from evenflow.store import dispatch, services
from evenflow.store.connect import AsyncPool
from evenflow.wire.messages import Beat, BeatAnswer, Register, Registered


class ServiceRoutes:
    def __init__(self, pool: AsyncPool, claims: Claims) -> None:
        self._pool, self._claims = pool, claims

    async def register(self, call: Call) -> Registered:
        message: Register = call.message
        if message.kind != call.kind:
            raise Forbidden(f"A token of kind {call.kind!r} cannot register a {message.kind}.")
        async with self._pool.connection() as conn:
            service_id = await services.register(
                conn,
                kind=message.kind,
                name=message.name,
                host=message.host,
                pid=message.pid,
                version=message.version,
                detail=message.detail,
            )
        return Registered(service_id=service_id, lease_s=LEASE_S, beat_s=BEAT_S)

    async def beat(self, call: Call) -> BeatAnswer:
        message: Beat = call.message
        service_id = int(call.path["service_id"])
        if len(message.epochs) > limits.LISTED_EPOCHS:
            raise Refused(413, "too_large", f"A beat lists {len(message.epochs):,} tries; the limit is {limits.LISTED_EPOCHS:,}.")
        async with self._pool.connection() as conn:
            state = await services.beat(conn, service_id=service_id, kind=call.kind, state=message.state, detail=message.detail)
            if state is None:
                return BeatAnswer(known=False)
            answer = BeatAnswer(state="active" if state == "active" else "draining")
            if call.kind != "worker":
                return answer
            difference = await dispatch.compare_listed(
                conn, service_id=service_id, epochs=message.epochs, resend_after_s=limits.RESEND_AFTER
            )
            answer.kill = difference.kill
            if difference.resend:
                again = await dispatch.read_tries(conn, service_id=service_id, epochs=difference.resend)
                answer.resend = await self._claims.assignments(conn, again)
        return answer
