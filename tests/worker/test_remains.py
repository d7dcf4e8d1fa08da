"""R-CS9: whatever a try has started is dead before its task may begin again, whatever session and parent it left."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import threading
from collections.abc import Collection, Iterator
from pathlib import Path

import psutil
import pytest

from evenflow.api.service import ApiService
from evenflow.forking.remains import PROCESSES_NAMED, named, still_running
from evenflow.worker import limits
from evenflow.worker.service import WorkerService
from tests.observed import observations
from tests.waiting import DEADLINE_S, until
from tests.worker.conftest import Heard, StartTemplate, StartWorker, worker_process
from tests.worker.world import World, number_in, runs, wait_for

# In a session of its own beside its parent; a copy of the task that is nobody's child; a program without any environment.
STRAYS = """
import os, subprocess, sys, time
folder = {folder!r}
def say(name, pid):
    with open(folder + name + ".new", "w") as file:
        file.write(f"{{pid}}.")
    os.rename(folder + name + ".new", folder + name)
say("session", subprocess.Popen(["sleep", "600"], start_new_session=True).pid)
if not (child := os.fork()):
    os.setsid()
    if os.fork():
        os._exit(0)
    say("daemon", os.getpid())
    time.sleep(600)
    os._exit(0)
os.waitpid(child, 0)
bare = f"printf $$. > {{folder}}new && mv {{folder}}new {{folder}}bare && exec sleep 600"
subprocess.run(["env", "-i", "/usr/bin/setsid", "-f", "/bin/sh", "-c", bare], check=True)
while not all(os.path.exists(folder + name) for name in ("session", "daemon", "bare")):
    time.sleep(0.01)
"""
NAMES = ("session", "daemon", "bare")


class Strays:
    """What the task of this has started."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.task = STRAYS.format(folder=f"{folder}/")

    async def pids(self) -> list[int]:
        return await until(lambda: [pid for pid in self._now() if pid] if all(self._now()) else [], "three processes")

    def _now(self) -> list[int]:
        return [number_in(self._folder / name) for name in NAMES]

    def end(self) -> None:
        for pid in self._now():
            if pid and runs(pid):
                with contextlib.suppress(ProcessLookupError):  # it is just being killed
                    os.kill(pid, signal.SIGKILL)


@pytest.fixture
def strays(tmp_path: Path) -> Iterator[Strays]:
    folder = tmp_path / "strays"
    folder.mkdir()
    found = Strays(folder)
    yield found
    found.end()


async def test_of_a_try_that_is_ended_on_request(world: World, worker: WorkerService, strays: Strays) -> None:
    """Clear, cancel and mark of what runs: the exit that they wait for is told when nothing is left."""
    epoch = world.task(strays.task + "time.sleep(600)")
    pids = await strays.pids()
    world.ask_to_kill(epoch)
    assert (await world.exit_of(epoch))["reason"].startswith("ended on request")
    assert not any(map(runs, pids))


async def test_of_a_try_that_ignores_its_end(
    world: World, worker: WorkerService, strays: Strays, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "TERM_GRACE", 0.2)
    epoch = world.task(strays.task + "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)")
    pids = await strays.pids()
    world.ask_to_kill(epoch)
    assert (await world.exit_of(epoch))["exit_code"] == -9
    assert not any(map(runs, pids))


@pytest.mark.system
async def test_of_a_try_that_takes_too_long(world: World, worker: WorkerService, strays: Strays) -> None:
    epoch = world.task(strays.task + "time.sleep(600)", execution_timeout=2.0)
    pids = await strays.pids()
    assert (await world.exit_of(epoch))["reason"] == "execution_timeout of 2 s exceeded"
    assert not any(map(runs, pids))


@pytest.mark.parametrize("how", ["raise RuntimeError", "os._exit(3)", "os.kill(os.getpid(), 9)"])
async def test_of_a_try_that_fails(world: World, worker: WorkerService, strays: Strays, how: str) -> None:
    """Its task may begin again at once."""
    epoch = world.task(strays.task + how)
    assert (await world.exit_of(epoch))["outcome"] == "failed"
    assert not any(map(runs, await strays.pids()))


async def test_of_a_try_that_was_taken_back(world: World, worker: WorkerService, strays: Strays) -> None:
    epoch = world.task(strays.task + "time.sleep(600)")
    pids = await strays.pids()
    world.end(epoch)
    await until(lambda: not any(map(runs, pids)), "the end of all three")


