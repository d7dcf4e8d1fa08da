"""History is kept for as long as the setting ``retention_days`` says: runs that ended before are deleted with all that there is of
them, some at a time, so that no transaction is long. A live run is never touched, however old it is.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta

from evenflow.core.limits import DELETED_AT_ONCE
from evenflow.core.settings import AUDIT_RETENTION_DAYS, RETENTION_DAYS, SETTINGS
from evenflow.scheduler.partitions import first_run_key
from evenflow.store import retention
from evenflow.store.rows import Conn

RUNS_AT_ONCE = 20  # at one batch a second 72,000 an hour, more than a scheduler makes
EVENTS_AT_ONCE = 1000  # rows of one small table: some milliseconds
PATIENCE_MS = 200  # how long dropping a partition may keep schedulers from writing history

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


def drop_partitions_before(conn: Conn, before: datetime) -> list[str]:
    """Those of days that were over before, as far as nothing is left in them; answers which."""
    oldest_kept = f"task_event_{before.astimezone(UTC):%Y%m%d}"
    old = [name for name in retention.list_partitions(conn) if name != "task_event_default" and name < oldest_kept]
    dropped = [name for name in old if retention.drop_empty_partition(conn, name, patience_ms=PATIENCE_MS)]
    if dropped:
        log.info("dropped history partitions %s", ", ".join(dropped))
    return dropped


def _before(conn: Conn, setting: str) -> datetime | None:
    """What ended before is deleted; None: nothing is."""
    now, value = retention.read_days(conn, setting)
    days = SETTINGS[setting].default if value is None else value
    return now - timedelta(days=int(days)) if days else None
