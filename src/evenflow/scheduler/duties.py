"""What a scheduler does beside applying and selecting: each duty is a name, a pace and a function on a connection."""

from __future__ import annotations

import json
import logging
import os
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version

from evenflow.core.limits import BEAT_S, LEASE_S, SWEEP_S
from evenflow.scheduler.assets import create_asset_runs
from evenflow.scheduler.audit import Sweep
from evenflow.scheduler.backfills import make_backfill_runs
from evenflow.scheduler.partitions import make_partitions
from evenflow.scheduler.retention import delete_old, drop_old_partitions
from evenflow.scheduler.schedules import create_scheduled
from evenflow.scheduler.tally import Tally
from evenflow.store import inbox, presence
from evenflow.store.notify import INBOX
from evenflow.store.rows import Conn

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Duty:
    name: str
    every_s: float
    perform: Callable[[Conn], None]


def watch_leases(conn: Conn) -> None:
    """Declares services lost whose lease lapsed, and reports the tries of lost workers (R-CS7)."""
    for service_id, kind, name in inbox.expire_services(conn, lease_s=LEASE_S):
        log.warning("lost %s %s (service %d): no beat for %g s", kind, name, service_id, LEASE_S)
    if (tries := inbox.report_lost_tries(conn)) > 0:
        log.warning("%d tries of lost workers are sent again", tries)
        inbox.notify(conn, INBOX)


def clear_inbox(conn: Conn) -> None:
    """A report may come after the end of its run, and so after its deletion."""
    if (reports := inbox.delete_orphans(conn)) > 0:
        log.info("%d reports of runs that have been deleted are dropped", reports)


def create_due_runs(conn: Conn) -> None:
    while create_scheduled(conn):
        pass


def make_history_partitions(conn: Conn) -> None:
    row = conn.execute("select now()").fetchone()
    assert row is not None
    make_partitions(conn, row[0])


class Presence:
    """This scheduler's row in the table of services. Told that it is not known any more, it registers anew."""

    def __init__(self, name: str, tally: Tally) -> None:
        self._name, self.tally = name, tally
        self._service_id: int | None = None

    def beat(self, conn: Conn) -> None:
        if not self._say(conn, "active"):
            self._service_id = presence.register(
                conn, kind="scheduler", name=self._name, host=socket.gethostname(), pid=os.getpid(), version=version("evenflow")
            )

    def sign_off(self, conn: Conn) -> None:
        self._say(conn, "stopped")

    def _say(self, conn: Conn, state: str) -> bool:
        """Whether the row is known."""
        if self._service_id is None:
            return False
        detail = json.dumps(self.tally.read())
        return presence.beat(conn, service_id=self._service_id, kind="scheduler", state=state, detail=detail)


def all_duties(own: Presence) -> list[Duty]:
    return [
        Duty("partitions", 3600.0, make_history_partitions),
        Duty("old partitions", 3600.0, drop_old_partitions),
        Duty("presence", BEAT_S, own.beat),
        Duty("leases", SWEEP_S, watch_leases),
        Duty("inbox", SWEEP_S, clear_inbox),
        Duty("schedules", SWEEP_S, create_due_runs),
        Duty("backfills", SWEEP_S, make_backfill_runs),
        Duty("assets", SWEEP_S, create_asset_runs),
        Duty("retention", SWEEP_S, delete_old),
        Duty("sweep", SWEEP_S, Sweep(own.tally).perform),
    ]


def perform_due(conn: Conn, duties: list[Duty], due: dict[str, float], stop: threading.Event) -> None:
    """Performs duties when they are due until ``stop``; ``due`` maps names to monotonic instants, and is kept across
    connections.
    """
    while not stop.is_set():
        for duty in duties:
            if time.monotonic() >= due.get(duty.name, 0.0):
                duty.perform(conn)
                due[duty.name] = time.monotonic() + duty.every_s
        stop.wait(max(0.0, min(due.values()) - time.monotonic()))
