"""What was changed, asked or refused: who, whence, when, what."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from evenflow.api.rest.context import Connection, InSlice
from evenflow.contracts.rest.record import Page
from evenflow.contracts.rest.system import ChangeEvent
from evenflow.store import events

routes = APIRouter(tags=["System"])


@routes.get("/events")
async def list_changes(
    conn: Connection,
    part: InSlice,
    actor: Annotated[str | None, Query()] = None,
    action: Annotated[str | None, Query(description="An action, or a kind of them: `pool`.")] = None,
    object: Annotated[str | None, Query(description="A name. That of a DAG stands for its runs, too.")] = None,
) -> Page[ChangeEvent]:
    """What people changed, the newest first: connections, variables, pools, settings, pauses, runs, backfills, assets; and
    secrets that tasks asked for, services that registered, requests that were refused.
    """
    rows = await events.list_events(conn, actor=actor, action=action, name=object, limit=part.read_limit, offset=part.offset)
    return part.page(Page[ChangeEvent], rows)
