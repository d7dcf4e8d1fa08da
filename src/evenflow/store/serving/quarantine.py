"""What is set aside, and its release. For the API."""

from __future__ import annotations

from evenflow.store.db.columns import numbers
from evenflow.store.db.connect import AsyncConn, Row
from evenflow.store.db.instant import read
from evenflow.store.db.notify import INBOX
from evenflow.store.db.sql import sql
from evenflow.store.scheduling.inbox import EXECUTOR_LOCK


async def list_quarantine(conn: AsyncConn, *, scope: str | None, limit: int, after: str | None) -> list[Row]:
    """kind, object, since, reason; of a run dag_id and run_id too. The latest first."""
    names = {"scope": scope, "limit": limit, "after": after}
    return await read(conn, "quarantine/list_all", names)


async def count_quarantine(conn: AsyncConn, *, scope: str | None = None) -> dict[str, int]:
    """How much of each kind is set aside."""
    return dict(await (await conn.execute(sql("quarantine/count_all"), {"scope": scope})).fetchall())


async def release(conn: AsyncConn, kind: str, name: str, actor: str) -> bool:
    """Has it tried again, in the caller's transaction, which takes no lock before. Whether it was set aside."""
    await conn.execute(sql("dags/lock_executor"), {"executor": EXECUTOR_LOCK})
    what = {"kind": kind, "object": name}
    found = await (await conn.execute(sql("quarantine/find_one"), what)).fetchone()
    if found is None:
        return False
    if found[0] is None:
        await conn.execute(sql("quarantine/delete_one"), what)
    else:
        await conn.execute(sql("quarantine/release_runs"), {"run_keys": numbers([found[0]]), "actor": actor})
    await conn.execute(sql("inbox/notify"), {"channel": INBOX})
    return True