async def test_of_a_worker_that_stops(world: World, start_worker: StartWorker, strays: Strays) -> None:
    """It says goodbye, upon which its tries begin elsewhere, when nothing is left."""
    worker = await start_worker()
    world.task(strays.task + "time.sleep(600)")
    pids = await strays.pids()
    await worker.stop()
    assert world.one("select state from service where kind = 'worker'") == "stopped"
    assert not any(map(runs, pids))


async def test_of_a_worker_that_is_lost(world: World, worker: WorkerService, strays: Strays) -> None:
    world.task(strays.task + "time.sleep(600)")
    pids = await strays.pids()
    world.conn.execute("update service set state = 'lost' where kind = 'worker'")
    await until(lambda: not any(map(runs, pids)), "the end of all three")


async def test_of_a_template_that_is_killed(world: World, worker: WorkerService, strays: Strays) -> None:
    epoch = world.task(strays.task + "time.sleep(600)")
    pids = await strays.pids()
    os.kill(psutil.Process(pids[1]).ppid(), signal.SIGKILL)
    assert "the template process" in (await world.exit_of(epoch))["reason"]
    assert not any(map(runs, pids))


async def test_of_a_worker_that_is_killed(world: World, api: ApiService, worker_token: str, strays: Strays, tmp_path: Path) -> None:
    """Its templates see it, long before its lease is over."""
    async with worker_process(api, worker_token, tmp_path) as service:
        world.task(strays.task + "time.sleep(600)")
        pids = await strays.pids()
        service.kill()
        await until(lambda: not any(map(runs, pids)), "the end of all three")


@pytest.mark.parametrize("end", ["return 1", "raise AirflowSkipException"])
async def test_what_a_try_leaves_in_the_ordinary_way_stays(world: World, worker: WorkerService, strays: Strays, end: str) -> None:
    """Its author meant that: nothing begins again. Another try of the same file that is ended takes nothing of it along."""
    epoch = world.task(strays.task + end, head="from evenflow.exceptions import AirflowSkipException\n")
    await world.exit_of(epoch)
    pids = await strays.pids()
    other = world.task("raise RuntimeError")
    await world.exit_of(other)
    assert all(map(runs, pids))


async def test_what_is_left_running_is_told(world: World, start_worker: StartWorker, strays: Strays) -> None:
    """R-CS10: by the log of its try, of that alone, and by the worker at its end, as long as it runs. What stays in the session of
    the try is killed.
    """
    worker = await start_worker()
    same_session = "subprocess.Popen(['sleep', '601'], process_group=0)\n"
    epoch = world.task(strays.task + same_session)
    said = await world.logged(epoch, " running: ")
    pids = await strays.pids()
    assert "-- left 3 processes running: " in said
    assert all(f" (pid {pid})" in said for pid in pids)
    assert f"sleep (pid {pids[0]})" in said
    one = world.task("import subprocess; subprocess.Popen(['sleep', '600'], start_new_session=True)")
    alone = re.search(r"-- left 1 process running: sleep \(pid (\d+)\) --", await world.logged(one, " running: "))
    assert alone
    os.kill(int(alone[1]), signal.SIGKILL)
    await until(lambda: not runs(int(alone[1])), "its end")
    other = world.task("print('done')")
    await world.exit_of(other)
    assert " running: " not in await world.logged(other, "done")
    os.kill(pids[1], signal.SIGKILL)
    await until(lambda: not runs(pids[1]), "its end")
    with observations() as logs:
        await worker.stop()
    (told,) = [each["processes"] for each in logs if each["fact"] == "processes_left"]
    assert sorted(told.split(", ")) == sorted(f"sleep (pid {pid})" for pid in (pids[0], pids[2]))
    assert runs(pids[0])


def test_few_are_named() -> None:
    """R-CS10"""
    told = named([os.getpid()] * (PROCESSES_NAMED + 2)).split(", ")
    assert (len(told), told[-1]) == (PROCESSES_NAMED + 1, "...")
    assert named([2**22 + 1]) == f"? (pid {2**22 + 1})"


