"""History that goes because of its age: what a scheduler deletes, on a connection of its own."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, NamedTuple

from evenflow.core.limits import DELETED_AT_ONCE
from evenflow.store.db.columns import numbers
from evenflow.store.db.rows import Conn, execute


def read_setting(conn: Conn, name: str) -> tuple[datetime, Any]:
    """Returns the time, and the value of this setting; None if it was not set."""
    row = execute(conn, "retention/read_setting", {"name": name}).fetchone()
    assert row is not None
    return row[0], row[1]


class ExportedSoFar(NamedTuple):
    at: datetime  # nothing that ended later is looked at
    past: int  # nor runs with history of this transaction, or of one with a higher number


EVERYTHING = ExportedSoFar(datetime.max.replace(tzinfo=UTC), 2**63 - 1)
NOTHING = ExportedSoFar(datetime(2000, 1, 1, tzinfo=UTC), 0)  # before there was any history


def read_exported(conn: Conn) -> ExportedSoFar | None:
    """How far the history pipeline has come; None: it has not exported yet."""
    row = execute(conn, "retention/read_exported", {}).fetchone()
    return None if row is None else ExportedSoFar(*row)


class OldRunKeys(NamedTuple):
    run_keys: list[int]
    after: int  # where the next look begins
    is_end: bool  # nothing older is left to be looked at


def find_old_runs(
    conn: Conn, *, after: int, before: datetime, before_key: int, past: int, most: int, limit: int, instances: int
) -> OldRunKeys:
    """Returns up to ``limit`` runs that ended before, among the next ``most`` runs, with at most ``instances`` task instances
    together, but at least one run. Skips runs that another scheduler deletes, and runs with history of transactions from ``past``
    on. ``before_key`` is the smallest key of a run made later.
    """
    params = {"after": after, "before": before, "before_key": before_key, "past": past, "most": most, "limit": limit}
    row = execute(conn, "retention/find_old_runs", params | {"instances": instances, "whole": DELETED_AT_ONCE}).fetchone()
    assert row is not None
    return OldRunKeys(*row)


def delete_runs(conn: Conn, run_keys: list[int]) -> int:
    """Deletes those of these runs that have ended; returns how many. Their history goes with its partition."""
    deleted = {"run_keys": numbers(run_keys), "whole": DELETED_AT_ONCE, "history": False}
    return len(execute(conn, "operations/delete_runs", deleted).fetchall())


def delete_garbage(conn: Conn, *, limit: int) -> int:
    """Deletes a part of what a large run has left; answers how many task instances, or values if those are more. 0 too when that
    was the rest of it.
    """
    row = execute(conn, "retention/delete_garbage", {"limit": limit}).fetchone()
    assert row is not None
    return int(max(row))


def delete_versions(conn: Conn, *, kept: int, limit: int) -> int:
    """Deletes versions that no run names, except the newest of each DAG; answers how many."""
    row = execute(conn, "retention/delete_versions", {"kept": kept, "limit": limit}).fetchone()
    assert row is not None
    return int(row[0])


def delete_code(conn: Conn, *, limit: int) -> int:
    """Deletes archives that no version has; answers how many."""
    return len(execute(conn, "retention/delete_code", {"limit": limit}).fetchall())


class LimitName(NamedTuple):
    kind: str
    name: str


FIRST_LIMIT = LimitName("dag_task", "")  # before the first that a DAG may bring with it


def delete_limits(conn: Conn, *, after: LimitName, limit: int) -> LimitName | None:
    """Deletes some limits that no version knows, and their limit classes; returns the last one looked at, None at the end. Limits
    of DAGs that are just being stored stay for another time.
    """
    with conn.transaction():
        found = execute(conn, "retention/find_unused_limits", {**after._asdict(), "limit": limit}).fetchall()
        if free := [limit_id for *_, limit_id, is_locked in found if is_locked]:
            execute(conn, "retention/delete_limits", {"limits": numbers(free)})
    return LimitName(*found[-1][:2]) if found else None


def trim_asset_queue(conn: Conn, *, kept: int, limit: int) -> int:
    """Of the events of one asset that a DAG waits with, forgets all but the newest; answers how many."""
    return execute(conn, "retention/trim_asset_queue", {"kept": kept, "limit": limit}).rowcount


def delete_backfills(conn: Conn, *, before: datetime, limit: int) -> int:
    """Deletes backfills that ended before, some dates at a time; answers how many rows."""
    row = execute(conn, "retention/delete_backfills", {"before": before, "limit": limit}).fetchone()
    assert row is not None
    return int(row[0])


def delete_asset_events(conn: Conn, *, before: datetime, limit: int) -> int:
    return len(execute(conn, "retention/delete_asset_events", {"before": before, "limit": limit}).fetchall())


def delete_answers(conn: Conn, *, hours: int, limit: int) -> int:
    """Of requests with an idempotency key. Returns how many."""
    return execute(conn, "retention/delete_answers", {"hours": hours, "limit": limit}).rowcount


def delete_asset_values(conn: Conn, *, unasked_days: int, limit: int) -> int:
    """Deletes values of assets that no task has asked for in this number of days; answers how many."""
    return execute(conn, "retention/delete_asset_values", {"unasked_days": unasked_days, "limit": limit}).rowcount


def delete_audit_events(conn: Conn, *, before: datetime, limit: int) -> int:
    return len(execute(conn, "retention/delete_audit_events", {"before": before, "limit": limit}).fetchall())
