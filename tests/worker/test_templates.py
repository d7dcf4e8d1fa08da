"""Templates and their owners: whatever becomes of one of them, the other does what is left to do, and nothing stays behind."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
from pathlib import Path
from typing import Any

import psutil
import pytest

from evenflow.forking.boot_clock import boot_time
from evenflow.forking.exits import Exit
from evenflow.forking.orphans import reap_adopted
from evenflow.forking.owned_child import LAST_OUTPUT, OwnedChild
from evenflow.forking.owned_template import OwnedTemplate
from evenflow.forking.owned_trunk import OwnedProcess
from evenflow.forking.template import MESSAGE_LIMIT, SUMMARY_LIMIT, _failure
from evenflow.membership import limits
from evenflow.worker.service import WorkerService
from tests.waiting import until
from tests.worker.conftest import Heard, StartTemplate
from tests.worker.world import World, number_in, runs, wait_for


def begin(template: OwnedTemplate, do: str) -> Heard:
    heard = Heard()
    template.begin({"do": do}, heard)
    return heard


async def test_a_descriptor_that_is_handed_over_is_of_this_child_alone(start_template: StartTemplate) -> None:
    """Each start gets a copy, so what listens there outlives the process that serves."""
    template = await start_template()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        for _ in range(2):
            heard = Heard()
            serve = "import socket; socket.socket(fileno=link.handed[0]).accept()[0].send(b'here')"
            template.begin({"do": serve}, heard, handed=[listener.fileno()])
            reader, writer = await asyncio.open_connection(*listener.getsockname())
            assert await asyncio.wait_for(reader.read(), 20) == b"here"
            writer.close()
            await until(lambda heard=heard: heard.end, "its end")
    other = begin(template, "print(*link.handed)")
    await until(lambda: other.end, "its end")
    assert other.printed == b"\n"


@pytest.fixture
def narrow_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few messages fill them."""
    pair = socket.socketpair

    def narrow(*args: Any) -> tuple[socket.socket, socket.socket]:
        ends = pair(*args)
        for end in ends:
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)  # the kernel makes it its least
        return ends

    monkeypatch.setattr(socket, "socketpair", narrow)


def unread(template: OwnedTemplate) -> bool:
    try:
        return bool(template._socket.recv(1, socket.MSG_PEEK))
    except BlockingIOError:
        return False


def wait_without_collecting(*pids: int) -> None:
    """Nor can the event loop do so meanwhile."""
    for pid in pids:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)


@pytest.mark.parametrize("end", ["killed with a message unread", "says what no owner says"])
async def test_a_template_that_loses_its_owner_leaves_nothing(start_template: StartTemplate, tmp_path: Path, end: str) -> None:
    """Also what its tries have started: it outlives them unless somebody ends it."""
    template = await start_template()
    pids = tmp_path / "pids"
    begin(
        template,
        "import subprocess, time\n"
        "sleep = subprocess.Popen(['sleep', '600'])\n"
        f"open({str(pids)!r}, 'w').write(f'{{sleep.pid}}.')\n"
        "time.sleep(600)",
    )
    left = await until(lambda: number_in(pids), "the program of a try")
    short = begin(template, wait_for(tmp_path / "go"))
    await until(lambda: short.pid, "another try")
    loop = asyncio.get_running_loop()
    loop.remove_reader(template._process.pidfd)  # as one that is dead it hears nothing, and so ends nothing itself
    loop.remove_reader(template._socket)
    try:
        if end.startswith("killed"):
            (tmp_path / "go").touch()
            await until(lambda: unread(template), "a message")
            template._socket.close()
        else:
            template._socket.send(b"nonsense")
        await until(lambda: not runs(template.pid), "the end of the template")
        await until(lambda: not runs(left), "the end of the program")
    finally:
        loop.add_reader(template._process.pidfd, template._die)


