"""What people changed, and who: an event in the transaction of each change."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from psycopg import AsyncConnection
from psycopg.rows import dict_row

from evenflow.store.sql import sql

Conn = AsyncConnection[Any]
Row = dict[str, Any]


@asynccontextmanager
async def recorded(conn: Conn, actor: str, action: str, name: str, **detail: Any) -> AsyncIterator[dict[str, Any]]:
    """A transaction for a change of the object ``name``; its event is written with it, or neither is.

    ``action`` is ``kind.verb``. The dict is the event's detail, for what is known only when the change is done; it is read by
    everybody who may list events, so nothing secret belongs there.
    """
    async with conn.transaction():
        yield detail
        names = {"actor": actor, "action": action, "object": name, "detail": json.dumps(detail) if detail else None}
        await conn.execute(sql("events/insert_one"), names)


async def list_events(
    conn: Conn, *, actor: str | None = None, action: str | None = None, name: str | None = None, limit: int, offset: int = 0
) -> list[Row]:
    """The newest first; ``action`` may be a kind alone, and ``name`` that of a DAG stands for its runs, too."""
    names = {"actor": actor, "action": action, "object": name, "limit": limit, "offset": offset}
    # Planned with its values: a filter that is not asked for must not spoil the plan of one that is.
    return await (await conn.cursor(row_factory=dict_row).execute(sql("events/list_all"), names, prepare=False)).fetchall()
