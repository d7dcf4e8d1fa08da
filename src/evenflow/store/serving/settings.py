"""Settings that decide, as far as they were set; :mod:`evenflow.core.settings` lists them all."""

from __future__ import annotations

import json
from typing import Any

from psycopg.rows import dict_row

from evenflow.core.settings import DAGS_ARE_PAUSED_AT_CREATION, DEFAULT_TIMEZONE, SETTINGS
from evenflow.store.db.connect import AsyncConn, Row
from evenflow.store.db.instant import read
from evenflow.store.db.notify import INBOX
from evenflow.store.db.sql import sql


async def read_settings(conn: AsyncConn) -> dict[str, Row]:
    """What was set, by name: its version, its value, who changed it and when."""
    rows = await (await conn.cursor(row_factory=dict_row).execute(sql("settings/read_all"))).fetchall()
    return {row["name"]: row for row in rows}


async def read_value(conn: AsyncConn, name: str) -> Any:
    """Returns None for a setting that was not set, so that its default holds."""
    row = await (await conn.execute(sql("settings/read_one"), {"name": name})).fetchone()
    return None if row is None else row[0]


async def read_default_timezone(conn: AsyncConn) -> str:
    return str(await _value_or_default(conn, DEFAULT_TIMEZONE))


async def read_paused_at_creation(conn: AsyncConn) -> bool:
    """Whether new DAGs are paused that say nothing of it."""
    return bool(await _value_or_default(conn, DAGS_ARE_PAUSED_AT_CREATION))


async def _value_or_default(conn: AsyncConn, name: str) -> Any:
    found = await read_value(conn, name)
    return SETTINGS[name].default if found is None else found


async def set_value(conn: AsyncConn, name: str, value: Any, *, actor: str) -> None:
    """Takes effect with the next transaction of each scheduler; they are woken for it."""
    async with conn.transaction():
        await conn.execute(sql("settings/lock_all"))
        await conn.execute(sql("settings/set_one"), {"name": name, "value": json.dumps(value), "actor": actor})
        await conn.execute(sql("inbox/notify"), {"channel": INBOX})


async def unset_value(conn: AsyncConn, name: str, *, actor: str) -> None:
    """Restores the default, in the way of :func:`set_value`. Harmless for a setting that was not set."""
    async with conn.transaction():
        await conn.execute(sql("settings/lock_all"))
        await conn.execute(sql("settings/unset_one"), {"name": name, "actor": actor})
        await conn.execute(sql("inbox/notify"), {"channel": INBOX})


async def list_changes(conn: AsyncConn, name: str, *, limit: int, after: str | None = None) -> list[Row]:
    """The newest first; a value that is None: the setting was unset, and its default held."""
    names = {"name": name, "limit": limit, "after": after}
    return await read(conn, "settings/list_changes", names)
