"""Requests that make something, repeated: a caller whose answer was lost asks again with the same ``Idempotency-Key``, and is
answered as the first time.

The key is claimed at the beginning of the transaction of the change, and the answer is kept at its end: both are there with what
was made, or neither. A second request with the key waits at the claim for the end of the first. What was refused keeps no key.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import wraps
from hashlib import blake2b
from typing import Annotated, Any, TypeVar

import msgspec
from fastapi import Header, Request, Response
from pydantic import BaseModel

from evenflow.api.refusals import Refused
from evenflow.api.rest.context import caller_of
from evenflow.core.limits import MAX_IDEMPOTENCY_KEY_CHARS
from evenflow.store.db.connect import AsyncConn
from evenflow.store.serving import answers, events

T = TypeVar("T", bound=BaseModel)
REPLAYED = "Idempotent-Replayed"  # a header of answers that were kept

IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=MAX_IDEMPOTENCY_KEY_CHARS,
        pattern=r"^[!-~]+$",
        description="Of your choice, another one for each thing that is to be made. Asked again with it, you get the first answer.",
    ),
]


class _AnsweredMeanwhile(Exception):
    """Another request with the key was first."""


class Repeatable:
    """One request, and whether it was answered before. Without a key each is the first."""

    def __init__(self, asked: answers.KeyedRequest | None, status: int) -> None:
        self._asked, self._status = asked, status

    async def first_answer(self, conn: AsyncConn) -> Response | None:
        """What a request with this key was answered. Raises :class:`Refused` when that asked for something else."""
        if self._asked is None or (kept := await answers.find_kept(conn, self._asked)) is None:
            return None
        if kept.digest != self._asked.digest:
            raise Refused(
                422,
                "key_reused",
                f"You have sent the Idempotency-Key {self._asked.key!r} with another request.",
                hint="Send that request as it was, or take another key.",
            )
        headers = {REPLAYED: "true"} | ({"Location": kept.location} if kept.location else {})
        return Response(kept.answer, kept.status, headers, media_type="application/json")

    @asynccontextmanager
    async def recorded(self, conn: AsyncConn, actor: str, action: str, name: str, **detail: Any) -> AsyncIterator[dict[str, Any]]:
        """As :func:`events.recorded`, of the change that this request is about."""
        async with events.recorded(conn, actor, action, name, **detail) as told:
            if self._asked is not None and not await answers.claim(conn, self._asked):
                raise _AnsweredMeanwhile
            yield told

    async def keep(self, conn: AsyncConn, answer: T, *, location: str | None = None) -> T:
        """Before the end of that transaction. Returns the answer."""
        if self._asked is not None:
            text = answer.model_dump_json(by_alias=True)
            await answers.keep(conn, self._asked, status=self._status, location=location, answer=text)
        return answer


def answered_once(answering: Callable[..., Awaitable[T]]) -> Callable[..., Awaitable[T | Response]]:
    """For a route that takes ``conn`` and ``once``."""

    @wraps(answering)
    async def asked(*, http: Request, idempotency_key: str | None = None, **named: Any) -> T | Response:
        conn, once = named["conn"], Repeatable(await _asked(http, idempotency_key), http.scope["route"].status_code)
        if (first := await once.first_answer(conn)) is not None:
            return first
        try:
            return await answering(**named, once=once)
        except _AnsweredMeanwhile:
            first = await once.first_answer(conn)
            assert first is not None  # it was committed, or the claim would have succeeded
            return first

    own = inspect.signature(answering)
    parameters = [each for name, each in own.parameters.items() if name != "once"]
    added = [
        inspect.Parameter("http", inspect.Parameter.KEYWORD_ONLY, annotation=Request),
        inspect.Parameter("idempotency_key", inspect.Parameter.KEYWORD_ONLY, annotation=IdempotencyKey, default=None),
    ]
    asked.__signature__ = own.replace(parameters=[*parameters, *added])  # type: ignore[attr-defined]
    return asked


async def _asked(http: Request, key: str | None) -> answers.KeyedRequest | None:
    if key is None:
        return None
    what = [http.method, http.scope["path"], msgspec.json.decode(await http.body())]
    return answers.KeyedRequest(
        caller_of(http).name, key, blake2b(msgspec.json.encode(what, order="sorted"), digest_size=16).digest()
    )
