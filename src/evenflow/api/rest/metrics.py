"""Metrics for Prometheus. Whoever may scrape needs no token, as for health; they hold names and numbers, no secrets."""

from __future__ import annotations

from fastapi import APIRouter, Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from evenflow.api import limits
from evenflow.api.metrics import Standing
from evenflow.api.rest.context import Connection
from evenflow.core.limits import LEASE_S
from evenflow.store import metrics, views

routes = APIRouter(tags=["Metrics"])


@routes.get(
    "/metrics",
    response_class=Response,
    responses={
        200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "In the text format of Prometheus."}
    },
)
async def read_metrics(conn: Connection) -> Response:
    """Counters of every scheduler, and how full and how busy the system is."""
    standing = Standing(
        schedulers=await metrics.read_schedulers(conn),
        services=await views.list_services(conn, lease_s=LEASE_S, limit=limits.STATUS_SERVICES),
        limits=await metrics.read_limits(conn),
        queues=await views.list_queues(conn),
        lanes=await metrics.count_lanes(conn),
        health=await views.read_health(conn),
    )
    return Response(generate_latest(standing), media_type=CONTENT_TYPE_LATEST)
