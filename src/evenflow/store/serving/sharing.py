"""What is decided for pools and executors beyond the order: aging, and who shares them."""

from __future__ import annotations

from typing import Any

from psycopg.rows import dict_row
from psycopg.types.json import Json

from evenflow.core.sharing import SharingRule
from evenflow.store.db.connect import AsyncConn
from evenflow.store.db.sql import sql
from evenflow.store.serving.dags import notify


async def list_rules(
    conn: AsyncConn, kind: str | None = None, name: str | None = None, *, scope: str | None = None
) -> list[tuple[str, str, SharingRule]]:
    """All pools and executors, or one: (kind, name, rule)."""
    rows = await (await conn.execute(sql("sharing/list_all"), {"kind": kind, "name": name, "scope": scope})).fetchall()
    return [(row[0], row[1], SharingRule(*row[2:])) for row in rows]


async def set_rule(conn: AsyncConn, kind: str, name: str, rule: SharingRule) -> None:
    names = {"kind": kind, "name": name, "aging_s": rule.aging_s, "share_by": rule.share_by, "weights": Json(dict(rule.weights))}
    async with conn.transaction():
        await conn.execute(sql("sharing/set_one"), names)
        await notify(conn)


async def list_tenants(conn: AsyncConn, kind: str, name: str, *, limit: int) -> list[dict[str, Any]]:
    """Those that ever had a task there: name, weight, held."""
    cursor = conn.cursor(row_factory=dict_row)
    return await (await cursor.execute(sql("sharing/list_tenants"), {"kind": kind, "name": name, "limit": limit})).fetchall()
