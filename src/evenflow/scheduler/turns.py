"""The loop around :func:`advance`: woken by events, never waiting while there is work, sweeping each second for what an event
missed.
"""

from __future__ import annotations

import threading
import time

from evenflow.core.limits import SWEEP_S
from evenflow.scheduler.advance import advance
from evenflow.scheduler.catalog import Catalog
from evenflow.scheduler.tally import Tally
from evenflow.store import inbox
from evenflow.store.notify import INBOX
from evenflow.store.rows import Conn


def take_turns(conn: Conn, listener: Conn, tally: Tally, stop: threading.Event) -> None:
    """Until ``stop``. An exception ends it; what it remembered goes with it, so the caller simply begins again."""
    catalog = Catalog()
    listener.execute(f"listen {INBOX}")
    swept = 0.0
    while not stop.is_set():
        began = time.monotonic()
        sweep = began - swept >= SWEEP_S
        progress = advance(conn, catalog, sweep=sweep)
        if sweep:
            swept = began
        tally.add(progress, time.monotonic() - began)
        if not (progress.again and (progress.selected or progress.reports)):
            _wait(conn, listener, stop)


def _wait(conn: Conn, listener: Conn, stop: threading.Event) -> None:
    """Until something is said, a timer is due, or the sweep."""
    due = inbox.next_due(conn)
    timeout = SWEEP_S if due is None else min(SWEEP_S, max(0.0, due))
    if not stop.is_set():
        for _ in listener.notifies(timeout=timeout, stop_after=1):
            pass
