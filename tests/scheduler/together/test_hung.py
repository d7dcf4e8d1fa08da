"""R-HA5: a scheduler that hangs in the middle of its transaction is overtaken, and what it does when it wakes changes nothing."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import psutil
import psycopg
import pytest

from evenflow.core.limits import HANG_S, LONGEST_TURN_S
from evenflow.core.model import DagSpec, TaskSpec
from evenflow.killpoints import KillPoint
from evenflow.scheduler.advance import advance
from evenflow.scheduler.catalog import Catalog
from evenflow.store.db import sessions
from evenflow.store.db.connect import TURNS, Timeouts, connect
from evenflow.store.db.rows import execute
from evenflow.store.db.sessions import LivingConnection
from evenflow.store.scheduling.inbox import TURN_LIMITS
from tests.scheduler.world import World
from tests.waiting import wait_until

OVERTAKEN_S = 5.0
DAG = DagSpec(dag_id="d", tasks=(TaskSpec(task_id="a", operator="python"), TaskSpec(task_id="b", operator="python", upstream=(0,))))

# A scheduler that stops itself when it first reaches a point.
STOPPING = """
import asyncio, os, signal, sys
from evenflow.killpoints import watch
from evenflow.runtime.lifecycle import host
from evenflow.scheduler.service import SchedulerService
url, *points = sys.argv[1:]
def stop(point):
    if point in points:
        points.clear()
        os.kill(os.getpid(), signal.SIGSTOP)
watch(stop)
sys.exit(asyncio.run(host(SchedulerService(url, name="first"), drain_timeout=5)))
"""


@contextmanager
def scheduler(database_url: str, point: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", STOPPING, database_url, point])
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def is_stopped(process: subprocess.Popen[bytes]) -> bool:
    assert process.poll() is None
    return psutil.Process(process.pid).status() == psutil.STATUS_STOPPED


@pytest.mark.system
@pytest.mark.parametrize("point", [KillPoint.TURN_LOCKED, KillPoint.TURN_APPLIED, KillPoint.TURN_WRITTEN])
def test_a_scheduler_that_is_stopped_in_its_transaction_is_overtaken(world: World, database_url: str, point: KillPoint) -> None:
    """In the middle of a pipeline, where the server takes it for busy, as well as between two statements."""
    world.add_dag(DAG)
    run = world.trigger("d")
    with scheduler(database_url, point) as hung:
        wait_until(lambda: is_stopped(hung), "its stop")
        stopped_at = time.monotonic()
        while not world.states(run):
            world.advance()
            assert time.monotonic() - stopped_at < OVERTAKEN_S
        (first,) = world.claim()
        hung.send_signal(signal.SIGCONT)
        world.report([first])
        wait_until(lambda: world.states(run) == {"a": "success", "b": "queued"}, "its going on")
        (second,) = world.claim()
        world.report([second])
        wait_until(lambda: world.run_state(run) == "success", "the end of the run")
    events = world.conn.execute("select event from task_event where run_key = %s order by at", [run]).fetchall()
    assert sorted(event for (event,) in events) == ["grant", "grant", "succeed", "succeed"]
    world.audit()


def test_a_scheduler_that_is_killed_leaves_nothing(world: World, database_url: str) -> None:
    """R-HA5: no child, no session, no lock; others go on at once."""
    world.add_dag(DAG)
    run = world.trigger("d")
    with scheduler(database_url, KillPoint.TURN_APPLIED) as hung:
        wait_until(lambda: is_stopped(hung), "its stop")
        children = psutil.Process(hung.pid).children(recursive=True)
        hung.kill()
        hung.wait()
        mine = (
            "select count(*) from pg_stat_activity where datname = current_database() and application_name like 'evenflow first%'"
        )
        killed_at = time.monotonic()
        wait_until(lambda: world.conn.execute(mine).fetchone() == (0,), "the end of its sessions")
        world.advance()
        assert time.monotonic() - killed_at < 2.5, "the server looks every 2 s whether who waits for a statement is still there"
        assert children == []
    assert world.states(run) == {"a": "queued", "b": "none"}


def busy(conn: psycopg.Connection[Any], seconds: float) -> None:
    """One transaction with many statements."""
    began = time.monotonic()
    with conn.pipeline(), conn.transaction():
        while time.monotonic() - began < seconds:
            assert execute(conn, "inbox/begin_turn", {"since": "0", **TURN_LIMITS}).fetchone() is not None
            threading.Event().wait(0.02)


@pytest.mark.system
def test_a_long_transaction_lasts_while_it_shows_life(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """And no longer than its whole budget."""
    monkeypatch.setattr(sessions, "HANG_S", 2.0)
    monkeypatch.setattr(sessions, "LIFE_S", 0.2)
    monkeypatch.setattr(LivingConnection, "budget_s", 2.0)
    timeouts = Timeouts(transaction=2000)
    monkeypatch.setattr("evenflow.store.db.connect.TURNS", timeouts)
    with connect(database_url, name="test", timeouts=timeouts) as conn:
        busy(conn, 4.0)
        assert conn.execute("select current_setting('transaction_timeout')").fetchone() == ("2s",)
        monkeypatch.setattr(sessions, "LONGEST_TURN_S", 1.0)
        began = time.monotonic()
        with pytest.raises(psycopg.Error):
            busy(conn, 30.0)
        assert 2.0 <= time.monotonic() - began < 10.0


def test_an_honest_transaction_that_was_ended_gets_more_time(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once: what comes after it is on the same footing as ever."""
    timeouts = Timeouts(transaction=500)
    monkeypatch.setattr(sessions, "HANG_S", 0.5)
    monkeypatch.setattr("evenflow.store.db.connect.TURNS", timeouts)

    def one_long_statement(budget_s: float) -> float:
        """The budget of the next transaction."""
        with connect(database_url, name="test", timeouts=timeouts) as conn:
            assert isinstance(conn, LivingConnection)
            conn.budget_s = budget_s
            try:
                with conn.pipeline(), conn.transaction():
                    conn.execute("select pg_sleep(1.2)").fetchone()
            except psycopg.Error:
                assert conn.broken
            return conn.budget_s

    assert one_long_statement(0.5) == 2.0
    assert one_long_statement(2.0) == 0.5


