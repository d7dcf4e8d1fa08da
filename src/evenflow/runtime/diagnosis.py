"""Evenflow's needs, checked one by one. Each check reports what it found and, if that is not good, the cure."""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
import ssl
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from importlib.util import find_spec
from typing import Any

import psycopg

from evenflow.api.keys import key_problem
from evenflow.api.logs.bucket import Bucket
from evenflow.api.secret_stores.lookup import probe_stores
from evenflow.core.limits import PARTITIONS_AHEAD, PARTITIONS_LEAST
from evenflow.core.quantities import counted
from evenflow.core.why import OUTRUN_CURE
from evenflow.errors import AlreadyRunning, DatabaseNotMigrated, EvenflowError, JavaNotFound
from evenflow.runtime.database import reach_database
from evenflow.runtime.home import open_paths
from evenflow.runtime.service_settings import RUNS_AS_ROOT, SECRETS_FILE
from evenflow.runtime.settings import Settings, unknown_variables
from evenflow.runtime.tokens import vault_of
from evenflow.runtime.up import presence
from evenflow.runtime.up.presence import listen
from evenflow.spark.java import find_java
from evenflow.store.db.connect import connect, redacted
from evenflow.store.db.migrate import check
from evenflow.store.db.notify import CHANNELS
from evenflow.store.serving.sealed import find_canary
from evenflow.store.serving.tokens import list_neglected
from evenflow.wire.storage_threads import StorageThreads
from evenflow.wire.tls import TRUST_CURE

DISK_WARN_GB, DISK_FAIL_GB = 5.0, 1.0  # the first holds the logs and WAL of a busy day; PostgreSQL stops when the disk is full
CLOCK_WARN_S = 1.0  # decisions use the database's clock; a host with a wrong one shows wrong ages and misjudges expiry
NOTIFY_WAIT_S = 2.0
HEALTH_WAIT_S = 3.0
STORAGE_WAIT_S = 10.0  # as in an API
LONG_DAYS = 90  # the default lifetime of a person's token
UNUSED_DAYS = 30
NEGLECTED_SHOWN = 20  # tokens: enough to begin with
WANTED_SHOWN = 10  # ids that two files define: enough to begin with


class Severity(StrEnum):
    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    what: str
    verdict: Severity
    found: str
    cure: str = ""


Examine = Callable[[psycopg.Connection[Any], Settings], Diagnosis]


def diagnose(settings: Settings) -> Iterator[Diagnosis]:
    """Yields all findings, each as soon as it is made. Starts the embedded server for the duration."""
    yield _python()
    yield from _variables()
    yield _home(settings)
    yield _user()
    yield _disk(settings)
    yield from _storage(settings)
    yield from _secret_stores(settings)
    yield from _database(settings)
    yield _transport(settings)
    yield from _apis(settings)
    yield _dag_folder(settings)
    yield _spark()


def _python() -> Diagnosis:
    return Diagnosis("Python", Severity.OK, f"{platform.python_version()} in {sys.prefix}")


def _variables() -> Iterator[Diagnosis]:
    for complaint in unknown_variables(os.environ):
        yield Diagnosis("Environment", Severity.WARN, complaint, "Correct its name, or unset it.")


def _home(settings: Settings) -> Diagnosis:
    existing = next(path for path in (settings.home, *settings.home.parents) if path.exists())
    if os.access(existing, os.W_OK):
        if seen := [str(path) for path in open_paths(settings.home)]:
            return Diagnosis(
                "Home",
                Severity.WARN,
                f"other users may look into {', '.join(seen)}",
                "The next service that starts here closes it, where it may.",
            )
        return Diagnosis("Home", Severity.OK, str(settings.home))
    return Diagnosis("Home", Severity.FAIL, f"{existing} cannot be written to", "Set EVENFLOW_HOME to a directory of your own.")


def _user() -> Diagnosis:
    if os.geteuid() != 0:
        return Diagnosis("User", Severity.OK, "not root")
    return Diagnosis("User", Severity.WARN, *_parted("root. " + RUNS_AS_ROOT))


def _disk(settings: Settings) -> Diagnosis:
    existing = next(path for path in (settings.home, *settings.home.parents) if path.exists())
    free = shutil.disk_usage(existing).free / 1e9
    verdict = Severity.FAIL if free < DISK_FAIL_GB else Severity.WARN if free < DISK_WARN_GB else Severity.OK
    cure = "" if verdict is Severity.OK else f"Make room, or set EVENFLOW_HOME to a disk with more than {DISK_WARN_GB:g} GB free."
    return Diagnosis("Disk", verdict, f"{free:.1f} GB free at {existing}", cure)


def _storage(settings: Settings) -> Iterator[Diagnosis]:
    """Checks whether this host can write and read the places of logs and large results outside of the home."""
    for what, variable, url in (
        ("Logs", "EVENFLOW_LOG_URL", settings.log_url),
        ("Results", "EVENFLOW_XCOM_URL", settings.xcom_url),
    ):
        if not url:
            continue
        began = time.monotonic()
        try:
            asyncio.run(StorageThreads(1).run(STORAGE_WAIT_S, Bucket(url).check))
        except EvenflowError as error:
            yield _failed(what, error)
        except Exception as error:  # a file system may raise anything
            cure = f"Make it, let this account read and write it, or correct {variable}."
            yield Diagnosis(what, Severity.FAIL, f"{url} cannot be written and read: {type(error).__name__}: {error}", cure)
        else:
            yield Diagnosis(what, Severity.OK, f"{url} is written and read ({(time.monotonic() - began) * 1000:.0f} ms)")


