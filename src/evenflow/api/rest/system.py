"""The state of the system: services, queues, the database; who changed what; what is set aside; the auditor's findings."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from importlib.metadata import version
from typing import Annotated, Any

from fastapi import Query, Request

from evenflow.api import limits
from evenflow.api.capacity import read_push_executors, read_queues
from evenflow.api.rest.context import Actor, Connection, InScope, InSlice
from evenflow.api.rest.paging import part_of
from evenflow.api.rest.routes import Routes
from evenflow.contracts.rest.audit import Audit
from evenflow.contracts.rest.queries import ChangeQuery
from evenflow.contracts.rest.record import Page
from evenflow.contracts.rest.system import ChangeEvent, QuarantineEntry, Released, SetAside, Status
from evenflow.core.limits import LEASE_S
from evenflow.core.people.roles import Role
from evenflow.core.people.scopes import ScopedBy
from evenflow.core.service import missing_kinds
from evenflow.errors import DagNotFound
from evenflow.explaining import audit as auditor
from evenflow.store.db.connect import Row
from evenflow.store.serving import events, metrics, quarantine, states, views

routes = Routes("System")


@routes.get("/status", Role.VIEWER, ScopedBy.ANSWER, shared=True)
async def get_status(conn: Connection, scope: InScope) -> Status:
    """Which services live, what waits, and how the database is."""
    database = await views.read_health(conn)
    triggers = await metrics.count_triggers(conn, scope=scope)
    closed = await states.list_service_states(conn, paused_dags=False, scope=scope, limit=limits.STATUS_SERVICE_STATES)
    services = await views.list_services(conn, lease_s=LEASE_S, scope=scope, limit=limits.STATUS_SERVICES)
    healthy = (service["kind"] for service in services if service["healthy"])
    return Status.model_validate(
        {
            "version": version("evenflow"),
            "pace": _pace(services),
            "services": services,
            "missing": missing_kinds(healthy, triggers=triggers.waiting + triggers.running),
            "outrun": await views.list_outrun(conn, scope=scope),
            "queues": await read_queues(conn, scope=scope),
            "executors": await read_push_executors(conn, scope=scope),
            "runs_queued": (await metrics.read_backlog(conn, scope=scope)).runs_queued,
            "inbox": database["inbox"],
            "oldest_report_s": database["oldest_report_s"],
            "quarantined": await quarantine.count_quarantine(conn, scope=scope),
            "database": database,
            "triggers_waiting": triggers.waiting,
            "triggers_running": triggers.running,
            "history_days_ahead": await metrics.read_history_days(conn),
            "not_active": closed,
        }
    )


def _pace(services: Sequence[Row]) -> dict[str, Any] | None:
    """Adds up what healthy schedulers say of themselves."""
    told = [service["detail"]["pace"] for service in services if service["healthy"] and "pace" in service["detail"]]
    late = [pace["late_s"] for pace in told if pace["late_s"] is not None]
    return {"starts": sum(int(pace["starts"]) for pace in told), "late_s": max(late, default=None)} if told else None


@routes.get("/events", Role.OPERATOR, ScopedBy.ANSWER)
async def list_changes(
    http: Request, conn: Connection, scope: InScope, query: Annotated[ChangeQuery, Query()]
) -> Page[ChangeEvent]:
    """What people changed, the newest first: connections, variables, pools, settings, pauses, runs, backfills, assets; and
    secrets that tasks asked for, services that registered, requests that were refused.
    """
    wanted = {"actor": query.actor, "action": query.action, "name": query.object, "scope": scope}
    part = part_of(http, query, int)
    rows = await events.list_events(conn, **wanted, limit=part.limit, after=part.after)
    return part.page(Page[ChangeEvent], rows)


@routes.get("/quarantine", Role.VIEWER, ScopedBy.ANSWER)
async def list_quarantine(http: Request, conn: Connection, scope: InScope, query: InSlice) -> Page[QuarantineEntry]:
    """Runs that are set aside, the latest first: nothing is applied to them and none of their tasks starts. All other runs
    continue.
    """
    part = part_of(http, query, datetime, str, str)
    rows = await quarantine.list_quarantine(conn, scope=scope, limit=part.limit, after=part.after)
    return part.page(Page[QuarantineEntry], rows)


@routes.post("/quarantine/release", Role.OPERATOR)
async def release_quarantined(conn: Connection, actor: Actor, what: SetAside) -> Released:
    """Has it tried again. What was said of a run meanwhile is applied then; does it fail again, it is set aside again."""
    async with events.recorded(conn, actor, f"{what.kind}.release", what.object):
        if not await quarantine.release(conn, what.kind, what.object, actor):
            raise DagNotFound(
                f"The {what.kind} {what.object!r} is not in quarantine.", hint="To see what is: evenflow quarantine list"
            )
    return Released(kind=what.kind, object=what.object)


@routes.get("/audit", Role.OPERATOR)
async def get_audit(conn: Connection) -> Audit:
    """Recomputes every counter and lane from task instances and holds. Reads all task instances of running runs."""
    return Audit(findings=await auditor.audit_async(conn))
