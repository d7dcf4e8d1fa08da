"""Waiting for a database's answer, with the driver that the connection's scheme names.

Authors install drivers for their databases; any driver of Python's DB-API 2.0 works. Drivers block, so one of a few threads makes a
look, on a new connection that is rolled back and closed at its end. So a look changes nothing, and ten thousand waiting tasks hold
no connection.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from typing import Any

from evenflow.errors import LookRefused, LookUnanswered
from evenflow.masker import Masker
from evenflow.sdk.secrets.connections import Connection
from evenflow.sdk.secrets.masking import secrets_in
from evenflow.triggers import limits
from evenflow.triggers.polling import FAILED, SUCCESS, Payload, PollingTrigger
from evenflow.triggers.reached import connection_of
from evenflow.triggers.threads import at_database

Parameters = Sequence[Any] | Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Driver:
    """A module of DB-API 2.0. ``names`` maps PEP 249's parameter names to those of this driver's ``connect``, ``options`` are its
    further arguments.
    """

    module: str
    names: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)


POSTGRESQL = Driver(
    "psycopg",
    {"database": "dbname"},
    {"connect_timeout": int(limits.CONNECTS_WITHIN), "options": f"-c statement_timeout={int(limits.STATEMENT_WITHIN * 1000)}"},
)
MYSQL = Driver("pymysql", {}, {"connect_timeout": int(limits.CONNECTS_WITHIN), "read_timeout": int(limits.STATEMENT_WITHIN)})
DRIVERS = {"postgresql": POSTGRESQL, "postgres": POSTGRESQL, "mysql": MYSQL, "mariadb": MYSQL, "sqlite": Driver("sqlite3")}


class SqlTrigger(PollingTrigger):
    """Fires when ``sql`` returns a row whose first column is true; with ``fail_on_empty`` it fails without a row.

    ``parameters`` are in the driver's style. The event: ``{"status": "success", "row": [...]}``: numbers, bools and None as they
    are, other values as text of at most 500 characters, at most 100 columns.
    """

    def __init__(
        self,
        *,
        conn_id: str,
        sql: str,
        parameters: Parameters = None,
        fail_on_empty: bool = False,
        poll_interval: float = limits.SQL_EVERY,
        patience: float = limits.PATIENCE,
    ) -> None:
        super().__init__(poll_interval, patience)
        self.conn_id, self.sql, self.parameters, self.fail_on_empty = conn_id, sql, parameters, fail_on_empty

    async def row(self) -> tuple[Any, ...] | None:
        """Returns the first row of the statement."""
        conn = await connection_of(self, self.conn_id)
        return await at_database(self.conn_id, lambda: first_row(conn, self.sql, self.parameters))

    async def look(self) -> Payload | None:
        row = await self.row()
        if row is None and self.fail_on_empty:
            message = f"The statement for connection {self.conn_id!r} answers no row, which means: fail (fail_on_empty)."
            return {"status": FAILED, "message": message}
        if row is None or not row[0]:
            return None
        return {"status": SUCCESS, "row": [_cell(value) for value in row[: limits.MOST_COLUMNS]]}


def first_row(conn: Connection, sql: str, parameters: Parameters) -> tuple[Any, ...] | None:
    """Raises :class:`LookUnanswered` when the database does not answer, :class:`LookRefused` when it refuses the statement or the
    login.
    """
    driver = _driver_of(conn)
    module = _module_of(driver, conn)
    masker = Masker()
    masker.add(secrets_in("connection", conn.conn_id, conn.uri))
    try:
        with closing(module.connect(**_arguments(conn, driver))) as database:
            cursor = database.cursor()
            cursor.execute(sql) if parameters is None else cursor.execute(sql, parameters)
            row = cursor.fetchone()
            with suppress(module.Error):
                database.rollback()
            return None if row is None else tuple(row)
    except module.Error as error:
        said = masker.mask_text(str(error).strip()) or type(error).__name__
        if _is_passing(module, error):
            raise LookUnanswered(f"The database of connection {conn.conn_id!r} does not answer ({said}).") from None
        raise LookRefused(f"The database of connection {conn.conn_id!r} refused the look: {said}.") from None


def _is_passing(module: Any, error: Exception) -> bool:
    """Returns whether an error may pass. PostgreSQL's SQLSTATE decides: it means a mistake, except for those of connections,
    resources and operators. For other drivers the class decides.
    """
    state = getattr(error, "sqlstate", None)
    if state is not None:
        return state[:2] in {"08", "53", "57", "58", "40", "55"}
    return isinstance(error, (module.OperationalError, module.InterfaceError)) and not _is_mistake(str(error))


def _is_mistake(text: str) -> bool:
    """Returns whether the text of a driver without SQLSTATE means a wrong login or statement."""
    said = text.lower()
    return any(
        part in said
        for part in ("no such table", "no such column", "syntax error", "authentication failed", "access denied", "does not exist")
    )


def _driver_of(conn: Connection) -> Driver:
    if "driver" in conn.extra:
        return Driver(conn.extra["driver"])
    driver = DRIVERS.get(conn.scheme)
    if driver is None:
        raise LookRefused(
            f"Connection {conn.conn_id!r} has the scheme {conn.scheme!r}; known are {', '.join(sorted(DRIVERS))}. For another "
            f"database name the module of its driver (DB-API 2.0) in the connection: {conn.scheme or 'scheme'}://...?driver=MODULE"
        )
    return driver


def _module_of(driver: Driver, conn: Connection) -> Any:
    try:
        module = importlib.import_module(driver.module)
    except ModuleNotFoundError:
        raise LookRefused(
            f"Connection {conn.conn_id!r} needs the driver {driver.module!r}, which is not installed where this runs. Type there: "
            f"pip install {driver.module}"
        ) from None
    if not hasattr(module, "connect") or not hasattr(module, "apilevel"):
        raise LookRefused(f"Connection {conn.conn_id!r} names the driver {driver.module!r}, which is no module of DB-API 2.0.")
    return module


def _arguments(conn: Connection, driver: Driver) -> dict[str, Any]:
    if driver.module == "sqlite3":  # after four slashes the path is absolute, after three it is relative to the triggerer's
        return {"database": conn.path, "timeout": limits.CONNECTS_WITHIN}
    given = {"host": conn.host, "port": conn.port, "user": conn.login, "password": conn.password, "database": conn.path or None}
    extra = {name: value for name, value in conn.extra_dejson.items() if name != "driver"}
    named = {driver.names.get(name, name): value for name, value in given.items() if value is not None}
    return {**driver.options, **named, **extra}


def _cell(value: Any) -> Any:
    return value if value is None or isinstance(value, (bool, int, float)) else str(value)[: limits.MOST_CELL_CHARS]
