"""Each event is exported once, whenever its transaction ends and whoever is killed meanwhile."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg
import pyarrow.dataset as ds
import pytest

from evenflow.errors import BadValue
from evenflow.insights.export import export
from evenflow.store.db.connect import connect
from tests.waiting import wait_until

EVENT = (
    "insert into task_event (run_key, task_index, map_index, at, epoch, try_number, event, state)"
    " select %s, n, -1, %s::timestamptz, 1, 1, 'grant', 'queued' from generate_series(1, %s) n"
)
KEY = 1_800_000_000_000 << 20

# Exports, and dies by SIGKILL when it is about to write its file number N.
DIES = """
import os, signal, sys
from pathlib import Path
from evenflow.insights import export as exporting
from evenflow.store.db.connect import connect
left, whole = int(sys.argv[3]), exporting.write_file
def write_file(*given):
    global left
    left -= 1
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)
    whole(*given)
exporting.write_file = write_file
with connect(sys.argv[1], name="exporter") as conn:
    exporting.export(conn, Path(sys.argv[2]), xacts=3)
"""


def write(conn: psycopg.Connection, run: int, day: str = "2026-11-20", rows: int = 2) -> None:
    conn.execute(EVENT, [KEY + run, f"{day} 12:00+00", rows])


def settle(conn: psycopg.Connection) -> None:
    """All that was written so far can be exported: transactions under way on the server, of other tests too, are later ones."""
    (last,) = conn.execute("select pg_current_xact_id()::text").fetchone() or ("",)
    wait_until(lambda: conn.execute("select pg_snapshot_xmin(pg_current_snapshot()) > %s::xid8", [last]).fetchone() == (True,))


def exported(lake: Path, table: str = "task_events") -> list[Any]:
    rows = ds.dataset(lake / "bronze" / table, format="parquet").to_table().to_pylist()
    return sorted((row["run_key"] - KEY, row["task_index"]) for row in rows)


def test_events_lie_by_the_day_on_which_they_happened(db: psycopg.Connection, tmp_path: Path) -> None:
    """R-SP4."""
    write(db, 1, "2026-11-20")
    write(db, 2, "2026-11-21")
    settle(db)
    assert export(db, tmp_path).events == 4
    days = sorted(path.name for path in (tmp_path / "bronze" / "task_events").iterdir())
    assert days == ["day=2026-11-20", "day=2026-11-21"]
    assert exported(tmp_path) == [(1, 1), (1, 2), (2, 1), (2, 2)]


def test_what_commits_late_comes_once_and_nothing_twice(db: psycopg.Connection, database_url: str, tmp_path: Path) -> None:
    """R-SP4: a transaction that is still under way when others that began later have ended, with events of an older day."""
    write(db, 1)
    settle(db)
    with connect(database_url, name="slow") as slow:
        with slow.transaction():
            write(slow, 2, "2026-11-19")
            write(db, 3)
            export(db, tmp_path)
            assert exported(tmp_path) == [(1, 1), (1, 2)], "what comes after the open one waits for it"
            export(db, tmp_path)
        write(db, 4)
    settle(db)
    export(db, tmp_path)
    assert exported(tmp_path) == [(run, n) for run in (1, 2, 3, 4) for n in (1, 2)]
    assert export(db, tmp_path).events == 0
    assert exported(tmp_path) == [(run, n) for run in (1, 2, 3, 4) for n in (1, 2)]


@pytest.mark.system
@pytest.mark.parametrize("file", range(1, 16, 2))
def test_an_export_that_is_killed_is_ended_by_the_next(
    db: psycopg.Connection, database_url: str, tmp_path: Path, file: int
) -> None:
    """R-SP4: at any of its files."""
    for run in range(1, 9):
        write(db, run, f"2026-11-{10 + run}")
    settle(db)
    whole = tmp_path / "whole"
    export(db, whole, xacts=3)
    lake = tmp_path / "killed"
    done = subprocess.run([sys.executable, "-c", DIES, database_url, str(lake), str(file)], check=False)
    assert done.returncode == -signal.SIGKILL
    write(db, 9)
    settle(db)
    export(db, lake, xacts=3)
    export(db, whole, xacts=3)
    assert exported(lake) == exported(whole) == [(run, n) for run in range(1, 10) for n in (1, 2)]
    batches = sorted(path.name for path in (lake / "batches").glob("*.json"))
    assert sorted(path.with_suffix(".json").name for path in (lake / "batches").glob("*.done")) == batches


def test_one_export_writes_at_a_time(db: psycopg.Connection, tmp_path: Path) -> None:
    from evenflow.insights.export import _alone

    with _alone(tmp_path), pytest.raises(BadValue, match="Another export writes"):
        export(db, tmp_path)


def test_a_database_that_was_set_back_is_refused(db: psycopg.Connection, tmp_path: Path) -> None:
    """Its transactions have numbers again that the lake has already."""
    write(db, 1)
    settle(db)
    export(db, tmp_path)
    plan = next((tmp_path / "batches").glob("*.json"))
    plan.write_text(plan.read_text().replace('"past": ', '"past": 9'))
    with pytest.raises(BadValue, match="Export to a new folder"):
        export(db, tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        "update installation set id = 'another'",
        "insert into incarnation (incarnation, reason, began_by, went_back) values (9, 'restored', 'test', true)",
    ],
)
def test_history_of_another_database_does_not_go_into_the_same_lake(db: psycopg.Connection, tmp_path: Path, change: str) -> None:
    """R-SP4: their transactions may well have later numbers, as databases of one server have."""
    write(db, 1)
    settle(db)
    export(db, tmp_path)
    write(db, 2)
    settle(db)
    db.execute(change)
    with pytest.raises(BadValue, match="history of another database, or of this one before it was set back"):
        export(db, tmp_path)
    assert exported(tmp_path) == [(1, 1), (1, 2)]


def test_days_are_those_of_utc_wherever_the_export_runs(db: psycopg.Connection, tmp_path: Path) -> None:
    """R-SP4: an export that is made again under another time zone would leave its events in two folders."""
    db.execute("set time zone 'America/New_York'")
    db.execute(EVENT, [KEY + 1, "2026-11-20 01:00+00", 1])
    settle(db)
    export(db, tmp_path)
    assert [path.name for path in (tmp_path / "bronze" / "task_events").iterdir()] == ["day=2026-11-20"]
    last = max((tmp_path / "batches").glob("*.done"))
    last.unlink()
    db.execute("set time zone 'Asia/Tokyo'")
    export(db, tmp_path)
    assert exported(tmp_path) == [(1, 1)]


def test_what_is_exported_outlives_a_loss_of_power(db: psycopg.Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-SP4: retention may delete it from the database then. Files and their folders are on the disk."""
    synced: set[int] = set()
    sync = os.fsync

    def recording(opened: int) -> None:
        sync(opened)
        synced.add(os.fstat(opened).st_ino)

    monkeypatch.setattr(os, "fsync", recording)
    write(db, 1)
    settle(db)
    export(db, tmp_path / "lake")
    written = [path for path in (tmp_path / "lake").rglob("*") if path.name != "export.lock"]
    assert len(written) > 20
    assert [path for path in written if path.stat().st_ino not in synced] == []


def test_a_role_that_reads_reports_can_export(db: psycopg.Connection, database_url: str, tmp_path: Path) -> None:
    """R-SE1: the pipeline needs no rights beyond those of a BI tool."""
    import uuid

    from psycopg import conninfo, sql

    from evenflow.store.serving.reporting import grant_reading

    role = f"reader_{uuid.uuid4().hex[:12]}"
    granted = grant_reading(db, role, by="test")
    try:
        write(db, 1)
        settle(db)
        with connect(conninfo.make_conninfo(database_url, user=role, password=granted.password), name="reader") as conn:
            assert export(conn, tmp_path).events == 2
    finally:
        db.execute(
            sql.SQL("grant {0} to current_user with inherit true; drop owned by {0}; drop role {0}").format(sql.Identifier(role))
        )
