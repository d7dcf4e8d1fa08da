"""Sharing: who shares pools and executors, and whether what waits there ages."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path

from evenflow.api.refusals import Refused
from evenflow.api.rest.context import Actor, Connection, InScope
from evenflow.api.rest.routes import Routes
from evenflow.contracts.rest.record import ObjectName, Page
from evenflow.contracts.rest.sharing import Sharing, SharingChange, Tenant
from evenflow.core.limits import MAX_NAMES
from evenflow.core.people.roles import Role
from evenflow.core.people.scopes import ScopedBy
from evenflow.core.sharing import NOT, SharedKind, SharingRule
from evenflow.store.db.connect import AsyncConn
from evenflow.store.serving import events, pools

routes = Routes("Pools")


@routes.get("/sharing", Role.VIEWER, ScopedBy.ANSWER)
async def list_sharing(conn: Connection, scope: InScope) -> Page[Sharing]:
    """All pools and executors, and what is decided for them beyond the order of tasks."""
    found = [_shown(*row) for row in await pools.list_sharing(conn, scope=scope)]
    return Page[Sharing](items=found, limit=len(found), offset=0, more=False)


@routes.put("/sharing/{kind}/{name}", Role.OPERATOR)
async def set_sharing(
    conn: Connection, actor: Actor, kind: SharedKind, name: Annotated[ObjectName, Path()], change: SharingChange
) -> Sharing:
    """Says who shares a pool or executor, and whether what waits there ages. It counts for tasks that become ready from now on;
    weights count at once.
    """
    old = await _found(conn, kind, name)
    by = old.share_by or NOT if change.share_by is None else change.share_by
    weights = change.weights if change.weights is not None else old.weights if change.share_by is None else {}
    rule = SharingRule.parse(old.aging if change.aging is None else change.aging, by, weights)
    async with events.recorded(conn, actor, "sharing.set", f"{kind}/{name}", **change.model_dump(exclude_none=True)):
        await pools.set_sharing(conn, kind, name, rule)
    return _shown(kind, name, rule)


@routes.get("/sharing/{kind}/{name}/tenants", Role.VIEWER)
async def list_tenants(conn: Connection, kind: SharedKind, name: str) -> Page[Tenant]:
    """Who ever shared a pool or executor, those with the most slots for their weight first."""
    await _found(conn, kind, name)
    rows = await pools.list_tenants(conn, kind, name, limit=MAX_NAMES + 1)
    items = [Tenant(**row) for row in rows[:MAX_NAMES]]
    return Page[Tenant](items=items, limit=MAX_NAMES, offset=0, more=len(rows) > MAX_NAMES)


async def _found(conn: AsyncConn, kind: str, name: str) -> SharingRule:
    """Raises :class:`Refused`."""
    found = await pools.list_sharing(conn, kind, name)
    if not found:
        raise Refused(404, "not_found", f"There is no {kind} {name!r}. To see all, type: evenflow sharing list")
    return found[0][2]


def _shown(kind: str, name: str, rule: SharingRule) -> Sharing:
    return Sharing(kind=kind, name=name, aging=rule.aging, share_by=rule.share_by or NOT, weights=dict(rule.weights))
