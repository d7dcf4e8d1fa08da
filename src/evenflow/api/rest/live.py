"""What moves, and how full everything is, as streams of server-sent events."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Header, Query, Request
from fastapi.responses import StreamingResponse

from evenflow.api.rest.context import InContext, InScope
from evenflow.api.rest.routes import Routes
from evenflow.api.rest.streaming import streamed
from evenflow.api.streams import capacity
from evenflow.api.streams.moves import Topic
from evenflow.contracts.rest.capacity import Capacity
from evenflow.contracts.rest.live import LiveNews
from evenflow.contracts.rest.queries import LiveQuery
from evenflow.core.people.roles import Role
from evenflow.core.people.scopes import ScopedBy

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
    moves, topic = within.streams.moves, Topic(query.dag_id, query.run_id, scope)
    if last_event_id is None:
        return streamed(within, request, moves.stream(topic))
    moves.check_cursor(last_event_id)
    cursor = last_event_id
    return streamed(within, request, moves.stream(topic), missed=lambda: moves.since(topic, cursor))


_CAPACITY: dict[int | str, dict[str, Any]] = {
    200: {
        "model": Capacity,
        "description": "Server-sent events `capacity`, each with such a record: as it is first, then whenever it is another one.",
    }
}


@routes.get("/capacity/live", Role.VIEWER, ScopedBy.ANSWER, response_class=StreamingResponse, responses=_CAPACITY)
async def stream_capacity(
    within: InContext,
    request: Request,
    scope: InScope,
    last_event_id: Annotated[
        str | None, Header(description="Of the last event that was heard: what it told is told again only if it has changed.")
    ] = None,
) -> StreamingResponse:
    """Tells how full pools, executors and queues are, what would start next and what waits for what: every two seconds at most."""
    if last_event_id is not None:
        capacity.check_cursor(last_event_id)
    return streamed(within, request, within.streams.capacity.stream(scope, last_event_id))
