"""The state of the system: services, queues, the database; and pools."""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated

from fastapi import APIRouter, Path

from evenflow.api import limits
from evenflow.api.rest.context import Connection
from evenflow.api.rest.models import Health, Name, Page, Pool, PoolChange, Status
from evenflow.core.limits import LEASE_S
from evenflow.store import pools, views

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


@routes.get("/pools")
async def list_pools(conn: Connection) -> Page[Pool]:
    """Pools with their slots, and how many are taken."""
    rows = await pools.list_pools(conn)
    return Page[Pool].model_validate({"items": rows, "limit": len(rows), "offset": 0, "more": False})


@routes.put("/pools/{name}")
async def set_pool(conn: Connection, name: Annotated[Name, Path()], change: PoolChange) -> Pool:
    """Makes a pool, or changes one. Tasks that run keep their slots, also above a lower limit."""
    await pools.set_pool(conn, name, slots=change.slots, description=change.description)
    return next(Pool.model_validate(row) for row in await pools.list_pools(conn) if row["name"] == name)


@health.get("/live")
async def live() -> Health:
    """This process answers."""
    return Health(status="live")


@health.get("/ready")
async def ready(conn: Connection) -> Health:
    """The database answers too."""
    await views.ping(conn)
    return Health(status="ready")
