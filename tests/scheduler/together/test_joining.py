"""Schedulers come and go while there is work: orderly, and without anybody being told how many there are."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from evenflow.core.model import DagSpec, TaskSpec
from tests.scheduler.processes import ACTIVE, Schedulers, verify
from tests.scheduler.world import World
from tests.waiting import wait_until

CHAIN = DagSpec(
    dag_id="d",
    tasks=tuple(TaskSpec(task_id=f"t{i}", operator="python", upstream=(i - 1,) if i else ()) for i in range(5)),
    max_active_runs=None,
)


@contextmanager
def load(world: World) -> Iterator[list[int]]:
    """A worker that does all at once, and somebody who triggers runs all the time; gives the runs."""
    stop = threading.Event()
    runs: list[int] = []
    broken: list[BaseException] = []

    def work() -> None:
        try:
            while not stop.is_set():
                world.conn.execute("update service set beat_at = now() where service_id = %s", [world.worker])
                if len(runs) < 40 or world.conn.execute("select count(*) < 40 from dag_run where state = 'running'").fetchone()[0]:
                    runs.append(world.trigger("d"))
                    world.conn.execute("select pg_notify('inbox', '')")
                world.report(world.claim())
        except BaseException as error:
            broken.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield runs
        stop.set()
        thread.join()
        assert broken == []

        def finished() -> bool:
            world.report(world.claim())
            return not world.conn.execute("select count(*) from dag_run where state in ('queued', 'running')").fetchone()[0]

        wait_until(finished)
    finally:
        stop.set()
        thread.join()


def more(runs: list[int], number: int) -> None:
    """Returns when so many further runs were triggered; no more than 40 are under way at a time."""
    enough = len(runs) + number
    wait_until(lambda: len(runs) >= enough, within_s=60)


@pytest.mark.slow
def test_one_two_three_and_five_schedulers_come_and_go_under_load(world: World, schedulers: Schedulers) -> None:
    """R-HA1, R-HA9: each that leaves leaves nothing behind, and nobody keeps books about them. Those that the others leave nothing
    to do stand by, so not each of them starts something.
    """
    world.add_dag(CHAIN)
    schedulers.become(1)
    with load(world) as runs:
        for number in (2, 3, 5, 3, 5, 2, 1):
            schedulers.become(number)
            more(runs, 50)
    verify(world, runs)
    schedulers.become(0)
    assert len(schedulers.shares) == 7
    assert sum(share > 0 for share in schedulers.shares) > 1, "several started something"
    assert sum(schedulers.shares) == len(runs) * len(CHAIN.tasks)
    assert schedulers.conn.execute("select distinct state from service where kind = 'scheduler'").fetchall() == [("stopped",)]


@pytest.mark.slow
def test_a_scheduler_in_another_time_zone_is_killed_in_the_middle(world: World, schedulers: Schedulers) -> None:
    """R-HA17, R-HA12: every run completes, whichever of them dies."""
    world.add_dag(CHAIN)
    for timezone in ("UTC", "Asia/Kathmandu", "America/St_Johns"):
        schedulers.start(timezone)
    wait_until(lambda: schedulers.conn.execute(ACTIVE).fetchone() == (3,))
    with load(world) as runs:
        for victim in (1, 2):
            more(runs, 50)
            os.kill(schedulers.running[victim].pid, signal.SIGKILL)
        more(runs, 50)
    verify(world, runs)


ALONE = ("unshare", "--net", "--map-root-user") if os.geteuid() else ("unshare", "--net")
CAN_BE_ALONE = subprocess.run([*ALONE, "true"], capture_output=True).returncode == 0


@pytest.mark.slow
@pytest.mark.skipif(not CAN_BE_ALONE, reason="the kernel gives this account no network namespaces")
def test_schedulers_need_nothing_but_the_database(world: World, schedulers: Schedulers) -> None:
    """R-HA2: each is in a network of its own, in which there is nobody; the database is reached by its socket, a file."""
    world.add_dag(CHAIN)
    schedulers.start(within=ALONE)
    with load(world) as runs:
        more(runs, 30)
        schedulers.start(within=ALONE)
        wait_until(lambda: schedulers.conn.execute(ACTIVE).fetchone() == (2,))
        networks = {os.readlink(f"/proc/{process.pid}/ns/net") for process in schedulers.running}
        assert len(networks | {os.readlink("/proc/self/ns/net")}) == 3
        more(runs, 30)
        schedulers.running[0].terminate()
        more(runs, 30)
    verify(world, runs)
    schedulers.become(0)
    assert all(schedulers.shares)
