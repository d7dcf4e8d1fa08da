"""Hosting a service: every way in which it can begin and end."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from pathlib import Path

import pytest

from evenflow.errors import DatabaseUnavailable, SettingsError
from evenflow.runtime import lifecycle
from evenflow.runtime.lifecycle import host
from evenflow.runtime.readiness import ReadinessSocket
from evenflow.telemetry.service import Loops, Service


class Recorder(Service):
    """A service that writes down what is asked of it. What it is told to, it takes its time for."""

    kind = "worker"

    def __init__(self) -> None:
        super().__init__("recorder")
        self.calls: list[str] = []
        self.started = asyncio.Event()
        self.draining = asyncio.Event()
        self.may_drain = asyncio.Event()
        self.broken: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()

    async def _begin(self) -> Loops:
        self._opened.callback(lambda: self.calls.append("closed"))
        self.calls.append("start")
        self.started.set()
        return {"breaking": self._break()}

    async def _finish(self) -> None:
        self.calls.append("drain")
        self.draining.set()
        await self.may_drain.wait()
        self.calls.append("drained")

    async def _leave(self) -> None:
        self.calls.append("stop")

    async def _break(self) -> None:
        raise await self.broken


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_drains_then_stops(signum: signal.Signals) -> None:
    service = Recorder()
    hosting = asyncio.create_task(host(service, drain_timeout=60))
    await service.started.wait()
    os.kill(os.getpid(), signum)
    await asyncio.wait_for(service.draining.wait(), 5)
    service.may_drain.set()
    assert await hosting == 0
    assert service.calls == ["start", "drain", "drained", "stop", "closed"]


async def test_a_second_signal_stops_at_once() -> None:
    service = Recorder()
    hosting = asyncio.create_task(host(service, drain_timeout=60))
    await service.started.wait()
    os.kill(os.getpid(), signal.SIGTERM)
    await asyncio.wait_for(service.draining.wait(), 5)
    os.kill(os.getpid(), signal.SIGTERM)
    assert await hosting == 0
    assert service.calls == ["start", "drain", "stop", "closed"]


async def test_it_drains_once_when_the_process_that_needs_it_has_ended() -> None:
    """R-EX2: a signal after that is the first one, and not the second, which would end what it has in hand."""
    needing = await asyncio.create_subprocess_exec("sleep", "60")
    descriptor = os.pidfd_open(needing.pid)
    service = Recorder()
    hosting = asyncio.create_task(host(service, drain_timeout=60, needed_by=descriptor))
    await service.started.wait()
    needing.kill()
    await asyncio.wait_for(service.draining.wait(), 5)
    await needing.wait()
    os.kill(os.getpid(), signal.SIGTERM)
    for _ in range(10):  # turns of the loop, of which a signal takes three to be heard
        await asyncio.sleep(0)
    service.may_drain.set()
    assert await hosting == 0
    assert service.calls == ["start", "drain", "drained", "stop", "closed"]
    os.close(descriptor)


async def test_draining_is_bounded() -> None:
    service = Recorder()
    hosting = asyncio.create_task(host(service, drain_timeout=0.01))
    await service.started.wait()
    os.kill(os.getpid(), signal.SIGTERM)
    assert await hosting == 0
    assert service.calls == ["start", "drain", "stop", "closed"]


async def test_a_service_that_fails_is_stopped_and_the_exit_code_says_so() -> None:
    service = Recorder()
    service.broken.set_result(RuntimeError("the disk is full"))
    assert await host(service, drain_timeout=60) == 1
    assert service.calls == ["start", "stop", "closed"]


@pytest.mark.parametrize(
    ("failure", "traced"), [(SettingsError("Make one that can."), False), (RuntimeError("the disk is full"), True)]
)
async def test_a_failure_that_says_all_has_no_traceback(failure: Exception, traced: bool, caplog: pytest.LogCaptureFixture) -> None:
    """R-UX1"""
    service = Recorder()
    service.broken.set_result(failure)
    assert await host(service, drain_timeout=60) == 1
    (told,) = [record for record in caplog.records if "cannot go on" in record.getMessage()]
    assert str(failure) in told.getMessage()
    assert bool(told.exc_info) == traced


async def test_what_start_raises_passes_through() -> None:
    class Unlucky(Recorder):
        async def _begin(self) -> Loops:
            self._opened.callback(lambda: self.calls.append("closed"))
            raise DatabaseUnavailable("no database")

    service = Unlucky()
    with pytest.raises(DatabaseUnavailable):
        await host(service, drain_timeout=60)
    await service.stop()
    assert service.calls == ["closed"]


async def test_a_signal_during_the_start_ends_it() -> None:
    class Slow(Recorder):
        async def _begin(self) -> Loops:
            self.started.set()
            await asyncio.Event().wait()
            return {}

    service = Slow()
    hosting = asyncio.create_task(host(service, drain_timeout=60))
    await service.started.wait()
    os.kill(os.getpid(), signal.SIGTERM)
    assert await hosting == 0


async def test_a_stop_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stuck(Recorder):
        async def _leave(self) -> None:
            await asyncio.Event().wait()

    monkeypatch.setattr(lifecycle, "STOP_TIMEOUT_S", 0.01)
    service = Stuck()
    service.broken.set_result(RuntimeError("x"))
    assert await host(service, drain_timeout=60) == 1


async def test_it_says_when_it_is_ready_and_nothing_inherits_that(monkeypatch: pytest.MonkeyPatch) -> None:
    readiness = ReadinessSocket()
    for name, value in readiness.environment.items():
        monkeypatch.setenv(name, value)
    service = Recorder()
    hosting = asyncio.create_task(host(service, drain_timeout=0))
    async with asyncio.timeout(5):
        await readiness.ready.wait()
    assert "NOTIFY_SOCKET" not in os.environ
    os.kill(os.getpid(), signal.SIGTERM)
    assert await hosting == 0
    readiness.close()


async def test_it_says_that_it_is_live_while_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """R-HA5: whoever started it ends one that does not."""
    monkeypatch.setattr(lifecycle, "TELL_S", 0.01)
    readiness = ReadinessSocket()
    for name, value in readiness.environment.items():
        monkeypatch.setenv(name, value)
    asked, said = 0, []
    enough = asyncio.Event()

    def is_live() -> bool:
        """From the sixth time on."""
        nonlocal asked
        asked += 1
        said.append(readiness.live_at)
        if asked == 10:
            enough.set()
        return asked > 5

    hosting = asyncio.create_task(host(Recorder(), drain_timeout=0, live=is_live))
    async with asyncio.timeout(20):
        await enough.wait()
        os.kill(os.getpid(), signal.SIGTERM)
        assert await hosting == 0
    readiness.close()
    assert None not in said, "what is ready is live, and may hang before it says so again"
    assert len(set(said[:6])) == 1
    assert said[9] != said[0]


async def test_readiness_is_understood_by_systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(tmp_path / "notify"))
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        service = Recorder()
        hosting = asyncio.create_task(host(service, drain_timeout=0))
        assert (await asyncio.to_thread(systemd.recv, 100)) == b"READY=1"
        os.kill(os.getpid(), signal.SIGTERM)
        assert await hosting == 0
        assert systemd.recv(100) == b"STOPPING=1"


async def test_a_loop_that_ends_by_itself_is_a_failure() -> None:
    class Short(Recorder):
        async def _break(self) -> None:
            return

    service = Short()
    await service.start()
    assert str(await service.failed()) == "breaking ended by itself."
    await service.stop()
