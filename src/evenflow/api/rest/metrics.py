"""Metrics for Prometheus. :mod:`evenflow.api.watching` says who may see them; they contain names and numbers, no secrets."""

from __future__ import annotations

from fastapi import Response

from evenflow.api import observations as seen
from evenflow.api.rest.context import InContext
from evenflow.api.rest.routes import Routes
from evenflow.contracts.rest.system import ScrapeTarget
from evenflow.core.meter import Reading
from evenflow.telemetry import prometheus
from evenflow.telemetry.health import HealthMonitor
from evenflow.telemetry.observing import observe

routes = Routes("Metrics")


@routes.get(
    "/metrics",
    None,
    response_class=Response,
    responses={
        200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "In the text format of Prometheus."}
    },
)
async def read_metrics(within: InContext) -> Response:
    """How full and how busy the system is, and how this API server is. Other services tell theirs at their own addresses.

    While the database is away it tells of itself alone.
    """
    readings = [*within.health.meter.read(), *await _read_system(within.health)]
    return Response(prometheus.exposition(readings), media_type=prometheus.CONTENT_TYPE)


async def _read_system(health: HealthMonitor) -> list[Reading]:
    assert health.system is not None, "set when the API starts"
    try:
        return await health.system()
    except Exception as error:
        observe(seen.system_not_read(str(error) or type(error).__name__))
        return []


@routes.get("/metrics/targets", None)
async def list_targets(within: InContext) -> list[ScrapeTarget]:
    """Where the services that live tell their metrics, as Prometheus reads it (`http_sd_configs`)."""
    system = await within.probes.look()
    details = [row["detail"] for row in system.services if row["healthy"] and row["detail"].get("metrics")]
    schemes = {str(detail["metrics"]): {"__scheme__": "https"} if detail.get("scheme") == "https" else {} for detail in details}
    return [ScrapeTarget(targets=[address], labels=labels) for address, labels in schemes.items()]
