"""The auditor on demand."""

from __future__ import annotations

from fastapi import APIRouter

from evenflow.api.rest.context import Connection
from evenflow.contracts.rest.audit import Audit
from evenflow.store import audit as auditor

routes = APIRouter(tags=["System"])


@routes.get("/audit")
async def get_audit(conn: Connection) -> Audit:
    """Recomputes every counter and lane from task instances and holds. Reads all task instances of running runs."""
    return Audit(findings=await auditor.audit_async(conn))
