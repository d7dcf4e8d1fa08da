"""When a Spark Connect server is started, ended and killed (R-SP6). What is kept here is a process that answers the greeting of
HTTP/2 with its settings, and all else with what was said, in place of a JVM.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest

from evenflow.connect_server import jvm, keeper
from evenflow.connect_server.jvm import ServerProcess
from evenflow.connect_server.keeper import ServerKeeper, ServerLimits
from evenflow.connect_server.service import ConnectServerService
from evenflow.errors import SettingsError, SparkUnavailable
from evenflow.spark.local_server import TOO_LARGE, ServerLaunch
from tests.observed import observations
from tests.waiting import until

ANSWERS = """
import socket, sys, threading
def serve(peer):
    while data := peer.recv(65536):
        peer.sendall(bytes((0, 0, 0, 4, 0, 0, 0, 0, 0)) if data.startswith(b"PRI * HTTP/2.0") else data)
server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("it is there", flush=True)
while True:
    threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()
"""
DIES = "print('no room for a heap'); raise SystemExit(3)"


def stand_in(monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    def launch(scratch: Path, *, port: int, **_: object) -> ServerLaunch:
        return ServerLaunch([sys.executable, "-c", script, str(port)], dict(os.environ))

    monkeypatch.setattr(jvm, "launch_of", launch)


@asynccontextmanager
async def kept(folder: Path, **limits: float) -> AsyncIterator[ServerKeeper]:
    found = ServerKeeper(ServerLimits(**{"memory": 4096, "idle": 0, **limits}), token="t", log=folder / "server.log")  # type: ignore[arg-type]
    try:
        yield found
    finally:
        await found.close()


def process_of(found: ServerKeeper) -> psutil.Process:
    assert found._server is not None
    return psutil.Process(found._server.pid)


async def looked(found: ServerKeeper, over: Callable[[], bool]) -> None:
    """As its loop does, until ``over``."""
    async with asyncio.timeout(30):
        while not over():
            await found.look()
            await asyncio.sleep(0.02)


async def test_a_dead_server_is_replaced_for_the_next_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, ANSWERS)
    async with kept(tmp_path) as found:
        first = await found.port()
        process = process_of(found)
        assert await found.port() == first
        process.kill()
        await looked(found, lambda: found._server is None)
        await found.port()
        second = process_of(found)
        assert second.pid != process.pid
    assert not second.is_running()
    assert (tmp_path / "server.log").read_text().count("it is there") == 2


async def test_who_finds_it_dead_keeps_the_one_that_somebody_has_started_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(monkeypatch, ANSWERS)
    async with kept(tmp_path) as found:
        await found.port()
        old = found._server
        assert old is not None
        os.kill(old.pid, signal.SIGKILL)
        await until(lambda: old.exit_code is not None)
        await found.port()
        await found._end(old)
        assert process_of(found).is_running()


async def test_one_that_runs_out_of_memory_is_told_with_the_setting_to_raise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-SP6: Java says so before it ends."""
    dies = (
        "\n    print('Terminating due to java.lang.OutOfMemoryError: Java heap space', flush=True)\n    __import__('os')._exit(3)"
    )
    stand_in(monkeypatch, f"{ANSWERS.rpartition('while True:')[0]}while True:\n    serve(server.accept()[0]){dies}\n")
    async with kept(tmp_path) as found:
        with observations() as seen:
            await found.port()
            old = found._server
            assert old is not None
            await until(lambda: old.exit_code is not None)
            await found.look()
        (told,) = [each for each in seen if each["fact"].endswith("out_of_memory")]
        assert (told["exit_code"], told["memory"]) == (3, 4096)
        assert not [each for each in seen if each["fact"].endswith("ended")]


async def test_a_frozen_server_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also with sessions: nothing of theirs goes on. The limits are shortened."""
    monkeypatch.setattr(keeper, "FROZEN", 0.5)
    monkeypatch.setattr(jvm, "ANSWERS", 0.2)
    stand_in(monkeypatch, ANSWERS)
    async with kept(tmp_path) as found:
        await found.port()
        process = process_of(found)
        with found.session():
            process.suspend()
            await looked(found, lambda: found._server is None)
        assert not process.is_running()


async def test_one_without_sessions_is_stopped_after_a_while_and_not_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(monkeypatch, ANSWERS)
    async with kept(tmp_path, idle=60.0) as found:
        with found.session():
            await found.port()
            found._used_at -= 61.0
            await found.look()
            assert process_of(found).is_running()
        found._used_at -= 61.0
        await looked(found, lambda: found._server is None)


async def test_one_that_is_too_large_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What its processes share counts once."""
    stand_in(monkeypatch, "ballast = bytearray(b'x') * 200_000_000\n" + ANSWERS)
    async with kept(tmp_path, memory=4096) as found:
        await found.port()
        assert found._server is not None
        assert 190 < found._server.memory() <= found._server.resident()
        await found.look()
        assert process_of(found).is_running()
    async with kept(tmp_path, memory=150) as found:
        await found.port()
        await looked(found, lambda: found._server is None)
    assert f"{TOO_LARGE} " in (tmp_path / "server.log").read_text()


async def test_one_that_does_not_start_is_told_with_its_last_words_and_not_tried_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(monkeypatch, DIES)
    async with kept(tmp_path) as found:
        with pytest.raises(SparkUnavailable, match="exit code 3; its last words: no room for a heap"):
            await found.port()
        with pytest.raises(SparkUnavailable, match="did not start just now"):
            await found.port()


async def test_what_is_said_is_passed_on_and_who_says_nothing_starts_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def cold(self: ServerKeeper) -> None: ...

    monkeypatch.setattr(ServerKeeper, "warm", cold)
    stand_in(monkeypatch, ANSWERS)
    limits = ServerLimits(memory=4096, idle=0)
    service = ConnectServerService(name="c", port=0, token="t", limits=limits, log=tmp_path / "server.log")
    await service.start()
    try:
        await asyncio.to_thread(lambda: socket.create_connection(("127.0.0.1", service.port)).close())
        reader, writer = await asyncio.open_connection("127.0.0.1", service.port)
        assert service._keeper._server is None
        text = os.urandom(2**20)
        writer.write(text)
        assert await asyncio.wait_for(reader.readexactly(len(text)), 30) == text
        assert isinstance(service._keeper._server, ServerProcess)
        taken = ConnectServerService(name="d", port=service.port, token="t", limits=limits, log=tmp_path / "other.log")
        with pytest.raises(SettingsError, match=f"EVENFLOW_SPARK_CONNECT_PORT={service.port + 1}"):
            await taken.start()
        os.kill(service._keeper._server.pid, signal.SIGKILL)
        assert await asyncio.wait_for(reader.read(), 30) == b""
        writer.close()
        await asyncio.wait_for(service.drain(), 30)
    finally:
        await service.stop()
