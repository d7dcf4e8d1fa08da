"""The database of this Evenflow: yours, or the embedded one of its home."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from evenflow.runtime.embedded import EmbeddedPostgres
from evenflow.runtime.home import prepare_home
from evenflow.store.db.connect import UNBOUNDED, connect
from evenflow.store.db.migrate import Steps, check, migrate


@contextlib.contextmanager
def reach_database(database_url: str, home: Path) -> Iterator[str]:
    """The URL of the database as it is. Without ``database_url`` it is the embedded one, which runs while the context lasts."""
    if database_url:
        yield database_url
    else:
        prepare_home(home)
        with EmbeddedPostgres(home).lease() as url:
            yield url


@contextlib.contextmanager
def open_database(database_url: str, home: Path) -> Iterator[str]:
    """As :func:`reach_database`, ready for use: the embedded one is migrated, since only we use it; yours is only checked."""
    with reach_database(database_url, home) as url:
        with connect(url, name="migrate", timeouts=UNBOUNDED) as conn:
            if not database_url:
                migrate(conn, Steps.ALONE)
            check(conn)
        yield url
