"""One route of the execution API, as plain ASGI: its callers, its message and its answer.

Every claim and report takes this way, so what can be computed per route is not computed per request.
"""

from __future__ import annotations

import shlex
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from starlette.types import Receive, Scope, Send

from evenflow.api.bodies import bearer, read_body
from evenflow.api.refusals import UNREAD, CannotStore, Forbidden, Refused, Unauthorized, refusal
from evenflow.api.tokens import (
    FleetToken,
    OperatorToken,
    ServiceToken,
    SessionToken,
    Token,
    Tokens,
    TriggerToken,
    TryToken,
    listed_id,
)
from evenflow.errors import StaleEpoch
from evenflow.store.serving.events import ORIGIN
from evenflow.wire.messages import CONTENT_TYPE, Message, Refusal

_encode = msgspec.msgpack.Encoder().encode
_CHALLENGE = (b"www-authenticate", b"Bearer")
_CLOSE = (b"connection", b"close")


@dataclass(slots=True)
class Call:
    """A request that its caller may make."""

    token: Token
    bearer: str  # the text of the token
    message: Any  # of the type that the route reads; bytes for a raw route
    path: dict[str, Any]
    receive: Receive

    @property
    def of_try(self) -> TryToken:
        """The try that calls, or the try of the trigger that calls. For routes that only tries and triggers may call."""
        if isinstance(self.token, TriggerToken):
            return self.token.of_try
        assert isinstance(self.token, TryToken)
        return self.token

    @property
    def asker(self) -> TryToken | TriggerToken:
        """For routes that only tries and triggers may call."""
        assert isinstance(self.token, TryToken | TriggerToken)
        return self.token

    @property
    def of_fleet(self) -> FleetToken:
        """For routes that only services call before they register."""
        assert isinstance(self.token, FleetToken)
        return self.token

    @property
    def of_service(self) -> ServiceToken:
        """For routes that only services may call."""
        assert isinstance(self.token, ServiceToken)
        return self.token

    def speaks_for(self, service_id: int) -> ServiceToken:
        """Raises :class:`Forbidden` when the caller is another service."""
        if self.of_service.service_id != service_id:
            raise Forbidden(f"This token is of service {self.of_service.service_id}; it cannot speak for service {service_id}.")
        return self.of_service

    def within_scope(self, names: Iterable[str]) -> None:
        """Raises :class:`Forbidden` when the fleet may not serve all of these queues, or a processor all of these bundles."""
        assert isinstance(self.token, FleetToken | ServiceToken)
        service = self.token
        foreign = sorted(set(names) - set(service.scope))
        if service.scope and foreign:
            what, option = ("bundles", "--bundle") if service.kind == "processor" else ("queues", "--queue")
            raise Forbidden(
                f"This {service.kind}'s token is for the {what} {', '.join(service.scope)} and cannot serve {', '.join(foreign)}. "
                f"Make one that can: evenflow tokens create {service.kind} {option} {shlex.quote(foreign[0])}"
            )

    def within_try(self, epochs: Sequence[int]) -> None:
        """Raises :class:`Forbidden` when the claiming service exists for another try."""
        own = self.of_service.epoch
        if own and list(epochs) != [own]:
            wanted = f"try {next(epoch for epoch in epochs if epoch != own)}" if epochs else "any try"
            raise Forbidden(f"This worker's token is for try {own} and cannot claim {wanted}.")

    async def hung_up(self) -> None:
        """Returns when the caller has hung up."""
        while (await self.receive())["type"] != "http.disconnect":
            pass


def try_over() -> StaleEpoch:
    """Returns the refusal of what a try asks or says that is over."""
    return StaleEpoch("This try is over: it has reported its exit, or its task was started again. Nothing is stored or answered.")


Handler = Callable[[Call], Awaitable[Message | bytes | None]]


def kind_of(token: Token) -> str:
    match token:
        case FleetToken(kind):
            return f"{kind} fleet"
        case ServiceToken(kind):
            return kind
        case TryToken():
            return "try"
        case TriggerToken():
            return "trigger"
        case OperatorToken():
            return "operator"
        case SessionToken():
            return "session"


class Endpoint:
    """Checks the token, reads and decodes the body, calls ``handler``, and sends its answer or an error."""

    def __init__(
        self, tokens: Tokens, handler: Handler, *, kinds: tuple[str, ...], reads: type[Message] | None, body_limit: int
    ) -> None:
        self._tokens, self._handler, self._kinds, self._limit = tokens, handler, frozenset(kinds), body_limit
        self._decode: Callable[[bytes], Any] = bytes if reads is None else msgspec.msgpack.Decoder(reads).decode

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            token, text = await self._authorise(scope)
            body = await read_body(scope, receive, self._limit)
            try:
                message = self._decode(body)
            except (msgspec.MsgspecError, RecursionError) as error:
                raise Refused(400, "bad_message", f"The message cannot be read: {error}.") from None
            answer = await self._handler(Call(token, text, message, scope["path_params"], receive))
        except Exception as error:
            await _refuse(send, error)
            return
        match answer:
            case None:
                await _send(send, 204, b"", [])
            case bytes():
                await _send(send, 200, answer, [(b"content-type", b"application/octet-stream")])
            case _:
                await _send(send, 200, _encode(answer), _MSGPACK)

    async def _authorise(self, scope: Scope) -> tuple[Token, str]:
        text = bearer(scope)
        if text is None:
            raise Unauthorized("The request has no token (header Authorization: Bearer ...).")
        token = await self._tokens.admit(text)
        if (origin := ORIGIN.get()) is not None:
            origin.token_id = listed_id(token)
        if kind_of(token) not in self._kinds:
            raise Forbidden(f"A token of kind {kind_of(token)!r} may not do this; it takes: {', '.join(sorted(self._kinds))}.")
        return token, text


_MSGPACK = [(b"content-type", CONTENT_TYPE.encode())]


async def _refuse(send: Send, error: Exception) -> None:
    answer = refusal(error)
    headers = [*_MSGPACK]
    if answer.status == 401:
        headers.append(_CHALLENGE)
    if answer.status in UNREAD:
        headers.append(_CLOSE)
    offsets = error.offsets if isinstance(error, CannotStore) else []
    await _send(send, answer.status, _encode(Refusal(code=answer.code, message=answer.message, offsets=offsets)), headers)


async def _send(send: Send, status: int, body: bytes, headers: list[tuple[bytes, bytes]]) -> None:
    start = {"type": "http.response.start", "status": status, "headers": [*headers, (b"content-length", b"%d" % len(body))]}
    await send(start)
    await send({"type": "http.response.body", "body": body})
