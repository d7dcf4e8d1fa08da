"""Health, for whoever watches: probes of this process, and the whole system. No token is needed for it."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import APIRouter, Response

from evenflow.api import limits
from evenflow.api.rest.context import Connection, InContext
from evenflow.api.rest.models import Health, SystemHealth
from evenflow.core.limits import LEASE_S
from evenflow.core.service import NEEDED
from evenflow.store import views
from evenflow.telemetry.vitals import Finding, Verdict

routes = APIRouter(tags=["Health"], prefix="/health")

_NOT: dict[int | str, dict[str, Any]] = {503: {"model": Health, "description": "It is not; the checks say why."}}


@routes.get("", responses={503: {"model": SystemHealth, "description": "A kind of service is missing."}})
async def read_health(conn: Connection, response: Response) -> SystemHealth:
    """All services that live, or were heard of within the hour. One that has missed its beats for a lease is not healthy."""
    services = await views.list_services(conn, lease_s=LEASE_S, limit=limits.STATUS_SERVICES)
    youngest = {(row["kind"], row["name"]): row for row in services}.values()
    missing = [kind for kind in NEEDED if not any(row["kind"] == kind and row["healthy"] for row in youngest)]
    if missing:
        response.status_code = 503
    status = "unhealthy" if missing else "healthy" if all(row["healthy"] for row in youngest) else "degraded"
    return SystemHealth.model_validate({"status": status, "missing": missing, "services": list(youngest)}, from_attributes=False)


@routes.get("/live", responses=_NOT)
async def live(within: InContext, response: Response) -> Health:
    """All loops of this process turn. If not, restart it."""
    return _answer(within.vitals.live(), response)


@routes.get("/ready", responses=_NOT)
async def ready(within: InContext, response: Response) -> Health:
    """This process is registered, and its database answers. If not, send requests elsewhere."""
    verdict = within.vitals.ready()
    try:
        async with asyncio.timeout(limits.PROBE), within.pool.connection() as conn:
            await views.ping(conn)
        found = Finding("database", True, "it answers")
    except Exception as error:
        found = Finding("database", False, f"it does not answer within {limits.PROBE:g} s: {error or type(error).__name__}")
    ok = verdict.ok and found.ok
    return _answer(Verdict("ready" if ok else "not ready", ok, [*verdict.findings, found]), response)


def _answer(verdict: Verdict, response: Response) -> Health:
    if not verdict.ok:
        response.status_code = 503
    return Health.model_validate(verdict.as_json())
