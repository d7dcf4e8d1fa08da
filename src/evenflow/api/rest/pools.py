"""Pools: what there is, making and changing them, and deleting those that nobody uses."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path

from evenflow.api import limits
from evenflow.api.refusals import Refused, no_pool
from evenflow.api.rest.context import Actor, Connection, InScope
from evenflow.api.rest.routes import Routes
from evenflow.contracts.rest.record import ObjectName, Page
from evenflow.contracts.rest.steering import Pool, PoolChange
from evenflow.core.deferral import parse_while_deferred
from evenflow.core.model import DEFAULT_POOL
from evenflow.core.people.roles import Role
from evenflow.core.people.scopes import ScopedBy
from evenflow.core.selection.pool_policy import PoolPolicy
from evenflow.store.db.connect import AsyncConn
from evenflow.store.serving import events, pools

routes = Routes("Pools")


@routes.get("/pools", Role.VIEWER, ScopedBy.ANSWER)
async def list_pools(conn: Connection, scope: InScope) -> Page[Pool]:
    """Pools with their slots, how many are taken, and their policy."""
    found = await _pools(conn, scope=scope)
    return Page[Pool](items=list(found.values()), limit=len(found), offset=0, more=False)


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
    """Deletes a pool that no DAG names and no run needs any more; answers what it was."""
    pool = await _found_pool(conn, name)
    if name == DEFAULT_POOL:
        raise Refused(409, "pool_in_use", f"The pool {name} takes every task that names no other, so it stays.")
    if users := await pools.find_users(conn, name, limit=limits.USERS_SHOWN + 1):
        raise Refused(409, "pool_in_use", _in_use(name, users))
    async with events.recorded(conn, actor, "pool.delete", name):
        await pools.delete_pool(conn, name)
    return pool


async def _pools(conn: AsyncConn, *, scope: str | None = None) -> dict[str, Pool]:
    return {
        row["name"]: Pool(
            name=row["name"],
            description=row["description"],
            slots=row["slots"],
            used=row["used"],
            policy=str(PoolPolicy(row["patience_s"])),
            while_deferred=row["while_deferred"],
        )
        for row in await pools.list_pools(conn, scope=scope)
    }


async def _found_pool(conn: AsyncConn, name: str) -> Pool:
    """Raises :class:`Refused`."""
    found = (await _pools(conn)).get(name)
    if found is None:
        raise no_pool(name)
    return found


def _in_use(name: str, users: list[pools.PoolUser]) -> str:
    shown = [
        f"task {user.task_id} of DAG {user.dag_id}" + (f" in its run {user.run_id}" if user.run_id else "")
        for user in users[: limits.USERS_SHOWN]
    ]
    more = " and more" if len(users) > limits.USERS_SHOWN else ""
    return (
        f"The pool {name!r} is in use: by {', '.join(shown)}{more}. Give these tasks another pool, let runs end or cancel them. "
        f"To let nothing start in it meanwhile, type: evenflow pools set {name} 0"
    )
