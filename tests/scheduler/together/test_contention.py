"""How often schedulers are in each other's way, by their own account (R-HA14)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import psycopg

from evenflow.core.meter import Meter
from evenflow.core.metrics import METRICS, SAMPLES
from evenflow.core.model import DagSpec, TaskSpec
from evenflow.core.service import ServiceKind
from evenflow.scheduler.advance import advance
from evenflow.scheduler.catalog import Catalog
from evenflow.scheduler.turn_metrics import Contention
from evenflow.store.db.connect import connect
from evenflow.store.scheduling import inbox, selection
from tests.scheduler.world import World
from tests.waiting import BLOCKED, wait_until

Conn = psycopg.Connection[Any]


def test_a_run_that_another_scheduler_has_is_a_contended_pick(world: World, database_url: str) -> None:
    """R-HA14: also when all of them are."""
    world.add_dag(DagSpec(dag_id="d", tasks=(TaskSpec(task_id="a", operator="python"),)))
    runs = [world.trigger("d") for _ in range(3)]
    assert world.advance().picks == 0, "runs that are created are not picked"
    world.report(world.claim())
    lock = "select from dag_run where run_key = any(%s) for no key update"
    with connect(database_url, name="other") as other:
        with other.transaction():
            other.execute(lock, [runs])
            progress = advance(world.conn, Catalog())
            assert (progress.picks, progress.contended, progress.reports) == (3, 3, 0)
        with other.transaction():
            other.execute(lock, [runs[:1]])
            progress = advance(world.conn, Catalog())
            assert (progress.picks, progress.contended, progress.reports) == (3, 1, 2)
    progress = advance(world.conn, Catalog())
    assert (progress.picks, progress.contended, progress.reports) == (1, 0, 1)


def test_what_waits_is_left_to_the_holder_of_the_executors_lock(world: World, database_url: str) -> None:
    """R-HA14: else all schedulers go for the same runs. What has waited is taken, so one that hangs holds up nothing (R-HA5)."""
    world.add_dag(DagSpec(dag_id="d", tasks=(TaskSpec(task_id="a", operator="python"),)))
    world.trigger("d")
    world.advance()
    with connect(database_url, name="holder") as holder, holder.transaction():
        assert inbox.try_executor(holder).all() == [(True,)]
        world.report(world.claim())
        for after_s, reports in ((3600.0, 0), (0.0, 1)):
            progress = advance(world.conn, Catalog(), helps_after_s=after_s)
            assert (progress.led, progress.picks, progress.reports) == (False, reports, reports)


def test_a_due_timer_is_left_to_the_holder_too(world: World, database_url: str) -> None:
    """R-HA14, R-HA5: until it is overdue."""
    world.add_dag(DagSpec(dag_id="d", tasks=(TaskSpec(task_id="a", operator="python", retries=1, retry_delay=0.0),)))
    run = world.trigger("d")
    world.advance()
    world.report(world.claim(), "failed")
    world.advance()
    assert world.states(run) == {"a": "up_for_retry"}
    with connect(database_url, name="holder") as holder, holder.transaction():
        assert inbox.try_executor(holder).all() == [(True,)]
        advance(world.conn, Catalog(), helps_after_s=3600.0)
        assert world.states(run) == {"a": "up_for_retry"}
        advance(world.conn, Catalog(), helps_after_s=0.0)
        assert world.states(run) != {"a": "up_for_retry"}


def test_time_that_waits_for_locks_is_found_by_looking(world: World, database_url: str) -> None:
    meter = Meter(ServiceKind.SCHEDULER, "s", METRICS)
    contention = Contention(meter)
    with (
        connect(database_url, name="eye") as eye,
        connect(database_url, name="turns") as turns,
        connect(database_url, name="other") as other,
    ):

        def look_until(state: str) -> Callable[[], None]:
            def look() -> None:
                while meter.value(SAMPLES, state) < 3:
                    contention.look(eye)

            return look

        contention.look(eye)
        assert meter.value(SAMPLES, "idle") == 0, "nobody takes turns yet"
        contention.pid = turns.info.backend_pid
        look_until("idle")()
        assert (meter.value(SAMPLES, "working"), meter.value(SAMPLES, "lock")) == (0, 0)
        with turns.transaction():
            turns.execute("select 1")
            look_until("working")()
        assert meter.value(SAMPLES, "lock") == 0
        with other.transaction():
            other.execute("lock table wake")

            def wait() -> None:
                with turns.transaction():
                    turns.execute("lock table wake")

            waiting = threading.Thread(target=wait)
            waiting.start()
            look_until("lock")()
        waiting.join(10)
    with connect(database_url, name="eye") as eye:
        before = meter.read()
        contention.look(eye)
        assert [reading.value for reading in meter.read()] == [reading.value for reading in before], "the session is over"


def test_new_limit_classes_are_made_in_any_order(world: World, database_url: str) -> None:
    """R-HA1: two schedulers meet the same new queues, each in the order of its runs. What is there already, nobody waits for."""

    def make(conn: Conn, queue: str) -> int:
        found = selection.find_limit_class(conn, "default_pool", "worker", queue, 1, None, None, None, None)
        assert found is not None
        return found[0]

    made: dict[str, int] = {}

    def other_way_round() -> None:
        with connect(database_url, name="other") as other, other.transaction():
            made.update({queue: make(other, queue) for queue in ("known", "second", "first")})

    known = make(world.conn, "known")
    thread = threading.Thread(target=other_way_round)
    with connect(database_url, name="eye") as eye, world.conn.transaction():  # in its transaction it would always see the same
        assert make(world.conn, "known") == known
        first = make(world.conn, "first")
        thread.start()
        wait_until(lambda: not thread.is_alive() or eye.execute(BLOCKED).fetchone() != (0,))
        assert thread.is_alive()
        second = make(world.conn, "second")
    thread.join()
    assert made == {"known": known, "first": first, "second": second}
