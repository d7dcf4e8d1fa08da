"""Who changed what, as a stream for a system that keeps it elsewhere: a file, a SIEM."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import Query, Request
from fastapi.responses import StreamingResponse

from evenflow.api import limits
from evenflow.api.rest.context import ApiContext, InContext
from evenflow.api.rest.routes import Routes, check_role
from evenflow.api.sessions import caller
from evenflow.contracts.rest.queries import EventExportQuery
from evenflow.contracts.rest.system import ExportedEvent
from evenflow.core.people.roles import Role
from evenflow.store.serving import events
from evenflow.store.serving.events import ExportPlace, event_text

routes = Routes("System")


class Lines(StreamingResponse):
    """JSON, a line each."""

    media_type = "application/x-ndjson"


@routes.get(
    "/events/export",
    Role.ADMIN,
    response_class=Lines,
    responses={
        200: {
            "model": ExportedEvent,
            "description": "An event a line, the oldest first.",
        },
        429: {"description": "Too many exports at once."},
    },
)
async def export_changes(within: InContext, http: Request, query: Annotated[EventExportQuery, Query()]) -> StreamingResponse:
    """All events that are settled, one a line, for systems that keep them elsewhere. No event is told later that belongs before one
    already told. A line tells where to continue. The header `X-Incarnation` changes when the database was set back; then begin
    anew.
    """
    async with within.pool.connection() as conn:
        incarnation = await events.read_incarnation(conn)
    within.exports.check_room()
    lines = _exported(within, http, query, incarnation)
    return Lines(lines, headers={"X-Incarnation": str(incarnation)})


async def _exported(within: ApiContext, http: Request, query: EventExportQuery, incarnation: int) -> AsyncIterator[bytes]:
    """Each page is a statement of its own: no transaction lasts for as long as a slow reader reads."""
    place = ExportPlace(*map(int, query.after.split("."))) if query.after else ExportPlace()
    limit = limits.EXPORTED_AT_ONCE
    with within.exports.one():
        while True:
            check_role(await caller(within.tokens, http.scope), Role.ADMIN)  # the token may have been revoked meanwhile
            async with within.pool.connection() as conn:
                rows = await events.page_settled(conn, place, since=query.since, until=query.until, limit=limit)
            if rows:
                place = ExportPlace(rows[-1]["xact"], rows[-1]["event_id"])
                yield "".join(f"{event_text(row | {'incarnation': incarnation})}\n" for row in rows).encode()
            if len(rows) < limit:
                return
