"""The loop around :func:`advance`: woken by events, never waiting while there is work, sweeping each second for what an event
missed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager

from evenflow.core.limits import STAND_BY_S, SWEEP_S
from evenflow.scheduler import observations as seen
from evenflow.scheduler.advance import TurnOutcome, advance
from evenflow.scheduler.catalog import Catalog
from evenflow.scheduler.isolation import isolate
from evenflow.scheduler.quarantine import may_be_poison
from evenflow.scheduler.scope import Scope
from evenflow.scheduler.tally import Tally
from evenflow.store.db.notify import INBOX
from evenflow.store.db.rows import Conn
from evenflow.telemetry.observing import observe

Connect = Callable[[], AbstractContextManager[Conn]]


def take_turns(conn: Conn, listener: Conn, tally: Tally, stop: threading.Event, connect: Connect) -> None:
    """Until ``stop``. An exception ends it; what it remembered goes with it, so the caller simply begins again. ``connect`` makes a
    connection like ``conn``.
    """
    catalog = Catalog()
    listener.execute(f"listen {INBOX}")
    swept = 0.0
    while not stop.is_set():
        began = time.monotonic()
        sweep = began - swept >= SWEEP_S
        progress = take_turn(conn, catalog, tally, stop, connect, sweep=sweep)
        if progress is None:
            catalog = Catalog()
            continue
        if sweep:
            swept = began
        tally.add(progress, time.monotonic() - began)
        if not (progress.led or progress.reports):
            stop.wait(STAND_BY_S)
        if not (progress.again and (progress.selected or progress.reports)):
            _wait(listener, stop, progress.due_s)


def take_turn(
    conn: Conn, catalog: Catalog, tally: Tally, stop: threading.Event, connect: Connect, *, sweep: bool
) -> TurnOutcome | None:
    """One transaction. ``None``: it failed, what made it fail is set aside or has passed, and the catalog is void. Any other
    failure is raised.
    """
    scope = Scope()
    try:
        return advance(conn, catalog, sweep=sweep, helps_after_s=SWEEP_S if sweep else None, scope=scope)
    except Exception as error:
        if not may_be_poison(error):
            raise
        observe(seen.transaction_failed(type(error).__name__), tally.meter)
        with connect() as fresh:
            found = isolate(fresh, scope, error, stop)
            observe(seen.set_aside("run", found.runs), tally.meter)
            observe(seen.set_aside("report", found.reports), tally.meter)
            if not found:  # then it comes again, or another scheduler was faster, or it has passed
                advance(fresh, Catalog(), sweep=sweep)
        return None


def _wait(listener: Conn, stop: threading.Event, due_s: float | None) -> None:
    """Until something is said, a timer is due, or the sweep."""
    timeout = SWEEP_S if due_s is None else min(SWEEP_S, max(0.0, due_s))
    if not stop.is_set():
        for _ in listener.notifies(timeout=timeout, stop_after=1):
            pass
