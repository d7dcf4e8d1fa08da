"""Ends drains: what has nothing in flight any more, or has waited until its deadline, is paused (R-DQ7)."""

from __future__ import annotations

import logging

from evenflow.store.db.notify import INBOX
from evenflow.store.db.rows import Conn
from evenflow.store.scheduling import drains, inbox

log = logging.getLogger(__name__)


def end_drains(conn: Conn) -> None:
    """One look. Only when it finds something to be drained, all starts wait while that is judged again."""
    if not drains.find_drained(conn):
        return
    with conn.transaction():
        ended = drains.end_drains(conn)
        if ended:
            inbox.notify(conn, INBOX)
    for action, name in ended:
        log.info("%s %s", action, name)
