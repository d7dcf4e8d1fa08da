"""Schedulers as services: several at once, woken by events, stopped and killed."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from evenflow.core.limits import PARTITIONS_AHEAD
from evenflow.core.metrics import DATABASE_FAILURES, DUTY_FAILURES
from evenflow.core.model import DagSpec, TaskSpec
from evenflow.errors import DatabaseNotMigrated
from evenflow.scheduler import duties
from evenflow.scheduler.duties import agenda
from evenflow.scheduler.service import SchedulerService
from evenflow.store.scheduling.partitions import read_days_ahead
from tests.scheduler.world import World
from tests.waiting import DEADLINE_S, wait_until

CHAIN = DagSpec(
    dag_id="d",
    tasks=tuple(TaskSpec(task_id=f"t{i}", operator="python", upstream=(i - 1,) if i else ()) for i in range(5)),
    max_active_runs=None,
)
HOST = (
    "import asyncio, sys; from evenflow.runtime.lifecycle import host; from evenflow.scheduler.service import SchedulerService;"
    "sys.exit(asyncio.run(host(SchedulerService(sys.argv[1], name=sys.argv[2]), drain_timeout=5)))"
)


def work(world: World) -> bool:
    """One look for work by a worker that does everything at once; whether the runs have ended."""
    if tries := world.claim():
        world.report(tries)
        world.conn.execute("notify inbox")  # as the API does
    (live,) = world.conn.execute("select count(*) from dag_run where state in ('queued', 'running')").fetchone()
    return live == 0


def start(url: str, name: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", HOST, url, name], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


async def test_a_scheduler_runs_what_is_triggered_and_signs_off(world: World, database_url: str) -> None:
    world.add_dag(CHAIN)
    service = SchedulerService(database_url, name="s")
    await service.start()
    run = world.trigger("d")
    world.conn.execute("select pg_notify('inbox', '')")
    await asyncio.to_thread(wait_until, lambda: work(world), within_s=DEADLINE_S)
    await service.drain()
    await service.stop()
    assert world.run_state(run) == "success"
    world.audit()
    assert world.conn.execute("select state from service where kind = 'scheduler'").fetchone() == ("stopped",)


async def test_retention_that_always_fails_stops_nothing(world: World, database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-HA20: neither turns, nor other duties, nor the safety nets."""
    looks: dict[str, int] = {"sweep": 0, "watchdog": 0, "retention": 0}

    def look(name: str) -> Callable[..., None]:
        def count(*_: Any) -> None:
            looks[name] += 1

        return count

    def fail(*_: Any) -> None:
        looks["retention"] += 1
        raise psycopg.errors.QueryCanceled("canceling statement due to statement timeout")

    monkeypatch.setattr(duties, "delete_old", fail)
    monkeypatch.setattr(duties.Sweep, "perform", look("sweep"))
    monkeypatch.setattr(duties.Watchdog, "look", look("watchdog"))
    for module, name in ((duties, "SWEEP_S"), (duties, "WATCH_S"), (agenda, "SWEEP_S")):
        monkeypatch.setattr(module, name, 0.1)
    world.add_dag(CHAIN)
    service = SchedulerService(database_url, name="s")
    await service.start()
    run = world.trigger("d")
    await asyncio.to_thread(wait_until, lambda: work(world) and looks["sweep"] > 3 and looks["watchdog"] > 3, within_s=DEADLINE_S)
    await service.stop()
    assert world.run_state(run) == "success"
    assert looks["retention"] >= 2
    assert service.health.meter.value(DUTY_FAILURES, "retention") == looks["retention"]
    assert service.health.meter.value(DATABASE_FAILURES, "housekeeping") == 0, "the connection was all right"


async def test_partitions_are_there_before_the_first_turn(world: World, database_url: str) -> None:
    """R-HA20: what a turn writes into the default partition is in the way of the day's own."""
    world.add_dag(CHAIN)
    world.trigger("d")
    service = SchedulerService(database_url, name="s")
    await service.start()
    await asyncio.to_thread(wait_until, lambda: work(world), within_s=DEADLINE_S)
    await service.stop()
    assert world.conn.execute("select count(*) from task_event_default").fetchone() == (0,)
    assert read_days_ahead(world.conn) == PARTITIONS_AHEAD


async def test_a_scheduler_refuses_a_database_that_is_not_migrated(empty_database_url: str) -> None:
    with pytest.raises(DatabaseNotMigrated, match="evenflow db migrate"):
        await SchedulerService(empty_database_url, name="s").start()


@pytest.mark.system
def test_three_schedulers_share_the_work_and_one_is_killed(world: World, database_url: str) -> None:
    """R-HA1, R-HA3, R-HA9, R-HA17: all are active; kill -9 of one in the middle loses and doubles nothing."""
    world.add_dag(CHAIN)
    schedulers = [start(database_url, f"s{i}") for i in range(3)]
    try:
        wait_until(
            lambda: world.conn.execute("select count(*) from service where kind = 'scheduler'").fetchone() == (3,),
            within_s=DEADLINE_S,
        )
        runs = [world.trigger("d") for _ in range(60)]
        world.conn.execute("select pg_notify('inbox', '')")
        half_way = "select count(*) > 40 from task_event where state = 'success'"
        wait_until(lambda: work(world) or world.conn.execute(half_way).fetchone()[0], within_s=DEADLINE_S)
        os.kill(schedulers[0].pid, signal.SIGKILL)
        wait_until(lambda: work(world), within_s=60)
    finally:
        for process in schedulers:
            process.kill()
            process.wait()
    assert {world.run_state(run) for run in runs} == {"success"}
    twice = world.conn.execute(
        "select run_key, task_index from task_event where event = 'succeed' group by 1, 2 having count(*) > 1"
    ).fetchall()
    assert twice == []
    world.audit()
