"""States of service: what a DAG, a pool, a queue, a worker or the whole system still takes on."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query

from evenflow.api import limits
from evenflow.api.refusals import Forbidden, Refused
from evenflow.api.rest.context import Actor, Connection, InScope
from evenflow.api.rest.dags import set_paused
from evenflow.api.rest.routes import Routes
from evenflow.contracts.rest.queries import ServiceStatesQuery
from evenflow.contracts.rest.record import Page
from evenflow.contracts.rest.service_states import DetailedServiceState, ObjectServiceState, ServiceStateChange
from evenflow.core.limits import PAGE
from evenflow.core.people.roles import Role
from evenflow.core.people.scopes import ScopedBy
from evenflow.core.service_states import ObjectKind, ServiceState
from evenflow.store.db.connect import AsyncConn
from evenflow.store.serving import events, states
from evenflow.store.serving.views import similar_dag

routes = Routes("States of service")

_VERBS = {
    ServiceState.ACTIVE: "activate",
    ServiceState.DRAINING: "drain",
    ServiceState.RESUME_ONLY: "resume_only",
    ServiceState.PAUSED: "pause",
    ServiceState.FROZEN: "freeze",
}
_WHERE = {
    ObjectKind.DAG: "evenflow dags list",
    ObjectKind.POOL: "evenflow pools list",
    ObjectKind.QUEUE: "evenflow status",
    ObjectKind.WORKER: "evenflow status",
    ObjectKind.SYSTEM: "evenflow status",
}


@routes.get("/service-states", Role.VIEWER, ScopedBy.ANSWER)
async def list_service_states(
    conn: Connection, scope: InScope, query: Annotated[ServiceStatesQuery, Query()]
) -> Page[ObjectServiceState]:
    """What is not active."""
    found = await states.list_service_states(conn, paused_dags=query.paused_dags, scope=scope, limit=PAGE + 1)
    items = [ObjectServiceState.model_validate(row) for row in found[:PAGE]]
    return Page[ObjectServiceState](items=items, limit=PAGE, more=len(found) > PAGE)


@routes.get("/service-states/{kind}/{name:path}", Role.VIEWER, ScopedBy.ANSWER)
async def get_service_state(conn: Connection, scope: InScope, kind: ObjectKind, name: str) -> DetailedServiceState:
    """The state of one object, and what is in flight there."""
    await _check(conn, kind, name, scope)
    return await _service_state(conn, kind, name, scope)


@routes.put("/service-states/{kind}/{name:path}", Role.OPERATOR, ScopedBy.ANSWER)
async def set_service_state(
    conn: Connection, actor: Actor, scope: InScope, kind: ObjectKind, name: str, change: ServiceStateChange
) -> DetailedServiceState:
    """Changes what an object takes on. What has started continues in every state but `frozen`; a drain ends by itself."""
    await _check(conn, kind, name, scope)
    if scope is not None and kind in (ObjectKind.WORKER, ObjectKind.SYSTEM):
        raise Forbidden(f"A {kind} is everybody's: this is for operators whose role counts everywhere.")
    if change.within_s is not None and change.state is not ServiceState.DRAINING:
        raise Refused(422, "bad_value", f"Only a drain has a deadline, and {change.state} is none.", hint="Leave within_s out.")
    detail: dict[str, Any] = {} if change.within_s is None else {"within_s": change.within_s}
    async with events.recorded(conn, actor, f"{kind}.{_VERBS[change.state]}", name, **detail):
        if kind is ObjectKind.DAG:
            await set_paused(conn, name, is_paused=not change.state.starts_tasks(kind))
        await states.set_state(conn, kind, name, change.state, actor=actor, within_s=change.within_s)
    return await _service_state(conn, kind, name, scope)


async def _check(conn: AsyncConn, kind: ObjectKind, name: str, scope: str | None) -> None:
    """Raises :class:`Refused`."""
    if not await states.exists(conn, kind, name, scope=scope):
        hint = await similar_dag(conn, name, scope=scope) if kind is ObjectKind.DAG else ""
        raise Refused(404, "not_found", f"There is no {kind} {name!r}.", hint=f"{hint} To see all, type: {_WHERE[kind]}")


async def _service_state(conn: AsyncConn, kind: ObjectKind, name: str, scope: str | None) -> DetailedServiceState:
    found = await states.list_service_states(conn, kind=kind, name=name, scope=scope, limit=1)
    none = dict.fromkeys(("since", "actor", "deadline", "reason"))
    about = found[0] if found else {"kind": kind, "name": name, "state": "active", **none}
    held = await states.list_held(conn, kind, name, scope=scope, limit=limits.HELD_TASKS)
    of_dag = {ObjectKind.DAG: name, ObjectKind.SYSTEM: None}
    return DetailedServiceState.model_validate(
        {
            **about,
            "tries": held[0]["tries"] if held else 0,
            "tasks": held,
            "runs": await states.count_runs(conn, of_dag[kind], scope=scope) if kind in of_dag else None,
        }
    )
