"""Pools: how many slots tasks may take of something scarce."""

from __future__ import annotations

from typing import Any, NamedTuple

from psycopg.rows import args_row, dict_row

from evenflow.core.selection.pool_policy import PoolPolicy
from evenflow.store.db.connect import AsyncConn
from evenflow.store.db.sql import sql
from evenflow.store.serving.dags import notify, reparse_failed


class PoolUser(NamedTuple):
    dag_id: str
    task_id: str
    run_id: str | None  # of a run that has not ended; null: the newest version of the DAG


async def list_pools(conn: AsyncConn, *, scope: str | None = None) -> list[dict[str, Any]]:
    """All pools: name, description, slots, used, patience_s, while_deferred."""
    return await (await conn.cursor(row_factory=dict_row).execute(sql("pools/list_all"), {"scope": scope})).fetchall()


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
