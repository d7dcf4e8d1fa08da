"""The database of this Evenflow: yours, or the embedded one of its home."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from evenflow.runtime.embedded import EmbeddedPostgres
from evenflow.runtime.home import prepare_home


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
        make_ready(url, is_ours=not database_url)
        yield url


def make_ready(database_url: str, *, is_ours: bool) -> None:
    """As :func:`open_database` has it."""
    from evenflow.store.db.connect import UNBOUNDED, connect  # a server may start before there is a client of it
    from evenflow.store.db.migrate import Steps, check, migrate

    with connect(database_url, name="migrate", timeouts=UNBOUNDED) as conn:
        if is_ours:
            migrate(conn, Steps.ALONE)
        check(conn)
