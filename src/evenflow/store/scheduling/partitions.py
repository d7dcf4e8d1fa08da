"""The partitions of history, one for each day in which runs were created. No statement here delays the writers of history for more
than a moment: locks are taken at once or not at all, and the work under them is bounded.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

import psycopg
from psycopg import sql

from evenflow.core.limits import PARTITION_LOCKED_S, PARTITION_PATIENCE_S, PARTITIONS_AHEAD, STRAYS_AT_ONCE
from evenflow.store.db.columns import numbers
from evenflow.store.db.rows import Conn, execute

MAKING_LOCK = 7311146993655184  # an advisory lock: one scheduler makes partitions at a time
SURVIVORS = 1_000  # runs of a day that is to go which are moved out of its way: a range of an index

# Another session has the lock, or the work under it took too long: a later look may find it otherwise.
MISSES = (psycopg.errors.LockNotAvailable, psycopg.errors.QueryCanceled, psycopg.errors.DeadlockDetected)


def first_run_key(day: datetime) -> int:
    """The smallest run key of a day (UTC): ``next_run_key()`` puts milliseconds above 20 bits of sequence."""
    return int(day.timestamp() * 1000) << 20


def name_of(day: datetime) -> str:
    return f"task_event_{day:%Y%m%d}"


def list_all(conn: Conn) -> list[str]:
    """The oldest first."""
    return [name for (name,) in execute(conn, "partitions/list_all", {}).fetchall()]


def list_missing(conn: Conn, today: datetime, *, ahead: int) -> list[datetime]:
    """Midnights (UTC) of the days without a partition, from today to a number of days after."""
    return [day for (day,) in execute(conn, "partitions/list_missing", {"today": today, "ahead": ahead}).fetchall()]


def read_days_ahead(conn: Conn) -> int:
    """For how many days after today there is a partition; -1 when today has none."""
    row = execute(conn, "partitions/read_days_ahead", {"most": PARTITIONS_AHEAD}).fetchone()
    assert row is not None
    return int(row[0])


@contextmanager
def making(conn: Conn) -> Iterator[bool]:
    """Yields whether this session alone makes partitions meanwhile."""
    (mine,) = conn.execute("select pg_try_advisory_lock(%s)", [MAKING_LOCK]).fetchone() or (False,)
    try:
        yield mine
    finally:
        if mine and not conn.closed:
            conn.execute("select pg_advisory_unlock(%s)", [MAKING_LOCK])


def attach(conn: Conn, day: datetime) -> None:
    """Makes the partition of a day. It begins as a plain table, and is then attached: that locks the default partition, which has
    no writers while all is well, and no table that turns use. Rows of the day that lie in the default partition move over. Raises
    one of ``MISSES`` when that could not be done in a moment.

    If history of the day is being written, all writers are kept out for that moment: a writer that waited for the default partition
    alone would have chosen it before, and fail because its rows belong into the new one.
    """
    name, keys = sql.Identifier(name_of(day)), (first_run_key(day), first_run_key(day + timedelta(days=1)))
    conn.execute(sql.SQL("create table if not exists {} (like task_event including all)").format(name))
    move = sql.SQL(
        "with strays as (delete from task_event_default where ctid = any(array("
        "select ctid from task_event_default where run_key >= {} and run_key < {} limit {})) returning *) "
        "insert into {} select * from strays"
    ).format(*keys, STRAYS_AT_ONCE, name)
    while conn.execute(move).rowcount == STRAYS_AT_ONCE:
        pass
    with _briefly(conn):
        if conn.execute("select %s <= now() + interval '1 minute'", [day]).fetchone() == (True,):
            conn.execute("lock table only task_event in share row exclusive mode")
        conn.execute("lock table task_event_default in access exclusive mode")
        conn.execute(move)
        conn.execute(sql.SQL("alter table task_event attach partition {} for values from ({}) to ({})").format(name, *keys))


def drop(conn: Conn, name: str, day: datetime) -> bool:
    """Drops the partition of a day, with the history of runs that are gone. History of other runs moves to the default partition.
    If that is too much, the day stays, and the answer is False. Raises one of ``MISSES``.
    """
    keys = {"first": first_run_key(day), "last": first_run_key(day + timedelta(days=1)), "most": SURVIVORS}
    partition = sql.Identifier(name)
    survivors = [key for (key,) in execute(conn, "partitions/find_survivors", keys).fetchall()]
    if len(survivors) > SURVIVORS:
        return False
    with _briefly(conn):
        kept: list[int] = []
        if survivors:
            conn.execute(sql.SQL("lock table {} in share mode").format(partition))  # what survives is written no further
            count = sql.SQL("select run_key, count(*) from {} where run_key = any(%s::bigint[]) group by run_key").format(partition)
            found = conn.execute(count, [numbers(survivors)]).fetchall()
            if sum(rows for _, rows in found) > STRAYS_AT_ONCE:
                return False
            kept = [key for key, _ in found]
        conn.execute(sql.SQL("alter table task_event detach partition {}").format(partition))
        if kept:
            move = sql.SQL("insert into task_event_default select * from {} where run_key = any(%s::bigint[])").format(partition)
            conn.execute(move, [numbers(kept)])
        conn.execute(sql.SQL("drop table {}").format(partition))
    return True


@contextmanager
def _briefly(conn: Conn) -> Iterator[None]:
    with conn.transaction():
        for setting, seconds in (("lock_timeout", PARTITION_PATIENCE_S), ("statement_timeout", PARTITION_LOCKED_S)):
            conn.execute("select set_config(%s, %s, true)", [setting, f"{seconds * 1000:.0f}ms"])
        yield
