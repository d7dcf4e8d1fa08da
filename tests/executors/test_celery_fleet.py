"""Workers of Celery that come and go as they are needed (R-AS1, R-AS4): ``evenflow up --autoscale``, a Redis, real processes."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
from redis import Redis as Client

from tests.executors import systems
from tests.executors.brokers import Redis
from tests.executors.systems import CeleryFleet
from tests.waiting import wait_until

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("executors"), pytest.mark.timeout(900)]

AT_ONCE = {"up_after": 0, "down_after": 0, "up_rate": 1000, "down_rate": 1000}
LIVE = "select name, pid from service where kind = 'worker' and state in ('active', 'draining') order by name, pid"


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CeleryFleet]:
    with systems.celery_fleet(Redis(tmp_path_factory.mktemp("broker") / "redis"), most=2) as started:
        yield started


def workers(system: CeleryFleet) -> list[str]:
    return [name for name, _ in system.db.execute(LIVE).fetchall()]


def pids(system: CeleryFleet) -> set[int]:
    return {pid for _, pid in system.db.execute(LIVE).fetchall()}


def bounds(system: CeleryFleet, least: int, most: int) -> str:
    """The fleet's name. It is to have so many workers."""
    [(fleet,)] = system.db.execute("select name from fleet").fetchall()
    policy = {"min": least, "max": most, "slots": 4, **AT_ONCE}
    system.ask(lambda client: client.set_fleet(fleet, target="celery", queues=[systems.QUEUE], policy=policy))
    return str(fleet)


def test_they_come_with_the_tasks_and_who_works_stays(system: CeleryFleet) -> None:
    """R-AS1, R-AS4, R-AS7: from none; when the fleet is cut to one, that is a worker which runs something."""
    fleet = bounds(system, 0, 2)
    wait_until(lambda: workers(system) == [], "none to be there")
    runs = [system.trigger("gated") for _ in range(6)]
    epochs = [system.epoch(run_id) for run_id in runs]
    assert workers(system) == [f"{fleet}-1", f"{fleet}-2"]
    kept = system.worker(epochs[0])
    for run_id in runs[1:]:
        system.open(f"open-{run_id}")
        assert system.end_of("gated", run_id) == "success"
    bounds(system, 0, 1)
    wait_until(lambda: len(workers(system)) == 1, lambda: system.logs())
    assert kept.is_running()
    system.open(f"open-{runs[0]}")
    assert system.end_of("gated", runs[0]) == "success"
    assert [each.losses for run_id in runs for each in system.tasks("gated", run_id)] == [0] * 6


def test_one_that_is_needed_again_takes_messages_again(system: CeleryFleet) -> None:
    """R-AS4: it is fenced while it finishes what it has, and no message is brought to it; upon that it is taken back. A message
    that waits for it for long may be sent once more meanwhile.
    """
    bounds(system, 1, 1)
    first = system.trigger("gated")
    busy = system.worker(system.epoch(first))
    bounds(system, 0, 0)
    with Client.from_url(system.broker.url) as client:
        wait_until(lambda: not any("b" in each["flags"] for each in client.client_list()), "nobody to wait for messages")
    second = system.trigger("gated")
    wait_until(lambda: system.sends(second) == 1, "it to be sent")
    bounds(system, 1, 1)
    wait_until(lambda: system.marked(f"gated-{second}") == 1, lambda: system.told("gated", second))
    for run_id in (first, second):
        system.open(f"open-{run_id}")
        assert system.end_of("gated", run_id) == "success", system.told("gated", run_id)
    assert pids(system) == {busy.pid}


def test_one_that_is_killed_is_started_again_and_its_try_goes_on(system: CeleryFleet) -> None:
    """R-AS3, R-EX2: the worker beside it finishes what it has."""
    bounds(system, 1, 1)
    run_id = system.trigger("gated")
    beside = system.worker(system.epoch(run_id))
    celery = beside.parent()
    assert celery is not None
    celery.send_signal(signal.SIGKILL)
    wait_until(lambda: pids(system) - {beside.pid}, "another one to be started")
    system.open(f"open-{run_id}")
    assert system.end_of("gated", run_id) == "success"
    assert [each.losses for each in system.tasks("gated", run_id)] == [0]
    wait_until(lambda: systems.is_over(beside), "the one beside it to end")
