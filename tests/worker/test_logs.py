"""Task logs: complete, in order, while the task runs, and never more of them in the worker's memory than allowed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from evenflow.errors import ApiRefused, ApiUnavailable
from evenflow.membership import backoff, limits
from evenflow.membership.log_shipper import LogShipper
from evenflow.wire.messages import REFUSED_LOG, Logs, LogsAnswer
from evenflow.worker.service import WorkerService
from tests.waiting import until
from tests.worker.world import World, wait_for


async def test_a_log_grows_while_the_task_runs(world: World, worker: WorkerService, tmp_path: Path) -> None:
    """Output of Python, of what it logs, and of its child processes, in the order in which it was written."""
    epoch = world.task(
        "import logging, subprocess, sys\n"
        "print('from print')\n"
        "print('from stderr', file=sys.stderr)\n"
        "subprocess.run(['echo', 'from a child'])\n"
        "logging.getLogger('mine').info('from logging')\n" + wait_for(tmp_path / "go") + "print('no newline at the end', end='')"
    )
    log = await world.logged(epoch, "from logging")
    assert world.exits(epoch) == []
    assert log.splitlines()[:3] == ["from print", "from stderr", "from a child"]
    assert log.splitlines()[3].endswith(" INFO mine: from logging")
    (tmp_path / "go").touch()
    await world.exit_of(epoch)
    await until(lambda: world.log(epoch).endswith("no newline at the end"), "the end of the log")


async def test_a_long_log_is_complete(world: World, worker: WorkerService) -> None:
    epoch = world.task("for n in range(200_000): print(f'line {n}')")
    await world.exit_of(epoch)
    expected = "".join(f"line {n}\n" for n in range(200_000))
    await until(lambda: len(world.log(epoch)) == len(expected), "the whole log")
    assert world.log(epoch) == expected


async def test_bytes_that_are_no_text(world: World, worker: WorkerService) -> None:
    epoch = world.task("import os; os.write(1, bytes(range(256)))")
    await world.exit_of(epoch)
    paths = await until(lambda: list(world.logs.rglob(f"*.{epoch}.log")), "the log")
    await until(lambda: paths[0].read_bytes() == bytes(range(256)), "all bytes")


async def test_a_log_grows_within_a_character(world: World, worker: WorkerService) -> None:
    """The first bytes of one are stored while its rest is still to be written: who reads the file meanwhile must bear that."""
    epoch = world.task("import os, time; os.write(1, b'half a \\xe6\\xbc'); time.sleep(600)")
    assert await world.logged(epoch, "half a \ufffd") == "half a \ufffd"


class FakeLogs:
    """Stores logs as the API does; ``broken`` is raised instead while it is set."""

    def __init__(self) -> None:
        self.stored: dict[str, bytes] = {}
        self.broken: Exception | None = None
        self.answers_lost = 0
        self.requests: list[Logs] = []

    async def send_logs(self, message: Logs) -> LogsAnswer:
        self.requests.append(message)
        if self.broken is not None:
            raise self.broken
        offsets = []
        for chunk in message.chunks:
            stored = self.stored.get(chunk.token, b"")
            if chunk.token == "refused":
                offsets.append(REFUSED_LOG)
                continue
            assert chunk.offset <= len(stored), "nothing was dropped"
            stored = self.stored[chunk.token] = stored + chunk.data[len(stored) - chunk.offset :]
            offsets.append(len(stored))
        if self.answers_lost:
            self.answers_lost -= 1
            raise ApiUnavailable("the answer was lost")
        return LogsAnswer(offsets=offsets)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeLogs:
    monkeypatch.setattr(backoff, "FIRST_PAUSE_S", 0.01)
    return FakeLogs()


@asynccontextmanager
async def shipping(fake: FakeLogs) -> AsyncIterator[LogShipper]:
    shipper = LogShipper(fake)
    running = asyncio.create_task(shipper.run())
    yield shipper
    running.cancel()


def nothing(full: bool) -> None:
    pass


async def test_an_answer_that_is_lost_doubles_nothing(fake: FakeLogs) -> None:
    fake.answers_lost = 2
    async with shipping(fake) as shipper:
        stream = shipper.open("a", nothing)
        stream.write(b"one ")
        stream.write(b"two ")
        stream.close()
        await asyncio.wait_for(shipper.shipped(), 10)
    assert fake.stored == {"a": b"one two "}


async def test_writes_within_a_moment_are_one_request(fake: FakeLogs) -> None:
    async with shipping(fake) as shipper:
        streams = [shipper.open(str(n), nothing) for n in range(3)]
        for number in range(30):
            streams[number % 3].write(b"x")
        await asyncio.wait_for(shipper.shipped(), 10)
    assert len(fake.requests) == 1
    assert fake.stored == {str(n): b"x" * 10 for n in range(3)}


async def test_a_stream_that_is_full_asks_to_wait(fake: FakeLogs) -> None:
    """Nothing is dropped; once the API is back, the try may write again."""
    fake.broken = ApiUnavailable("away")
    told: list[bool] = []
    async with shipping(fake) as shipper:
        stream = shipper.open("a", told.append)
        while not told:
            stream.write(b"x" * 1000)
        assert told == [True]
        assert limits.LOG_HELD <= stream.held < limits.LOG_HELD + 1000
        written = stream.held
        fake.broken = None
        await asyncio.wait_for(shipper.shipped(), 10)
    assert told == [True, False]
    assert len(fake.stored["a"]) == written


async def test_more_than_a_request_carries(fake: FakeLogs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LOG_REQUEST", 100)
    monkeypatch.setattr(limits, "LOG_CHUNK", 40)
    async with shipping(fake) as shipper:
        for number in range(8):
            stream = shipper.open(str(number), nothing)
            stream.write(b"x" * 100)
            stream.close()
        await asyncio.wait_for(shipper.shipped(), 10)
    assert fake.stored == {str(number): b"x" * 100 for number in range(8)}
    assert all(sum(len(chunk.data) for chunk in request.chunks) <= 140 for request in fake.requests)


async def test_a_log_that_is_refused_holds_nothing_up(fake: FakeLogs) -> None:
    async with shipping(fake) as shipper:
        refused, good = shipper.open("refused", nothing), shipper.open("good", nothing)
        refused.write(b"x")
        good.write(b"y")
        good.close()
        await asyncio.wait_for(shipper.shipped(), 10)
        refused.write(b"more")
        await asyncio.wait_for(shipper.shipped(), 10)
    assert fake.stored == {"good": b"y"}
    assert refused.held == 0


@pytest.mark.parametrize("status", [500, 401])
async def test_a_refusal_that_is_not_about_the_logs_loses_none(fake: FakeLogs, status: int) -> None:
    fake.broken = ApiRefused(status, "not now")
    async with shipping(fake) as shipper:
        stream = shipper.open("a", nothing)
        stream.write(b"x")
        stream.close()
        await until(lambda: len(fake.requests) > 1, "another attempt")
        fake.broken = None
        await asyncio.wait_for(shipper.shipped(), 10)
    assert fake.stored == {"a": b"x"}
