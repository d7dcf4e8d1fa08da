"""What deferred tasks wait for."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from evenflow.api.rest.context import Connection, InSlice
from evenflow.contracts.rest.record import Name, Page
from evenflow.contracts.rest.tasks import WaitingTrigger
from evenflow.store import triggers

routes = APIRouter(tags=["Triggers"])


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