async def test_what_cannot_be_killed_is_told(
    world: World, worker: WorkerService, strays: Strays, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that hangs in the kernel does nothing any more, and may hang for ever: after a while the try's end is told."""
    monkeypatch.setattr("evenflow.forking.remains.DEAD_WITHIN_S", 0.2)
    monkeypatch.setattr(signal, "pidfd_send_signal", lambda *_: None)
    monkeypatch.setattr("evenflow.forking.remains.strike_group", lambda *_: None)
    epoch = world.task(strays.task + "raise RuntimeError")
    assert (await world.exit_of(epoch))["outcome"] == "failed"
    pids = await strays.pids()
    said = await world.logged(epoch, "could not be killed")
    assert all(str(pid) in said for pid in pids)


async def test_what_is_left_stands_while_nobody_has_decided_about_it(start_template: StartTemplate, strays: Strays) -> None:
    """Its owner may be stopped, or may not have told of the end yet: when the lease is over, the task may begin elsewhere."""
    template, heard = await start_template(), Heard()
    child = template.begin({"do": f"exec({strays.task!r}, {{}})"}, heard, decides=True)
    pids = await strays.pids()
    await until(lambda: heard.end, "its end")
    assert template.children == 1
    template.lease(asyncio.get_running_loop().time())
    await until(lambda: all(psutil.Process(pid).status() == psutil.STATUS_STOPPED for pid in pids), "their stop")
    template.lease(asyncio.get_running_loop().time() + 60)
    await until(lambda: all(psutil.Process(pid).status() == psutil.STATUS_SLEEPING for pid in pids), "their going on")
    child.let_go()
    template.lease(asyncio.get_running_loop().time())
    other = template.begin({"do": "import time; time.sleep(600)"}, begun := Heard())
    await until(lambda: begun.pid and psutil.Process(begun.pid).status() == psutil.STATUS_STOPPED, "the stop of another")
    assert all(psutil.Process(pid).status() == psutil.STATUS_SLEEPING for pid in pids)
    assert template.children == 1
    other.send_signal(signal.SIGKILL)


@pytest.mark.parametrize("how", ["told", "killed"])
async def test_what_is_left_ends_with_its_template_while_nobody_has_decided_about_it(
    start_template: StartTemplate, strays: Strays, how: str
) -> None:
    """Nobody else would stop it at the end of the lease. The end of its owner is told to a template in the same way."""
    template, heard = await start_template(), Heard()
    template.begin({"do": f"exec({strays.task!r}, {{}})"}, heard, decides=True)
    pids = await strays.pids()
    await until(lambda: heard.end, "its end")
    assert all(map(runs, pids))
    if how == "killed":
        os.kill(template.pid, signal.SIGKILL)
    else:
        await template.close()
    await until(lambda: not any(map(runs, pids)), "the end of all three")


async def test_what_is_left_ends_when_its_try_is_taken_back_before_its_exit_is_stored(
    world: World, api: ApiService, worker: WorkerService, strays: Strays, tmp_path: Path
) -> None:
    """An ordinary end that nobody has heard of counts for nothing: the task has begun again elsewhere."""
    epoch = world.task(strays.task + wait_for(tmp_path / "go"))
    pids = await strays.pids()
    await api.stop()
    (tmp_path / "go").touch()
    await until(lambda: epoch not in worker._tries.epochs, "its end")
    assert all(map(runs, pids))
    worker._tries.revoke([epoch])
    await until(lambda: not any(map(runs, pids)), "the end of all three")


@pytest.mark.parametrize("how", ["taken back", "ended"])
async def test_what_is_left_ends_when_its_try_is_taken_back_or_ended_while_it_is_looked_for(
    world: World, worker: WorkerService, strays: Strays, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """R-CS9: who asked for that begins the task again upon its exit, or has done so."""
    looking, go = threading.Event(), threading.Event()

    def look(marks: Collection[int], sessions: Collection[int] = ()) -> dict[int, list[int]]:
        looking.set()
        assert go.wait(DEADLINE_S)
        return still_running(marks, sessions)

    monkeypatch.setattr("evenflow.worker.leftovers.still_running", look)
    epoch = world.task(strays.task)
    pids = await strays.pids()
    await until(looking.is_set, "the look")
    assert all(map(runs, pids))
    if how == "ended":
        worker._tries.end([epoch], "ended on request")
    else:
        worker._tries.revoke([epoch])
    go.set()
    await until(lambda: epoch not in worker._tries.epochs, "its end")
    assert not any(map(runs, pids))
