"""What may happen to messages and brokers, and changes nothing (R-EX2)."""

from __future__ import annotations

import signal

import pytest

from tests.executors.systems import Celery
from tests.waiting import wait_until

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("executors"), pytest.mark.timeout(900)]

REDIS = pytest.mark.parametrize("system", ["celery-redis"], indirect=True)
RABBITMQ = pytest.mark.parametrize("system", ["celery-rabbitmq"], indirect=True)


@REDIS
def test_a_second_message_and_a_late_one_change_nothing(system: Celery) -> None:
    """R-EX2: while its try runs, and when that is over."""
    run_id = system.trigger("gated")
    epoch = system.epoch(run_id)
    system.send_again(epoch)
    system.open(f"open-{run_id}")
    assert system.end_of("gated", run_id) == "success"
    system.send_again(epoch)
    assert system.marked(f"gated-{run_id}") == 1
    assert [(each.try_number, each.losses) for each in system.tasks("gated", run_id)] == [(1, 0)]


@REDIS
def test_a_broker_that_goes_and_comes_back_empty_loses_nothing(system: Celery) -> None:
    """R-EX2: what runs goes on, what waits there is sent again."""
    running = system.trigger("gated")
    system.epoch(running)
    system.broker.stop()
    waiting = system.trigger("plain")
    system.open(f"open-{running}")
    assert system.end_of("gated", running) == "success"
    assert system.state("plain", waiting) == "running"
    system.broker.start()
    assert system.end_of("plain", waiting) == "success", system.told("plain", waiting)


@REDIS
def test_messages_that_are_lost_in_the_broker_are_sent_again(system: Celery) -> None:
    """R-EX2: nobody hears of it; that nobody claims the try is enough."""
    pool = system.workers[-1]
    pool.send_signal(signal.SIGTERM)
    pool.wait(60)
    run_id = system.trigger("plain")
    sent = "select sends from dispatch join dag_run using (run_key) where run_id = %s and sent_at is not null"
    wait_until(lambda: system.db.execute(sent, [run_id]).fetchone(), "a message to be sent")
    system.broker.stop()
    system.broker.start()
    system.start_worker()
    assert system.end_of("plain", run_id) == "success", system.told("plain", run_id)


@REDIS
def test_a_worker_of_celery_that_is_killed_ends_no_try(system: Celery) -> None:
    """R-EX2: the worker beside it finishes what it has; the message comes again, and finds the try claimed."""
    run_id = system.trigger("gated")
    epoch = system.epoch(run_id)
    beside, first = system.worker(epoch), system.workers[-1]
    system.start_worker()
    system.await_worker()  # before the kill: a busy machine may take longer to start it than what is in hand has to end
    first.kill()
    system.send_again(epoch)
    assert beside.is_running()
    system.open(f"open-{run_id}")
    assert system.end_of("gated", run_id) == "success"
    assert [(each.try_number, each.losses) for each in system.tasks("gated", run_id)] == [(1, 0)]
    wait_until(lambda: not beside.is_running(), "it to end, for nobody hands it anything")


@REDIS
@pytest.mark.parametrize(("flags", "slots"), [("-P solo", 1), ("-P threads -c 3", 3), ("-P prefork --autoscale 5,1", 5)])
def test_people_use_the_pools_that_they_know(system: Celery, flags: str, slots: int) -> None:
    """R-EX2: a place is a try."""
    before = system.workers[-1]
    system.start_worker(*flags.split())
    system.await_worker()
    before.send_signal(signal.SIGTERM)
    before.wait(60)
    state, run_id = system.run("plain")
    assert state == "success", system.told("plain", run_id)
    name = "select (detail ->> 'slots')::int from service where kind = 'worker' and state = 'active' and name like %s"
    found = system.db.execute(name, [f"celery-{len(system.workers) - 1}@%"]).fetchall()
    assert found == [(slots,)]
    last = system.workers[-1]
    system.start_worker()
    system.await_worker()
    last.send_signal(signal.SIGTERM)
    last.wait(60)


@RABBITMQ
def test_tries_go_through_rabbitmq(system: Celery) -> None:
    """R-EX1: with a confirmation of each message; and it may go and come back."""
    assert system.run("plain")[0] == "success"
    run_id = system.trigger("gated")
    system.send_again(system.epoch(run_id))
    system.broker.stop()
    waiting = system.trigger("deferred")
    system.open(f"open-{run_id}")
    assert system.end_of("gated", run_id) == "success"
    assert system.marked(f"gated-{run_id}") == 1
    system.broker.start()
    assert system.end_of("deferred", waiting) == "success", system.told("deferred", waiting)
