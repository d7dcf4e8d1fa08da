"""Partitions of history are made ahead and dropped, and nobody who writes history waits for that."""

from __future__ import annotations

import contextlib
import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from evenflow.core.limits import PARTITION_RETRY_S, PARTITIONS_AHEAD
from evenflow.core.model import DagSpec, TaskSpec
from evenflow.scheduler.duties.partitions import drop_partitions_before, make_history_partitions, make_partitions
from evenflow.store.db.connect import connect
from evenflow.store.scheduling import partitions
from evenflow.store.scheduling.partitions import first_run_key, name_of
from tests.scheduler.world import World

NOW = datetime.now(UTC)
TODAY = NOW.replace(hour=0, minute=0, second=0, microsecond=0)
DAY = timedelta(days=1)
EVENT = (
    "insert into task_event (run_key, task_index, map_index, epoch, try_number, event, state)"
    " select %s, n, -1, 1, 1, 'grant', 'queued' from generate_series(1, %s) n"
)


def write(conn: psycopg.Connection, day: datetime, rows: int = 1) -> None:
    conn.execute(EVENT, [first_run_key(day) + 5, rows])


def count(conn: psycopg.Connection, table: str) -> int:
    row = conn.execute(f"select count(*) from {table}").fetchone()
    assert row is not None
    return int(row[0])


def count_of(conn: psycopg.Connection, query: str) -> int:
    row = conn.execute(query.encode()).fetchone()
    assert row is not None
    return int(row[0])


def test_a_week_is_made_ahead(db: psycopg.Connection) -> None:
    """R-HA20."""
    assert partitions.read_days_ahead(db) == -1
    assert make_history_partitions(db) is None
    assert partitions.read_days_ahead(db) == PARTITIONS_AHEAD
    assert partitions.list_all(db) == [name_of(TODAY + n * DAY) for n in range(PARTITIONS_AHEAD + 1)]
    db.execute(f"drop table {name_of(TODAY + 3 * DAY)}")
    assert partitions.read_days_ahead(db) == 2
    assert make_partitions(db, NOW)
    assert partitions.read_days_ahead(db) == PARTITIONS_AHEAD