async def test_an_owner_that_reads_nothing_does_not_stop_its_template(
    narrow_sockets: None, start_template: StartTemplate, tmp_path: Path
) -> None:
    """It goes on to reap, and to freeze when the lease is over; later it says all that it could not say."""
    template = await start_template()
    long = begin(template, wait_for(tmp_path / "never"))
    short = [begin(template, wait_for(tmp_path / "go")) for _ in range(20)]
    await until(lambda: long.pid and all(heard.pid for heard in short), "all processes")
    loop = asyncio.get_running_loop()
    loop.remove_reader(template._socket)
    (tmp_path / "go").touch()
    await until(lambda: not any(psutil.pid_exists(heard.pid) for heard in short), "the end of the short ones")
    template.lease(boot_time())
    await until(lambda: psutil.Process(long.pid).status() == psutil.STATUS_STOPPED, "the stop of the long one")
    loop.add_reader(template._socket, template._read)
    await until(lambda: all(heard.end for heard in short), "the news of the short ones")
    assert {heard.end.status for heard in short if heard.end} == {0}
    assert long.end is None


async def test_forks_that_were_never_sent_keep_no_descriptors(narrow_sockets: None, start_template: StartTemplate) -> None:
    before = len(os.listdir("/proc/self/fd"))
    template = await start_template()
    await until(lambda: template._spare and template._spare.pid, "the spare process")
    os.kill(template.pid, signal.SIGSTOP)
    begun = [begin(template, "pass") for _ in range(20)]
    assert len(template._outbox) > 5
    os.kill(template.pid, signal.SIGKILL)
    await until(lambda: all(heard.end for heard in begun), "the end of all")
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("character", ["a", "\n", "\u6f22", "\udce9", "\U0001f680"])
def test_a_failure_fits_into_a_message(character: str) -> None:
    """Its trace loses its beginning, no more of it than must be, and a reason of any length is no harm."""
    for summary in ("s", character * 2 * SUMMARY_LIMIT):
        message = _failure(summary, "the beginning" + character * 20_000 + "the end")
        assert len(message) <= MESSAGE_LIMIT
        said = json.loads(message)
        assert said["failed"] == summary[:SUMMARY_LIMIT]
        assert said["trace"].endswith(character * 1000 + "the end")
        assert len(message) > MESSAGE_LIMIT - 12 or len(said["trace"]) == 16384


async def test_what_outlived_its_template_is_collected(
    world: World, worker: WorkerService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that left by setsid may stay for years; when it ends nobody else waits for it."""
    epoch = world.task("import subprocess\nreturn subprocess.Popen(['sleep', '600'], start_new_session=True).pid")
    await world.exit_of(epoch)
    left = world.xcom(epoch)
    monkeypatch.setattr(limits, "IDLE_TEMPLATE", -1.0)
    worker._templates.end_idle()
    await until(lambda: psutil.Process(left).ppid() == os.getpid(), "its adoption")
    os.kill(left, signal.SIGKILL)
    await until(lambda: not runs(left), "its end")
    await worker._presence.beat_now()
    assert not psutil.pid_exists(left)


async def test_what_somebody_waits_for_is_not_collected(start_template: StartTemplate) -> None:
    template = await start_template()
    heard = begin(template, "import time; time.sleep(600)")
    program = await asyncio.to_thread(subprocess.Popen, ["false"])
    os.kill(template.pid, signal.SIGKILL)
    wait_without_collecting(template.pid, program.pid)
    reap_adopted(OwnedProcess.pids)
    assert program.poll() == 1
    await until(lambda: heard.end, "the news")
    assert heard.end is not None
    assert "killed by SIGKILL" in str(heard.end.lost)
    assert template.pid not in OwnedProcess.pids


async def test_what_a_try_left_may_write_for_ever() -> None:
    """After the end of the try itself nobody listens for long."""
    control, their_control = socket.socketpair()
    output, their_output = os.pipe2(os.O_CLOEXEC)
    control.setblocking(False)
    os.set_blocking(output, False)

    class Endless(Heard):
        def output(self, data: bytes) -> None:
            super().output(data)
            assert len(self.printed) < 4 * LAST_OUTPUT
            os.write(their_output, data)

    heard = Endless()
    try:
        child = OwnedChild(control, output, 1, lambda message: None, 0)
        child.begin({}, heard)
        os.write(their_output, b"y\n" * 20_000)
        child.on_exited(Exit(0))
        assert heard.end == Exit(0)
        assert len(heard.printed) >= LAST_OUTPUT
    finally:
        os.close(their_output)
        their_control.close()
