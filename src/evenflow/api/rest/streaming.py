"""The frame of all streams of server-sent events: each lasts as long as its caller may hear it and the API takes requests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager

from fastapi import Request
from fastapi.responses import StreamingResponse

from evenflow.api.refusals import refusal
from evenflow.api.rest.context import ApiContext, caller_of
from evenflow.api.sessions import caller
from evenflow.api.streams.pages import PageStream
from evenflow.core.people.scopes import scope_text
from evenflow.errors import NotAllowed

_FIRST = b"retry: 1000\n\n"  # milliseconds, after which a browser comes back


def streamed(
    within: ApiContext,
    request: Request,
    opened: AbstractContextManager[PageStream],
    missed: Callable[[], Awaitable[bytes]] | None = None,
) -> StreamingResponse:
    """``missed`` reads what the caller has missed, once it is sure to hear what comes. Raises :class:`Refused` without room."""
    asking = caller_of(request)
    scope = scope_text(asking.scope)
    within.streams.open.check_room(asking)

    async def events() -> AsyncIterator[bytes]:
        with opened as stream, within.streams.open.one(asking, stream):
            try:
                yield _FIRST + (await missed() if missed is not None else b"")
                while not stream.closed:
                    told = await stream.heard()
                    now = await caller(within.tokens, request.scope)  # a session may have ended meanwhile
                    if scope_text(now.scope) != scope:
                        return  # the page comes back, and is told what it may hear now
                    yield told
            except NotAllowed:
                return
            except Exception as error:  # the caller comes back, and is told what is wrong
                refusal(error)

    return StreamingResponse(events(), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})
