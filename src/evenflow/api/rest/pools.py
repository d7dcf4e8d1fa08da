"""Pools: listing, making and changing them, and deleting those without users. Also which DAGs share pools and executors, and
whether waiting tasks age there.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import Path

from evenflow.api import limits
from evenflow.api.capacity import read_pools
from evenflow.api.refusals import Refused, no_pool
from evenflow.api.rest.context import Actor, Connection, InScope
from evenflow.api.rest.routes import Routes
from evenflow.contracts.rest.pools import Pool, PoolChange
from evenflow.contracts.rest.record import ObjectName, Page
from evenflow.contracts.rest.sharing import Sharing, SharingChange, Tenant
from evenflow.core.deferral import parse_while_deferred
from evenflow.core.limits import MAX_NAMES
from evenflow.core.model import DEFAULT_POOL
from evenflow.core.people.roles import Role
from evenflow.core.people.scopes import ScopedBy
from evenflow.core.selection.pool_policy import PoolPolicy
from evenflow.core.sharing import NOT, SharedKind, SharingRule
from evenflow.store.db.connect import AsyncConn
from evenflow.store.serving import events, pools

routes = Routes("Pools")


@routes.get("/pools", Role.VIEWER, ScopedBy.ANSWER)
async def list_pools(conn: Connection, scope: InScope) -> Page[Pool]:
    """Pools with their slots, how many are taken, and their policy."""
    found = await read_pools(conn, scope=scope)
    return Page[Pool](items=found, limit=len(found), more=False)


@routes.put("/pools/{name}", Role.OPERATOR, ScopedBy.POOL)
async def set_pool(conn: Connection, actor: Actor, name: Annotated[ObjectName, Path()], change: PoolChange) -> Pool:
    """Makes a pool, or changes one. Tasks that run keep their slots, also above a lower limit; more room takes effect at once."""
    policy = None if change.policy is None else PoolPolicy.parse(change.policy)
    while_deferred = None if change.while_deferred is None else parse_while_deferred(change.while_deferred)
    async with events.recorded(conn, actor, "pool.set", name, **change.model_dump(exclude_none=True)):
        await pools.set_pool(
            conn, name, slots=change.slots, description=change.description, policy=policy, while_deferred=while_deferred
        )
    return await _found_pool(conn, name)


@routes.delete("/pools/{name}", Role.OPERATOR)
async def delete_pool(conn: Connection, actor: Actor, name: str) -> Pool:
    """Deletes a pool that no DAG names and no run needs any more. Answers with the deleted pool."""
    pool = await _found_pool(conn, name)
    if name == DEFAULT_POOL:
        raise Refused(409, "pool_in_use", f"The pool {name} takes every task that names no other, so it stays.")
    if users := await pools.find_users(conn, name, limit=limits.USERS_SHOWN + 1):
        raise Refused(
            409,
            "pool_in_use",
            f"The pool {name!r} is in use: by {_shown(users)}.",
            hint="Give these tasks another pool, let runs end or cancel them. To let nothing start in it meanwhile, type: evenflow "
            f"pools set {name} 0",
        )
    async with events.recorded(conn, actor, "pool.delete", name):
        await pools.delete_pool(conn, name)
    return pool


async def _found_pool(conn: AsyncConn, name: str) -> Pool:
    """Raises :class:`Refused`."""
    found = await read_pools(conn, name)
    if not found:
        raise no_pool(name)
    return found[0]


def _shown(users: list[pools.PoolUser]) -> str:
    shown = [
        f"task {user.task_id} of DAG {user.dag_id}" + (f" in its run {user.run_id}" if user.run_id else "")
        for user in users[: limits.USERS_SHOWN]
    ]
    more = " and more" if len(users) > limits.USERS_SHOWN else ""
    return ", ".join(shown) + more


@routes.get("/sharing", Role.VIEWER, ScopedBy.ANSWER)
async def list_sharing(conn: Connection, scope: InScope) -> Page[Sharing]:
    """All pools and executors, and the rules for them beyond the order of tasks."""
    found = [_shown_rule(*row) for row in await pools.list_sharing(conn, scope=scope)]
    return Page[Sharing](items=found, limit=len(found), more=False)


@routes.put("/sharing/{kind}/{name}", Role.OPERATOR)
async def set_sharing(
    conn: Connection, actor: Actor, kind: SharedKind, name: Annotated[ObjectName, Path()], change: SharingChange
) -> Sharing:
    """Sets who shares a pool or executor, and whether tasks that wait there age. This counts for tasks that become ready from now
    on; weights count at once.
    """
    old = await _found_rule(conn, kind, name)
    by = old.share_by or NOT if change.share_by is None else change.share_by
    weights = change.weights if change.weights is not None else old.weights if change.share_by is None else {}
    rule = SharingRule.parse(old.aging if change.aging is None else change.aging, by, weights)
    async with events.recorded(conn, actor, "sharing.set", f"{kind}/{name}", **change.model_dump(exclude_none=True)):
        await pools.set_sharing(conn, kind, name, rule)
    return _shown_rule(kind, name, rule)


@routes.get("/sharing/{kind}/{name}/tenants", Role.VIEWER)
async def list_tenants(conn: Connection, kind: SharedKind, name: str) -> Page[Tenant]:
    """All tenants that ever shared a pool or executor, those with the most slots for their weight first."""
    await _found_rule(conn, kind, name)
    rows = await pools.list_tenants(conn, kind, name, limit=MAX_NAMES + 1)
    items = [Tenant(**row) for row in rows[:MAX_NAMES]]
    return Page[Tenant](items=items, limit=MAX_NAMES, more=len(rows) > MAX_NAMES)


async def _found_rule(conn: AsyncConn, kind: str, name: str) -> SharingRule:
    """Raises :class:`Refused`."""
    found = await pools.list_sharing(conn, kind, name)
    if not found:
        raise Refused(404, "not_found", f"There is no {kind} {name!r}.", hint="To see all, type: evenflow sharing list")
    return found[0][2]


def _shown_rule(kind: str, name: str, rule: SharingRule) -> Sharing:
    return Sharing(kind=kind, name=name, aging=rule.aging, share_by=rule.share_by or NOT, weights=dict(rule.weights))
