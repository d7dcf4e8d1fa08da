"""The database of this Evenflow: the configured one, or the embedded one of its home."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from evenflow.runtime.embedded import EmbeddedPostgres
from evenflow.runtime.home import prepare_home


@contextlib.contextmanager
def reach_database(database_url: str, home: Path) -> Iterator[str]:
    """Yields the URL of the database. Without ``database_url`` it is the embedded one, which runs while the context lasts."""
    if database_url:
        yield database_url
    else:
        prepare_home(home)
        with EmbeddedPostgres(home).lease() as url:
            yield url


@contextlib.contextmanager
def open_database(database_url: str, home: Path) -> Iterator[str]:
    """Works like :func:`reach_database`, and prepares the database: the embedded one is migrated, because only Evenflow uses it; a
    configured one is only checked.
    """
    with reach_database(database_url, home) as url:
        make_ready(url, is_ours=not database_url)
        yield url


def make_ready(database_url: str, *, is_ours: bool) -> None:
    """Migrates or checks a database like :func:`open_database`."""
    from evenflow.store.db.connect import UNBOUNDED, connect  # a server may start before any client of it
    from evenflow.store.db.migrate import Steps, check, migrate

    with connect(database_url, name="migrate", timeouts=UNBOUNDED) as conn:
        if is_ours:
            migrate(conn, Steps.ALONE)
        check(conn)
