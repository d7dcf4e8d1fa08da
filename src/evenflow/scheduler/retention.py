"""History is kept for as long as the setting ``retention_days`` says: runs that ended before are deleted with all that there is of
them, some at a time, so that no transaction is long. A live run is never touched, however old it is.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from evenflow.core.limits import DELETED_AT_ONCE
from evenflow.core.settings import AUDIT_RETENTION_DAYS, RETENTION_DAYS, SETTINGS
from evenflow.scheduler.partitions import drop_partitions_before
from evenflow.store import retention
from evenflow.store.partitions import first_run_key
from evenflow.store.rows import Conn

RUNS_AT_ONCE = 20  # at one batch a second 72,000 an hour, more than a scheduler makes
EVENTS_AT_ONCE = 1000  # rows of one small table: some milliseconds

log = logging.getLogger(__name__)


def delete_old(conn: Conn) -> None:
    """One batch, if history is not kept for ever; and a part of what people have deleted."""
    retention.delete_garbage(conn, limit=DELETED_AT_ONCE)
    if (before := _before(conn, RETENTION_DAYS)) is not None:
        delete_before(conn, before)
    if (before := _before(conn, AUDIT_RETENTION_DAYS)) is not None:
        retention.delete_audit_events(conn, before=before, limit=EVENTS_AT_ONCE)


def drop_old_partitions(conn: Conn) -> None:
    if (before := _before(conn, RETENTION_DAYS)) is not None:
        drop_partitions_before(conn, before)


def delete_before(conn: Conn, before: datetime) -> int:
    """One batch of runs that ended before; answers how many."""
    deleted = retention.delete_old_runs(conn, before=before, before_key=first_run_key(before), limit=RUNS_AT_ONCE)
    retention.delete_asset_events(conn, before=before, limit=EVENTS_AT_ONCE)
    if deleted:
        log.info("deleted %d runs that ended before %s", deleted, before.isoformat(timespec="minutes"))
    return deleted


def _before(conn: Conn, setting: str) -> datetime | None:
    """What ended before is deleted; None: nothing is."""
    now, value = retention.read_days(conn, setting)
    days = SETTINGS[setting].default if value is None else value
    return now - timedelta(days=int(days)) if days else None