def _secret_stores(settings: Settings) -> Iterator[Diagnosis]:
    for name, wrong in probe_stores(settings.secret_stores):
        yield _failed("Secret stores", wrong) if wrong else Diagnosis("Secret stores", Severity.OK, f"{name} answers")


def _database(settings: Settings) -> Iterator[Diagnosis]:
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
                _outrun,
                _history,
                _clock,
                _durability,
                _notifications,
            ):
                yield examine(conn, settings)
    except EvenflowError as error:
        yield _failed("Database", error)


def _schema(conn: psycopg.Connection[Any], settings: Settings) -> Diagnosis:
    try:
        check(conn)
    except DatabaseNotMigrated as error:
        if not settings.own_database_url:
            return Diagnosis("Schema", Severity.OK, "is made by the first `evenflow up`")
        return _failed("Schema", error)
    except EvenflowError as error:
        return _failed("Schema", error)
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
        return Diagnosis("Keys", Severity.FAIL, *_parted(problem))
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


def _transport(settings: Settings) -> Diagnosis:
    what, tls = "Transport", settings.tls
    try:
        plain = tls.check_bind("The API", settings.api_host) or tls.check_bind("Metrics", settings.metrics_host)
        for url in settings.api_url.split(","):
            tls.check_url(url.strip())
        tls.for_server()
    except EvenflowError as error:
        return _failed(what, error)
    if plain or tls.plaintext:
        cure = "Set EVENFLOW_TLS_CERT and EVENFLOW_TLS_KEY, and unset EVENFLOW_PLAINTEXT."
        return Diagnosis(
            what, Severity.WARN, "plain HTTP to other hosts is allowed: tokens, secrets and code can be read on their way", cure
        )
    return Diagnosis(what, Severity.OK, "TLS" if tls.cert else "plain HTTP on this host alone")


def _apis(settings: Settings) -> Iterator[Diagnosis]:
    running = presence.find(settings.home)
    urls = settings.api_url if running is None or "api_url" in settings.model_fields_set else running.api_url
    for url in urls.split(","):
        yield _api(url.strip(), settings, running)


def _api(url: str, settings: Settings, running: presence.UpPresence | None) -> Diagnosis:
    import http.client
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    connection = (
        http.client.HTTPSConnection(parts.netloc, timeout=HEALTH_WAIT_S, context=settings.tls.for_client())
        if parts.scheme == "https"
        else http.client.HTTPConnection(parts.netloc, timeout=HEALTH_WAIT_S)
    )
    try:
        connection.request("GET", f"{parts.path.rstrip('/')}/health/ready")
        status = connection.getresponse().status
    except OSError as error:
        if running is None and "api_url" not in settings.model_fields_set:
            return _port(settings)
        cure = (
            TRUST_CURE if isinstance(error, ssl.SSLCertVerificationError) else "Start it (evenflow up) or correct EVENFLOW_API_URL."
        )
        return Diagnosis("API", Severity.FAIL, f"{url} does not answer: {error}", cure)
    finally:
        connection.close()
    if status == 200:
        return Diagnosis("API", Severity.OK, f"{url} is ready")
    return Diagnosis(
        "API", Severity.FAIL, f"{url} answers {status}", "Look into its log: it may not reach its database, or be another program."
    )


def _port(settings: Settings) -> Diagnosis:
    try:
        listen(settings.api_host, settings.api_port).close()
    except AlreadyRunning as error:
        return _failed("API", error)
    return Diagnosis("API", Severity.OK, f"does not run; port {settings.api_port} is free for it")


def _dag_folder(settings: Settings) -> Diagnosis:
    if not settings.dags.is_dir():
        return Diagnosis(
            "DAG folder", Severity.WARN, f"{settings.dags} does not exist", "Make it, or name another by EVENFLOW_DAGS or --dags."
        )
    files = sum(1 for _ in settings.dags.rglob("*.py"))
    return Diagnosis("DAG folder", Severity.OK, f"{settings.dags}, {counted(files, 'Python file')}")


def _spark() -> Diagnosis:
    if find_spec("pyspark") is None:
        return Diagnosis("Spark", Severity.OK, "pyspark is not installed; only Spark tasks need it (pip install 'evenflow[spark]')")
    try:
        java = find_java()
    except JavaNotFound as error:
        return _warned("Spark", error)
    return Diagnosis("Spark", Severity.OK, f"Java {java.version} in {java.home}")


def _split(error: EvenflowError) -> tuple[str, str]:
    """Returns an error's first sentence, and the rest, which is the cure."""
    return _parted(str(error))


def _parted(text: str) -> tuple[str, str]:
    found, dot, cure = text.partition(". ")
    return found + dot.strip(), cure


def _failed(what: str, error: EvenflowError) -> Diagnosis:
    return Diagnosis(what, Severity.FAIL, *_split(error))


def _warned(what: str, error: EvenflowError) -> Diagnosis:
    return Diagnosis(what, Severity.WARN, *_split(error))
