"""What was changed, asked or refused: who, whence, when, what."""

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
    token_id: int | None = Field(description="Of the token in the list; of a service that which its fleet was given.")
    address: str | None = Field(description="Whence it was asked; null: on the database itself.")
    request_id: str | None = Field(description="The request's `X-Request-ID`, or one that all its events have.")
    times: int = Field(description="Above 1: that many in this period, counted together; the rest is of the last one.")
    last_at: datetime | None = Field(description="When the last one of those was.")


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
