"""History from the reporting views to Parquet, a folder a day, each event exactly once.

An export goes by transactions, not by clocks. A batch has the rows that a range of transactions wrote. Below the oldest transaction
under way nothing new appears, so a batch never changes, even with late events. The plan of a batch is written before its files, and
its end after them. After a kill, the next export makes the planned batch again, under the same names, and continues. The database
stores nothing of it, and a role that reads the reporting views is enough.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from evenflow.errors import BadValue
from evenflow.insights.lake import LakeRows, whole, write_empty, write_file
from evenflow.insights.tables import BRONZE, DAY_OF, FORMAT, statement

if TYPE_CHECKING:
    import psycopg

XACTS_AT_ONCE = 100_000  # transactions of a batch: some minutes of a busy system, some hundred thousand events
ROWS_AT_ONCE = 50_000  # in memory


class ExportedHistory(NamedTuple):
    batches: int
    events: int
    until: datetime  # the time of this question: the lake has all rows of transactions that had ended by then
    past: int  # the transaction number below which they are


class Batch(NamedTuple):
    """The transactions from ``first`` to before ``past``, planned at one moment."""

    number: int
    first: int
    past: int
    at: datetime


def export(conn: psycopg.Connection[Any], lake: Path, *, xacts: int = XACTS_AT_ONCE) -> ExportedHistory:
    """Exports all settled rows. Raises :class:`BadValue` when another export writes there, or the lake belongs to another
    database, or to this one before it was set back to an earlier state.
    """
    with _alone(lake):
        source = list(_one(conn, "find_source"))
        last, count, events = _redo_last(conn, lake, source), 0, 0
        horizon, now = _one(conn, "find_horizon")
        past = last.past if last else _one(conn, "find_first")[0] or horizon
        if past > horizon:
            raise _of_another(lake)
        while past < horizon:
            batch = Batch((last.number if last else 0) + 1, past, min(past + xacts, horizon), now)
            _plan(lake, batch, source)
            events += _write_batch(conn, lake, batch)
            last, past, count = batch, batch.past, count + 1
    return ExportedHistory(count, events, now, past)


def _of_another(lake: Path) -> BadValue:
    return BadValue(f"{lake} has history of another database, or of this one before it was set back. Export to a new folder.")


def _redo_last(conn: psycopg.Connection[Any], lake: Path, source: list[Any]) -> Batch | None:
    """Returns the last planned batch; if it has not reached its end, it is made again."""
    plans = sorted((lake / "batches").glob("*.json"))
    if not plans:
        return None
    said = json.loads(plans[-1].read_text())
    if said["format"] != FORMAT:
        raise BadValue(f"{lake} has the format {said['format']}, and this Evenflow writes {FORMAT}. Export to a new folder.")
    if said["source"] != source:
        raise _of_another(lake)
    batch = Batch(int(plans[-1].stem), said["first"], said["past"], datetime.fromisoformat(said["at"]))
    if not _end_of(lake, batch).exists():
        _write_batch(conn, lake, batch)
    return batch


def _plan(lake: Path, batch: Batch, source: list[Any]) -> None:
    said = {"format": FORMAT, "source": source, "first": batch.first, "past": batch.past, "at": batch.at.isoformat()}
    text = json.dumps(said)
    with whole(lake / "batches" / f"{batch.number:08}.json") as unfinished:
        unfinished.write_text(text)


def _end_of(lake: Path, batch: Batch) -> Path:
    return lake / "batches" / f"{batch.number:08}.done"


def _write_batch(conn: psycopg.Connection[Any], lake: Path, batch: Batch) -> int:
    """Writes a batch and returns its number of events. Small tables are read whole, in their present state: the marts take each row
    once.
    """
    names = {"first": batch.first, "past": batch.past, "until": batch.at}
    events, name = 0, f"batch-{batch.number:08}.parquet"
    for table in ("task_events", "run_events"):
        events += _write_days(lake, table, name, _pages(conn, table, names))
    _write_days(lake, "spark_applications", name, _pages(conn, "spark_applications", names))
    runs = [row for page in _pages(conn, "runs", names) for row in page]
    _write_days(lake, "runs", name, [runs])
    versions = sorted({row[3] for row in runs})
    tasks = conn.execute(statement("export", "tasks"), {"versions": versions}).fetchall()
    write_file(lake / "bronze" / "tasks" / name, "tasks", [[row[:-1] for row in tasks]])
    write_file(lake / "bronze" / "edges" / name, "edges", [[(row[0], row[2], upstream) for row in tasks for upstream in row[-1]]])
    for table in ("limits", "pauses"):
        write_file(lake / "bronze" / table / name, table, [conn.execute(statement("export", table), names).fetchall()])
    with whole(_end_of(lake, batch)) as unfinished:
        unfinished.touch()
    return events


def _write_days(lake: Path, table: str, name: str, pages: Iterable[LakeRows]) -> int:
    """Writes one file for each day with rows, each in one step."""
    place, by_day, count = list(BRONZE[table]).index(DAY_OF[table]), dict[str, list[LakeRows]](), 0

    def day_of(row: tuple[Any, ...]) -> str:
        at: datetime = row[place]  # in the time zone of the session, which the role or the environment may set
        return at.astimezone(UTC).date().isoformat()

    for page in pages:
        count += len(page)
        for day, rows in groupby(sorted(page, key=day_of), key=day_of):
            by_day.setdefault(day, []).append(list(rows))
    for day, parts in by_day.items():
        write_file(lake / "bronze" / table / f"day={day}" / name, table, parts)
    if not by_day:
        write_empty(lake, table)
    return count


def _pages(conn: psycopg.Connection[Any], table: str, names: dict[str, Any]) -> Iterator[LakeRows]:
    with conn.transaction(), conn.cursor(name=f"export_{table}") as cursor:
        cursor.execute(statement("export", table), names)
        while rows := cursor.fetchmany(ROWS_AT_ONCE):
            yield rows


def _one(conn: psycopg.Connection[Any], name: str) -> tuple[Any, ...]:
    row = conn.execute(statement("export", name)).fetchone()
    assert row is not None
    return tuple(row)


@contextmanager
def _alone(lake: Path) -> Iterator[None]:
    """Lets one export at a time write to a lake."""
    lake.mkdir(parents=True, exist_ok=True)
    with open(os.open(lake / "export.lock", os.O_RDWR | os.O_CREAT, 0o600), "rb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BadValue(f"Another export writes to {lake}. Wait for it.") from None
        yield
