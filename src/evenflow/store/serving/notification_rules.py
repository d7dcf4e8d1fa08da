"""Notification rules: what is told to whom. For the API."""

from __future__ import annotations

from collections.abc import Sequence

from psycopg.rows import dict_row

from evenflow.core.people.scopes import PersonScope, scope_text
from evenflow.store.db.connect import AsyncConn, Row
from evenflow.store.db.sql import sql
from evenflow.store.scheduling.notifications import READER


async def list_rules(conn: AsyncConn, *, name: str | None = None, limit: int) -> list[Row]:
    """All by name, or one of them."""
    names = {"name": name, "limit": limit}
    return await (await conn.cursor(row_factory=dict_row).execute(sql("notifications/list_all"), names)).fetchall()


async def count_others(conn: AsyncConn, name: str) -> int:
    """Rules of other names."""
    row = await (await conn.execute(sql("notifications/count_all"), {"name": name})).fetchone()
    assert row is not None
    return int(row[0])


async def set_rule(
    conn: AsyncConn,
    name: str,
    *,
    event: str,
    dags: Sequence[str],
    scope: PersonScope | None,
    notifier: str,
    conn_id: str,
    signed_by: str | None,
    recipients: Sequence[str],
    is_enabled: bool,
    by: str,
) -> None:
    """Makes or changes a rule, for what happens from now on, in the transaction of the caller."""
    await conn.execute(sql("notifications/begin_look"), {"reader": READER})
    names = {
        "name": name,
        "event": event,
        "dags": list(dags),
        "scope": scope_text(scope),
        "notifier": notifier,
        "conn_id": conn_id,
        "signed_by": signed_by,
        "recipients": list(recipients),
        "is_enabled": is_enabled,
        "by": by,
    }
    await conn.execute(sql("notifications/set_one"), names)


async def delete_rule(conn: AsyncConn, name: str) -> None:
    await conn.execute(sql("notifications/delete_one"), {"name": name})
