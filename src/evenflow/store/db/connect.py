"""Connections to PostgreSQL, all alike: autocommit, UTC, bounded in time, and quick to notice a dead peer; and pools of them."""

from __future__ import annotations

import asyncio
import re
import select
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import conninfo
from psycopg_pool import AsyncConnectionPool
from psycopg_pool.pool_async import AddConnection

from evenflow.core.limits import HANG_S
from evenflow.errors import DatabaseTooOld, DatabaseUnavailable, EvenflowError, OptionsDropped, SettingsError
from evenflow.store.db.sessions import LivingConnection
from evenflow.store.db.sql import sql

NEEDED_MAJOR = 17  # transaction_timeout came with it

CONNECT_TIMEOUT_S = 5  # a server on the same network answers in milliseconds; behind a fail-over address it may take seconds
POOL_TIMEOUT_S = 10.0  # longer than any statement that serves a request should make another one wait

AsyncConn = psycopg.AsyncConnection[Any]
Row = dict[str, Any]  # by column
AsyncPool = AsyncConnectionPool[AsyncConn]
Until = Callable[[AsyncConn], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """How long the server lets a session be, in milliseconds; 0 is for ever.

    A hung peer must not keep its locks for longer than schedulers take to overtake it (5 s), hence ``idle_in_transaction``. That
    does not end a peer that hangs in the middle of a pipeline: ``TURNS`` does.
    """

    statement: int = 30_000  # the slowest statement, a batch under load, takes well under a second
    transaction: int = 60_000  # an old snapshot holds back vacuum and makes every round slower
    idle_in_transaction: int = int(1000 * HANG_S)
    lock: int = 8_000  # twice what a hung peer can keep it for: something else is wrong, and the waiting process should say so


DEFAULT_TIMEOUTS = Timeouts()
TURNS = Timeouts(transaction=int(1000 * HANG_S))  # on a LivingConnection
# For work whose result nothing waits for: its statements are small, and it gives way to any session that it blocks.
HOUSEKEEPING = Timeouts(statement=10_000, transaction=20_000, lock=1_000)
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
_MARK = "evenflow.options"  # a setting that no server has by itself: where it is set, all the others are, too
_WRITABLE = "read-write"  # the target_session_attrs of a URL that names none
_PREAMBLE = re.compile(r"^(connection (failed|is bad): )?(connection to server .* failed: )?(FATAL:\s+)?")


def connect(url: str, *, name: str, timeouts: Timeouts = DEFAULT_TIMEOUTS, generic_plans: bool = False) -> psycopg.Connection[Any]:
    """A connection that ``pg_stat_activity`` shows as ``evenflow <name>``. With ``TURNS`` it is a :class:`LivingConnection`.

    With ``generic_plans`` the server plans a prepared statement once, never by its parameters, and for indexes: what was planned
    while a table was small stays right when it has grown.

    A server that takes no writes, a standby or one that was demoted, counts as one that refuses, unless the URL has
    ``target_session_attrs``.

    Raises :class:`DatabaseUnavailable` when the server cannot be reached or refuses, :class:`DatabaseTooOld`,
    :class:`OptionsDropped`, or :class:`SettingsError` when ``url`` is not one.
    """
    options = _options(url, name, timeouts, generic_plans=generic_plans)
    try:
        kind = LivingConnection if timeouts is TURNS else psycopg.Connection[Any]
        conn = kind.connect(url, autocommit=True, **options)
    except psycopg.Error as error:
        raise _explain(url, error) from error
    try:
        _check_version(conn.info)
        _check_mark(url, conn.execute(sql("sessions/read_mark"), {"mark": _MARK}).fetchone())
    except psycopg.Error as error:
        conn.close()
        raise _explain(url, error) from error
    except BaseException:
        conn.close()
        raise
    return conn


async def connect_async(url: str, *, name: str, timeouts: Timeouts = DEFAULT_TIMEOUTS, generic_plans: bool = False) -> AsyncConn:
    """As :func:`connect`, for an event loop."""
    options = _options(url, name, timeouts, generic_plans=generic_plans)
    try:
        conn = await psycopg.AsyncConnection.connect(url, autocommit=True, **options)
    except psycopg.Error as error:
        raise _explain(url, error) from error
    try:
        await _check_async(url, conn)
    except psycopg.Error as error:
        await conn.close()
        raise _explain(url, error) from error
    except BaseException:
        await conn.close()
        raise
    return conn


async def open_pool(
    url: str,
    *,
    name: str,
    min_size: int = 1,
    max_size: int = 10,
    timeouts: Timeouts = DEFAULT_TIMEOUTS,
    generic_plans: bool = False,
    look: Until | None = None,
) -> AsyncPool:
    """Returns an open pool of connections as :func:`connect` makes them; the caller closes it. Raises as :func:`connect` does,
    unless the pool opens its first connection on demand (``min_size`` 0).

    ``look`` sees each new connection first; a connection for which it raises is never given out. While the server is away,
    ``pool.connection()`` fails with :class:`psycopg_pool.PoolTimeout` after ``POOL_TIMEOUT_S``. Connections that died meanwhile are
    found and replaced before they are given out.
    """
    if min_size:
        probe = await connect_async(url, name=name, timeouts=timeouts)
        await probe.close()

    async def configure(conn: AsyncConn) -> None:
        try:
            await _check_async(url, conn)
            if look is not None:
                await look(conn)
        except BaseException:
            await conn.close()  # the pool forgets it as it is
            raise

    pool = LastingPool(
        url,
        kwargs={"autocommit": True, **_options(url, name, timeouts, generic_plans=generic_plans)},
        configure=configure,
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
    host, port, database = str(given.get("host") or "localhost"), str(given.get("port") or 5432), given.get("dbname") or ""
    if host.startswith("/"):
        return f"postgresql://{user}/{database}?host={host}"
    hosts, ports = host.split(","), port.split(",")
    places = (f"{one}:{(ports[number] if len(ports) > 1 else ports[0]) or 5432}" for number, one in enumerate(hosts))
    return f"postgresql://{user}{','.join(places)}/{database}"


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
    elif "read-only" in lowered:
        cure = "It is a standby, or takes no writes: let EVENFLOW_DATABASE_URL name the primary, or all servers (host=one,two)."
    else:
        cure = "Start the server (the embedded one: evenflow db start) or correct EVENFLOW_DATABASE_URL."
    return DatabaseUnavailable(f"PostgreSQL at {redacted(url)} cannot be reached: {reason}. {cure}")


def _explain(url: str, error: psycopg.Error) -> EvenflowError:
    if 'unrecognized configuration parameter "transaction_timeout"' not in str(error):
        return unavailable(url, error)
    with psycopg.connect(url, connect_timeout=CONNECT_TIMEOUT_S) as conn:  # without what it does not know, to learn which it is
        return DatabaseTooOld(_version(conn.info), NEEDED_MAJOR)


def _options(url: str, name: str, timeouts: Timeouts, *, generic_plans: bool = False) -> dict[str, Any]:
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
        "jit": "off",  # statements are short and many, and a plan without the scans that PLAN_ONCE forbids may look dear
        _MARK: "on",
        **_SERVER_KEEPALIVES,
    }
    settings = " ".join(f"-c {key}={value}" for key, value in session.items())
    if generic_plans:
        settings += PLAN_ONCE
    return {
        "application_name": f"evenflow {name}"[:63],  # the server cuts it there
        "connect_timeout": CONNECT_TIMEOUT_S,
        "target_session_attrs": given.get("target_session_attrs") or _WRITABLE,
        "options": f"{settings} {given.get('options') or ''}".rstrip(),
        **_CLIENT_KEEPALIVES,
    }


async def _check_async(url: str, conn: AsyncConn) -> None:
    _check_version(conn.info)
    _check_mark(url, await (await conn.execute(sql("sessions/read_mark"), {"mark": _MARK})).fetchone())


def _check_mark(url: str, row: tuple[Any, ...] | None) -> None:
    if row != ("on",):
        raise OptionsDropped(redacted(url))


def _check_version(info: psycopg.ConnectionInfo) -> None:
    if info.server_version // 10_000 < NEEDED_MAJOR:
        raise DatabaseTooOld(_version(info), NEEDED_MAJOR)


def _version(info: psycopg.ConnectionInfo) -> str:
    return info.parameter_status("server_version") or str(info.server_version // 10_000)


RECONNECT_S = 0.5  # between attempts; the library would look ever more rarely, in the end once in minutes
FOR_EVER_S = 1e9


class LastingPool(AsyncConnectionPool[psycopg.AsyncConnection[Any]]):
    """Dead connections are found before they are given out; the first one that is found makes the pool check all others."""

    def __init__(self, url: str, **options: Any) -> None:
        super().__init__(url, reconnect_timeout=FOR_EVER_S, check=self._check_if_it_speaks, open=False, **options)
        self._checking: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def connection(self, timeout: float | None = None) -> AsyncIterator[psycopg.AsyncConnection[Any]]:  # noqa: ASYNC109 as the library has it
        """One that turns out to be read-only is of a server that was demoted: the next one leads to another."""
        async with super().connection(timeout) as conn:
            try:
                yield conn
            except psycopg.errors.ReadOnlySqlTransaction:
                await conn.close()
                raise

    async def schedule_task(self, task: Any, delay: float) -> None:
        await super().schedule_task(task, min(delay, RECONNECT_S) if isinstance(task, AddConnection) else delay)

    async def _check_if_it_speaks(self, conn: psycopg.AsyncConnection[Any]) -> None:
        """An idle connection has nothing to read; a readable one was closed, or is about to be. Asking the server each time would
        cost a round trip.
        """
        socket = select.poll()
        socket.register(conn.fileno(), select.POLLIN)
        if socket.poll(0):
            try:
                await self.check_connection(conn)
            except psycopg.Error:
                if self._checking is None or self._checking.done():
                    self._checking = asyncio.create_task(self.check(), name=f"check {self.name}")
                raise
