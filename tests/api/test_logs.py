"""Logs: every byte once, in order, while the try runs and after."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from evenflow.api import limits
from evenflow.api.logs import Chunk, LogDirectory, LogName
from evenflow.client.execution import ExecutionClient
from evenflow.client.rest import RestClient
from evenflow.errors import ApiRefused
from evenflow.wire import messages as m
from tests.api.world import World

NAME = LogName("d", "r", "t", -1, 1)


@pytest.fixture
def logs(tmp_path: Path) -> Iterator[LogDirectory]:
    directory = LogDirectory(tmp_path / "logs")
    yield directory
    directory.close()


@pytest.fixture
async def rest(api_url: str, operator_token: str) -> AsyncIterator[RestClient]:
    async with RestClient(api_url, operator_token) as client:
        yield client


def files_under(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


async def put(logs: LogDirectory, offset: int, data: bytes, *, name: LogName = NAME, epoch: int = 1) -> int:
    (stored,) = await logs.append([Chunk(name, epoch, offset, data)])
    return stored


async def test_chunks_are_appended_once(logs: LogDirectory) -> None:
    assert await put(logs, 0, b"hello ") == 6
    assert await put(logs, 0, b"hello ") == 6
    assert await put(logs, 3, b"lo world") == 11
    assert await put(logs, 2, b"llo") == 11
    assert await put(logs, 11, b"") == 11
    assert await logs.read(NAME, 0) == (b"hello world", 11, True)
    assert await logs.read(NAME, 6) == (b"world", 11, True)
    assert await logs.read(NAME, 50) == (b"", 50, True)


async def test_a_gap_is_refused_with_what_is_known(logs: LogDirectory) -> None:
    assert await put(logs, 0, b"abc") == 3
    assert await put(logs, 5, b"fgh") == 3
    assert await logs.read(NAME, 0) == (b"abc", 3, True)
    assert await put(logs, 3, b"defgh") == 8


async def test_a_log_above_the_limit_is_cut_and_says_so(logs: LogDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LOG_TRY", 10)
    assert await put(logs, 0, b"12345678") == 8
    assert await put(logs, 8, b"90abcdef") == 16, "what lies above counts as stored, so that the worker goes on"
    text = (await logs.read(NAME, 0)).data
    assert text.startswith(b"1234567890\n-- The log is cut here")
    assert await put(logs, 16, b"more") == 20
    assert (await logs.read(NAME, 0)).data == text


async def test_a_long_log_is_read_in_parts(logs: LogDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LOG_READ", 4)
    await put(logs, 0, b"0123456789")
    got, offset = b"", 0
    while True:
        data, offset, at_end = await logs.read(NAME, offset)
        got += data
        if at_end:
            break
        assert len(data) == 4
    assert (got, offset) == (b"0123456789", 10)


async def test_a_try_that_was_sent_again_has_one_log(logs: LogDirectory) -> None:
    """Offsets keep their meaning: what the first epoch wrote stays in front. Epochs of two schedulers need not grow."""
    await put(logs, 0, b"first ", epoch=9)
    assert await put(logs, 0, b"second", epoch=4) == 6
    assert await logs.read(NAME, 0) == (b"first second", 12, True)
    assert await logs.read(NAME, 8) == (b"cond", 12, True)
    await put(logs, 0, b"other try", name=LogName("d", "r", "t", -1, 11))
    assert await logs.read(NAME, 0) == (b"first second", 12, True)


@pytest.mark.parametrize("name", ["../../etc", "..", ".hidden", "a/b", "a b", "x" * 250, "ü" * 200, "a\0b", "C:\\x", "*"])
async def test_names_stay_inside_the_directory(logs: LogDirectory, tmp_path: Path, name: str) -> None:
    log = LogName(name, name, name, 3, 1)
    await put(logs, 0, b"x", name=log)
    assert (await logs.read(log, 0)).data == b"x"
    (file,) = files_under(tmp_path)
    assert len(file.relative_to(tmp_path / "logs").parts) == 5


async def test_different_names_have_different_logs(logs: LogDirectory) -> None:
    names = ["a/b", "a%2Fb", "a b", "a+b", "y" * 300, "y" * 301]
    for name in names:
        await put(logs, 0, name.encode(), name=LogName(name, "r", "t", -1, 1))
    for name in names:
        assert (await logs.read(LogName(name, "r", "t", -1, 1), 0)).data == name.encode()


async def test_open_files_are_bounded(logs: LogDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LOG_OPEN_FILES", 3)
    for turn in range(2):
        for index in range(10):
            assert await put(logs, turn, b"x", name=LogName("d", "r", "t", index, 1)) == turn + 1
    assert len(logs._open) == 3


async def test_a_log_that_was_deleted_begins_anew(logs: LogDirectory, tmp_path: Path) -> None:
    await put(logs, 0, b"abc")
    shutil.rmtree(tmp_path / "logs")
    assert await put(logs, 3, b"def") == 0, "a gap, so the worker sends what it still has"
    assert await put(logs, 0, b"abcdef") == 6


async def test_a_reader_waits_for_what_this_process_stores(logs: LogDirectory) -> None:
    waiting = [asyncio.create_task(logs.wait(NAME, 0, 10)) for _ in range(3)]
    await asyncio.sleep(0)
    await put(logs, 0, b"x")
    assert [text.data for text in await asyncio.gather(*waiting)] == [b"x"] * 3
    assert len(logs._news) == 0


async def test_a_reader_finds_what_another_process_stores(logs: LogDirectory, tmp_path: Path) -> None:
    other = LogDirectory(tmp_path / "logs")
    waiting = asyncio.create_task(logs.wait(NAME, 0, 10))
    await asyncio.sleep(0)
    await put(other, 0, b"x")
    assert (await asyncio.wait_for(waiting, 5)).data == b"x"
    other.close()


async def test_waiting_for_a_log_ends(logs: LogDirectory) -> None:
    assert await logs.wait(NAME, 0, 0.05) == (b"", 0, True)


# -- through the API ---------------------------------------------------------------------------------------------------


async def test_a_log_is_followed_while_the_try_runs(client: ExecutionClient, world: World, rest: RestClient) -> None:
    run = world.run(world.version())
    world.dispatch(run, 1)
    world.instance(run, 0, state="running", epoch=1)
    token = world.try_token(1)
    await client.send_logs(m.Logs(chunks=[m.LogChunk(token=token, offset=0, data="grüße ".encode())]))
    first = await rest.read_log("sales", "r1", "extract")
    assert (first.text, first.offset, first.complete) == ("grüße ", 8, False)
    waiting = asyncio.create_task(rest.read_log("sales", "r1", "extract", offset=first.offset, wait_s=20))
    snowman = "☃".encode()
    await client.send_logs(m.Logs(chunks=[m.LogChunk(token=token, offset=8, data=b"bye " + snowman[:2])]))
    second = await waiting
    assert (second.text, second.offset, second.complete) == ("bye ", 12, False), "no half characters"
    await client.send_logs(m.Logs(chunks=[m.LogChunk(token=token, offset=14, data=snowman[2:])]))
    waiting = asyncio.create_task(rest.read_log("sales", "r1", "extract", offset=15, wait_s=20))
    begun = time.monotonic()
    world.instance(run, 0, state="success", epoch=1)
    world.end(1)
    last = await waiting
    assert (last.text, last.complete) == ("", True)
    assert time.monotonic() - begun < 10, "the end of the try ends the wait"
    assert (await rest.read_log("sales", "r1", "extract")).text == "grüße bye ☃"


async def test_chunks_after_the_exit_still_arrive(client: ExecutionClient, world: World, rest: RestClient) -> None:
    run = world.run(world.version())
    world.dispatch(run, 1)
    token = world.try_token(1)
    world.instance(run, 0, state="success", epoch=1)
    world.end(1)
    assert (await client.send_logs(m.Logs(chunks=[m.LogChunk(token=token, offset=0, data=b"last words")]))).offsets == [10]
    assert (await rest.read_log("sales", "r1", "extract")).text == "last words"


async def test_chunks_of_many_tries_in_one_request(client: ExecutionClient, world: World, rest: RestClient) -> None:
    run = world.run(world.version())
    for index in range(4):
        world.dispatch(run, index + 1, task=1, map_index=index)
    tokens = [world.try_token(index + 1) for index in range(4)]
    chunks = [m.LogChunk(token=t, offset=0, data=f"log {i}".encode()) for i, t in enumerate(tokens)]
    chunks += [m.LogChunk(token="forged", offset=0, data=b"x"), m.LogChunk(token=tokens[0], offset=99, data=b"gap")]
    chunks += [m.LogChunk(token=tokens[1], offset=-1, data=b"nonsense"), m.LogChunk(token=tokens[2], offset=5, data=b" more")]
    assert (await client.send_logs(m.Logs(chunks=chunks))).offsets == [5, 5, 5, 5, -1, 5, -1, 10]
    assert (await rest.read_log("sales", "r1", "clean", map_index=2)).text == "log 2 more"
    assert (await rest.read_log("sales", "r1", "clean", map_index=3)).text == "log 3"


async def test_logs_of_each_try(client: ExecutionClient, world: World, rest: RestClient) -> None:
    run = world.run(world.version())
    for number in (1, 2):
        world.dispatch(run, number, tries=number)
        chunk = m.LogChunk(token=world.try_token(number), offset=0, data=f"try {number}".encode())
        await client.send_logs(m.Logs(chunks=[chunk]))
        world.end(number)
    assert (await rest.read_log("sales", "r1", "extract")).text == "try 2"
    first = await rest.read_log("sales", "r1", "extract", try_number=1)
    assert (first.text, first.complete) == ("try 1", True)


async def test_logs_of_what_does_not_exist(rest: RestClient, world: World) -> None:
    world.run(world.version())
    for run_id, task_id in (("r9", "extract"), ("r1", "nope")):
        with pytest.raises(ApiRefused, match="There is no task") as refused:
            await rest.read_log("sales", run_id, task_id)
        assert refused.value.status == 404
    nothing = await rest.read_log("sales", "r1", "extract")
    assert (nothing.text, nothing.offset, nothing.complete) == ("", 0, False)


class FullDisk:
    """Stands between a log directory and the system: there is room for so many bytes more."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, room: int) -> None:
        self.room, self._write = room, os.write
        monkeypatch.setattr("evenflow.api.logs.os.write", self.write)

    def write(self, descriptor: int, data: bytes) -> int:
        if not self.room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written = self._write(descriptor, data[: self.room])
        self.room -= written
        return written


