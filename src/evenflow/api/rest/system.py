"""The state of the system: services, queues, the database."""

from __future__ import annotations

from importlib.metadata import version

from fastapi import APIRouter

from evenflow.api import limits
from evenflow.api.rest.context import Connection
from evenflow.contracts.rest.system import Status
from evenflow.core.limits import LEASE_S
from evenflow.store import metrics, quarantined, states, views

routes = APIRouter(tags=["System"])


@routes.get("/status")
async def get_status(conn: Connection) -> Status:
    """Who lives, what waits, and how the database is."""
    database = await views.read_health(conn)
    triggers = await metrics.count_triggers(conn)
    standings = await states.list_standings(conn, paused_dags=False, limit=limits.STATUS_STANDINGS)
    return Status.model_validate(
        {
            "version": version("evenflow"),
            "services": await views.list_services(conn, lease_s=LEASE_S, limit=limits.STATUS_SERVICES),
            "outrun": await views.list_outrun(conn),
            "queues": await views.list_queues(conn),
            "runs_queued": (await metrics.read_backlog(conn)).runs_queued,
            "inbox": database["inbox"],
            "oldest_report_s": database["oldest_report_s"],
            "quarantined": await quarantined.count_quarantine(conn),
            "database": database,
            "triggers_waiting": triggers.waiting,
            "triggers_running": triggers.running,
            "history_days_ahead": await metrics.read_history_days(conn),
            "not_active": standings,
        }
    )
