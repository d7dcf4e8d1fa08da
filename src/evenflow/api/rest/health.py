"""Health, for monitoring: probes of this process, which need no token, and the whole system."""

from __future__ import annotations

from typing import Any

from fastapi import Response

from evenflow.api.rest.context import InContext
from evenflow.api.rest.routes import Routes
from evenflow.contracts.rest.system import Health, SystemHealth
from evenflow.telemetry.health import HealthCheck, HealthVerdict

routes = Routes("Health", prefix="/health")

_NOT: dict[int | str, dict[str, Any]] = {503: {"model": Health, "description": "It is not; the checks say why."}}


@routes.get("", None, responses={503: {"model": SystemHealth, "description": "A kind of service is missing."}})
async def read_health(within: InContext, response: Response) -> SystemHealth:
    """All services that live, or were heard of within the hour, as of a second ago at most. One that has missed its beats for a
    lease is not healthy.
    """
    system = await within.probes.look()
    services, missing = system.youngest, system.missing
    if missing:
        response.status_code = 503
    status = "unhealthy" if missing else "healthy" if all(row["healthy"] for row in services) else "degraded"
    return SystemHealth.model_validate({"status": status, "missing": missing, "services": services}, from_attributes=False)


@routes.get("/live", None, responses=_NOT)
async def live(within: InContext, response: Response) -> Health:
    """All loops of this process turn. If not, restart it."""
    return _answer(within.health.live(), response)


@routes.get("/ready", None, responses=_NOT)
async def ready(within: InContext, response: Response) -> Health:
    """This process is registered, and its database answers. If not, send requests elsewhere."""
    verdict = within.health.ready()
    try:
        await within.probes.look()
        found = HealthCheck("database", True, "it answers")
    except Exception as error:
        found = HealthCheck("database", False, f"it cannot be asked: {error or type(error).__name__}")
    ok = verdict.ok and found.ok
    return _answer(HealthVerdict("ready" if ok else "not ready", ok, [*verdict.findings, found]), response)


def _answer(verdict: HealthVerdict, response: Response) -> Health:
    if not verdict.ok:
        response.status_code = 503
    return Health.model_validate(verdict.as_json())
