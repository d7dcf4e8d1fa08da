"""Ends drains: what has nothing in flight any more, or has waited until its deadline, is paused (R-DQ7)."""

from __future__ import annotations

from evenflow.scheduler import observations as seen
from evenflow.store.db.notify import INBOX
from evenflow.store.db.rows import Conn
from evenflow.store.scheduling import drains, inbox
from evenflow.telemetry.observing import observe


def end_drains(conn: Conn) -> None:
    """One look. Only when it finds something to be drained, all starts wait while that is judged again."""
    if not drains.find_drained(conn):
        return
    with conn.transaction():
        ended = drains.end_drains(conn)
        if ended:
            inbox.notify(conn, INBOX)
    for action, name in ended:
        observe(seen.drain_ended(action, name))
