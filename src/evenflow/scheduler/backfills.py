"""Backfills: their runs are made in order, as many at a time as each allows. They are runs like any other from then on."""

from __future__ import annotations

from evenflow.scheduler.quarantine import may_be_poison, set_one_aside
from evenflow.store.db.notify import INBOX
from evenflow.store.db.rows import Conn
from evenflow.store.scheduling import backfills, inbox

BACKFILLS_PER_TURN = 100  # one transaction's worth; the next comes with the next sweep


def make_backfill_runs(conn: Conn) -> None:
    """Makes the runs for which there is room, and ends the backfills that are through. One whose runs cannot be made is set aside,
    and no other suffers.
    """
    with conn.transaction():
        made = 0
        for found in backfills.take_open(conn, limit=BACKFILLS_PER_TURN):
            try:
                with conn.transaction():
                    made += backfills.make_runs(conn, found)
            except Exception as error:
                if not may_be_poison(error):
                    raise
                set_one_aside(conn, "backfill", str(found.backfill_id), error)
        if made:
            inbox.notify(conn, INBOX)
        else:
            backfills.end_finished(conn)
