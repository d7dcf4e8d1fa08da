"""Which services are lost, and what becomes of their tries (R-CS7). :mod:`evenflow.core.lease` says when a service is lost."""

from __future__ import annotations

from evenflow.core.limits import LEASE_S
from evenflow.killpoints import KillPoint, reached
from evenflow.scheduler import observations as seen
from evenflow.store.db.notify import INBOX
from evenflow.store.db.rows import Conn
from evenflow.store.scheduling import inbox, leases
from evenflow.telemetry.observing import observe


def watch_leases(conn: Conn) -> None:
    """Ticks the clock of leases, declares services lost whose lease has lapsed, frees the triggers of triggerers that have gone,
    and reports the tries of workers that have gone.
    """
    with conn.transaction():
        lapsed = _lapse(conn)
    for service_id, kind, name in lapsed:
        observe(seen.service_lost(kind, name, service_id, LEASE_S))
    if lapsed:
        reached(KillPoint.LEASES_LAPSED)
    if (triggers := leases.release_triggers(conn)) > 0:
        observe(seen.triggers_released(triggers))
    if (tries := leases.report_lost_tries(conn)) > 0:
        reached(KillPoint.LOSSES_REPORTED)
        observe(seen.tries_lost(tries))
        inbox.notify(conn, INBOX)


def give_up_hung(conn: Conn) -> None:
    """R-CS6: declares workers lost that beat, and never start or end a try."""
    for hung in leases.expire_hung(conn):
        task = f"{hung.dag_id}/{hung.run_id} {hung.task_id}"
        observe(seen.worker_hung(hung.name, hung.host, hung.service_id, hung.missed, hung.epoch, task))


def _lapse(conn: Conn) -> list[tuple[int, str, str]]:
    """(service_id, kind, name) of services that are lost from now on."""
    if (read := leases.lock_clock(conn)) is None:
        return []
    clock = read.clock.tick(read.now_s, api_heard_at=read.api_heard_at_s)
    if clock is None:
        return []
    if clock.counted_from > read.clock.counted_from or clock.ticked_at < read.clock.ticked_at:
        if leases.holders_before(conn, at_s=read.clock.ticked_at):  # else all had been stopped in order, and nothing begins anew
            observe(seen.schedulers_gap(round(read.now_s - read.clock.ticked_at, 1), LEASE_S))
        leases.correct_beats(conn)
    leases.tick_clock(conn, clock)
    before = clock.lost_before()
    return [] if before is None else leases.expire_services(conn, before_s=before)
