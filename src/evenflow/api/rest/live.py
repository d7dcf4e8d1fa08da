"""What moves, as a stream of server-sent events."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import Header, Query, Request
from fastapi.responses import StreamingResponse

from evenflow.api.live import Topic
from evenflow.api.rest.context import InContext, InScope
from evenflow.api.rest.routes import Routes
from evenflow.api.sessions import caller
from evenflow.contracts.rest.live import LiveNews
from evenflow.contracts.rest.queries import LiveQuery
from evenflow.core.people.roles import Role
from evenflow.core.people.scopes import ScopedBy, scope_text
from evenflow.errors import NotAllowed

routes = Routes("Live")


@routes.get(
    "/live",
    Role.VIEWER,
    ScopedBy.ANSWER,
    response_class=StreamingResponse,
    responses={
        200: {"model": LiveNews, "description": "Server-sent events `news`, each with such a record; `behind`: read all again."}
    },
)
async def stream_moves(
    within: InContext,
    request: Request,
    scope: InScope,
    query: Annotated[LiveQuery, Query()],
    last_event_id: Annotated[
        str | None, Header(description="Of the last event that was heard: what came after it is told first.")
    ] = None,
) -> StreamingResponse:
    """Tells which runs, and of a DAG which tasks, have moved. What else a page shows of them it reads by the other routes."""
    live, topic = within.live, Topic(query.dag_id, query.run_id, scope)
    live.check_room()
    if last_event_id is not None:
        live.check_cursor(last_event_id)

    async def events() -> AsyncIterator[bytes]:
        with live.stream(topic) as stream:
            yield b"retry: 1000\n\n" + (await live.since(topic, last_event_id) if last_event_id is not None else b"")
            while not stream.closed:
                told = await stream.heard()
                try:
                    asks = await caller(within.tokens, request.scope)  # a session may have ended meanwhile
                except NotAllowed:
                    return
                if scope_text(asks.scope) != scope:
                    return  # the page comes back, and is told what it may hear now
                yield told

    return StreamingResponse(events(), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})
