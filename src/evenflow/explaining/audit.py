"""The auditor: recomputes the scheduler's counts from task instances and holds, and reports differences.

All statements read one snapshot, so working schedulers do not blur the answer: each checked rule holds in every committed state,
also between two transactions of which one left wakes to the other. An audit costs one pass over the task instances of running runs,
over all runs, and over the hot tables: about 10 us a task instance, and nothing for those of finished runs. It locks nothing, but
its snapshot holds back vacuum while it lasts. So it is for people and tests; schedulers themselves use :func:`find_lost_wakeups`
each second, which does not grow with the backlog.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from psycopg import AsyncConnection, IsolationLevel

from evenflow.contracts.rest.audit import Finding
from evenflow.core.limits import FINDINGS
from evenflow.store.db.rows import Conn, Rows, execute, row_of
from evenflow.store.db.sql import sql

_RULES = {
    "limit": "audit/find_wrong_limits",
    "overdrawn": "audit/find_overdrawn_limits",
    "lane": "audit/find_wrong_lanes",
    "stranded": "audit/find_stranded_lanes",
    "task": "audit/find_misplaced_tasks",
    "dispatch": "audit/find_wrong_dispatches",
    "holds": "audit/find_wrong_holds",
    "deferral": "audit/find_wrong_deferrals",
    "run": "audit/find_wrong_runs",
    "counter": "audit/find_wrong_counters",
    "gate": "audit/find_wrong_gates",
    "forgotten": "audit/find_waiting_runs",
}


class LostWakeup(NamedTuple):
    """A queue of parked lanes that no scheduler opens. ``last``: the last queue of this look; there may be more."""

    limit_id: int
    base_id: int
    lost: bool
    last: bool


class WaitingDag(NamedTuple):
    """A DAG with queued runs. ``forgotten``: one may begin and no scheduler looks; ``last``: the last DAG of this look; there may
    be more.
    """

    dag_id: str
    forgotten: bool
    last: bool


class StartableHead(NamedTuple):
    """The best open lane of a limit class that has room for one of its tasks. ``version`` changes whenever the lane does."""

    class_id: int
    lane_id: int
    version: str
    ready: int
    dag_id: str
    run_id: str
    pool: str
    pool_free: int
    executor_free: int


def find_startable_heads(conn: Conn, *, limit_classes: int) -> list[StartableHead]:
    """Returns the heads of at most ``limit_classes`` limit classes. It locks nothing; normally a finding is gone a moment later."""
    return Rows(execute(conn, "audit/find_startable_heads", {"limit_classes": limit_classes}), row_of(StartableHead)).all()


def audit(conn: Conn) -> list[Finding]:
    """Returns all errors in the database, at most ``FINDINGS`` of each kind. ``conn`` is in no transaction."""
    before = (conn.isolation_level, conn.read_only)
    conn.isolation_level, conn.read_only = IsolationLevel.REPEATABLE_READ, True
    try:
        with conn.transaction():
            found = {kind: conn.execute(sql(rule), {"most": FINDINGS}).fetchall() for kind, rule in _RULES.items()}
    finally:
        if not conn.closed:  # otherwise this would hide the cause
            conn.isolation_level, conn.read_only = before
    return [Finding(kind=kind, object=row[0], found=row[1], expected=row[2]) for kind, rows in found.items() for row in rows]


async def audit_async(conn: AsyncConnection[Any]) -> list[Finding]:
    """Works like :func:`audit`, for an event loop."""
    before = (conn.isolation_level, conn.read_only)
    await conn.set_isolation_level(IsolationLevel.REPEATABLE_READ)
    await conn.set_read_only(True)
    try:
        async with conn.transaction():
            found = {}
            for kind, rule in _RULES.items():
                found[kind] = await (await conn.execute(sql(rule), {"most": FINDINGS})).fetchall()
    finally:
        if not conn.closed:
            await conn.set_isolation_level(before[0])
            await conn.set_read_only(before[1])
    return [Finding(kind=kind, object=row[0], found=row[1], expected=row[2]) for kind, rows in found.items() for row in rows]


def find_lost_wakeups(conn: Conn, *, after: tuple[int, int], most: int) -> Rows[LostWakeup]:
    """Looks at ``most`` queues of parked lanes after the one of (limit_id, base_id)."""
    params = {"after_limit": after[0], "after_queue": after[1], "most": most}
    return Rows(execute(conn, "audit/find_lost_wakeups", params), LostWakeup._make)


def find_forgotten_runs(conn: Conn, *, after: str, most: int) -> Rows[WaitingDag]:
    """Looks at ``most`` DAGs with queued runs, after this one."""
    return Rows(execute(conn, "audit/find_forgotten_runs", {"after": after, "most": most}), WaitingDag._make)