def test_schedulers_that_start_together_say_nothing_that_looks_like_trouble(
    db: psycopg.Connection, database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """R-HA20: one makes the partitions; the others leave it to that one and look again."""
    with contextlib.ExitStack() as stack, ThreadPoolExecutor() as schedulers:
        conns = [stack.enter_context(connect(database_url, name=f"scheduler {n}")) for n in range(4)]
        for _ in range(5):
            for name in partitions.list_all(db):
                db.execute(f"drop table {name}")
            assert None in schedulers.map(make_history_partitions, conns)
            assert partitions.read_days_ahead(db) == PARTITIONS_AHEAD
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == []


def test_partitions_that_another_scheduler_makes_are_left_to_it(db: psycopg.Connection, database_url: str) -> None:
    """R-HA20: until it has gone, whatever became of it."""
    with connect(database_url, name="another") as other, partitions.making(other) as mine:
        assert mine
        assert make_history_partitions(db) == PARTITION_RETRY_S
        other.close()
        while not make_partitions(db, NOW):  # the server has yet to notice
            pass
    assert partitions.read_days_ahead(db) == PARTITIONS_AHEAD


def test_a_partition_is_like_its_table(db: psycopg.Connection) -> None:
    make_partitions(db, NOW)
    write(db, TODAY)
    assert count(db, name_of(TODAY)) == 1
    of = "select column_name, data_type, column_default, is_nullable from information_schema.columns where table_name = %s"
    assert sorted(db.execute(of, [name_of(TODAY)])) == sorted(db.execute(of, ["task_event"]))
    attached = "select count(*) from pg_inherits where inhparent = 'task_event_of_run'::regclass"
    assert db.execute(attached).fetchone() == (PARTITIONS_AHEAD + 2,)


def test_who_writes_while_today_gets_its_partition_waits_and_does_not_fail(
    db: psycopg.Connection, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-HA20: it came when the partition was about to be attached, and its rows are in it."""
    monkeypatch.setattr(partitions, "PARTITION_PATIENCE_S", 60.0)
    monkeypatch.setattr(partitions, "PARTITION_LOCKED_S", 60.0)
    waiting = (
        "select count(*) from pg_locks where not granted and relation in ('task_event'::regclass, 'task_event_default'::regclass)"
    )
    failed: list[Exception] = []

    def attach() -> None:
        with connect(database_url, name="attach") as conn:
            partitions.attach(conn, TODAY)

    def write_late() -> None:
        try:
            with connect(database_url, name="late") as conn:
                write(conn, TODAY)
        except psycopg.Error as error:
            failed.append(error)

    threads = [threading.Thread(target=attach), threading.Thread(target=write_late)]
    with connect(database_url, name="early") as early, early.transaction():
        write(early, TODAY)
        for number, thread in enumerate(threads, 1):
            thread.start()
            while count_of(db, waiting) < number:
                pass
    for thread in threads:
        thread.join()
    assert failed == []
    assert count(db, name_of(TODAY)) == 2
    assert count(db, "task_event_default") == 0


def test_a_reader_of_all_tables_delays_partitions_and_nobody_else(world: World, database_url: str) -> None:
    """R-HA20: what a dump locks. Those who write history never wait behind a partition."""
    world.add_dag(DagSpec(dag_id="d", tasks=(TaskSpec(task_id="a", operator="python"),)))
    make_partitions(world.conn, NOW - 2 * DAY)
    with connect(database_url, name="dump") as dump, connect(database_url, name="maker") as maker:
        with dump.transaction():
            dump.execute("lock table task_event, task_event_default in access share mode")
            assert make_history_partitions(maker) == PARTITION_RETRY_S
            waits = "select count(*) from pg_locks where not granted"
            run = world.trigger("d")
            world.drain()
            assert world.run_state(run) == "success"
            assert maker.execute(waits).fetchone() == (0,)
        assert make_history_partitions(maker) is None
    assert partitions.read_days_ahead(world.conn) == PARTITIONS_AHEAD


def test_a_turn_writes_history_while_a_partition_waits_for_its_lock(world: World, database_url: str) -> None:
    """R-HA20: the statement that waits for the reader stands in nobody's way."""
    world.add_dag(DagSpec(dag_id="d", tasks=(TaskSpec(task_id="a", operator="python"),)))
    make_partitions(world.conn, NOW)
    world.conn.execute(f"drop table {name_of(TODAY + 7 * DAY)}")
    with connect(database_url, name="dump") as dump, connect(database_url, name="eye") as eye, dump.transaction():
        dump.execute("lock table task_event, task_event_default in access share mode")
        stop = threading.Event()

        def wait() -> None:
            with connect(database_url, name="maker") as maker:
                while not stop.is_set():
                    make_partitions(maker, NOW)

        thread = threading.Thread(target=wait)
        thread.start()
        try:
            waiting = "select count(*) from pg_locks where not granted and relation = 'task_event_default'::regclass"
            while eye.execute(waiting).fetchone() != (1,):
                pass
            world.conn.execute("set lock_timeout = '1ms'")
            run = world.trigger("d")
            world.drain()
            assert world.run_state(run) == "success"
        finally:
            stop.set()
            thread.join(30)
    assert not thread.is_alive()


def test_rows_in_the_default_partition_move_to_their_day(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-HA20: also more than are moved at once."""
    monkeypatch.setattr("evenflow.store.scheduling.partitions.STRAYS_AT_ONCE", 4)
    for ahead, rows in ((0, 11), (2, 3)):
        write(world.conn, TODAY + ahead * DAY, rows)
    assert count(world.conn, "task_event_default") == 14
    assert make_partitions(world.conn, NOW)
    assert count(world.conn, "task_event_default") == 0
    assert (count(world.conn, name_of(TODAY)), count(world.conn, name_of(TODAY + 2 * DAY))) == (11, 3)
    assert count(world.conn, "task_event") == 14


def test_a_day_that_fails_keeps_no_other_from_being_made(db: psycopg.Connection) -> None:
    """R-HA20."""
    db.execute(f"create view {name_of(TODAY + DAY)} as select 1")
    assert make_history_partitions(db) == PARTITION_RETRY_S
    assert partitions.read_days_ahead(db) == 0
    assert name_of(TODAY + 7 * DAY) in partitions.list_all(db)
    db.execute(f"drop view {name_of(TODAY + DAY)}")
    assert make_history_partitions(db) is None


def test_what_was_begun_is_ended(db: psycopg.Connection) -> None:
    """A scheduler that was killed between the table and its attachment."""
    db.execute(f"create table {name_of(TODAY)} (like task_event including all)")
    assert make_partitions(db, NOW)
    assert partitions.read_days_ahead(db) == PARTITIONS_AHEAD


def test_a_role_that_may_not_create_tables_does_everything_else(world: World) -> None:
    """R-HA20: history goes to the default partition, and the number of days ahead says so."""
    world.add_dag(DagSpec(dag_id="d", tasks=(TaskSpec(task_id="a", operator="python"),)))
    world.conn.execute("set default_transaction_read_only = on")
    assert make_history_partitions(world.conn) == PARTITION_RETRY_S
    world.conn.execute("reset default_transaction_read_only")
    run = world.trigger("d")
    world.drain()
    assert world.run_state(run) == "success"
    assert partitions.read_days_ahead(world.conn) == -1


def test_a_day_goes_with_the_history_of_runs_that_are_gone(world: World) -> None:
    """R-HA20: without a look at its rows. A day ends at midnight, also for one that is only part over."""
    make_partitions(world.conn, NOW - 30 * DAY)
    write(world.conn, TODAY - 30 * DAY, 10)
    before = NOW - 25 * DAY
    dropped = drop_partitions_before(world.conn, before)
    assert dropped == [name_of(TODAY - n * DAY) for n in range(30, 25, -1)]
    assert drop_partitions_before(world.conn, before) == []
    assert count(world.conn, "task_event") == 0


def test_history_of_a_run_that_lives_on_outlives_its_day(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-HA20: one run that never ends does not keep the history of all others of its day."""
    world.add_dag(DagSpec(dag_id="d", tasks=(TaskSpec(task_id="a", operator="python"),)))
    make_partitions(world.conn, NOW - 30 * DAY)
    run = world.trigger("d", run_key=first_run_key(TODAY - 30 * DAY) + 7)
    world.advance()
    write(world.conn, TODAY - 30 * DAY, 10)
    before = NOW - 29 * DAY
    monkeypatch.setattr("evenflow.store.scheduling.partitions.STRAYS_AT_ONCE", 0)
    assert drop_partitions_before(world.conn, before) == [], "so much cannot move at once"
    monkeypatch.undo()
    assert drop_partitions_before(world.conn, before) == [name_of(TODAY - 30 * DAY)]
    assert world.conn.execute("select run_key, event from task_event").fetchall() == [(run, "grant")]
    world.drain()
    tries = world.conn.execute("select event from task_event where run_key = %s order by at", [run]).fetchall()
    assert tries[:1] == [("grant",)]


def test_a_day_that_somebody_reads_is_dropped_later(world: World, database_url: str) -> None:
    """R-HA20: and is no reason to try the next one, for each try makes others wait."""
    make_partitions(world.conn, NOW - 30 * DAY)
    with connect(database_url, name="dump") as dump, dump.transaction():
        dump.execute("lock table task_event in access share mode")
        assert drop_partitions_before(world.conn, NOW - 20 * DAY) == []
    assert len(drop_partitions_before(world.conn, NOW - 20 * DAY)) == PARTITIONS_AHEAD + 1
