"""History is partitioned by the day in which a run was created: partitions are made ahead, and go when their runs have gone."""

from __future__ import annotations

from datetime import UTC, datetime

import psycopg

from evenflow.core.limits import PARTITION_RETRY_S, PARTITIONS_AHEAD
from evenflow.scheduler import observations as seen
from evenflow.store.db.rows import Conn
from evenflow.store.scheduling import partitions
from evenflow.telemetry.observing import observe


def make_history_partitions(conn: Conn) -> float | None:
    row = conn.execute("select now()").fetchone()
    assert row is not None
    return None if make_partitions(conn, row[0]) else PARTITION_RETRY_S


def make_partitions(conn: Conn, today: datetime) -> bool:
    """Makes the partitions of today and the days after it where they are missing, unless another scheduler is at it; answers
    whether all are there now. A day that fails keeps no other from being made.
    """
    if not partitions.list_missing(conn, today, ahead=PARTITIONS_AHEAD):
        return True
    with partitions.making(conn) as mine:
        return mine and _make_missing(conn, today)


def _make_missing(conn: Conn, today: datetime) -> bool:
    complete = True
    for day in partitions.list_missing(conn, today, ahead=PARTITIONS_AHEAD):
        name = partitions.name_of(day)
        try:
            partitions.attach(conn, day)
            observe(seen.partition_made(name))
        except partitions.MISSES as error:
            complete = False
            observe(seen.partition_put_off(name, " ".join(str(error).split())))
            if isinstance(error, psycopg.errors.LockNotAvailable):
                break  # all days need that lock, and writers of a day without a partition wait behind each attempt
        except psycopg.Error as error:
            complete = False
            if conn.closed:
                raise
            observe(seen.partition_not_made(name, error))
    return complete


def drop_partitions_before(conn: Conn, before: datetime) -> list[str]:
    """Drops the partitions of days that were over before, if their runs have gone; returns the dropped ones. Stops at the first one
    that another session has locked: each attempt makes the writers of history wait.
    """
    oldest_kept = partitions.name_of(before.astimezone(UTC))
    dropped: list[str] = []
    for name in partitions.list_all(conn):
        if name >= oldest_kept:
            break
        try:
            if partitions.drop(conn, name, datetime.strptime(name, "task_event_%Y%m%d").replace(tzinfo=UTC)):
                dropped.append(name)
        except partitions.MISSES as error:
            observe(seen.partition_kept(name, " ".join(str(error).split())))
            break
    if dropped:
        observe(seen.partitions_dropped(", ".join(dropped)))
    return dropped