async def test_a_full_disk_keeps_no_task_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be stored counts as stored; when there is room again the gap shows, and the worker says how much was lost."""
    lost: list[int] = []
    logs = LogDirectory(tmp_path, lost.append)
    disk = FullDisk(monkeypatch, room=4)
    other = LogName("d", "r", "other", -1, 1)
    assert await logs.append([Chunk(NAME, 1, 0, b"0123456789"), Chunk(other, 2, 0, b"x")]) == [10, 1]
    assert await put(logs, 10, b"abc") == 4  # a gap: the worker says so, and goes on from there
    assert await put(logs, 4, b"so many bytes were lost") == 27
    assert lost == [6, 1, 23]
    disk.room = 1_000
    assert await put(logs, 27, b"news") == 4
    assert await put(logs, 4, b"-- 23 bytes --news") == 22
    assert await logs.read(NAME, 0) == (b"0123-- 23 bytes --news", 22, True)
    logs.close()


def test_a_log_says_that_it_is_cut_where_there_is_room_for_that(tmp_path: Path) -> None:
    """On a real limit of the system: the kernel refuses to let files grow."""
    script = """
import asyncio, resource, sys
from pathlib import Path
from evenflow.api.logs import Chunk, LogDirectory, LogName

async def main():
    lost = []
    logs = LogDirectory(Path(sys.argv[1]), lost.append)
    name = LogName("d", "r", "t", -1, 1)
    print(await logs.append([Chunk(name, 1, 0, b"a" * 1000)]))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1500, resource.RLIM_INFINITY))
    print(await logs.append([Chunk(name, 1, 1000, b"b" * 1000)]), lost)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4000, resource.RLIM_INFINITY))
    print(await logs.append([Chunk(name, 1, 2000, b"c" * 1000)]), lost)

asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout.splitlines() == ["[1000]", "[2000] [500]", "[1500] [500]"]
    assert "logs of tasks are lost: [Errno 27] File too large" in done.stderr


async def test_a_folder_that_cannot_be_written_keeps_no_task_waiting(tmp_path: Path) -> None:
    (tmp_path / "d").write_text("a file where a folder belongs")
    logs = LogDirectory(tmp_path)
    assert await put(logs, 0, b"hello") == 5
    assert await put(logs, 5, b"world") == 10
    (tmp_path / "d").unlink()
    assert await put(logs, 10, b"again") == 0
    logs.close()
