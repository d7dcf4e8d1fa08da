"""Routes by which processes without a database register and beat."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any, Literal

import msgspec

from evenflow.api import limits
from evenflow.api import observations as seen
from evenflow.api.claims import Claims
from evenflow.api.execution.endpoint import Call
from evenflow.api.refusals import Forbidden, Refused
from evenflow.api.tokens import Tokens
from evenflow.api.watching import checked_detail
from evenflow.core.limits import BEAT_S, LEASE_S, MAX_NAME_CHARS
from evenflow.core.service import UserCodeKind
from evenflow.errors import StaleEpoch
from evenflow.killpoints import KillPoint, reached
from evenflow.store.db.connect import AsyncConn, AsyncPool
from evenflow.store.db.notify import INBOX, wake_async
from evenflow.store.serving import dispatch, events, executors, launches, services, triggers
from evenflow.telemetry.observing import observe
from evenflow.wire.messages import DETAILS, Beat, BeatAnswer, ProcessorDetail, Register, Registered
from evenflow.wire.versions import OURS, Spoken


class ServiceRoutes:
    def __init__(self, pool: AsyncPool, beats: AsyncPool, claims: Claims, tokens: Tokens) -> None:
        self._pool, self._beats, self._claims, self._tokens = pool, beats, claims, tokens

    async def register(self, call: Call) -> Registered:
        message: Register = call.message
        if message.kind != call.of_fleet.kind:
            raise Forbidden(f"A token for a {call.of_fleet.kind} cannot register a {message.kind}.")
        _check_names(message)
        if (own := call.of_fleet.worker) and message.name != own:
            raise Forbidden(f"This worker's token is for {own!r}, and cannot register {message.name!r}.")
        queues = _served(message.kind, message.detail)
        call.within_scope(queues)
        wire = _agreed(message)
        async with self._pool.connection() as conn:
            if (epoch := call.of_fleet.epoch) and not await launches.find_current(conn, [epoch]):
                raise StaleEpoch(f"Try {epoch} is over, and this worker is for it alone.")
            if message.kind == "worker":
                _check_taking(message, queues, await executors.list_pushed(conn))
            fleet, about = f"{message.kind} fleet", {"host": message.host, "pid": message.pid}
            async with events.recorded(conn, fleet, "service.register", message.name, **about) as told:
                service_id = await services.register(
                    conn,
                    kind=message.kind,
                    name=message.name,
                    host=message.host,
                    pid=message.pid,
                    version=message.version,
                    detail=checked_detail(message.detail, _caller()),
                )
                told["service_id"] = service_id
        token = self._tokens.for_service(call.of_fleet, service_id)
        return Registered(service_id=service_id, lease_s=LEASE_S, beat_s=BEAT_S, wire=wire, token=token)

    async def beat(self, call: Call) -> BeatAnswer:
        message: Beat = call.message
        service_id = int(call.path["service_id"])
        kind = call.speaks_for(service_id).kind
        if len(message.epochs) > limits.LISTED_EPOCHS:
            listed, most = len(message.epochs), limits.LISTED_EPOCHS
            raise Refused(413, "too_large", f"A beat lists {listed:,} tries or triggers; the limit is {most:,}.")
        call.within_scope(_served(kind, message.detail))
        async with self._beats.connection() as conn:
            if kind == "worker" and message.state == "stopped":
                return await _leave(conn, service_id, message)
            detail = checked_detail(message.detail, _caller())
            beaten = await services.beat(conn, service_id=service_id, kind=kind, state=message.state, detail=detail)
            if beaten is None:
                return BeatAnswer(known=False)
            reached(KillPoint.BEAT_STORED)
            state: Literal["active", "draining"] = "active" if beaten.state == "active" else "draining"
            answer = BeatAnswer(state=state, token=self._tokens.renewed(call.bearer), closed=beaten.closed)
            if kind == "triggerer":
                answer.at = beaten.at_s
                answer.kill = await triggers.compare_listed(
                    conn,
                    service_id=service_id,
                    epochs=message.epochs,
                    lost_after_s=limits.TRIGGER_LOST,
                    heard_at_s=None if message.heard_at is None else min(max(message.heard_at, 0.0), beaten.at_s),
                    asks=message.asks,
                )
                answer.surplus = await triggers.share_out(
                    conn, service_id=service_id, slack=limits.UNEVEN, pause_s=limits.SHARED_OUT, lease_s=LEASE_S
                )
            if kind != "worker":
                return answer
            difference = await dispatch.compare_listed(
                conn,
                service_id=service_id,
                epochs=message.epochs,
                resend_after_s=limits.RESEND_AFTER,
                unmarked_after_s=limits.START_MARKED,
            )
            answer.kill, answer.revoked = difference.kill, difference.revoked
            if message.starting is not None and (running := set(difference.unmarked) - set(message.starting)):
                told = await dispatch.mark_started(conn, service_id=service_id, epochs=running)
                if told:
                    observe(seen.starts_not_reported(", ".join(map(str, told))))
            if difference.resend:
                again = await dispatch.read_tries(conn, service_id=service_id, epochs=difference.resend)
                answer.resend = await self._claims.assignments(conn, again)
        return answer


async def _leave(conn: AsyncConn, service_id: int, farewell: Beat) -> BeatAnswer:
    """Ends a worker in one transaction: no scheduler can treat the tries that it gives back as lost meanwhile. A worker of the
    previous release does not say which tries it had begun.
    """
    given_back = 0
    async with conn.transaction():
        if await services.beat(conn, service_id=service_id, kind="worker", state="stopped") is None:
            return BeatAnswer(known=False)
        if farewell.starting is not None:
            begun = set(farewell.epochs).difference(farewell.starting)
            given_back = await dispatch.give_back(conn, service_id=service_id, begun=begun)
    if given_back:
        await wake_async(conn, [INBOX])
    return BeatAnswer()


def _caller() -> str | None:
    origin = events.ORIGIN.get()
    return None if origin is None else origin.address


def _check_names(who: Register) -> None:
    """Checks names, because pages show them. Raises :class:`Refused`."""
    longest = {"name": MAX_NAME_CHARS, "host": limits.HOST_NAME, "version": limits.VERSION_NAME}
    for what, most in longest.items():
        text = getattr(who, what)
        if not (0 < len(text) <= most and text.isprintable()):
            raise Refused(
                422, "bad_value", f"The {what} of a service is 1 to {most} characters that can be printed, not {text[:100]!r}."
            )


def _check_taking(who: Register, queues: Sequence[str], pushed: Mapping[str, executors.PushedTo]) -> None:
    """Raises :class:`Refused` when a worker claims queues whose tries are sent, or when it takes sent tries of queues that no
    launcher serves.
    """
    handed = bool(who.detail.get("handed"))
    wrong = [queue for queue in queues if (queue in pushed) != handed]
    if not wrong:
        return
    if handed:
        cure = f"evenflow executors set NAME --kind KIND --queue {shlex.quote(wrong[0])}"
        why = f"no executor is sent the tries of queue {wrong[0]!r}, and this worker runs what it is handed. Say which: {cure}"
    else:
        executor = pushed[wrong[0]].executor
        why = (
            f"the tries of queue {wrong[0]!r} are sent to the executor {executor!r}. Start this worker without that queue "
            "(EVENFLOW_QUEUES), or let workers ask for them again, with an API that runs (evenflow up --workers 0): "
            f"evenflow executors delete {shlex.quote(executor)}"
        )
    raise Refused(422, "wrong_executor", f"Worker {who.name!r} gets nothing: {why}")


def _agreed(who: Register) -> int:
    """Returns the version of the messages that the service and this API share. Raises :class:`Refused` naming the side that is too
    old.
    """
    theirs = Spoken(who.oldest_wire, who.wire)
    wire = OURS.agreed(theirs)
    if wire is None:
        cure = f"Upgrade Evenflow on {who.host}." if theirs.newest < OURS.oldest else "Upgrade the API first."
        raise Refused(
            426,
            "wrong_version",
            f"The {who.kind} {who.name} (Evenflow {who.version}) speaks version {theirs} of the messages, this API (Evenflow "
            f"{version('evenflow')}) speaks {OURS}. {cure}",
        )
    return wire


def _served(kind: UserCodeKind, detail: Mapping[str, Any]) -> list[str]:
    """Returns the queues, or bundles, that the service says it serves. Raises :class:`Refused` for what cannot be read:
    autoscalers, schedulers and pages read what all services say in one statement, so a value of another type would harm all.
    """
    try:
        said = msgspec.convert(dict(detail), DETAILS[kind])
    except msgspec.ValidationError as error:
        raise Refused(422, "bad_value", f"A {kind} says of itself what is none of its values: {error}.") from None
    return [bundle.name for bundle in said.bundles] if isinstance(said, ProcessorDetail) else said.queues
