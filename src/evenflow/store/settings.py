"""Settings that decide, as far as somebody has set them; :mod:`evenflow.core.settings` says which there are."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, NamedTuple

from psycopg import AsyncConnection
from psycopg.rows import args_row

from evenflow.store.notify import INBOX
from evenflow.store.sql import sql

Conn = AsyncConnection[Any]


class SetValue(NamedTuple):
    name: str
    value: Any
    changed_at: datetime
    changed_by: str


async def read_settings(conn: Conn) -> dict[str, SetValue]:
    """What was set, by name."""
    rows = await (await conn.cursor(row_factory=args_row(SetValue)).execute(sql("settings/read_all"))).fetchall()
    return {row.name: row for row in rows}


async def set_value(conn: Conn, name: str, value: Any, *, actor: str) -> None:
    """Takes effect with the next transaction of each scheduler; they are woken for it."""
    async with conn.transaction():
        await conn.execute(sql("settings/set_one"), {"name": name, "value": json.dumps(value), "actor": actor})
        await conn.execute(sql("inbox/notify"), {"channel": INBOX})
