"""The auditor on demand."""

from __future__ import annotations

from fastapi import APIRouter
from pydantic import BaseModel, Field

from evenflow.api.rest.context import Connection
from evenflow.store import audit as auditor

routes = APIRouter(tags=["System"])


class Finding(BaseModel):
    kind: str = Field(description="What is wrong: a limit, lane, task, dispatch, run, counter, ...")
    object: str = Field(description="Which one.")
    found: str
    expected: str


class Audit(BaseModel):
    findings: list[Finding] = Field(description=f"At most {auditor.MOST_FINDINGS} of each kind; none when all is well.")


@routes.get("/audit")
async def get_audit(conn: Connection) -> Audit:
    """Recomputes every counter and lane from task instances and holds. Reads all task instances of running runs."""
    return Audit(findings=[Finding(**finding._asdict()) for finding in await auditor.audit_async(conn)])
