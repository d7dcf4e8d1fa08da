"""Old snapshots, which keep rows that are gone, and transactions under way, which hold back from where a look begins."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import psycopg

from evenflow.store.db.connect import UNBOUNDED, connect
from tests.waiting import wait_until


@contextlib.contextmanager
def old_snapshot(url: str, table: bytes) -> Iterator[None]:
    """Nothing of ``table`` that goes from now on can be removed.

    Autovacuum, whose reads would count as those of the test, leaves it alone.
    """
    with connect(url, name="owner") as owner:
        owner.execute(b"alter table " + table + b" set (autovacuum_enabled = off)")
    with connect(url, name="dump", timeouts=UNBOUNDED) as dump, dump.transaction():
        dump.execute("set transaction isolation level repeatable read")
        dump.execute(b"select from " + table).fetchall()
        yield


def await_others(conn: psycopg.Connection[Any]) -> None:
    """All transactions that have written so far have ended, also those of other tests in other databases of the server."""
    (now,) = conn.execute("select pg_current_xact_id()").fetchone() or (None,)
    passed = "select pg_snapshot_xmin(pg_current_snapshot()) > %s::xid8"
    wait_until(lambda: conn.execute(passed, [now]).fetchone() == (True,), "the end of transactions that began before")
