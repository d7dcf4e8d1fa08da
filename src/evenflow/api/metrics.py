"""The metrics of the system: how full and how busy it is, read from the database. Every API server reads the same."""

from __future__ import annotations

from collections.abc import Iterator

from evenflow.api import limits
from evenflow.api.kept import SharedReading
from evenflow.core import metrics
from evenflow.core.limits import LEASE_S
from evenflow.core.meter import Reading
from evenflow.core.meter import system_readings as of
from evenflow.store.db.connect import AsyncConn, AsyncPool, Row
from evenflow.store.serving import metrics as counts
from evenflow.store.serving import quarantine, traces, views


def system_metrics(pool: AsyncPool) -> SharedReading[list[Reading]]:
    """Returns a reading that all callers share, because a caller needs no token for it."""

    async def read() -> list[Reading]:
        async with pool.connection() as conn:
            return await _read(conn)

    return SharedReading(read, kept_s=limits.METRICS_KEPT, at_most_s=limits.METRICS_TIMEOUT)


async def _read(conn: AsyncConn) -> list[Reading]:
    services = await views.list_services(conn, lease_s=LEASE_S, limit=limits.STATUS_SERVICES)
    uses = await counts.read_limits(conn)
    lanes = await counts.count_lanes(conn)
    backlog = await counts.read_backlog(conn)
    tables = await counts.read_tables(conn)
    triggers = await counts.count_triggers(conn)
    executors = await views.list_push_executors(conn, lease_s=LEASE_S)
    set_aside = {"run": 0, **await quarantine.count_quarantine(conn)}
    return [
        *_of_services(services),
        *of(metrics.LIMIT_CAPACITY, [((use.limit, use.name), use.capacity) for use in uses]),
        *of(metrics.LIMIT_USED, [((use.limit, use.name), use.used) for use in uses]),
        *_of_queues(await views.list_queues(conn, lease_s=LEASE_S), executors),
        *of(metrics.EXECUTOR_LAUNCHERS, [((row["name"],), row["launchers"]) for row in executors]),
        *of(metrics.LANES, [(("open",), lanes.open), (("parked",), lanes.parked), (("paused",), lanes.paused)]),
        *of(metrics.TASKS_READY, [((), lanes.ready)]),
        *of(metrics.RUNS_QUEUED, [((), backlog.runs_queued)]),
        *of(metrics.RUNS_RUNNING, [((), backlog.runs_running)]),
        *of(metrics.REPORTS_WAITING, [((), backlog.reports_waiting)]),
        *of(metrics.REPORTS_OLDEST, [((), backlog.reports_oldest_s or 0.0)]),
        *of(metrics.TRACES_WAITING, [((), await traces.count_due(conn))]),
        *of(metrics.TRIGGERS_WAITING, [((), triggers.waiting)]),
        *of(metrics.TRIGGERS_RUNNING, [((), triggers.running)]),
        *of(metrics.DAG_FILES_BROKEN, [((), backlog.dag_files_broken)]),
        *of(metrics.QUARANTINED, [((kind,), count) for kind, count in set_aside.items()]),
        *of(metrics.HISTORY_DAYS_AHEAD, [((), await counts.read_history_days(conn))]),
        *of(metrics.DATABASE_LIVE_ROWS, [((rows.table,), rows.live) for rows in tables]),
        *of(metrics.DATABASE_DEAD_ROWS, [((rows.table,), rows.dead) for rows in tables]),
        *_of_database(await counts.read_database(conn)),
    ]


def _of_services(services: list[Row]) -> Iterator[Reading]:
    youngest = {(row["kind"], row["name"]): row for row in services}
    yield from of(metrics.SERVICE_HEALTHY, [(key, int(row["healthy"])) for key, row in youngest.items()])
    yield from of(metrics.SERVICE_BEAT_AGE, [(key, row["beat_age_s"]) for key, row in youngest.items()])


def _of_queues(queues: list[Row], executors: list[Row]) -> Iterator[Reading]:
    sent = {row["name"] for row in executors if row["launchers"]}
    yield from of(metrics.DISPATCH_WAITING, [((row["queue"],), row["waiting"]) for row in queues])
    yield from of(metrics.DISPATCH_RUNNING, [((row["queue"],), row["running"]) for row in queues])
    unserved = [((row["queue"],), row["waiting"]) for row in queues if not _is_served(row, sent)]
    yield from of(metrics.DISPATCH_UNSERVED, unserved)
    yield from of(metrics.DISPATCH_OLDEST, [((row["queue"],), row["oldest_waiting_s"] or 0.0) for row in queues])


def _is_served(queue: Row, sent: set[str]) -> bool:
    """A queue of an executor is served when a launcher sends its tries."""
    return queue["executor"] in sent if queue["executor"] else bool(queue["workers"] or queue["fleet"])


def _of_database(found: counts.DatabaseState) -> Iterator[Reading]:
    states = {"active": found.active, "idle": found.idle, "idle in transaction": found.idle_in_transaction}
    yield from of(metrics.DATABASE_BYTES, [((), found.bytes)])
    yield from of(metrics.DATABASE_OLDEST_SNAPSHOT, [((), found.oldest_snapshot_s)])
    yield from of(metrics.DATABASE_LOCK_WAITS, [((), found.lock_waits)])
    yield from of(metrics.DATABASE_CONNECTIONS, [((state,), count) for state, count in states.items()])
