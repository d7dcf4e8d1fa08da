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


def delete_old_runs(conn: Conn, *, before: datetime, before_key: int, limit: int) -> int:
    """Deletes up to ``limit`` runs that ended before; answers how many. ``before_key`` is the smallest key of a run made later."""
    params = {"before": before, "before_key": before_key, "limit": limit}
    with conn.transaction():
        run_keys = [key for (key,) in execute(conn, "retention/find_old_runs", params).fetchall()]
        deleted = {"run_keys": numbers(run_keys), "whole": DELETED_AT_ONCE}
        return len(execute(conn, "operations/delete_runs", deleted).fetchall()) if run_keys else 0


def delete_garbage(conn: Conn, *, limit: int) -> int:
    """Deletes a part of what a large run has left; answers how many task instances, 0 too when that was the rest of it."""
    row = execute(conn, "retention/delete_garbage", {"limit": limit}).fetchone()
    assert row is not None
    return int(row[0])


def delete_asset_events(conn: Conn, *, before: datetime, limit: int) -> int:
    return len(execute(conn, "retention/delete_asset_events", {"before": before, "limit": limit}).fetchall())


def delete_audit_events(conn: Conn, *, before: datetime, limit: int) -> int:
    return len(execute(conn, "retention/delete_audit_events", {"before": before, "limit": limit}).fetchall())
