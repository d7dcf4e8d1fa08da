"""Reads the metadata database of an Airflow 3, on PostgreSQL or in a file of SQLite, and never writes there."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from typing import Any
from urllib.parse import quote, urlsplit

import psycopg
from psycopg.rows import dict_row

from evenflow.errors import DatabaseUnavailable, ParamError
from evenflow.store.db.connect import Row

ReadHouse = Callable[[str], list[Row]]

CONNECT_WITHIN_S = 10
_BEAT_WITHIN = timedelta(seconds=60)  # without a beat for this long a scheduler of Airflow's is gone
_READ_ONLY = "-c default_transaction_read_only=on -c statement_timeout=120000"
_STEP = timedelta(microseconds=1)  # of timestamps in databases


@dataclass(frozen=True, slots=True)
class AirflowDag:
    """``done_until``: no run of a logical date up to it is to be made any more; None: none was made yet. ``live``: runs that have
    not ended.
    """

    dag_id: str
    is_paused: bool
    done_until: datetime | None
    live: int


@dataclass(frozen=True, slots=True)
class House:
    """All that is to be moved. Rows are as Airflow keeps them, secrets encrypted; ``beats``: a scheduler of it runs."""

    connections: list[Row]
    variables: list[Row]
    pools: list[Row]
    dags: list[AirflowDag]
    backfills: list[Row]
    beats: bool


def read_house(dsn: str) -> House:
    """``dsn`` as Airflow's ``sql_alchemy_conn``. Raises :class:`ParamError`, or :class:`DatabaseUnavailable`."""
    scheme = urlsplit(dsn).scheme.partition("+")[0]
    match scheme:
        case "postgresql" | "postgres":
            opened = _postgres("postgresql" + dsn[dsn.index(":") :])
        case "sqlite":
            opened = _sqlite(urlsplit(dsn).path.removeprefix("/"))
        case _:
            raise ParamError(
                f"{scheme or 'That'} is no database that can be read: give postgresql://... or sqlite:////path/airflow.db"
            )
    with opened as read:
        return _read(read)


def _read(read: ReadHouse) -> House:
    try:
        read("find_bundles")
    except (psycopg.Error, sqlite3.Error) as error:
        raise ParamError(
            f"This is no database of an Airflow 3 ({_first_line(error)}). Upgrade it first: airflow db migrate"
        ) from None
    try:
        (scheduler,) = read("find_scheduler")
        beat = _instant(scheduler["beat"])
        return House(
            connections=read("list_connections"),
            variables=read("list_variables"),
            pools=read("list_pools"),
            dags=[_dag(row) for row in read("list_dags")],
            backfills=read("list_backfills"),
            beats=beat is not None and datetime.now(UTC) - beat < _BEAT_WITHIN,
        )
    except (psycopg.OperationalError, sqlite3.OperationalError):
        raise
    except (psycopg.Error, sqlite3.Error, ArithmeticError, TypeError, ValueError) as error:
        raise ParamError(f"Something in this database of an Airflow cannot be read: {_first_line(error)}") from None


def _dag(row: Row) -> AirflowDag:
    """What is before the next run counts as done, too: Airflow passes over dates that a pause or a clean-up has left out."""
    following = _instant(row["next_dagrun"])
    dates = [date for date in (_instant(row["last_logical"]), following and following - _STEP) if date is not None]
    return AirflowDag(row["dag_id"], bool(row["is_paused"]), max(dates, default=None), int(row["live"] or 0))


def _instant(value: Any) -> datetime | None:
    """SQLite keeps text, in UTC without saying so."""
    if value is None:
        return None
    at = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)


@contextmanager
def _postgres(url: str) -> Iterator[ReadHouse]:
    try:
        how: dict[str, Any] = {"options": _READ_ONLY, "connect_timeout": CONNECT_WITHIN_S, "client_encoding": "utf8"}
        with psycopg.connect(url, row_factory=dict_row, **how) as conn:
            conn.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ  # all is of one moment
            yield lambda name: conn.execute(_statement(name).encode()).fetchall()
    except psycopg.OperationalError as error:
        raise DatabaseUnavailable(f"Airflow's database cannot be read: {_first_line(error)}") from None
    except psycopg.ProgrammingError as error:
        raise ParamError(f"The DSN of Airflow's database cannot be used: {_first_line(error)}") from None


@contextmanager
def _sqlite(path: str) -> Iterator[ReadHouse]:
    try:
        with closing(sqlite3.connect(f"file:{quote(path)}?mode=ro", uri=True)) as conn:
            conn.row_factory = sqlite3.Row
            conn.text_factory = lambda text: text.decode(errors="surrogateescape")  # SQLite's own error would show a value
            conn.execute("begin")
            yield lambda name: [dict(row) for row in conn.execute(_statement(name)).fetchall()]
    except sqlite3.OperationalError as error:
        raise DatabaseUnavailable(f"Airflow's database {path} cannot be read: {error}") from None


def _statement(name: str) -> str:
    return (files("evenflow.cli.from_airflow") / "sql" / f"{name}.sql").read_text(encoding="utf-8")


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
