"""History is kept for as long as the setting ``retention_days`` says: runs that ended before are deleted with all that there is of
them, some at a time, so that no transaction is long. A live run is never touched, however old it is. What nobody asked to keep and
nobody needs any more is bounded by a number, whatever the setting says.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

from evenflow.core.limits import (
    ASSET_EVENTS_WAITING,
    DELETED_AT_ONCE,
    INSTANCES_AT_ONCE,
    RETENTION_REST_S,
    RETENTION_SLICE_S,
    SETTLED_AFTER_S,
    VERSIONS_KEPT,
)
from evenflow.core.settings import AUDIT_RETENTION_DAYS, RETENTION_DAYS, SETTINGS
from evenflow.scheduler.partitions import drop_partitions_before
from evenflow.store import leases, retention
from evenflow.store.partitions import first_run_key
from evenflow.store.rows import Conn

RUNS_AT_ONCE = 200  # small runs: some ten milliseconds
ROWS_AT_ONCE = 1000  # rows of one small table: some milliseconds

log = logging.getLogger(__name__)


def delete_old(conn: Conn) -> float | None:
    """For a moment, if history is not kept for ever; and a part of what people have deleted. Goes on soon while there is more."""
    before, audit_before = _before(conn, RETENTION_DAYS), _before(conn, AUDIT_RETENTION_DAYS)
    work: list[Callable[[], int]] = [lambda: retention.delete_garbage(conn, limit=DELETED_AT_ONCE)]
    if before is not None:
        work += [
            lambda: delete_before(conn, before),
            lambda: retention.delete_backfills(conn, before=before, limit=ROWS_AT_ONCE),
        ]
    if audit_before is not None:
        work.append(lambda: retention.delete_audit_events(conn, before=audit_before, limit=ROWS_AT_ONCE))
    return _in_slices(work)


def delete_unneeded(conn: Conn) -> float | None:
    """What grows with age, and nobody asks for: superseded versions, events that wait for others, services that have gone."""
    return _in_slices(
        [
            lambda: leases.settle_services(conn, after_s=SETTLED_AFTER_S, limit=ROWS_AT_ONCE),
            lambda: retention.trim_asset_queue(conn, kept=ASSET_EVENTS_WAITING, limit=DELETED_AT_ONCE),
            lambda: retention.delete_versions(conn, kept=VERSIONS_KEPT, limit=VERSIONS_KEPT),
        ]
    )


def drop_old_partitions(conn: Conn) -> None:
    if (before := _before(conn, RETENTION_DAYS)) is not None:
        drop_partitions_before(conn, before)


def delete_before(conn: Conn, before: datetime) -> int:
    """One batch of runs that ended before; answers how many. And of events of assets."""
    deleted = retention.delete_old_runs(
        conn, before=before, before_key=first_run_key(before), limit=RUNS_AT_ONCE, instances=INSTANCES_AT_ONCE
    )
    retention.delete_asset_events(conn, before=before, limit=ROWS_AT_ONCE)
    if deleted:
        log.info("deleted %d runs that ended before %s", deleted, before.isoformat(timespec="minutes"))
    return deleted


def _in_slices(work: Iterable[Callable[[], int]]) -> float | None:
    """Each once, and again those that found something, until the time is over. Answers a short rest when there may be more."""
    end, left = time.monotonic() + RETENTION_SLICE_S, list(work)
    while left := [step for step in left if step() > 0]:
        if time.monotonic() >= end:
            return RETENTION_REST_S
    return None


def _before(conn: Conn, setting: str) -> datetime | None:
    """What ended before is deleted; None: nothing is."""
    now, value = retention.read_days(conn, setting)
    days = SETTINGS[setting].default if value is None else value
    return now - timedelta(days=int(days)) if days else None
