"""The loop around :func:`advance`: woken by events, never waiting while there is work, sweeping each second for what an event
missed. One that stands by looks whether it is needed, instead (:mod:`evenflow.scheduler.standby`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager

from evenflow.core.limits import LONGEST_REST_S, STAND_BY_S, SWEEP_S
from evenflow.scheduler import observations as seen
from evenflow.scheduler.advance import TurnOutcome, advance
from evenflow.scheduler.catalog import Catalog
from evenflow.scheduler.isolation import isolate
from evenflow.scheduler.quarantine import may_be_poison
from evenflow.scheduler.scope import Scope
from evenflow.scheduler.standby import Standby
from evenflow.scheduler.turn_metrics import TurnMetrics
from evenflow.store.db.notify import INBOX
from evenflow.store.db.rows import Conn
from evenflow.store.scheduling import inbox
from evenflow.telemetry.observing import observe

Connect = Callable[[], AbstractContextManager[Conn]]


def take_turns(conn: Conn, listener: Conn, turn_metrics: TurnMetrics, stop: threading.Event, connect: Connect) -> None:
    """Takes turns until ``stop``. An exception ends it and drops its memory, so the caller simply begins again. ``connect`` makes a
    connection like ``conn``.
    """
    catalog, standby = Catalog(), Standby()
    listener.execute(f"listen {INBOX}")
    swept = 0.0
    while not stop.is_set():
        began = time.monotonic()
        sweep = began - swept >= SWEEP_S
        helping = standby.is_needed
        helps_after_s = 0.0 if helping else standby.patience_s
        if standby.stands_by and not (sweep or helping):
            needed_after_s = _look(conn, listener, catalog, standby, stop, swept + SWEEP_S - began)
            if needed_after_s is None:
                continue
            helps_after_s, helping = needed_after_s, True
        progress = take_turn(conn, catalog, turn_metrics, stop, connect, sweep=sweep, helps_after_s=helps_after_s)
        if progress is None:
            catalog = Catalog()
            standby.is_needed = False
            continue
        if sweep:
            swept = began
        took_s = time.monotonic() - began
        turn_metrics.add(progress, took_s)
        standby.turned(progress, took_s, helping=helping)
        if progress.led and not (progress.again and (progress.selected or progress.reports)):
            _wait(listener, stop, SWEEP_S if progress.due_s is None else progress.due_s)
        elif standby.rest_s:
            stop.wait(standby.rest_s)


def take_turn(
    conn: Conn,
    catalog: Catalog,
    turn_metrics: TurnMetrics,
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
        observe(seen.transaction_failed(type(error).__name__), turn_metrics.meter)
        with connect() as fresh:
            found = isolate(fresh, scope, error, stop)
            observe(seen.set_aside("run", found.runs), turn_metrics.meter)
            observe(seen.set_aside("report", found.reports), turn_metrics.meter)
            if not found:  # then it comes again, or another scheduler was faster, or it has passed
                advance(fresh, Catalog(), sweep=sweep)
        return None


def _look(conn: Conn, listener: Conn, catalog: Catalog, standby: Standby, stop: threading.Event, within_s: float) -> float | None:
    """Returns how long a report must have waited for a standing-by scheduler to help now. If it is not to help, this has waited
    until the next look is due, at most for ``within_s``.
    """
    wait, catalog.since = inbox.read_wait(conn, catalog.since)
    if wait.crowded:
        return 0.0
    if wait.first_s is not None and wait.first_s >= standby.patience_s:
        return standby.patience_s
    standby.keeps_up()
    if wait.first_s is None:
        _wait(listener, stop, within_s)
    stop.wait(min(max(standby.patience_s - (wait.first_s or 0.0), STAND_BY_S), LONGEST_REST_S, within_s))
    return None


def _wait(listener: Conn, stop: threading.Event, within_s: float) -> None:
    """Until something is said, a timer is due, or the sweep."""
    if not stop.is_set():
        for _ in listener.notifies(timeout=min(SWEEP_S, max(0.0, within_s)), stop_after=1):
            pass
