"""What a scheduler does beside applying and selecting: each duty is a name, a pace and a function on a connection."""

from __future__ import annotations

import json
import os
import socket
from importlib.metadata import version

from evenflow.core.limits import BEAT_S, CLEAN_UP_S, CLEAN_UPS_AT_ONCE, HOUSEKEEPING_S, HUNG_S, LEASE_S, PULSE_S, SWEEP_S, WATCH_S
from evenflow.core.meter import Meter
from evenflow.scheduler import observations as seen
from evenflow.scheduler.assets import create_asset_runs, end_watches
from evenflow.scheduler.database import Fitness
from evenflow.scheduler.duties.agenda import Duty
from evenflow.scheduler.duties.audit import Sweep, Watchdog
from evenflow.scheduler.duties.leases import give_up_hung, watch_leases
from evenflow.scheduler.duties.partitions import make_history_partitions
from evenflow.scheduler.duties.retention import (
    OldRuns,
    UnusedLimits,
    delete_old,
    delete_superseded,
    delete_unneeded,
    drop_old_partitions,
)
from evenflow.scheduler.duties.schedules import Schedules, make_backfill_runs
from evenflow.scheduler.recent_starts import RecentStarts
from evenflow.scheduler.turn_metrics import LOOK_S, Contention
from evenflow.store.db import sessions
from evenflow.store.db.notify import INBOX
from evenflow.store.db.rows import Conn
from evenflow.store.scheduling import drains, inbox, leases, notifications
from evenflow.store.serving import callbacks
from evenflow.telemetry.health import HealthMonitor
from evenflow.telemetry.observing import observe


class Orphans:
    """A report may come after the end of its run, and so after its deletion."""

    def __init__(self) -> None:
        self._conn: Conn | None = None  # what is known belongs to this one
        self._since = inbox.Since()

    def delete(self, conn: Conn) -> None:
        if conn is not self._conn:
            self._conn, self._since = conn, inbox.Since()
        reports, self._since = inbox.delete_orphans(conn, self._since)
        if reports > 0:
            observe(seen.orphans_dropped(reports))


def notify_by_rules(conn: Conn) -> None:
    """Makes callbacks of what notification rules are for. It reads history, as open pages do: turns do nothing for rules.

    One scheduler looks at a time. What it has seen and the callbacks that this made are one transaction, so each event calls once
    for each rule, whichever scheduler dies when.
    """
    if notifications.call(conn):
        inbox.notify(conn, INBOX)


def end_deaf_sessions(conn: Conn) -> None:
    """A process that hangs while it is being answered keeps its locks beyond all timeouts of the server (R-HA5)."""
    for name in sessions.end_deaf(conn):
        observe(seen.deaf_session_ended(name))


class SchedulerPresence:
    """This scheduler's row in the table of services. Told that it is not known any more, it registers anew."""

    def __init__(self, health: HealthMonitor) -> None:
        self._health, self._lease = health, health.lease(LEASE_S)
        self._recent = RecentStarts(health.meter)
        self._service_id: int | None = None

    def beat(self, conn: Conn) -> None:
        if not self._say(conn, "active"):
            self._service_id = leases.register(
                conn,
                kind="scheduler",
                name=self._health.name,
                host=socket.gethostname(),
                pid=os.getpid(),
                version=version("evenflow"),
                detail=self._detail(),
            )
            self._lease.beat()

    def sign_off(self, conn: Conn) -> None:
        self._say(conn, "stopped")

    def _detail(self) -> str:
        address = {"metrics": self._health.address} if self._health.address else {}
        return json.dumps({**address, "pace": self._recent.told()})

    def _say(self, conn: Conn, state: str) -> bool:
        """Whether the row is known."""
        if self._service_id is None:
            return False
        known = leases.beat(conn, service_id=self._service_id, kind="scheduler", state=state, detail=self._detail())
        if known:
            self._lease.beat()
        return known


def pulse(own: SchedulerPresence, contention: Contention) -> list[Duty]:
    """Duties that others rely on to the second: no other duty may delay them, and one that fails does not wait for long."""
    return [
        Duty("presence", BEAT_S, own.beat, BEAT_S),
        Duty("leases", PULSE_S, watch_leases, BEAT_S),
        Duty("deaf sessions", SWEEP_S, end_deaf_sessions, BEAT_S),
        Duty("contention", LOOK_S, contention.look, BEAT_S),
    ]


def decisions(meter: Meter, fitness: Fitness) -> list[Duty]:
    """What people wait for; and the safety nets, which come first."""
    return [
        Duty("fitness", BEAT_S, fitness.check),
        Duty("watchdog", WATCH_S, Watchdog(meter).look),
        Duty("sweep", SWEEP_S, Sweep(meter).perform),
        Duty("inbox", SWEEP_S, Orphans().delete),
        Duty("schedules", SWEEP_S, Schedules().perform),
        Duty("backfills", SWEEP_S, make_backfill_runs),
        Duty("assets", SWEEP_S, create_asset_runs),
        Duty("watches", SWEEP_S, end_watches),
        Duty("drains", SWEEP_S, end_drains),
        Duty("clean-ups", CLEAN_UP_S, call_clean_ups),
        Duty("notifications", SWEEP_S, notify_by_rules),
    ]


def housekeeping() -> list[Duty]:
    """Duties whose result nothing waits for and that may take long: they have a thread and a connection of their own."""
    old_runs, unused_limits = OldRuns(), UnusedLimits()
    return [
        Duty("hung workers", HUNG_S, give_up_hung),
        Duty("partitions", 3600.0, make_history_partitions),
        Duty("old partitions", 3600.0, drop_old_partitions),
        Duty("retention", HOUSEKEEPING_S, lambda conn: delete_old(conn, old_runs)),
        Duty("unneeded", 60.0, delete_unneeded),
        Duty("superseded", 3600.0, lambda conn: delete_superseded(conn, unused_limits)),
    ]


def call_clean_ups(conn: Conn) -> float | None:
    """R-SP6: a process that dies, or whose worker does, ends nothing of what it has begun outside."""
    with conn.transaction():
        called = callbacks.insert_clean_ups(conn, limit=CLEAN_UPS_AT_ONCE)
        if called:
            inbox.notify(conn, INBOX)
    if called:
        observe(seen.clean_ups_called(called))
    return 0.0 if called == CLEAN_UPS_AT_ONCE else None


def end_drains(conn: Conn) -> None:
    """One look. Only when it finds something to be drained, all starts wait while that is judged again."""
    if not drains.find_drained(conn):
        return
    with conn.transaction():
        ended = drains.end_drains(conn)
        if ended:
            inbox.notify(conn, INBOX)
    for action, name in ended:
        observe(seen.drain_ended(action, name))
