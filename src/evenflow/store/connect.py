"""Connections to PostgreSQL, all alike: autocommit, UTC, bounded in time, and quick to notice a dead peer."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import conninfo
from psycopg_pool import AsyncConnectionPool

from evenflow.core.limits import HANG_S
from evenflow.errors import DatabaseTooOld, DatabaseUnavailable, EvenflowError, SettingsError
from evenflow.store.lasting_pool import LastingPool
from evenflow.store.sessions import LivingConnection

NEEDED_MAJOR = 17  # transaction_timeout came with it

CONNECT_TIMEOUT_S = 5  # a server on the same network answers in milliseconds; behind a fail-over address it may take seconds
POOL_TIMEOUT_S = 10.0  # longer than any statement that serves a request should make another one wait

AsyncPool = AsyncConnectionPool[psycopg.AsyncConnection[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """How long the server lets a session be, in milliseconds; 0 is for ever.

    A peer that hangs must not keep its locks for longer than schedulers take to overtake it (5 s), hence ``idle_in_transaction``.
    That does not see who hangs in the middle of a pipeline: for them there is ``TURNS``.
    """

    statement: int = 30_000  # the slowest statement, a batch under load, takes well under a second
    transaction: int = 60_000  # an old snapshot holds back vacuum and makes every round slower
    idle_in_transaction: int = int(1000 * HANG_S)
    lock: int = 8_000  # twice what a peer that hangs can keep it for: something else is wrong, and whoever waits should say so


DEFAULT_TIMEOUTS = Timeouts()
TURNS = Timeouts(transaction=int(1000 * HANG_S))  # on a LivingConnection
UNBOUNDED = Timeouts(statement=0, transaction=0, idle_in_transaction=0, lock=0)  # migrations

# A peer that vanished without a word is noticed within about 10 s, on both sides.
_CLIENT_KEEPALIVES: dict[str, int] = {
    "keepalives": 1,
    "keepalives_idle": 4,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
_SERVER_KEEPALIVES: dict[str, int] = {
    "tcp_keepalives_idle": 4,
    "tcp_keepalives_interval": 2,
    "tcp_keepalives_count": 3,
    "tcp_user_timeout": 10_000,
    "client_connection_check_interval": 2_000,
}

# Server settings of a connection with ``generic_plans``, as ``options`` takes them.
PLAN_ONCE = "".join(
    f" -c {setting}"
    for setting in ("plan_cache_mode=force_generic_plan", "enable_seqscan=off", "enable_hashjoin=off", "enable_mergejoin=off")
)
_PREAMBLE = re.compile(r"^(connection (failed|is bad): )?(connection to server .* failed: )?(FATAL:\s+)?")


def connect(url: str, *, name: str, timeouts: Timeouts = DEFAULT_TIMEOUTS, generic_plans: bool = False) -> psycopg.Connection[Any]:
    """A connection that ``pg_stat_activity`` shows as ``evenflow <name>``. With ``TURNS`` it is a :class:`LivingConnection`.

    With ``generic_plans`` the server plans a prepared statement once, never by its parameters, and for indexes: what was planned
    while a table was small stays right when it has grown.

    Raises :class:`DatabaseUnavailable` when the server cannot be reached or refuses, :class:`DatabaseTooOld`, or
    :class:`SettingsError` when ``url`` is not one.
    """
    options = _options(url, name, timeouts)
    if generic_plans:
        options["options"] += PLAN_ONCE
    try:
        kind = LivingConnection if timeouts is TURNS else psycopg.Connection[Any]
        conn = kind.connect(url, autocommit=True, **options)
    except psycopg.Error as error:
        raise _explain(url, error) from error
    try:
        _check_server(conn.info)
    except DatabaseTooOld:
        conn.close()
        raise
    return conn


async def connect_async(url: str, *, name: str, timeouts: Timeouts = DEFAULT_TIMEOUTS) -> psycopg.AsyncConnection[Any]:
    """As :func:`connect`, for an event loop."""
    options = _options(url, name, timeouts)
    try:
        conn = await psycopg.AsyncConnection.connect(url, autocommit=True, **options)
    except psycopg.Error as error:
        raise _explain(url, error) from error
    try:
        _check_server(conn.info)
    except DatabaseTooOld:
        await conn.close()
        raise
    return conn


async def open_pool(
    url: str, *, name: str, min_size: int = 1, max_size: int = 10, timeouts: Timeouts = DEFAULT_TIMEOUTS
) -> AsyncPool:
    """An open pool of connections as :func:`connect` makes them; the caller closes it. Raises as :func:`connect` does.

    While the server is away, ``pool.connection()`` fails with :class:`psycopg_pool.PoolTimeout` after ``POOL_TIMEOUT_S``.
    Connections that died in the meantime are found and replaced before anyone gets them.
    """
    probe = await connect_async(url, name=name, timeouts=timeouts)
    await probe.close()
    pool = LastingPool(
        url,
        kwargs={"autocommit": True, **_options(url, name, timeouts)},
        min_size=min_size,
        max_size=max_size,
        timeout=POOL_TIMEOUT_S,
        name=f"evenflow {name}",
    )
    await pool.open(wait=True, timeout=POOL_TIMEOUT_S)
    return pool


def redacted(url: str) -> str:
    """``url`` for messages: without its password and options."""
    given = conninfo.conninfo_to_dict(url)
    user = f"{given['user']}@" if given.get("user") else ""
    host, port, database = str(given.get("host") or "localhost"), given.get("port") or 5432, given.get("dbname") or ""
    if host.startswith("/"):
        return f"postgresql://{user}/{database}?host={host}"
    return f"postgresql://{user}{host}:{port}/{database}"


def unavailable(url: str, error: psycopg.Error) -> DatabaseUnavailable:
    """What to tell a person about a connection that failed: where, why, and what to type."""
    reason = _PREAMBLE.sub("", next(iter(str(error).splitlines()), "")).rstrip(".")
    lowered = reason.lower()
    if "password authentication failed" in lowered or ("role" in lowered and "does not exist" in lowered):
        cure = "Correct the user and password in EVENFLOW_DATABASE_URL."
    elif "database" in lowered and "does not exist" in lowered:
        database = conninfo.conninfo_to_dict(url).get("dbname") or "evenflow"
        cure = f"Create it (createdb {database}) or correct EVENFLOW_DATABASE_URL."
    elif "too many clients" in lowered or "remaining connection slots" in lowered:
        cure = "Raise max_connections of the server, or stop what holds its connections."
    else:
        cure = "Start the server (the embedded one: evenflow db start) or correct EVENFLOW_DATABASE_URL."
    return DatabaseUnavailable(f"PostgreSQL at {redacted(url)} cannot be reached: {reason}. {cure}")


def _explain(url: str, error: psycopg.Error) -> EvenflowError:
    if 'unrecognized configuration parameter "transaction_timeout"' not in str(error):
        return unavailable(url, error)
    with psycopg.connect(url, connect_timeout=CONNECT_TIMEOUT_S) as conn:  # without what it does not know, to learn which it is
        return DatabaseTooOld(_version(conn.info), NEEDED_MAJOR)


def _options(url: str, name: str, timeouts: Timeouts) -> dict[str, Any]:
    try:
        given = conninfo.conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        raise SettingsError(
            f"The database URL cannot be read: {' '.join(str(error).split())}. "
            "Set EVENFLOW_DATABASE_URL to something like postgresql://user:password@host:5432/evenflow"
        ) from None
    session = {
        "timezone": "UTC",
        "statement_timeout": timeouts.statement,
        "transaction_timeout": timeouts.transaction,
        "idle_in_transaction_session_timeout": timeouts.idle_in_transaction,
        "lock_timeout": timeouts.lock,
        **_SERVER_KEEPALIVES,
    }
    settings = " ".join(f"-c {key}={value}" for key, value in session.items())
    return {
        "application_name": f"evenflow {name}"[:63],  # the server cuts it there
        "connect_timeout": CONNECT_TIMEOUT_S,
        "options": f"{settings} {given.get('options') or ''}".rstrip(),
        **_CLIENT_KEEPALIVES,
    }


def _check_server(info: psycopg.ConnectionInfo) -> None:
    if info.server_version // 10_000 < NEEDED_MAJOR:
        raise DatabaseTooOld(_version(info), NEEDED_MAJOR)


def _version(info: psycopg.ConnectionInfo) -> str:
    return info.parameter_status("server_version") or str(info.server_version // 10_000)
