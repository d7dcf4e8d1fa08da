"""The state of the system: services, queues, the database."""

from __future__ import annotations

from importlib.metadata import version

from fastapi import APIRouter

from evenflow.api import limits
from evenflow.api.rest.context import Connection
from evenflow.api.rest.models import Health, Status
from evenflow.core.limits import LEASE_S
from evenflow.store import views

routes = APIRouter(tags=["System"])
health = APIRouter(tags=["Health"], prefix="/health")


@routes.get("/status")
async def get_status(conn: Connection) -> Status:
    """Who lives, what waits, and how the database is."""
    database = await views.read_health(conn)
    return Status.model_validate(
        {
            "version": version("evenflow"),
            "services": await views.list_services(conn, lease_s=LEASE_S, limit=limits.STATUS_SERVICES),
            "queues": await views.list_queues(conn),
            "inbox": database["inbox"],
            "oldest_report_s": database["oldest_report_s"],
            "database": database,
        }
    )


@health.get("/live")
async def live() -> Health:
    """This process answers."""
    return Health(status="live")


@health.get("/ready")
async def ready(conn: Connection) -> Health:
    """The database answers too."""
    await views.ping(conn)
    return Health(status="ready")
