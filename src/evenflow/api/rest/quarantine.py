"""What is set aside because handling it raised an exception, and its release."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from fastapi import APIRouter
from pydantic import BaseModel, Field

from evenflow.api.rest.context import Connection, InSlice, Operator
from evenflow.api.rest.models import Page
from evenflow.errors import DagNotFound
from evenflow.store import events, quarantined

routes = APIRouter(tags=["Quarantine"])


class SetAside(BaseModel):
    kind: Literal["run", "schedule", "assets", "backfill"] = Field(
        description="A run; or what a schedule, assets or a backfill would have made."
    )
    object: str = Field(max_length=1_000, description="DAG/RUN of a run, else the name of the DAG or the number of the backfill.")


class QuarantineEntry(SetAside):
    since: datetime
    reason: str = Field(description="The exception and its place. Its text only where Evenflow wrote it itself.")


class Released(SetAside):
    pass


@routes.get("/quarantine")
async def list_quarantine(conn: Connection, part: InSlice) -> Page[QuarantineEntry]:
    """What is set aside, the latest first: nothing is applied to such a run and nothing of it starts; all others go on."""
    rows = await quarantined.list_quarantine(conn, limit=part.read_limit, offset=part.offset)
    return part.page(Page[QuarantineEntry], rows)


@routes.post("/quarantine/release")
async def release_quarantined(conn: Connection, operator: Operator, what: SetAside) -> Released:
    """Has it tried again. What was said of a run meanwhile is applied then; does it fail again, it is set aside again."""
    async with events.recorded(conn, operator, f"{what.kind}.release", what.object):
        if not await quarantined.release(conn, what.kind, what.object, operator):
            raise DagNotFound(f"The {what.kind} {what.object!r} is not in quarantine. To see what is: evenflow quarantine list")
    return Released(kind=what.kind, object=what.object)
