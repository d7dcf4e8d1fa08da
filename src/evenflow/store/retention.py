"""History that goes because of its age: what a scheduler deletes, on a connection of its own."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from evenflow.core.limits import DELETED_AT_ONCE
from evenflow.store.columns import numbers
from evenflow.store.rows import Conn, execute


def read_days(conn: Conn, name: str) -> tuple[datetime, Any]:
    """The time, and what this setting was set to; None: nobody has."""
    row = execute(conn, "retention/read_days", {"name": name}).fetchone()
    assert row is not None
    return row[0], row[1]


def delete_old_runs(conn: Conn, *, before: datetime, before_key: int, limit: int, instances: int) -> int:
    """Deletes up to ``limit`` runs that ended before, with so many task instances together; answers how many. Those that another
    deletes are passed over. ``before_key`` is the smallest key of a run made later. Their history goes with its partition.
    """
    params = {"before": before, "before_key": before_key, "limit": limit, "instances": instances, "whole": DELETED_AT_ONCE}
    with conn.transaction():
        run_keys = [key for (key,) in execute(conn, "retention/find_old_runs", params).fetchall()]
        deleted = {"run_keys": numbers(run_keys), "whole": DELETED_AT_ONCE, "history": False}
        return len(execute(conn, "operations/delete_runs", deleted).fetchall()) if run_keys else 0


def delete_garbage(conn: Conn, *, limit: int) -> int:
    """Deletes a part of what a large run has left; answers how many task instances, or values if those are more. 0 too when that
    was the rest of it.
    """
    row = execute(conn, "retention/delete_garbage", {"limit": limit}).fetchone()
    assert row is not None
    return int(max(row))


def delete_versions(conn: Conn, *, kept: int, limit: int) -> int:
    """Deletes versions that no run names, but for the newest so many of each DAG; answers how many."""
    row = execute(conn, "retention/delete_versions", {"kept": kept, "limit": limit}).fetchone()
    assert row is not None
    return int(row[0])


def trim_asset_queue(conn: Conn, *, kept: int, limit: int) -> int:
    """Forgets that DAGs wait with so many events of one asset, but for the newest; answers how many."""
    return execute(conn, "retention/trim_asset_queue", {"kept": kept, "limit": limit}).rowcount


def delete_backfills(conn: Conn, *, before: datetime, limit: int) -> int:
    """Deletes backfills that ended before, some dates at a time; answers how many rows."""
    row = execute(conn, "retention/delete_backfills", {"before": before, "limit": limit}).fetchone()
    assert row is not None
    return int(row[0])


def delete_asset_events(conn: Conn, *, before: datetime, limit: int) -> int:
    return len(execute(conn, "retention/delete_asset_events", {"before": before, "limit": limit}).fetchall())


def delete_audit_events(conn: Conn, *, before: datetime, limit: int) -> int:
    return len(execute(conn, "retention/delete_audit_events", {"before": before, "limit": limit}).fetchall())
