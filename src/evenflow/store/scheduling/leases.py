"""Leases in the database: those of schedulers, the clock of all leases, services that have lost theirs, and what happens to the
tries of these services.
"""

from __future__ import annotations

from typing import NamedTuple

from evenflow.core.lease import STRETCH, LeaseClock
from evenflow.core.limits import ENDING_S, LEASE_S, OUTRUN_NAMED, STARTS_WITHIN_S
from evenflow.store.db.migrate import SCHEMA_VERSION
from evenflow.store.db.rows import Conn, execute


class ReadClock(NamedTuple):
    now_s: float  # by the database, seconds since 1970, as the others
    clock: LeaseClock
    api_heard_at_s: float | None  # when the newest beat of an API server came; None: there is no server


def lock_clock(conn: Conn) -> ReadClock | None:
    """The clock, locked until the transaction ends; None while another scheduler has it."""
    row = execute(conn, "leases/lock_clock").fetchone()
    return None if row is None else ReadClock(row[0], LeaseClock(row[1], row[2]), row[3])


def tick_clock(conn: Conn, clock: LeaseClock) -> None:
    """The caller has the clock locked."""
    execute(conn, "leases/tick_clock", {"ticked_at": clock.ticked_at, "counted_from": clock.counted_from})


def correct_beats(conn: Conn) -> None:
    """No service was heard of in the future."""
    execute(conn, "leases/correct_beats")


def holders_before(conn: Conn, *, at_s: float) -> bool:
    """Whether a service that lives was there at that time, by the database."""
    return bool(execute(conn, "leases/find_holder_before", {"at_s": at_s}).fetchone())


def expire_services(conn: Conn, *, before_s: float) -> list[tuple[int, str, str]]:
    """Marks services as lost that were not heard of since; answers (service_id, kind, name) of each."""
    return execute(conn, "leases/expire_services", {"before": before_s}).fetchall()


class Hung(NamedTuple):
    """A worker that beats, and a try that it holds for too long."""

    service_id: int
    name: str
    host: str
    epoch: int
    dag_id: str
    run_id: str
    task_id: str
    missed: str  # what it should have done by now: started, ended, killed


def expire_hung(conn: Conn) -> list[Hung]:
    """Marks workers as lost that live and hold tries for longer than they may."""
    patience = {"starts_within_s": STARTS_WITHIN_S, "ending_s": ENDING_S, "stretch": STRETCH}
    return [Hung(*row) for row in execute(conn, "leases/expire_hung", patience).fetchall()]


def list_lost(conn: Conn) -> list[tuple[str, str, str]]:
    """(kind, name, host) of services that were lost within the hour, and that neither one of their kind and name has replaced, nor
    their fleet.
    """
    return execute(conn, "leases/list_lost", {"lease_s": LEASE_S}).fetchall()


def list_outrun(conn: Conn) -> list[tuple[str, str, str, str, str]]:
    """(worker, host, dag_id, run_id, task_id) of tries that their workers cannot end: the first ones."""
    return [row[:5] for row in execute(conn, "views/list_outrun", {"limit": OUTRUN_NAMED, "scope": None}).fetchall()]


def release_triggers(conn: Conn) -> int:
    """Lets others claim the triggers of lost and stopped triggerers, and wakes them; answers how many."""
    row = execute(conn, "leases/release_triggers").fetchone()
    return 0 if row is None else int(row[0])


def settle_services(conn: Conn, *, after_s: float, limit: int) -> int:
    """Excludes services that ended this long ago and have left nothing from all later looks; returns their number."""
    return execute(conn, "leases/settle_services", {"after": after_s, "limit": limit}).rowcount


def report_lost_tries(conn: Conn) -> int:
    """Reports the tries of stopped workers as lost, and of lost ones a lease after they were heard last; answers how many."""
    return execute(conn, "leases/report_lost_tries", {"lease_s": LEASE_S}).rowcount


def register(conn: Conn, *, kind: str, name: str, host: str, pid: int, version: str, detail: str = "{}") -> int:
    """The id of a new service, active from now on; ``detail`` is JSON."""
    params: dict[str, str | int] = {"kind": kind, "name": name, "host": host, "pid": pid, "version": version, "detail": detail}
    params["schema_known"] = SCHEMA_VERSION
    row = execute(conn, "services/register", params).fetchone()
    assert row is not None
    return int(row[0])


def beat(conn: Conn, *, service_id: int, kind: str, state: str = "active", detail: str = "{}") -> bool:
    """Whether the service is still known; ``detail`` is JSON."""
    params = {"service_id": service_id, "kind": kind, "state": state, "detail": detail}
    return execute(conn, "services/beat", params).fetchone() is not None
