"""What may happen to messages and brokers, and changes nothing (R-EX2)."""

from __future__ import annotations

import pickle
import signal
from pathlib import Path

import pytest
from kombu import Connection
from redis import Redis as Client

from evenflow.core.executors import CELERY_TASK
from tests.executors.brokers import RabbitMq
from tests.executors.pipelines import QUEUE
from tests.executors.systems import Celery, is_over
from tests.waiting import SYSTEM_DEADLINE_S, wait_until

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("executors"), pytest.mark.timeout(900)]

REDIS = pytest.mark.parametrize("system", ["celery-redis"], indirect=True)
RABBITMQ = pytest.mark.parametrize("system", ["celery-rabbitmq"], indirect=True)


@REDIS
def test_messages_that_are_lost_in_the_broker_are_sent_again(system: Celery) -> None:
    """R-EX2: nobody hears of it; that nobody claims the try is enough."""
    system.stop_worker(system.workers[-1])
    run_id = system.trigger("plain")
    sent = "select sends from dispatch join dag_run using (run_key) where run_id = %s and sent_at is not null"
    wait_until(lambda: system.db.execute(sent, [run_id]).fetchone(), "a message to be sent")
    system.broker.stop()
    system.broker.start()
    system.start_worker()
    assert system.end_of("plain", run_id) == "success", system.told("plain", run_id)


class Opened:
    """Makes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str, str]]:
        return open, (str(self.path), "w")


def _four_run_and_two_wait(system: Celery) -> tuple[list[str], list[str]]:
    """Runs whose tries take every place of the worker, and runs whose messages wait in the broker."""
    running = [system.trigger("gated") for _ in range(4)]
    wait_until(lambda: all(system.marked(f"gated-{run_id}") for run_id in running), "every place to be busy", within_s=60)
    waiting = [system.trigger("gated") for _ in range(2)]
    sent = "select count(*) from dispatch join dag_run using (run_key) where run_id = any(%s) and sent_at is not null"
    wait_until(lambda: system.db.execute(sent, [waiting]).fetchone() == (2,), "messages to wait", within_s=60)
    return running, waiting


def _outlasts_a_kill(system: Celery) -> None:
    """While the broker is dead, tries that run end, and a new one waits; each begins once."""
    running, waiting = _four_run_and_two_wait(system)
    system.broker.kill()
    meanwhile = system.trigger("gated")
    for run_id in running[:2]:
        system.open(f"open-{run_id}")
        assert system.end_of("gated", run_id) == "success", "without a broker"
    system.broker.start()
    _end_each_once(system, [*running, *waiting, meanwhile])


def _end_each_once(system: Celery, runs: list[str]) -> None:
    for run_id in runs:
        system.open(f"open-{run_id}")
    for run_id in runs:
        assert system.end_of("gated", run_id) == "success", system.told("gated", run_id)
        assert system.marked(f"gated-{run_id}") == 1, "it has begun once"
        assert [(each.try_number, each.losses) for each in system.tasks("gated", run_id)] == [(1, 0)]


@REDIS
def test_a_redis_that_is_emptied_and_one_that_is_killed_while_tries_run_change_nothing(system: Celery) -> None:
    """R-EX2: with the queue go its bindings and the messages that are not acknowledged; who listens stays connected."""
    running, waiting = _four_run_and_two_wait(system)
    with Client.from_url(system.broker.url) as client:
        client.flushall()
    meanwhile = system.trigger("gated")
    _end_each_once(system, [*running, *waiting, meanwhile])
    _outlasts_a_kill(system)


@REDIS
def test_who_may_write_to_the_broker_has_nothing_run(system: Celery, tmp_path: Path) -> None:
    """R-EX2: forged messages are of no try that is there, of a task that nobody knows, or pickled. Those that come after run."""
    forged = [(CELERY_TASK, [epoch]) for epoch in (0, -1, 2**63, 2**64, 10**40, "1; drop table", None, [1], {})]
    forged += [(CELERY_TASK, []), ("os.system", [f"touch {tmp_path}/run"]), ("celery.map", [[CELERY_TASK], [2**63]])]
    with Connection(system.broker.url) as connection, connection.SimpleQueue(QUEUE) as queue:
        for number, (name, args) in enumerate(forged):
            head = {"task": name, "id": f"forged-{number}", "lang": "py"}
            queue.put([args, {}, {}], headers=head, serializer="json")
        body = pickle.dumps([[Opened(tmp_path / "unpickled")], {}, {}])
        head = {"task": CELERY_TASK, "id": "forged-pickle", "lang": "py"}
        queue.producer.publish(body, headers=head, content_type="application/x-python-serialize", content_encoding="binary")
    for _ in range(2):
        state, run_id = system.run("plain")
        assert state == "success", system.told("plain", run_id)
        assert [(each.try_number, each.losses) for each in system.tasks("plain", run_id)] == [(1, 0)] * 2
    assert list(tmp_path.iterdir()) == []
    assert system.workers[-1].poll() is None


@REDIS
def test_a_worker_of_celery_that_is_killed_ends_no_try(system: Celery) -> None:
    """R-EX2: the worker beside it finishes what it has; the message comes again, and finds the try claimed."""
    run_id = system.trigger("gated")
    epoch = system.epoch(run_id)
    beside, first = system.worker(epoch), system.workers[-1]
    system.start_worker()
    system.await_worker()  # before the kill: a busy machine may take longer to start it than what is in hand has to end
    first.kill()
    first.wait()  # while it dies its connection may be given a message
    system.deliver_again(epoch)
    assert beside.is_running()
    system.open(f"open-{run_id}")
    assert system.end_of("gated", run_id) == "success"
    assert [(each.try_number, each.losses) for each in system.tasks("gated", run_id)] == [(1, 0)]
    wait_until(lambda: is_over(beside), "it to end, for nobody hands it anything")


@REDIS
def test_a_resume_begins_while_every_place_is_busy_and_messages_wait(system: Celery) -> None:
    """R-DQ3, R-DQ10: before all that waits in the broker's line, in a slot of its own. A warm shutdown of Celery waits for it."""
    waits = system.trigger("called_back")
    deferred = "select count(*) from task_instance t join dag_run using (run_key) where run_id = %s and t.state = 'deferred'"
    wait_until(lambda: system.db.execute(deferred, [waits]).fetchone() == (1,), lambda: system.told("called_back", waits))
    busy = [system.trigger("gated") for _ in range(4)]
    wait_until(lambda: all(system.marked(f"gated-{run_id}") for run_id in busy), "every place to be busy", within_s=60)
    queued = [system.trigger("gated") for _ in range(4)]
    sent = "select count(*) from dispatch join dag_run using (run_key) where run_id = any(%s) and sent_at is not null"
    wait_until(lambda: system.db.execute(sent, [queued]).fetchone() == (4,), "messages to wait", within_s=60)
    system.open(f"event-{waits}")
    wait_until(lambda: system.marked(f"back-{waits}"), lambda: system.told("called_back", waits), within_s=60)
    assert [system.marked(f"gated-{run_id}") for run_id in queued] == [0] * 4
    ending = system.workers[-1]
    ending.send_signal(signal.SIGTERM)
    system.start_worker()
    system.await_worker()
    for run_id in [*busy, *queued]:
        system.open(f"open-{run_id}")
    assert [system.end_of("gated", run_id) for run_id in [*busy, *queued]] == ["success"] * 8
    assert ending.poll() is None, "it has the resume in hand"
    system.open(f"open-{waits}")
    assert system.end_of("called_back", waits) == "success", system.told("called_back", waits)
    assert [(each.try_number, each.losses) for each in system.tasks("called_back", waits)] == [(1, 0)]
    ending.wait(SYSTEM_DEADLINE_S)


