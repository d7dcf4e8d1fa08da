"""Backfills: their runs are made in order, as many at a time as each allows. They are runs like any other from then on."""

from __future__ import annotations

from evenflow.store import backfill_runs, inbox
from evenflow.store.notify import INBOX
from evenflow.store.rows import Conn

BACKFILLS_PER_TURN = 100  # one transaction's worth; the next comes with the next sweep


def make_backfill_runs(conn: Conn) -> None:
    """Makes the runs for which there is room, and ends the backfills that are through."""
    with conn.transaction():
        made = sum(backfill_runs.make_runs(conn, found) for found in backfill_runs.take_open(conn, limit=BACKFILLS_PER_TURN))
        if made:
            inbox.notify(conn, INBOX)
        else:
            backfill_runs.end_finished(conn)
