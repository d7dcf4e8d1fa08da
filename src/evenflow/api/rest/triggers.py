"""What deferred tasks wait for."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from evenflow.api.rest.context import Connection, InSlice
from evenflow.api.rest.models import Name, Page
from evenflow.store import triggers

routes = APIRouter(tags=["Triggers"])


class WaitingTrigger(BaseModel):
    dag_id: str
    run_id: str
    task_id: str
    map_index: int
    trigger: str = Field(description="The path of its class. What it was given is sealed, and shown to nobody.")
    queue: str
    deferred_at: datetime
    timeout_at: datetime | None
    triggerer: str | None = Field(description="The name of the triggerer that runs it; null: it waits for one.")
    claimed_at: datetime | None
    failures: int = Field(description="How often in a row it has failed.")
    due_at: datetime = Field(description="When a triggerer may have it: later than now while it pauses after a failure.")


@routes.get("/triggers")
async def list_triggers(
    conn: Connection,
    part: InSlice,
    dag_id: Annotated[Name | None, Query(description="Only those of tasks of this DAG.")] = None,
    run_id: Annotated[Name | None, Query(description="Only those of runs with this name.")] = None,
) -> Page[WaitingTrigger]:
    """Which tasks wait for what, since when, and where their triggers run; the longest waiting first."""
    rows = await triggers.list_waiting(conn, dag_id=dag_id, run_id=run_id, limit=part.read_limit, offset=part.offset)
    return part.page(Page[WaitingTrigger], rows)
