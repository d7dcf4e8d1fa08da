"""Runs that are created when their DAG is due, a statement for any number of DAGs; and those of backfills, as there is room."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from evenflow.store.db.columns import instants, numbers, texts, words
from evenflow.store.db.rows import Conn, execute, row_of


class DueDag(NamedTuple):
    dag_id: str
    version_key: int
    spec: str  # without tasks and groups
    last_logical: datetime | None  # up to which it is scheduled
    last_end: datetime | None  # of the data interval there
    first_seen_at: datetime
    room: int  # how many scheduled runs of it may still join the waiting ones
    now: datetime  # by the database
    forecast: str | None  # JSON


class ScheduledRun(NamedTuple):
    dag_id: str
    run_id: str
    version_key: int
    params: str  # JSON
    logical_date: datetime
    start: datetime
    end: datetime
    run_after: datetime


class ScheduleUpdate(NamedTuple):
    """How a schedule continues, how far it has come, and whether a processor has to compute more of it. A field of how far that is
    None changes nothing.
    """

    dag_id: str
    run_at: datetime | None = None  # None: there will be none
    logical_date: datetime | None = None
    last_logical: datetime | None = None
    last_end: datetime | None = None
    wants_forecast: bool = False


def take_due_dags(conn: Conn, *, limit: int, waiting: int, served: Sequence[str]) -> list[DueDag]:
    """DAGs of which fewer than ``waiting`` scheduled runs are queued, except those that are ``served``."""
    names = {"limit": limit, "waiting": waiting, "served": texts(served)}
    return list(map(row_of(DueDag), execute(conn, "schedules/take_due_dags", names).fetchall()))


def insert_runs(conn: Conn, runs: Sequence[ScheduledRun]) -> int:
    """How many are new."""
    dag_ids, run_ids, version_keys, params, logical, starts, ends, afters = zip(*runs, strict=True)
    columns = {
        "dag_ids": texts(dag_ids),
        "run_ids": texts(run_ids),
        "version_keys": numbers(version_keys),
        "params": texts(params),
        "logical_dates": _times(logical),
        "starts": _times(starts),
        "ends": _times(ends),
        "run_afters": _times(afters),
    }
    return execute(conn, "schedules/insert_runs", columns).rowcount


def set_next(conn: Conn, runs: Sequence[ScheduleUpdate]) -> None:
    dag_ids, run_ats, logical, last_logical, last_ends, wants = zip(*runs, strict=True)
    columns = {
        "dag_ids": texts(dag_ids),
        "next_run_ats": _times(run_ats),
        "next_logicals": _times(logical),
        "last_logicals": _times(last_logical),
        "last_interval_ends": _times(last_ends),
        "wants_forecasts": words("true" if each else "false" for each in wants),
    }
    execute(conn, "schedules/set_next", columns)


def _times(values: Sequence[datetime | None]) -> str:
    return instants(None if value is None else value.isoformat() for value in values)


class OpenBackfill(NamedTuple):
    backfill_id: int
    room: int  # how many more of its runs may be active


def take_open_backfills(conn: Conn, *, limit: int) -> list[OpenBackfill]:
    return list(map(row_of(OpenBackfill), execute(conn, "backfills/take_open", {"limit": limit}).fetchall()))


def make_backfill_runs(conn: Conn, backfill: OpenBackfill) -> int:
    """How many dates were gone through; dates that are passed over need no room."""
    return execute(conn, "backfills/make_runs", {"backfill_id": backfill.backfill_id, "room": backfill.room}).rowcount


def end_finished_backfills(conn: Conn) -> None:
    execute(conn, "backfills/end_finished")
