"""The loop around :func:`advance`: woken by events, never waiting while there is work, sweeping each second for what an event
missed. One that stands by looks whether it is needed, instead (:mod:`evenflow.scheduler.standby`).
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
from evenflow.scheduler.standby import Standby
from evenflow.scheduler.tally import Tally
from evenflow.store.db.notify import INBOX
from evenflow.store.db.rows import Conn
from evenflow.store.scheduling import inbox
from evenflow.telemetry.observing import observe

Connect = Callable[[], AbstractContextManager[Conn]]


def take_turns(conn: Conn, listener: Conn, tally: Tally, stop: threading.Event, connect: Connect) -> None:
    """Until ``stop``. An exception ends it; what it remembered goes with it, so the caller simply begins again. ``connect`` makes a
    connection like ``conn``.
    """
    catalog, standby = Catalog(), Standby()
    listener.execute(f"listen {INBOX}")
    swept = 0.0
    while not stop.is_set():
        began = time.monotonic()
        sweep = began - swept >= SWEEP_S
        if standby.stands_by and not sweep and not _is_needed(conn, listener, catalog, standby, stop, swept + SWEEP_S - began):
            continue
        progress = take_turn(conn, catalog, tally, stop, connect, sweep=sweep, helps_after_s=standby.patience_s)
        if progress is None:
            catalog = Catalog()
            continue
        if sweep:
            swept = began
        took_s = time.monotonic() - began
        tally.add(progress, took_s)
        standby.turned(progress, took_s)
        if progress.led and not (progress.again and (progress.selected or progress.reports)):
            _wait(listener, stop, SWEEP_S if progress.due_s is None else progress.due_s)
        elif not (progress.led or progress.reports):
            stop.wait(standby.patience_s)


def take_turn(
    conn: Conn,
    catalog: Catalog,
    tally: Tally,
    stop: threading.Event,
    connect: Connect,
    *,
    sweep: bool,
    helps_after_s: float = SWEEP_S,
) -> TurnOutcome | None:
    """One transaction. ``None``: it failed, what made it fail is set aside or has passed, and the catalog is void. Any other
    failure is raised.
    """
    scope = Scope()
    try:
        return advance(conn, catalog, sweep=sweep, helps_after_s=helps_after_s, scope=scope)
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


def _is_needed(conn: Conn, listener: Conn, catalog: Catalog, standby: Standby, stop: threading.Event, within_s: float) -> bool:
    """Whether one that stands by is to take a turn now. If not, it has waited until it is time to look again, at most for
    ``within_s``.
    """
    waited_s, catalog.since = inbox.read_wait(conn, catalog.since)
    if waited_s is not None and waited_s >= standby.patience_s:
        return True
    standby.keeps_up()
    if waited_s is None:
        _wait(listener, stop, within_s)
        waited_s = 0.0
    stop.wait(min(max(standby.patience_s - waited_s, STAND_BY_S), within_s))
    return False


def _wait(listener: Conn, stop: threading.Event, within_s: float) -> None:
    """Until something is said, a timer is due, or the sweep."""
    if not stop.is_set():
        for _ in listener.notifies(timeout=min(SWEEP_S, max(0.0, within_s)), stop_after=1):
            pass
