"""Callbacks of notification rules, made from history. For schedulers."""

from __future__ import annotations

from evenflow.core.callbacks import CALLBACK_DAG
from evenflow.store.db.rows import Conn, execute

READER = "notifications"  # of history


def call(conn: Conn) -> int:
    """Makes a queued run for each event since the last look and each rule that is for it, in a transaction of its own; returns how
    many. None while another scheduler looks, and where there is no rule.
    """
    with conn.transaction():
        if execute(conn, "notifications/lock_look", {"reader": READER}).fetchone() is None:
            return 0
        return execute(conn, "notifications/call", {"reader": READER, "dag_id": CALLBACK_DAG}).rowcount
