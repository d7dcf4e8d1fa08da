"""Logs that no API can store: a task waits for its log for a while, then for no log any more, and the log says what it lacks."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from itertools import islice
from pathlib import Path

import pytest

from evenflow.api.logs.directory import LogDirectory
from evenflow.api.logs.store import Chunk, LogName
from evenflow.api.service import ApiService
from evenflow.client.rest import RestClient
from evenflow.errors import ApiRefused, ApiUnavailable, LogsNotStored
from evenflow.membership import backoff, limits
from evenflow.membership.log_shipper import LogShipper
from evenflow.membership.log_stream import LogStream
from evenflow.wire.messages import Logs, LogsAnswer
from evenflow.worker.service import WorkerService
from tests.disks import SmallDisk, needs_mount, small_disk
from tests.tokens import operator_token
from tests.waiting import until
from tests.worker.world import World, wait_for


class Servers:
    """The log folders of API servers, asked in turn as ``serves`` says; the token is the task."""

    def __init__(self, *folders: Path) -> None:
        self.folders = [LogDirectory(folder) for folder in folders]
        self.serves = 0
        self.requests = 0
        self.answers_lost = 0
        self.broken: dict[str, ApiRefused] = {}  # for requests with this token

    async def send_logs(self, message: Logs) -> LogsAnswer:
        self.requests += 1
        for chunk in message.chunks:
            if chunk.token in self.broken:
                raise self.broken[chunk.token]
        stored = await self.folders[self.serves].append(
            [Chunk(name_of(chunk.token), "1", chunk.offset, chunk.data, chunk.lost) for chunk in message.chunks]
        )
        if self.answers_lost:
            self.answers_lost -= 1
            raise ApiUnavailable("the answer was lost")
        if stored.failure:
            raise LogsNotStored(507, stored.failure, stored.offsets)
        return LogsAnswer(offsets=stored.offsets)

    async def text(self, token: str, server: int = 0) -> str:
        store, name = self.folders[server], name_of(token)
        part = await store.read(name, 0)
        out = part.data
        while not part.at_end:
            part = await store.read(name, part.next_offset)
            out += part.data
        return out.decode()


def name_of(token: str) -> LogName:
    return LogName("d", "r", token, -1, 1)


def nothing(full: bool) -> None:
    pass


def missing_in(text: str) -> list[int]:
    return [int(number.replace(",", "")) for number in re.findall(r"-- ([0-9,]+) bytes of this log are missing here: ", text)]


def without_notes(text: str) -> str:
    return re.sub(r"\n-- [0-9,]+ bytes of this log are missing here: .* --\n", "", text)


@asynccontextmanager
async def shipping(servers: Servers) -> AsyncIterator[LogShipper]:
    shipper = LogShipper(servers)
    running = asyncio.create_task(shipper.run())
    try:
        yield shipper
        assert not running.done()
    finally:
        running.cancel()
        await asyncio.wait([running])
        for folder in servers.folders:
            folder.close()


async def some_written(servers: Servers, stream: LogStream, lines: Iterator[str]) -> str:
    """A thousand lines, and an attempt to send some."""
    text = "".join(islice(lines, 1000))
    stream.write(text.encode())
    before = servers.requests
    await until(lambda: servers.requests > before, "an attempt")
    return text


async def written(shipper: LogShipper, stream: LogStream, text: str) -> None:
    """It is where it can be."""
    stream.write(text.encode())
    stream.close()
    await asyncio.wait_for(shipper.shipped(), 20)


async def refused(shipper: LogShipper, number: int, text: bytes) -> list[LogStream]:
    """So many logs, ``t0`` and on, that have ended with this text; each is refused before the next begins."""
    streams: list[LogStream] = []
    while len(streams) < number:
        streams.append(shipper.open(f"t{len(streams)}", nothing))
        streams[-1].write(text)
        streams[-1].close()
        await until(lambda: streams[-1].refused, "a refusal")
    return streams


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backoff, "FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(backoff, "LAST_PAUSE_S", 0.02)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for a log that is refused."""
    monkeypatch.setattr(limits, "LOG_PATIENCE", 0.0)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk") as made:
        yield made


