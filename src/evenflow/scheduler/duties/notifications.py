"""Makes callbacks of what notification rules are for. It reads history, as open pages do: turns do nothing for rules.

One scheduler looks at a time. What it has seen and the callbacks that this made are one transaction, so each event calls once for
each rule, whichever scheduler dies when.
"""

from __future__ import annotations

from evenflow.store.db.notify import INBOX
from evenflow.store.db.rows import Conn
from evenflow.store.scheduling import inbox, notifications


def notify_by_rules(conn: Conn) -> None:
    if notifications.call(conn):
        inbox.notify(conn, INBOX)
