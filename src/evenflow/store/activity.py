"""What sessions of the database do."""

from __future__ import annotations

from evenflow.store.rows import Conn, execute

STATES = ("idle", "working", "lock")  # lock: it waits for one


def read_state(conn: Conn, pid: int) -> str | None:
    """One of :data:`STATES`; null when the session is over."""
    row = execute(conn, "activity/read_state", {"pid": pid}).fetchone()
    return None if row is None else str(row[0])