LINES = [f"line {number} of the log\n" for number in range(100_000)]


@needs_mount
async def test_a_full_disk_is_waited_for(disk: SmallDisk) -> None:
    """Its writer is told to wait; when there is room again, not a byte is missing."""
    servers, told = Servers(disk.folder / "logs"), list[bool]()
    async with shipping(servers) as shipper:
        stream = shipper.open("a", told.append)
        await written(shipper, stream, LINES[0])
        disk.fill()
        text, position = LINES[0], 1
        while not told:
            text += LINES[position]
            stream.write(LINES[position].encode())
            position += 1
        before = servers.requests
        await until(lambda: servers.requests > before + 3, "attempts")
        assert told == [True]
        disk.clean_up()
        await asyncio.wait_for(shipper.shipped(), 20)
        assert told == [True, False]
        assert await servers.text("a") == text
        assert shipper.lost == 0


@needs_mount
@pytest.mark.usefixtures("impatient")
async def test_what_is_dropped_is_counted_to_the_byte(disk: SmallDisk) -> None:
    """Lines, too, and the newest are kept. Each outage has its own count."""
    servers, told = Servers(disk.folder / "logs"), list[bool]()
    async with shipping(servers) as shipper:
        stream = shipper.open("a", told.append)
        await written(shipper, stream, LINES[0])
        text, rest = LINES[0], iter(LINES[1:])
        for outage in (1, 2):
            disk.fill()
            while shipper.lost < outage * 2 * limits.LOG_HELD:
                text += await some_written(servers, stream, rest)
            disk.clean_up()
            await written(shipper, stream, f"outage {outage} is over\n")
            text += f"outage {outage} is over\n"
        stored = await servers.text("a")
        assert sum(missing_in(stored)) == shipper.lost == len(text) - len(without_notes(stored))
        lines = sum(int(number.replace(",", "")) for number in re.findall(r"here: ([0-9,]+) lines written from", stored))
        assert lines == text.count("\n") - without_notes(stored).count("\n") > 10_000
        assert "UTC could not be stored: [Errno 28] No space left on device --" in stored
        assert without_notes(stored).endswith("outage 2 is over\n")
        assert not any(told)


