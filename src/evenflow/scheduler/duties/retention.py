"""History is kept as long as the setting ``retention_days`` says. Runs that ended before are deleted with everything that belongs
to them, some at a time, so that no transaction is long. A live run is never touched, however old it is. History that no setting
keeps and that is not needed any more is bounded by a number, whatever the setting says.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

from evenflow.core.limits import (
    ANSWER_HOURS,
    ASSET_EVENTS_WAITING,
    ASSET_VALUE_DAYS,
    DELETED_AT_ONCE,
    INSTANCES_AT_ONCE,
    RETENTION_REST_S,
    RETENTION_SLICE_S,
    RUNS_AT_ONCE,
    SETTLED_AFTER_S,
    VERSIONS_KEPT,
)
from evenflow.core.settings import AUDIT_RETENTION_DAYS, RETENTION_AWAITS_EXPORT, RETENTION_DAYS, SETTINGS
from evenflow.scheduler import observations as seen
from evenflow.scheduler.duties.partitions import drop_partitions_before
from evenflow.store.db.rows import Conn
from evenflow.store.scheduling import leases, retention
from evenflow.store.scheduling.partitions import first_run_key
from evenflow.store.scheduling.retention import EVERYTHING, NOTHING, ExportedSoFar
from evenflow.telemetry.observing import observe

LOOKED_AT_ONCE = 5000  # runs among which old ones are looked for: some milliseconds
LOOK_ANEW_S = 3600.0  # a run that ended long after others of its age goes that much later
LIMITS_AT_ONCE = 100  # for each limit class that goes the lanes are looked through: with 100,000 of them a second
ARCHIVES_AT_ONCE = 10  # of up to 32 MiB each: some tenths of a second
ROWS_AT_ONCE = 1000  # rows of one small table: some milliseconds


class OldRuns:
    """Where the look for old runs stopped. Live ones, however many are old, are passed over once and not at each look; from time to
    time all are looked at anew, for some have ended meanwhile.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._after, self._anew_at = 0, clock()

    def delete(self, conn: Conn, before: datetime, past: int = EVERYTHING.past) -> int:
        """One batch of runs that ended before and have no history of transactions from ``past`` on; answers how many, or more than
        0 when there is more to be looked at.
        """
        if self._clock() >= self._anew_at:
            self._after, self._anew_at = 0, self._clock() + LOOK_ANEW_S
        with conn.transaction():
            found = retention.find_old_runs(
                conn,
                after=self._after,
                before=before,
                before_key=first_run_key(before),
                past=past,
                most=LOOKED_AT_ONCE,
                limit=RUNS_AT_ONCE,
                instances=INSTANCES_AT_ONCE,
            )
            deleted = retention.delete_runs(conn, found.run_keys) if found.run_keys else 0
        self._after = found.after
        if deleted:
            observe(seen.runs_deleted(deleted, before.isoformat(timespec="minutes")))
        return deleted or (0 if found.is_end else 1)


class UnusedLimits:
    """Where the look for limits that no version knows stopped."""

    def __init__(self) -> None:
        self._after = retention.FIRST_LIMIT

    def delete(self, conn: Conn) -> int:
        """Whether there is more."""
        last = retention.delete_limits(conn, after=self._after, limit=LIMITS_AT_ONCE)
        self._after = last or retention.FIRST_LIMIT
        return 0 if last is None else 1


def delete_old(conn: Conn, old_runs: OldRuns) -> float | None:
    """For a moment, if history is not kept for ever; and a part of what people have deleted. Continues soon while there is more."""
    exported = _exported(conn)
    before, audit_before = (_before(conn, name, exported) for name in (RETENTION_DAYS, AUDIT_RETENTION_DAYS))
    work: list[Callable[[], int]] = [lambda: retention.delete_garbage(conn, limit=DELETED_AT_ONCE)]
    if before is not None:
        work += [
            lambda: old_runs.delete(conn, before, exported.past),
            lambda: retention.delete_asset_events(conn, before=before, limit=ROWS_AT_ONCE),
            lambda: retention.delete_backfills(conn, before=before, limit=ROWS_AT_ONCE),
        ]
    if audit_before is not None:
        work.append(lambda: retention.delete_audit_events(conn, before=audit_before, limit=ROWS_AT_ONCE))
    return _in_slices(work)


def delete_unneeded(conn: Conn) -> float | None:
    """Deletes what grows with age and is never read again: events that wait for others, services that have gone."""
    return _in_slices(
        [
            lambda: leases.settle_services(conn, after_s=SETTLED_AFTER_S, limit=ROWS_AT_ONCE),
            lambda: retention.trim_asset_queue(conn, kept=ASSET_EVENTS_WAITING, limit=DELETED_AT_ONCE),
            lambda: retention.delete_answers(conn, hours=ANSWER_HOURS, limit=ROWS_AT_ONCE),
            lambda: retention.delete_asset_values(conn, unasked_days=ASSET_VALUE_DAYS, limit=ROWS_AT_ONCE),
        ]
    )


def delete_superseded(conn: Conn, unused_limits: UnusedLimits) -> float | None:
    """Old versions of DAGs, and code and limits that none has any more. Each look is at all that there are, so it comes seldom."""
    return _in_slices(
        [
            lambda: retention.delete_versions(conn, kept=VERSIONS_KEPT, limit=ROWS_AT_ONCE),
            lambda: retention.delete_code(conn, limit=ARCHIVES_AT_ONCE),
            lambda: unused_limits.delete(conn),
        ]
    )


def drop_old_partitions(conn: Conn) -> None:
    if (before := _before(conn, RETENTION_DAYS, _exported(conn))) is not None:
        drop_partitions_before(conn, before)


def _in_slices(work: Iterable[Callable[[], int]]) -> float | None:
    """Takes each step once, and those that found something again, until the time is over. Returns a short rest when there may be
    more.
    """
    end, left = time.monotonic() + RETENTION_SLICE_S, list(work)
    while left := [step for step in left if step() > 0]:
        if time.monotonic() >= end:
            return RETENTION_REST_S
    return None


def _exported(conn: Conn) -> ExportedSoFar:
    """Returns what may be deleted by its age: everything, unless only exported events may."""
    _, awaits = retention.read_setting(conn, RETENTION_AWAITS_EXPORT)
    return (retention.read_exported(conn) or NOTHING) if awaits else EVERYTHING


def _before(conn: Conn, setting: str, exported: ExportedSoFar) -> datetime | None:
    """What ended before is deleted; None: nothing is."""
    now, value = retention.read_setting(conn, setting)
    days = SETTINGS[setting].default if value is None else value
    return min(now - timedelta(days=int(days)), exported.at) if days else None