@REDIS
@pytest.mark.parametrize(("flags", "slots"), [("-P solo", 1), ("-P threads -c 3", 3), ("-P prefork --autoscale 5,1", 5)])
def test_people_use_the_pools_that_they_know(system: Celery, flags: str, slots: int) -> None:
    """R-EX2: a place is a try."""
    before = system.workers[-1]
    system.start_worker(*flags.split())
    system.await_worker()
    system.stop_worker(before)
    state, run_id = system.run("plain")
    assert state == "success", system.told("plain", run_id)
    name = "select (detail ->> 'slots')::int from service where kind = 'worker' and state = 'active' and name like %s"
    found = system.db.execute(name, [f"celery-{len(system.workers) - 1}@%"]).fetchall()
    assert found == [(slots,)]
    last = system.workers[-1]
    system.start_worker()
    system.await_worker()
    system.stop_worker(last)


@RABBITMQ
def test_tries_go_through_rabbitmq(system: Celery) -> None:
    """R-EX1: with a confirmation of each message; and it may go and come back."""
    assert system.run("plain")[0] == "success"
    run_id = system.trigger("gated")
    system.deliver_again(system.epoch(run_id))
    system.broker.stop()
    waiting = system.trigger("deferred")
    system.open(f"open-{run_id}")
    assert system.end_of("gated", run_id) == "success"
    assert system.marked(f"gated-{run_id}") == 1
    system.broker.start()
    assert system.end_of("deferred", waiting) == "success", system.told("deferred", waiting)


@RABBITMQ
def test_a_rabbitmq_that_is_killed_and_one_that_comes_back_empty_while_tries_run_change_nothing(system: Celery) -> None:
    """R-EX2: messages that are not acknowledged come again, and those that are lost are sent again: each try begins once."""
    _outlasts_a_kill(system)
    running, waiting = _four_run_and_two_wait(system)
    system.broker.stop()
    system.broker.forget()
    system.broker.start()
    _end_each_once(system, [*running, *waiting])


@RABBITMQ
def test_a_rabbitmq_that_takes_no_messages_holds_no_launcher_and_says_what_to_look_at(system: Celery) -> None:
    """R-EX2: it has an alarm of its memory, answers nothing and not even a goodbye; what runs ends meanwhile."""
    assert isinstance(system.broker, RabbitMq)
    running = system.trigger("gated")
    wait_until(lambda: system.marked(f"gated-{running}"), lambda: system.told("gated", running))
    system.broker.alarm(on=True)
    waiting = system.trigger("gated")
    wait_until(lambda: "type rabbitmq-diagnostics alarms" in system.running.log, lambda: system.told("gated", waiting))
    system.open(f"open-{running}")
    assert system.end_of("gated", running) == "success", system.told("gated", running)
    system.broker.alarm(on=False)
    _end_each_once(system, [waiting])
