"""History is partitioned by the day in which a run was created: partitions are made ahead."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta

from psycopg import sql

from evenflow.store.rows import Conn

DAYS_AHEAD = 3  # so that a scheduler may be away for a weekend
_DAY = timedelta(days=1)

log = logging.getLogger(__name__)


def first_run_key(day: datetime) -> int:
    """The smallest run key of a day (UTC): ``next_run_key()`` puts milliseconds above 20 bits of sequence."""
    return int(day.timestamp() * 1000) << 20


def make_partitions(conn: Conn, today: datetime) -> None:
    """Makes the partitions of today and the days after it where they are missing."""
    midnight = today.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    for ahead in range(DAYS_AHEAD + 1):
        day = midnight + ahead * _DAY
        name = f"task_event_{day:%Y%m%d}"
        if conn.execute("select to_regclass(%s) is null", [name]).fetchone() == (True,):
            statement = sql.SQL("create table if not exists {} partition of task_event for values from ({}) to ({})")
            conn.execute(statement.format(sql.Identifier(name), first_run_key(day), first_run_key(day + _DAY)))
            log.info("made history partition %s", name)
