"""Logs: every byte once, in order, while the try runs and after."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from evenflow.api import limits
from evenflow.api.logs import Chunk, LogDirectory, LogName, writer_of
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
    offsets, failure = await logs.append([Chunk(name, writer_of(epoch), offset, data)])
    assert not failure
    return offsets[0]


async def test_chunks_are_appended_once(logs: LogDirectory) -> None:
    assert await put(logs, 0, b"hello ") == 6
    assert await put(logs, 0, b"hello ") == 6
    assert await put(logs, 3, b"lo world") == 11
    assert await put(logs, 2, b"llo") == 11
    assert await put(logs, 11, b"") == 11
    assert await logs.read(NAME, 0) == (b"hello world", 11, True)
    assert await logs.read(NAME, 6) == (b"world", 11, True)
    assert await logs.read(NAME, 50) == (b"", 50, True)


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
    assert await put(logs, 3, b"def") == 6
    text = (await logs.read(NAME, 0)).data
    assert text.startswith(b"\n-- 3 bytes of this log are missing here")
    assert text.endswith(b" --\ndef")


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
    run = world.run(world.add_dag())
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
    begun = time.monotonic()
    third = await rest.read_log("sales", "r1", "extract", offset=12, wait_s=0.2)
    assert (third.text, third.offset, third.complete) == ("", 12, False)
    assert time.monotonic() - begun >= 0.2, "half a character is nothing new: who follows would ask again and again"
    waiting = asyncio.create_task(rest.read_log("sales", "r1", "extract", offset=12, wait_s=20))
    await client.send_logs(m.Logs(chunks=[m.LogChunk(token=token, offset=14, data=snowman[2:])]))
    assert (await waiting).text == "☃"
    waiting = asyncio.create_task(rest.read_log("sales", "r1", "extract", offset=15, wait_s=20))
    begun = time.monotonic()
    world.instance(run, 0, state="success", epoch=1)
    world.end(1)
    last = await waiting
    assert (last.text, last.complete) == ("", True)
    assert time.monotonic() - begun < 10, "the end of the try ends the wait"
    assert (await rest.read_log("sales", "r1", "extract")).text == "grüße bye ☃"


async def test_chunks_after_the_exit_still_arrive(client: ExecutionClient, world: World, rest: RestClient) -> None:
    run = world.run(world.add_dag())
    world.dispatch(run, 1)
    token = world.try_token(1)
    world.instance(run, 0, state="success", epoch=1)
    world.end(1)
    assert (await client.send_logs(m.Logs(chunks=[m.LogChunk(token=token, offset=0, data=b"last words")]))).offsets == [10]
    assert (await rest.read_log("sales", "r1", "extract")).text == "last words"


async def test_chunks_of_many_tries_in_one_request(client: ExecutionClient, world: World, rest: RestClient) -> None:
    run = world.run(world.add_dag())
    for index in range(4):
        world.dispatch(run, index + 1, task=1, map_index=index)
    tokens = [world.try_token(index + 1) for index in range(4)]
    chunks = [m.LogChunk(token=t, offset=0, data=f"log {i}".encode()) for i, t in enumerate(tokens)]
    chunks += [m.LogChunk(token="forged", offset=0, data=b"x"), m.LogChunk(token=tokens[0], offset=99, data=b"gap")]
    chunks += [m.LogChunk(token=tokens[1], offset=-1, data=b"nonsense"), m.LogChunk(token=tokens[2], offset=5, data=b" more")]
    assert (await client.send_logs(m.Logs(chunks=chunks))).offsets == [5, 5, 5, 5, -1, 102, -1, 10]
    assert (await rest.read_log("sales", "r1", "clean", map_index=2)).text == "log 2 more"
    assert (await rest.read_log("sales", "r1", "clean", map_index=3)).text == "log 3"


async def test_logs_of_each_try(client: ExecutionClient, world: World, rest: RestClient) -> None:
    run = world.run(world.add_dag())
    for number in (1, 2):
        world.dispatch(run, number, tries=number)
        chunk = m.LogChunk(token=world.try_token(number), offset=0, data=f"try {number}".encode())
        await client.send_logs(m.Logs(chunks=[chunk]))
        world.end(number)
    assert (await rest.read_log("sales", "r1", "extract")).text == "try 2"
    first = await rest.read_log("sales", "r1", "extract", try_number=1)
    assert (first.text, first.complete) == ("try 1", True)


async def test_logs_of_what_does_not_exist(rest: RestClient, world: World) -> None:
    world.run(world.add_dag())
    for run_id, task_id in (("r9", "extract"), ("r1", "nope")):
        with pytest.raises(ApiRefused, match="There is no task") as refused:
            await rest.read_log("sales", run_id, task_id)
        assert refused.value.status == 404
    nothing = await rest.read_log("sales", "r1", "extract")
    assert (nothing.text, nothing.offset, nothing.complete) == ("", 0, False)
