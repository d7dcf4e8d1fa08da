"""Pools: how many slots tasks may take of something scarce. For pools and executors also the rules beyond the order of tasks: aging
and who shares them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from psycopg.rows import args_row, dict_row
from psycopg.types.json import Json

from evenflow.core.selection.pool_policy import PoolPolicy
from evenflow.core.sharing import SharingRule
from evenflow.store.db.connect import AsyncConn
from evenflow.store.db.sql import sql
from evenflow.store.serving.dags import notify, reparse_failed


class PoolUser(NamedTuple):
    dag_id: str
    task_id: str
    run_id: str | None  # of a run that has not ended; null: the newest version of the DAG


async def list_pools(conn: AsyncConn, name: str | None = None, *, scope: str | None = None) -> list[dict[str, Any]]:
    """All pools, or one: name, description, slots, used, patience_s, while_deferred."""
    asked = {"name": name, "scope": scope}
    return await (await conn.cursor(row_factory=dict_row).execute(sql("pools/list_all"), asked)).fetchall()


async def set_pool(
    conn: AsyncConn, name: str, *, slots: int, description: str | None, policy: PoolPolicy | None, while_deferred: str | None = None
) -> None:
    """Makes or changes a pool. What is None stays, or gets its default. DAG files that were refused for want of it are parsed
    again.
    """
    names = {
        "name": name,
        "slots": slots,
        "description": description,
        "has_policy": policy is not None,
        "patience_s": None if policy is None else policy.patience_s,
        "while_deferred": while_deferred,
    }
    async with conn.transaction():
        await reparse_failed(conn)  # first: storing a parsed file also locks its row, and then limits
        await conn.execute(sql("pools/set_one"), names)
        await notify(conn)


async def find_users(conn: AsyncConn, name: str, *, limit: int) -> list[PoolUser]:
    """Tasks that name the pool; those of the newest versions first."""
    cursor = conn.cursor(row_factory=args_row(PoolUser))
    return await (await cursor.execute(sql("pools/find_users"), {"name": name, "limit": limit})).fetchall()


async def delete_pool(conn: AsyncConn, name: str) -> None:
    """Deletes a pool that has no users. A DAG that names it from now on is refused."""
    await conn.execute(sql("pools/delete_one"), {"name": name})


async def list_sharing(
    conn: AsyncConn, kind: str | None = None, name: str | None = None, *, scope: str | None = None
) -> list[tuple[str, str, SharingRule]]:
    """All pools and executors, or one: (kind, name, rule)."""
    rows = await (await conn.execute(sql("sharing/list_all"), {"kind": kind, "name": name, "scope": scope})).fetchall()
    return [(row[0], row[1], SharingRule(*row[2:])) for row in rows]


async def set_sharing(conn: AsyncConn, kind: str, name: str, rule: SharingRule) -> None:
    names = {"kind": kind, "name": name, "aging_s": rule.aging_s, "share_by": rule.share_by, "weights": Json(dict(rule.weights))}
    async with conn.transaction():
        await conn.execute(sql("sharing/set_one"), names)
        await notify(conn)


async def list_tenants(conn: AsyncConn, kind: str, name: str, *, limit: int) -> list[dict[str, Any]]:
    """Those that ever had a task there: name, weight, held."""
    cursor = conn.cursor(row_factory=dict_row)
    return await (await cursor.execute(sql("sharing/list_tenants"), {"kind": kind, "name": name, "limit": limit})).fetchall()
