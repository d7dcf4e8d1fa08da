"""The incarnations of a database: a new one begins when it was set back to an earlier state, or may have been (R-HA18).

A standby that takes over lacks what its primary committed and had not sent. The rows do not show it; but each take-over begins a
new timeline of the server, so every process that connects compares it with the timeline that was seen last.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import psycopg
from psycopg.rows import args_row

from evenflow.core.settings import FAILOVER_LOSES_COMMITS
from evenflow.store.db.rows import Conn, execute
from evenflow.store.db.sql import sql


class Server(NamedTuple):
    system_id: str
    timeline: int | None  # None: it is a standby
    seen_system_id: str | None  # None: never looked at yet
    seen_timeline: int | None
    incarnation: int  # 0: the first

    @property
    def is_new(self) -> bool:
        """Whether it is another one than was seen last."""
        seen = (self.seen_system_id, self.seen_timeline)
        return self.timeline is not None and (self.system_id, self.timeline) != seen

    def __str__(self) -> str:
        before = "" if self.seen_system_id == self.system_id else f" of another server, {self.seen_system_id}"
        return f"a server took over: timeline {self.timeline} follows {self.seen_timeline}{before}"


def begin_incarnation(conn: psycopg.Connection[Any], *, reason: str, by: str) -> int:
    """Every service is lost, every try in flight is sent again, and nothing of before is let in. The incarnation's number."""
    with conn.transaction():
        found = find_server(conn)
        if found.timeline is not None:
            conn.execute(sql("incarnation/write_server"), {"system_id": found.system_id, "timeline": found.timeline})
        return _begin(conn, reason, by, went_back=True)


def find_server(conn: psycopg.Connection[Any]) -> Server:
    row = conn.cursor(row_factory=args_row(Server)).execute(sql("incarnation/find_server")).fetchone()
    assert row is not None
    return row


async def find_server_async(conn: psycopg.AsyncConnection[Any]) -> Server:
    row = await (await conn.cursor(row_factory=args_row(Server)).execute(sql("incarnation/find_server"))).fetchone()
    assert row is not None
    return row


def notice_server(conn: psycopg.Connection[Any], *, by: str) -> Server | None:
    """Returns the server behind a new connection, if it is not the one that was known: unless the setting
    ``failover_loses_commits`` says otherwise, a new incarnation has then begun. Processes that decide or let others in call this
    first.
    """
    found = find_server(conn)
    if not found.is_new:
        return None
    with conn.transaction():
        written = conn.execute(
            sql("incarnation/write_server"), {"system_id": found.system_id, "timeline": found.timeline}
        ).fetchone()
        if written is None or found.seen_system_id is None or read_setting(conn, FAILOVER_LOSES_COMMITS) is False:
            return None
        _begin(conn, str(found), by, went_back=False)
    return found


def _begin(conn: psycopg.Connection[Any], reason: str, by: str, *, went_back: bool) -> int:
    row = conn.execute(sql("incarnation/begin"), {"reason": reason, "by": by, "went_back": went_back}).fetchone()
    assert row is not None
    conn.execute(sql("tokens/notify"))
    return int(row[0])


def read_setting(conn: Conn, name: str) -> Any:
    """Returns None for a setting that was not set, so that its default holds."""
    row = execute(conn, "settings/read_one", {"name": name}).fetchone()
    return None if row is None else row[0]
