"""R-CS7 from a worker's side: nobody answers, so its tries stand still; who answers decides which go on."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from evenflow.api.execution import services as beat_route
from evenflow.api.service import ApiService
from evenflow.core.limits import MARGIN_S
from evenflow.worker import limits
from evenflow.worker.service import WorkerService
from evenflow.worker.timers import Timers
from tests.apis import running_api
from tests.chaos.clock import Clock, compile_clock
from tests.waiting import until
from tests.worker.conftest import StartWorker, worker_process
from tests.worker.world import World, runs

LEASE_S = MARGIN_S + 1.0

# Three processes: the try itself, a child in a session of its own, and that one's child. Each counts in a file as long as it can.
COUNT = """
import os, sys, time
n = 0
while not os.path.exists(sys.argv[1] + "go"):
    n += 1
    open(sys.argv[2] + ".new", "w").write(f"{n} {os.getpid()}")
    os.rename(sys.argv[2] + ".new", sys.argv[2])
    time.sleep(0.005)
"""
COUNTING = f"""
import subprocess, sys
sys.argv = ["", {{counts!r}}, {{counts!r}} + "1", {COUNT!r}]
start = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', *sys.argv[3:], sys.argv[1], sys.argv[1] + '3'])"
start += "; exec(sys.argv[3])"
subprocess.Popen([sys.executable, "-c", start, sys.argv[1], sys.argv[1] + "2", sys.argv[3]], start_new_session=True)
exec(sys.argv[3])
"""


class Counts:
    """What a counting task says."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.task = COUNTING.replace("{counts!r}", repr(f"{folder}/c"))

    def read(self) -> list[tuple[int, int]]:
        """(count, pid) of each process that has begun."""
        files = [self.folder / f"c{number}" for number in (1, 2, 3)]
        return [(int(n), int(pid)) for n, pid in (file.read_text().split() for file in files if file.exists())]

    @property
    def all_count(self) -> bool:
        return len(self.read()) == 3

    @property
    def all_stand(self) -> bool:
        return self.all_count and all(psutil.Process(pid).status() == psutil.STATUS_STOPPED for _, pid in self.read())

    def have_gone_on(self, before: list[tuple[int, int]]) -> bool:
        return all(now > then for (now, _), (then, _) in zip(self.read(), before, strict=True))


@pytest.fixture
def counts(tmp_path: Path) -> Iterator[Counts]:
    folder = tmp_path / "counts"
    folder.mkdir()
    counts = Counts(folder)
    yield counts
    for _, pid in counts.read():
        if runs(pid):
            os.kill(pid, signal.SIGKILL)


@pytest.fixture
def short_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beat_route, "LEASE_S", LEASE_S)


@pytest.fixture
def port(api: ApiService) -> int:
    return api.port


async def freeze(world: World, api: ApiService, counts: Counts) -> int:
    """A try that runs, and then stands still because the API is gone; its epoch."""
    epoch = world.task(counts.task)
    await until(lambda: counts.all_count, "three processes that count")
    await api.stop()
    await until(lambda: counts.all_stand, "their stop")
    return epoch


@pytest.mark.system
async def test_a_try_stands_still_during_an_outage_and_goes_on_after_it(
    short_leases: None,
    world: World,
    api: ApiService,
    port: int,
    database_url: str,
    worker: WorkerService,
    counts: Counts,
    tmp_path: Path,
) -> None:
    """All of its processes do, also one that left the session. The worker stays the same, and the try says what happened."""
    epoch = await freeze(world, api, counts)
    before = counts.read()
    async with running_api(database_url, tmp_path, port=port):
        await until(lambda: counts.have_gone_on(before), "all three going on")
        (counts.folder / "cgo").touch()
        assert (await world.exit_of(epoch))["outcome"] == "success"
        log = await world.logged(epoch, "goes on after")
        assert "-- frozen: this worker has no answer from the control plane" in log
        assert world.one("select count(*) from service where kind = 'worker'") == 1
        await worker.stop()


async def test_a_try_that_was_taken_away_meanwhile_does_not_run_for_a_moment(
    short_leases: None,
    world: World,
    api: ApiService,
    port: int,
    database_url: str,
    worker: WorkerService,
    counts: Counts,
    tmp_path: Path,
) -> None:
    """Not even its processes that left its session; and another try, which is still this worker's, goes on."""
    epoch = await freeze(world, api, counts)
    before = counts.read()
    world.end(epoch)
    async with running_api(database_url, tmp_path, port=port):
        await until(lambda: not any(runs(pid) for _, pid in before), "the end of all three")
        assert counts.read() == before
        assert world.reports(epoch) in ([], [("started", None)])
        assert (await world.exit_of(world.task("pass")))["outcome"] == "success"
        await worker.stop()