@needs_mount
@pytest.mark.usefixtures("impatient")
async def test_all_that_waits_has_a_bound(disk: SmallDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest goes first, and its log says so when it can."""
    monkeypatch.setattr(limits, "LOG_SPOOL", 30_000)
    servers = Servers(disk.folder / "logs")
    async with shipping(servers) as shipper:
        disk.fill()
        streams = await refused(shipper, 10, b"x" * 9_999 + b"\n")
        await until(lambda: shipper.held <= 30_000, "room")
        assert shipper.lost == 70_000
        disk.clean_up()
        await until(lambda: not any(stream.unsent for stream in streams), "all that is left")
        for number in range(7):
            text = await servers.text(f"t{number}")
            assert missing_in(text) == [10_000]
            assert "here: 1 line written" in text
        assert [await servers.text(f"t{number}") for number in range(7, 10)] == ["x" * 9_999 + "\n"] * 3


@needs_mount
@pytest.mark.usefixtures("impatient")
async def test_logs_that_cannot_even_say_so_are_bounded(disk: SmallDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LOG_STREAMS", 3)
    servers = Servers(disk.folder / "logs")
    async with shipping(servers) as shipper:
        disk.fill()
        streams = await refused(shipper, 8, b"x")
        await until(lambda: sum(stream.unsent for stream in streams) <= 3, "fewer")
        disk.clean_up()
        await until(lambda: not any(stream.unsent for stream in streams), "the rest")
        assert [await servers.text(f"t{number}") for number in range(8)] == [""] * 5 + ["x"] * 3


async def test_one_folder_that_fails_holds_up_no_other_log(tmp_path: Path) -> None:
    (tmp_path / "d" / "r").mkdir(parents=True)
    (tmp_path / "d" / "r" / "bad").write_text("a file where a folder belongs")
    servers = Servers(tmp_path)
    async with shipping(servers) as shipper:
        bad, good = shipper.open("bad", nothing), shipper.open("good", nothing)
        for stream in (bad, good):
            stream.write(b"hello")
            stream.close()
        await until(lambda: not good.unsent, "the good one")
        await until(lambda: bad.refused, "a refusal")
        (tmp_path / "d" / "r" / "bad").unlink()
        await asyncio.wait_for(shipper.shipped(), 20)
        assert [await servers.text(token) for token in ("bad", "good")] == ["hello", "hello"]


async def test_a_log_that_the_api_never_takes_loses_only_itself(tmp_path: Path) -> None:
    """As when a proxy refuses its text: the others of the same request are stored."""
    servers = Servers(tmp_path)
    servers.broken["bad"] = ApiRefused(413, "too large for me")
    async with shipping(servers) as shipper:
        bad, good = shipper.open("bad", nothing), shipper.open("good", nothing)
        for stream in (bad, good):
            stream.write(b"hello\n")
            stream.close()
        await asyncio.wait_for(shipper.shipped(), 20)
        await until(lambda: not bad.unsent, "its end")
        assert await servers.text("good") == "hello\n"
        assert shipper.lost == 6


async def test_a_log_that_was_refused_once_says_what_it_lacks(tmp_path: Path) -> None:
    servers = Servers(tmp_path)
    async with shipping(servers) as shipper:
        stream = shipper.open("a", nothing)
        await written(shipper, stream, "one\n")
        servers.broken["a"] = ApiRefused(413, "too large for me")
        stream.write(b"two\n")
        await until(lambda: shipper.lost, "the loss")
        servers.broken.clear()
        await written(shipper, stream, "three\n")
        text = await servers.text("a")
        assert missing_in(text) == [4]
        assert "1 line written" in text
        assert "too large for me" in text
        assert without_notes(text) == "one\nthree\n"


async def test_a_writer_that_cannot_wait_loses_the_oldest_and_says_so(tmp_path: Path) -> None:
    """As a trigger."""
    servers = Servers(tmp_path)
    async with shipping(servers) as shipper:
        stream = shipper.open("a", None)
        text = "".join(LINES[:30_000])
        for line in LINES[:30_000]:
            stream.write(line.encode())
        stream.close()
        await asyncio.wait_for(shipper.shipped(), 20)
        stored = await servers.text("a")
        assert sum(missing_in(stored)) == shipper.lost == len(text) - len(without_notes(stored)) > 0
        assert "it was written faster than it could be stored" in stored
        assert stored.endswith(LINES[29_999])


# -- several API servers -----------------------------------------------------------------------------------------------


async def test_two_servers_in_turn_that_share_a_folder(tmp_path: Path) -> None:
    servers = Servers(tmp_path, tmp_path)
    servers.answers_lost = 3
    async with shipping(servers) as shipper:
        stream = shipper.open("a", nothing)
        for number in range(20):
            servers.serves = number % 2
            await written(shipper, stream, LINES[number])
        assert await servers.text("a", 0) == await servers.text("a", 1) == "".join(LINES[:20])


async def test_two_servers_in_turn_that_share_none(tmp_path: Path) -> None:
    """Each says exactly what it does not have, and together they have all."""
    servers = Servers(tmp_path / "1", tmp_path / "2")
    async with shipping(servers) as shipper:
        stream = shipper.open("a", nothing)
        for number in range(20):
            servers.serves = number % 2
            await written(shipper, stream, LINES[number])
        one, two = await servers.text("a", 0), await servers.text("a", 1)
        assert without_notes(one) == "".join(LINES[0:20:2])
        assert without_notes(two) == "".join(LINES[1:20:2])
        assert missing_in(one) == [len(line) for line in LINES[1:19:2]]
        assert missing_in(two) == [len(line) for line in LINES[0:20:2]]


@needs_mount
@pytest.mark.usefixtures("impatient")
async def test_a_disk_that_is_full_at_one_of_two_servers(disk: SmallDisk, tmp_path: Path) -> None:
    """What both lack is what was lost; what one has is missing at the other."""
    servers = Servers(disk.folder / "logs", tmp_path / "logs")
    async with shipping(servers) as shipper:
        stream = shipper.open("a", nothing)
        await written(shipper, stream, LINES[0])
        disk.fill()
        text, rest = LINES[0], iter(LINES[1:])
        while shipper.lost < limits.LOG_HELD:
            text += await some_written(servers, stream, rest)
        servers.serves = 1
        await written(shipper, stream, "to the other one\n")
        servers.serves = 0
        disk.clean_up()
        await written(shipper, stream, "and back\n")
        text += "to the other one\n"
        one, two = await servers.text("a", 0), await servers.text("a", 1)
        assert sum(missing_in(two)) == len(text) - len(without_notes(two)) >= shipper.lost + len(LINES[0])
        assert two.endswith("to the other one\n")
        assert sum(missing_in(one)) == len(text + "and back\n") - len(without_notes(one))
        assert one.endswith("and back\n")


SERVER = """
import asyncio, os, sys
from pathlib import Path
from tests.apis import make_api

async def serve():
    api = make_api(sys.argv[1], Path(sys.argv[2]), port=int(sys.argv[3]))
    await api.start()
    print(api.port, flush=True)
    await api.failed()

asyncio.run(serve())
"""


@asynccontextmanager
async def server_process(database_url: str, folder: Path, port: int = 0) -> AsyncIterator[tuple[subprocess.Popen[str], int]]:
    """An API server in a process of its own."""
    command = [sys.executable, "-c", SERVER, database_url, str(folder), str(port)]
    process = await asyncio.to_thread(subprocess.Popen, command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process, int(await asyncio.to_thread(process.stdout.readline))
    finally:
        process.kill()
        await asyncio.to_thread(process.wait)


def made(path: str) -> None:
    Path(path).touch()


@pytest.mark.system
async def test_a_server_that_is_killed_in_the_middle_loses_and_doubles_nothing(
    api: ApiService, database_url: str, world: World, start_worker: Callable[..., object], tmp_path: Path
) -> None:
    """A worker's log goes to servers that share a folder, while they are killed one after the other."""
    go, done = tmp_path / "go", tmp_path / "done"
    epoch = world.task(
        wait_for(go)
        + "for n in range(60_000):\n"
        + "    print(f'line {n}')\n"
        + f"    if n % 20_000 == 10_000: print('step', n, flush=True); open({str(done)!r} + str(n), 'w').close()\n"
        + f"    while n % 20_000 == 10_000 and not os.path.exists({str(go)!r} + str(n)): time.sleep(0.01)\n"
    )
    async with server_process(database_url, tmp_path) as (first, port), server_process(database_url, tmp_path) as (second, other):
        urls = f"http://127.0.0.1:{port},http://127.0.0.1:{other},http://127.0.0.1:{api.port}"
        await start_worker(api_url=urls)  # type: ignore[misc]
        made(f"{go}")
        for process, step in ((first, 10_000), (second, 30_000)):
            await until(Path(f"{done}{step}").exists, "a part of the log")
            process.kill()
            made(f"{go}{step}")
        made(f"{go}50000")
        await world.exit_of(epoch)
    expected = "".join(f"line {n}\n" + (f"step {n}\n" if n % 20_000 == 10_000 else "") for n in range(60_000))
    await until(lambda: len(world.log(epoch)) >= len(expected), "the whole log")
    assert world.log(epoch) == expected


@needs_mount
async def test_a_task_waits_for_a_full_disk_and_its_log_is_whole(
    world: World, worker: WorkerService, api: ApiService, disk: SmallDisk, tmp_path: Path
) -> None:
    """All of it: a worker, its task, an API on a disk that is full."""
    (tmp_path / "logs").rmdir()
    (tmp_path / "logs").symlink_to(disk.folder)
    disk.fill()
    epoch = world.task("for n in range(3_000): print(f'line {n}')")
    await world.exit_of(epoch)
    async with RestClient(f"http://127.0.0.1:{api.port}", operator_token(world.conn)) as client:
        run_id = world.conn.execute("select run_id from dag_run").fetchone()[0]  # type: ignore[index]
        assert (await client.read_log("d", run_id, "t")).text == ""
        disk.clean_up()
        expected = "".join(f"line {n}\n" for n in range(3_000))
        await until(lambda: len(world.log(epoch)) >= len(expected), "the log")
        assert (await client.read_log("d", run_id, "t")).text == expected
