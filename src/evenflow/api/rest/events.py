"""What people changed: who, when, what."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from evenflow.api.rest.context import Connection, InSlice
from evenflow.api.rest.models import Page
from evenflow.store import events

routes = APIRouter(tags=["System"])


class ChangeEvent(BaseModel):
    event_id: int
    at: datetime
    actor: str = Field(description="The name of an operator's token, or the task that did it.")
    action: str = Field(description="Kind and verb, such as `pool.set`.")
    object: str = Field(description="What was changed; a run as DAG/RUN.")
    detail: dict[str, Any] | None = Field(description="The new values. Never what is secret.")


@routes.get("/events")
async def list_changes(
    conn: Connection,
    part: InSlice,
    actor: Annotated[str | None, Query()] = None,
    action: Annotated[str | None, Query(description="An action, or a kind of them: `pool`.")] = None,
    object: Annotated[str | None, Query(description="A name. That of a DAG stands for its runs, too.")] = None,
) -> Page[ChangeEvent]:
    """What people changed, the newest first: connections, variables, pools, settings, pauses, runs, backfills, assets."""
    rows = await events.list_events(conn, actor=actor, action=action, name=object, limit=part.read_limit, offset=part.offset)
    return part.page(Page[ChangeEvent], rows)
