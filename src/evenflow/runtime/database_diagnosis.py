"""What ``evenflow doctor`` looks for in the database."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import psycopg

from evenflow.api.keys import key_problem
from evenflow.core.limits import LEASE_S, PARTITIONS_AHEAD, PARTITIONS_LEAST
from evenflow.core.quantities import counted
from evenflow.core.why import OUTRUN_CURE
from evenflow.errors import DatabaseNotMigrated, EvenflowError
from evenflow.explaining.serving import executor_trouble
from evenflow.runtime.database import reach_database
from evenflow.runtime.findings import Diagnosis, Severity, failed, parted
from evenflow.runtime.service_settings import SECRETS_FILE
from evenflow.runtime.settings import Settings
from evenflow.runtime.tokens import vault_of
from evenflow.store.db.connect import connect, redacted
from evenflow.store.db.migrate import check
from evenflow.store.db.notify import CHANNELS
from evenflow.store.serving.sealed import find_canary
from evenflow.store.serving.tokens import list_neglected

CLOCK_WARN_S = 1.0  # decisions use the database's clock; a host with a wrong one shows wrong ages and misjudges expiry
NOTIFY_WAIT_S = 2.0
LONG_DAYS = 90  # the default lifetime of a person's token
UNUSED_DAYS = 30
NEGLECTED_SHOWN = 20  # tokens: enough to begin with
WANTED_SHOWN = 10  # ids that two files define: enough to begin with

Examine = Callable[[psycopg.Connection[Any], Settings], Diagnosis]


def look_into_database(settings: Settings) -> Iterator[Diagnosis]:
    try:
        with reach_database(settings.own_database_url, settings.home) as url, connect(url, name="doctor") as conn:
            kind = redacted(url) if settings.own_database_url else "embedded"
            yield Diagnosis("Database", Severity.OK, f"PostgreSQL {conn.info.parameter_status('server_version')}, {kind}")
            for examine in (
                _schema,
                _keys,
                _tokens,
                _quarantine,
                _wanted,
                _triggers,
                _services,
                _executors,
                _outrun,
                _history,
                _clock,
                _durability,
                _notifications,
            ):
                yield examine(conn, settings)
    except EvenflowError as error:
        yield failed("Database", error)


def _schema(conn: psycopg.Connection[Any], settings: Settings) -> Diagnosis:
    try:
        check(conn)
    except DatabaseNotMigrated as error:
        if not settings.own_database_url:
            return Diagnosis("Schema", Severity.OK, "is made by the first `evenflow up`")
        return failed("Schema", error)
    except EvenflowError as error:
        return failed("Schema", error)
    return Diagnosis("Schema", Severity.OK, "as this Evenflow needs it")


def _once_there(what: str, *missing: type[psycopg.Error]) -> Callable[[Examine], Examine]:
    """Skips a check on a database that is older than the checked table. ``missing``: further errors that mean the same."""
    older: tuple[type[psycopg.Error], ...] = (psycopg.errors.UndefinedTable, *missing)

    def examine_if_there(examine: Examine) -> Examine:
        def examined(conn: psycopg.Connection[Any], settings: Settings) -> Diagnosis:
            try:
                return examine(conn, settings)
            except older:
                return Diagnosis(what, Severity.OK, "not in use yet")

        return examined

    return examine_if_there


@_once_there("Keys")
def _keys(conn: psycopg.Connection[Any], settings: Settings) -> Diagnosis:
    file = settings.home / SECRETS_FILE
    if not settings.secret_keys and not file.exists():
        return Diagnosis("Keys", Severity.OK, "none here; an API makes or needs them")

    canary = find_canary(conn)
    problem = None if canary is None else key_problem(canary, vault_of(settings))
    if problem is not None:
        return Diagnosis("Keys", Severity.FAIL, *parted(problem))
    return Diagnosis("Keys", Severity.OK, "those of this home open connections and variables")


@_once_there("Tokens", psycopg.errors.UndefinedColumn)
def _tokens(conn: psycopg.Connection[Any], _: Settings) -> Diagnosis:

    found = list_neglected(conn, long_days=LONG_DAYS, unused_days=UNUSED_DAYS, limit=NEGLECTED_SHOWN)
    if not found:
        return Diagnosis("Tokens", Severity.OK, f"all are in use, and none is good for more than {LONG_DAYS} days")
    told = "; ".join(
        f"{t.token_id} ({t.kind}, {t.name}) "
        + " and ".join(
            (*[f"is good until {t.expires_at}"] * t.is_long, *[f"was not used for {UNUSED_DAYS} days"] * t.is_unused),
        )
        for t in found
    )
    return Diagnosis(
        "Tokens",
        Severity.WARN,
        told,
        "Make one that is good for less (evenflow tokens create --days), and: evenflow tokens revoke ID",
    )


@_once_there("Quarantine")
def _quarantine(conn: psycopg.Connection[Any], _: Settings) -> Diagnosis:
    from evenflow.store.scheduling.quarantine import count_all

    count = count_all(conn)
    if not count:
        return Diagnosis("Quarantine", Severity.OK, "nothing is set aside")
    found = f"handling {counted(count, 'object')} failed"
    return Diagnosis("Quarantine", Severity.WARN, found, "To see why: evenflow quarantine list")


@_once_there("DAG ids", psycopg.errors.UndefinedColumn)
def _wanted(conn: psycopg.Connection[Any], _: Settings) -> Diagnosis:
    from evenflow.store.serving.files import list_wanted

    wanted = list_wanted(conn, limit=WANTED_SHOWN)
    if not wanted:
        return Diagnosis("DAG ids", Severity.OK, "no two files want the same")
    found = "; ".join(
        f"{w.dag_id} is {w.owner} (bundle {w.owner_bundle})'s, and {w.file} (bundle {w.bundle}) wants it" for w in wanted
    )
    return Diagnosis("DAG ids", Severity.WARN, found, "Rename one, or give it away: evenflow dags release ID --to BUNDLE")


@_once_there("Triggers")
def _triggers(conn: psycopg.Connection[Any], _: Settings) -> Diagnosis:
    from evenflow.store.scheduling.deferrals import count_unserved

    count, queue = count_unserved(conn)
    if not count:
        return Diagnosis("Triggers", Severity.OK, "none waits for a triggerer")
    found = f"{counted(count, 'deferred task')} wait for a triggerer, of queue {queue} for example"
    return Diagnosis("Triggers", Severity.WARN, found, "Start one that serves this queue: evenflow triggerer")


@_once_there("Services")
def _services(conn: psycopg.Connection[Any], _: Settings) -> Diagnosis:
    from evenflow.store.scheduling.leases import list_lost

    lost = list_lost(conn)
    if not lost:
        return Diagnosis("Services", Severity.OK, "none was lost within the hour")
    names = ", ".join(f"{kind} {name} on {host}" for kind, name, host in lost)
    cure = "What they did is sent elsewhere. Start them again if you miss them; they are listed for an hour."
    return Diagnosis("Services", Severity.WARN, f"lost, and not replaced: {names}", cure)


@_once_there("Executors", psycopg.errors.UndefinedColumn, psycopg.errors.UndefinedFunction)
def _executors(conn: psycopg.Connection[Any], _: Settings) -> Diagnosis:
    from evenflow.store.serving.executors import list_served

    executors = list_served(conn, lease_s=LEASE_S)
    told = [trouble for executor in executors if (trouble := executor_trouble(executor)) is not None]
    if not told:
        sent = f"{counted(len(executors), 'executor')} of Celery or Kubernetes, which launchers serve"
        return Diagnosis("Executors", Severity.OK, sent if executors else "workers alone")
    first, cure = parted(told[0])
    return Diagnosis("Executors", Severity.WARN, first, "\n".join([cure, *told[1:]]))


@_once_there("Tries")
def _outrun(conn: psycopg.Connection[Any], _: Settings) -> Diagnosis:
    from evenflow.store.scheduling.leases import list_outrun

    found = list_outrun(conn)
    if not found:
        return Diagnosis("Tries", Severity.OK, "none that its worker cannot end")
    told = "; ".join(
        f"worker {name} on {host} cannot end what {dag}/{run} {task} has started" for name, host, dag, run, task in found
    )
    return Diagnosis(
        "Tries",
        Severity.WARN,
        f"{told}: that forks more quickly than it is killed",
        OUTRUN_CURE,
    )


def _history(conn: psycopg.Connection[Any], _: Settings) -> Diagnosis:
    from evenflow.store.scheduling.partitions import list_all, read_days_ahead

    try:
        days, used = read_days_ahead(conn), bool(list_all(conn))
    except psycopg.errors.UndefinedTable:
        days, used = 0, False
    if not used:
        return Diagnosis("History", Severity.OK, "its partitions are made by the first scheduler")
    if days >= PARTITIONS_LEAST:
        return Diagnosis("History", Severity.OK, f"has its partitions for {counted(days, 'day')} ahead")
    found = f"partitions of task_event are there for {counted(max(days, 0), 'day')} ahead, not {PARTITIONS_AHEAD}"
    cure = "The log of a scheduler says what keeps it from making them: a role without CREATE, or a session that locks them."
    return Diagnosis("History", Severity.WARN, found, cure)


def _clock(conn: psycopg.Connection[Any], _: Settings) -> Diagnosis:
    before = datetime.now(UTC)
    row = conn.execute("select clock_timestamp()").fetchone()
    after = datetime.now(UTC)
    assert row is not None
    off = max((row[0] - after).total_seconds(), (before - row[0]).total_seconds(), 0.0)
    if off <= CLOCK_WARN_S:
        return Diagnosis("Clock", Severity.OK, "agrees with the database's")
    return Diagnosis(
        "Clock", Severity.WARN, f"{off:.1f} s away from the database's", "Synchronise both by NTP (timedatectl set-ntp true)."
    )


def _durability(conn: psycopg.Connection[Any], _: Settings) -> Diagnosis:
    row = conn.execute("select current_setting('fsync'), current_setting('synchronous_commit')").fetchone()
    assert row is not None
    if row[0] == "on" and row[1] != "off":
        return Diagnosis("Durability", Severity.OK, "a commit survives a power cut")
    lost = "fsync" if row[0] != "on" else "synchronous_commit"
    return Diagnosis(
        "Durability",
        Severity.WARN,
        f"{lost} is off: a power cut loses runs",
        f"alter system set {lost} = on; select pg_reload_conf()",
    )


def _notifications(conn: psycopg.Connection[Any], _: Settings) -> Diagnosis:
    began = time.monotonic()
    conn.execute(f"listen {CHANNELS[0]}")
    conn.execute(f"notify {CHANNELS[0]}")
    for _notification in conn.notifies(timeout=NOTIFY_WAIT_S, stop_after=1):
        return Diagnosis("LISTEN", Severity.OK, f"works ({(time.monotonic() - began) * 1000:.1f} ms)")
    cure = "A connection pooler in transaction mode is in between: let EVENFLOW_DATABASE_URL name the server itself."
    return Diagnosis("LISTEN", Severity.WARN, "nothing is heard, so every step waits for the sweep of one second", cure)
