"""The loop around :func:`advance`: woken by events, never waiting while there is work, sweeping each second for what an event
missed.
"""

from __future__ import annotations

import threading

from evenflow.core.limits import SWEEP_S
from evenflow.scheduler.advance import Progress, advance
from evenflow.scheduler.catalog import Catalog
from evenflow.store import inbox
from evenflow.store.notify import INBOX
from evenflow.store.rows import Conn


class Tally:
    """What this scheduler has done since it started: its own share, for its row in the table of services."""

    def __init__(self) -> None:
        self._counts = {"turns": 0, "led": 0, "reports": 0, "stale": 0, "starts": 0, "moves": 0}

    def add(self, progress: Progress) -> None:
        counts = self._counts
        counts["turns"] += 1
        counts["led"] += progress.lead
        counts["reports"] += progress.reports
        counts["stale"] += progress.stale
        counts["starts"] += progress.starts
        counts["moves"] += progress.moves

    def read(self) -> dict[str, int]:
        return dict(self._counts)


def take_turns(conn: Conn, listener: Conn, tally: Tally, stop: threading.Event) -> None:
    """Until ``stop``. An exception ends it; what it remembered goes with it, so the caller simply begins again."""
    catalog = Catalog()
    listener.execute(f"listen {INBOX}")
    while not stop.is_set():
        progress = advance(conn, catalog)
        tally.add(progress)
        if not (progress.again and (progress.lead or progress.reports)):
            _wait(conn, listener, stop)


def _wait(conn: Conn, listener: Conn, stop: threading.Event) -> None:
    """Until something is said, a timer is due, or the sweep."""
    due = inbox.next_due(conn)
    timeout = SWEEP_S if due is None else min(SWEEP_S, max(0.0, due))
    if not stop.is_set():
        for _ in listener.notifies(timeout=timeout, stop_after=1):
            pass
