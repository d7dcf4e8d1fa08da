"""What is set aside because handling it raised an exception, and its release."""

from __future__ import annotations

from fastapi import APIRouter

from evenflow.api.rest.context import Connection, InSlice, Operator
from evenflow.contracts.rest.record import Page
from evenflow.contracts.rest.system import QuarantineEntry, Released, SetAside
from evenflow.errors import DagNotFound
from evenflow.store import events, quarantined

routes = APIRouter(tags=["Quarantine"])


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