@pytest.mark.slow
def test_a_run_of_100_000_tasks_is_made_and_ended(world: World, database_url: str) -> None:
    """By transactions that take longer than one that hangs may."""
    tasks = tuple(TaskSpec(task_id=f"t{i}", operator="python", upstream=(i - 1,) if i % 10 else ()) for i in range(100_000))
    world.add_dag(DagSpec(dag_id="big", tasks=tasks, max_active_tasks=None))
    run = world.trigger("big")
    budget_s, took = HANG_S, []
    while world.run_state(run) != "failed":
        with connect(database_url, name="turns", timeouts=TURNS, generic_plans=True) as conn:
            assert isinstance(conn, LivingConnection)
            conn.budget_s, catalog, began = budget_s, Catalog(), time.monotonic()
            try:
                while advance(conn, catalog).again:
                    pass
                world.cancel(run)
            except psycopg.Error:
                assert conn.broken
            took.append(time.monotonic() - began)
            budget_s = conn.budget_s
    print(f"transactions took {took}")
    world.audit()


def test_a_client_that_does_not_read_its_answers_is_ended(database_url: str, db: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the server sends, no timeout of its own counts. Who reads, or is not ours, is left alone."""
    assert TURNS.transaction == 1000 * HANG_S < 1000 * LONGEST_TURN_S
    monkeypatch.setattr(sessions, "HANG_S", 0.2)
    deaf = connect(database_url, name="deaf")
    with closing(deaf), connect(database_url, name="well") as well:
        deaf.pgconn.send_query(b"begin; select repeat('x', 1000) from generate_series(1, 1000000)")
        deaf.pgconn.flush()
        sending = (
            "select wait_event from pg_stat_activity where application_name = 'evenflow deaf' and datname = current_database()"
        )
        wait_until(lambda: db.execute(sending).fetchone() == ("ClientWrite",), "an answer that nobody reads")
        ended: list[str] = []
        wait_until(lambda: ended.extend(sessions.end_deaf(db)) or ended, "its end")
        assert ended == ["evenflow deaf"]
        wait_until(lambda: db.execute(sending).fetchone() is None, "the end of its session")
        assert well.execute("select 1").fetchone() == (1,)
