"""The work of the history pipeline's tasks: their connection names the lake, and small marts return to its database."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenflow.errors import SettingsError
from evenflow.insights.export import export
from evenflow.insights.lake import check, mart_file
from evenflow.insights.spark_engine import Spark
from evenflow.insights.tables import RETURNED, statement
from evenflow.sdk.secrets.connections import Connection, get_connection

if TYPE_CHECKING:
    import psycopg

CONNECTION = "evenflow_history"
LAKE = "lake"  # its extra with the folder; the others are for PostgreSQL
MOST_ROWS = 20_000  # of a mart: some megabytes as JSON, and a year of days of fifty DAGs; the lake has all


@contextmanager
def database() -> Iterator[tuple[psycopg.Connection[Any], Path]]:
    """Yields the database of the pipeline's connection, and the folder."""
    import psycopg

    conn = get_connection(CONNECTION)
    folder = lake_of(conn)
    known = {"host": conn.host, "port": conn.port, "user": conn.login, "password": conn.password, "dbname": conn.path}
    extra = {name: value for name, value in conn.extra.items() if name != LAKE}
    given: dict[str, Any] = {name: value for name, value in known.items() if value} | extra
    with psycopg.connect(autocommit=True, application_name="evenflow history", **given) as session:
        yield session, folder


def lake_of(conn: Connection) -> Path:
    """Raises :class:`SettingsError` if the connection names no folder."""
    folder = conn.extra.get(LAKE)
    if not folder:
        raise SettingsError(
            f"Connection {CONNECTION!r} names no folder for history. Write postgresql://...?{LAKE}=/var/lib/history"
        )
    return Path(folder)


def export_and_tell(conn: psycopg.Connection[Any], folder: Path) -> int:
    """Exports, and records for retention how far. Returns the number of new events."""
    done = export(conn, folder)
    conn.execute(statement("returning", "tell_exported"), {"past": done.past, "at": done.until})
    return done.events


def refine(session: Any, layer: str) -> None:
    lake = lake_of(get_connection(CONNECTION))
    Spark(session).make(lake, lambda mart: print(f"{mart.layer}: {mart.name}", flush=True), layers=(layer,))


def return_all(conn: psycopg.Connection[Any], folder: Path) -> dict[str, int]:
    """Replaces the returned marts in the database, all of them at once, by the first rows of each. Returns the number of rows of
    the marts.
    """
    import pyarrow.parquet as pq

    check(folder)
    counts = {}
    with conn.transaction():
        for name, order in RETURNED.items():
            table = pq.read_table(mart_file(folder, Spark.name, name))
            rows = table.sort_by([(order, "descending")]).slice(0, MOST_ROWS).to_pylist()
            conn.execute(statement("returning", "return_mart"), {"name": name, "rows": json.dumps(rows)})
            counts[name] = table.num_rows
    return counts