async def test_a_worker_that_is_lost_kills_what_stands_still(
    short_leases: None,
    world: World,
    api: ApiService,
    port: int,
    database_url: str,
    worker: WorkerService,
    counts: Counts,
    tmp_path: Path,
) -> None:
    await freeze(world, api, counts)
    before = counts.read()
    world.conn.execute("update service set state = 'lost' where kind = 'worker'")
    async with running_api(database_url, tmp_path, port=port):
        await until(lambda: not any(runs(pid) for _, pid in before), "the end of all three")
        assert counts.read() == before
        await until(
            lambda: world.one("select count(*) from service where kind = 'worker' and state = 'active'"), "a new registration"
        )
        assert (await world.exit_of(world.task("pass")))["outcome"] == "success"
        await worker.stop()


@pytest.mark.system
async def test_a_try_that_stood_for_too_long_is_lost(
    short_leases: None,
    world: World,
    api: ApiService,
    port: int,
    database_url: str,
    worker: WorkerService,
    counts: Counts,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Through no fault of its own: the scheduler sends it again."""
    monkeypatch.setattr(limits, "FROZEN", 1.0)
    epoch = world.task(counts.task)
    await until(lambda: counts.all_count, "three processes that count")
    pids = [pid for _, pid in counts.read()]
    await api.stop()
    await until(lambda: not any(runs(pid) for pid in pids), "the end of all three")
    async with running_api(database_url, tmp_path, port=port):
        ended = await world.exit_of(epoch)
        assert (ended["outcome"], ended["reason"]) == ("lost", "frozen for 1 s, while nobody answered this worker")
        await worker.stop()


@pytest.mark.system
async def test_the_tries_of_a_worker_that_hangs_stand_still(
    short_leases: None, world: World, api: ApiService, worker_token: str, counts: Counts, tmp_path: Path
) -> None:
    """R-CS7: it is stopped itself, so it cannot do anything; its templates can. Taken away, they never run again."""
    async with worker_process(api, worker_token, tmp_path) as hung:
        await until(lambda: world.one("select count(*) from service where kind = 'worker'"), "its registration")
        epoch = world.task(counts.task)
        await until(lambda: counts.all_count, "three processes that count")
        hung.send_signal(signal.SIGSTOP)
        await until(lambda: counts.all_stand, "their stop")
        before = counts.read()
        world.end(epoch)
        hung.send_signal(signal.SIGCONT)
        await until(lambda: not any(runs(pid) for _, pid in before), "the end of all three")
        assert counts.read() == before
        assert (await world.exit_of(world.task("pass")))["outcome"] == "success"
        hung.terminate()
        assert await asyncio.to_thread(hung.wait, 60) == 0


async def test_time_in_which_a_try_stands_does_not_count() -> None:
    loop, happened = asyncio.get_running_loop(), asyncio.Event()
    timers = Timers()
    began = loop.time()
    timers.after(0.2, happened.set)
    timers.pause(began + 0.05)
    loop.call_later(0.5, timers.go_on)
    await happened.wait()
    assert loop.time() - began >= 0.65


@pytest.mark.system
async def test_a_host_that_was_suspended_finds_its_leases_over(
    world: World, api: ApiService, start_worker: StartWorker, counts: Counts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-CS7: its monotonic clock stood still meanwhile. What ran is stopped before anybody asks, and goes on under a new lease."""
    library = compile_clock(tmp_path)
    if library is None:
        pytest.skip("no C compiler")
    clock = Clock(library, tmp_path / "clock")
    for name, value in clock.environment.items():
        monkeypatch.setenv(name, value)  # of templates alone: this process has its clocks already
    await start_worker()
    epoch = world.task(counts.task)
    await until(lambda: counts.all_count, "three processes that count")
    clock.suspend(3600)
    await until(lambda: counts.all_stand, "their stop")
    before = counts.read()
    clock.suspend(0)
    await until(lambda: counts.have_gone_on(before), "all three going on")
    (counts.folder / "cgo").touch()
    assert (await world.exit_of(epoch))["outcome"] == "success"
