"""R-CS6: a worker that beats and lists a try, and never starts or never ends it, holds it no longer than it may."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from evenflow.api import limits as api_limits
from evenflow.api.service import ApiService
from evenflow.client.rest import RestClient
from evenflow.core.lease import STRETCH
from evenflow.core.limits import ENDING_S, LEASE_S, STARTS_WITHIN_S
from evenflow.core.service import ServiceKind
from evenflow.forking.remains import DEAD_WITHIN_S
from evenflow.runtime.settings import Settings
from evenflow.scheduler.duties.leases import give_up_hung, watch_leases
from evenflow.store.db.connect import connect
from evenflow.store.db.rows import execute
from evenflow.store.scheduling import leases
from evenflow.worker import limits
from evenflow.worker.service import WorkerService
from tests.tokens import operator_token
from tests.waiting import until
from tests.worker.world import World, number_in, runs

# A worker that forgets something of its first try: to begin it, to hear of its end, or to end it.
HUNG = """
import sys
from evenflow.runtime import service
from evenflow.worker.attempt import Attempt

forgotten, whole = [], getattr(Attempt, sys.argv[1])

def forget(self, *args):
    if not forgotten:
        forgotten.append(self)
    if self is not forgotten[0]:
        whole(self, *args)

setattr(Attempt, sys.argv[1], forget)
sys.argv[1] = "worker"
sys.exit(service.main())
"""
TIMEOUT_S = 0.2
LASTING = "import os, time\nopen({0!r}, 'w').write(str(os.getpid()) + '.')\nwhile True: time.sleep(0.02)\n"


@asynccontextmanager
async def hung_worker(api: ApiService, token: str, home: Path, forgets: str) -> AsyncIterator[None]:
    settings = Settings(home=home, dags=home).for_service(
        name="hung", api_url=f"http://127.0.0.1:{api.port}", token=token, metrics_port=-1
    )
    environment = settings.environment(ServiceKind.WORKER, os.environ)
    process = await asyncio.to_thread(subprocess.Popen, [sys.executable, "-c", HUNG, forgets], env=environment)
    try:
        yield
    finally:
        process.kill()
        await asyncio.to_thread(process.wait)


@pytest.fixture
def scheduler(database_url: str) -> Iterator[psycopg.Connection[Any]]:
    with connect(database_url, name="scheduler", generic_plans=True) as conn:
        yield conn


class Held:
    """A try that a worker has claimed."""

    def __init__(self, world: World, epoch: int) -> None:
        self.world, self.epoch = world, epoch

    @property
    def service(self) -> int:
        return int(self.world.one("select worker_id from dispatch where epoch = %s", self.epoch))

    @property
    def state(self) -> str:
        return str(self.world.one("select state from service where service_id = %s", self.service))

    def runs(self) -> None:
        """A scheduler has applied the report of its start."""
        self.world.conn.execute("update task_instance set state = 'running' where epoch = %s", [self.epoch])
        self.world.conn.execute("delete from report where kind = 'started'")

    @property
    def is_marked(self) -> bool:
        return bool(self.world.one("select started from dispatch where epoch = %s", self.epoch))

    def ages(self, seconds: float) -> None:
        """It was claimed, or was to be killed, so long ago, and all was well since."""
        self.world.conn.execute("update lease_clock set ticked_at = now(), counted_from = now() - interval '1 day'")
        self.world.conn.execute(
            "update dispatch set claimed_at = now() - make_interval(secs => %(s)s),"
            " kill_at = case when kill then now() - make_interval(secs => %(s)s) end",
            {"s": seconds},
        )


@pytest.mark.parametrize(
    ("forgets", "may_take_s"),
    [("begin", STARTS_WITHIN_S), ("exited", ENDING_S + STRETCH * TIMEOUT_S), ("end", ENDING_S + STRETCH * TIMEOUT_S)],
)
async def test_a_worker_that_beats_and_hangs_is_given_up(
    api: ApiService,
    world: World,
    worker_token: str,
    tmp_path: Path,
    scheduler: psycopg.Connection[Any],
    forgets: str,
    may_take_s: float,
) -> None:
    """It learns it at its next beat, kills what it has, and begins anew; its try is reported a lease after it was heard last."""
    pid_file = tmp_path / "pid"
    async with hung_worker(api, worker_token, tmp_path / "home", forgets):
        held = Held(
            world, world.task("pass" if forgets == "exited" else LASTING.format(str(pid_file)), execution_timeout=TIMEOUT_S)
        )
        await until(lambda: world.claimed(held.epoch), "the claim")
        if forgets != "begin":
            await until(lambda: world.reports(held.epoch), "the report of its start")
            held.runs()
        pid = await until(lambda: number_in(pid_file), "its process") if forgets == "end" else None
        held.ages(may_take_s - 30.0)
        give_up_hung(scheduler)
        assert held.state == "active"
        assert forgets != "begin" or not held.is_marked
        held.ages(may_take_s + 1.0)
        give_up_hung(scheduler)
        assert held.state == "lost"
        watch_leases(scheduler)
        assert world.reports(held.epoch) == [], "it may not know it yet"
        await until(lambda: world.one("select count(*) from service where kind = 'worker' and state = 'active'"), "its return")
        await until(lambda: pid is None or not runs(pid), "the end of its process")
        watch_leases(scheduler)
        assert world.reports(held.epoch) == [], "it was heard of less than a lease ago"
        world.conn.execute(
            "update service set beat_at = beat_at - make_interval(secs => %s) where service_id = %s", [LEASE_S, held.service]
        )
        watch_leases(scheduler)
        assert [kind for kind, _ in world.reports(held.epoch)] == ["lost"]
        world.end(held.epoch)
        assert (await world.exit_of(world.task("pass")))["outcome"] == "success"


async def test_one_that_does_not_kill_what_it_is_to_kill_is_given_up(
    api: ApiService, world: World, worker_token: str, tmp_path: Path, scheduler: psycopg.Connection[Any]
) -> None:
    """However long its try may run."""
    async with hung_worker(api, worker_token, tmp_path / "home", "end"):
        held = Held(world, world.task(LASTING.format(str(tmp_path / "pid"))))
        await until(lambda: world.reports(held.epoch), "the report of its start")
        held.runs()
        held.ages(10 * ENDING_S)
        give_up_hung(scheduler)
        assert held.state == "active", "it has no timeout"
        world.ask_to_kill(held.epoch)
        give_up_hung(scheduler)
        assert held.state == "active", "it was told just now"
        held.ages(ENDING_S + 1.0)
        give_up_hung(scheduler)
        assert held.state == "lost"


@pytest.mark.parametrize("fate", ["lost", "set aside"])
async def test_no_worker_is_given_up_for_the_report_of_a_start(
    world: World, worker: WorkerService, scheduler: psycopg.Connection[Any], fate: str
) -> None:
    """R-CS6: it lists what runs, and what does not run yet, in each beat. Of a start that nobody knows one report more is made."""
    epoch = world.task("import time; time.sleep(600)")
    held = Held(world, epoch)
    await until(lambda: world.reports(epoch), "the report of its start")
    if fate == "lost":
        world.conn.execute("delete from report")
    else:
        run_key = world.one("select run_key from dispatch where epoch = %s", epoch)
        names = {"run_key": run_key, "kind": "started", "epoch": epoch, "reason": "ValueError", "length": 100}
        execute(scheduler, "quarantine/set_report_aside", names)
    assert world.reports(epoch) == []
    held.ages(api_limits.START_MARKED + 1.0)
    await until(lambda: held.is_marked, "the beat that says so")
    assert [kind for kind, _ in world.reports(epoch)] == ["started"]
    world.conn.execute("delete from report")  # if that is set aside, too
    held.ages(STARTS_WITHIN_S + 1.0)
    give_up_hung(scheduler)
    assert held.state == "active"


@pytest.mark.system
async def test_a_worker_that_cannot_end_a_try_and_says_so_is_not_given_up(
    world: World, worker: WorkerService, scheduler: psycopg.Connection[Any], api: ApiService, outrun: threading.Event
) -> None:
    """R-CS9: elsewhere its task would begin beside what lives, and the worker could do no more than it does. People are told."""
    leaves = "import subprocess, time; subprocess.Popen(['sleep', '600'], start_new_session=True); time.sleep(600)"
    held, other = Held(world, world.task(leaves)), Held(world, world.task("import time; time.sleep(600)"))
    await until(lambda: world.reports(held.epoch) and world.reports(other.epoch), "the reports of their starts")
    held.runs()
    other.runs()
    world.ask_to_kill(held.epoch)
    await until(lambda: world.one("select detail -> 'outrun' from service where kind = 'worker'") == [held.epoch], "its beat")
    for _ in range(2):
        held.ages(10 * ENDING_S)
        give_up_hung(scheduler)
        watch_leases(scheduler)
        assert held.state == "active"
    async with RestClient(f"http://127.0.0.1:{api.port}", operator_token(world.conn)) as client:
        (told,) = (await client.get_status()).outrun
    assert (told.worker, told.dag_id, told.task_id) == ("w", "d", "t")
    assert [(row[0], row[2], row[4]) for row in leases.list_outrun(scheduler)] == [("w", "d", "t")]
    outrun.clear()
    assert (await world.exit_of(held.epoch))["outcome"] == "failed"
    await until(lambda: world.one("select not detail ? 'outrun' from service where kind = 'worker'"), "its beat")
    world.conn.execute("delete from report")
    give_up_hung(scheduler)
    assert held.state == "lost", "as any other that says nothing of it"


async def test_the_start_of_what_is_known_to_run_is_not_told_again(world: World, worker: WorkerService) -> None:
    epoch = world.task("import time; time.sleep(600)")
    held = Held(world, epoch)
    await until(lambda: world.reports(epoch), "the report of its start")
    held.runs()
    held.ages(api_limits.START_MARKED + 1.0)
    await until(lambda: held.is_marked, "the beat that says so")
    assert world.reports(epoch) == []


async def test_time_in_which_nobody_could_be_heard_counts_for_nothing(world: World, scheduler: psycopg.Connection[Any]) -> None:
    world.service()
    held = Held(world, world.task("pass"))
    world.conn.execute("update dispatch set worker_id = (select max(service_id) from service), claimed_at = now()")
    held.ages(2 * STARTS_WITHIN_S)
    world.conn.execute("update lease_clock set counted_from = now() - make_interval(secs => %s)", [STARTS_WITHIN_S - 1.0])
    give_up_hung(scheduler)
    assert held.state == "active"
    held.ages(2 * STARTS_WITHIN_S)
    world.conn.execute("insert into report (run_key, kind, epoch) select run_key, 'started', epoch from dispatch")
    give_up_hung(scheduler)
    assert held.state == "active", "its start waits to be applied"
    world.conn.execute("delete from report")
    give_up_hung(scheduler)
    assert held.state == "lost"


def test_a_worker_that_works_is_always_quicker() -> None:
    """Also one whose tries stand still at the end of each lease."""
    assert STRETCH * limits.START_WITHIN + 60.0 < STARTS_WITHIN_S
    stops = max(limits.TERM_GRACE, limits.CLEAN_UP_GRACE) + DEAD_WITHIN_S
    in_another_process = limits.START_WITHIN + limits.CLEAN_UP + stops
    assert STRETCH * (limits.START_WITHIN + stops + in_another_process + limits.LOG_STORED) + 60.0 < ENDING_S
