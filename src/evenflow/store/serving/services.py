"""Everything that heartbeats. For the API, which speaks for processes that have no database."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from evenflow.store.db.connect import AsyncConn
from evenflow.store.db.migrate import SCHEMA_VERSION
from evenflow.store.db.sql import sql


class Beaten(NamedTuple):
    """A service after its beat. ``at_s``: when that was stored, in seconds since 1970. ``closed``: it may claim nothing."""

    state: str
    at_s: float
    closed: bool


async def register(conn: AsyncConn, *, kind: str, name: str, host: str, pid: int, version: str, detail: dict[str, Any]) -> int:
    """The id of a new service of this kind, active from now on."""
    names = {"kind": kind, "name": name, "host": host, "pid": pid, "version": version, "detail": json.dumps(detail)}
    known = {"schema_known": SCHEMA_VERSION if kind == "api" else 0}
    row = await (await conn.execute(sql("services/register"), names | known)).fetchone()
    assert row is not None
    return int(row[0])


async def beat(
    conn: AsyncConn, *, service_id: int, kind: str, state: str = "active", detail: dict[str, Any] | None = None
) -> Beaten | None:
    """Returns None when the service does not exist, was declared lost, or had stopped."""
    names = {"service_id": service_id, "kind": kind, "state": state, "detail": json.dumps(detail or {})}
    row = await (await conn.execute(sql("services/beat"), names, prepare=True)).fetchone()
    return None if row is None else Beaten(*row)
