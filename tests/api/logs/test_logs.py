"""Logs: every byte once, in order, while the try runs and after."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest

from evenflow.api import limits
from evenflow.api.logs.directory import LogDirectory
from evenflow.api.logs.store import Chunk, LogName, writer_of
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


def files_under(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


async def put(logs: LogDirectory, offset: int, data: bytes, *, name: LogName = NAME, epoch: int = 1) -> int:
    offsets, failure = await logs.append([Chunk(name, writer_of(epoch), offset, data)])
    assert not failure
    return offsets[0]


@pytest.mark.parametrize("name", ["../../etc", "..", ".hidden", "a/b", "a b", "x" * 250, "ü" * 200, "a\0b", "C:\\x", "*"])
async def test_names_stay_inside_the_directory(logs: LogDirectory, tmp_path: Path, name: str) -> None:
    log = LogName(name, name, name, 3, 1)
    await put(logs, 0, b"x", name=log)
    assert (await logs.read(log, 0)).data == b"x"
    (file,) = files_under(tmp_path)
    assert len(file.relative_to(tmp_path / "logs").parts) == 5


async def test_open_files_are_bounded(logs: LogDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LOG_OPEN_FILES", 3)
    for turn in range(2):
        for index in range(10):
            assert await put(logs, turn, b"x", name=LogName("d", "r", "t", index, 1)) == turn + 1
    assert len(logs._open) == 3


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


async def test_a_log_as_a_file(
    client: ExecutionClient, world: World, rest: RestClient, api_url: str, operator_token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-ST10: all of it, however many parts it is read in, under a name that says what it is of."""
    monkeypatch.setattr(limits, "LOG_READ", 1_000)
    run = world.run(world.add_dag(), "day 1")
    world.dispatch(run, 1, task=1, map_index=3)
    said = "".join(f"grüße {number}\n" for number in range(700)).encode()
    await client.send_logs(m.Logs(chunks=[m.LogChunk(token=world.try_token(1), offset=0, data=said)]))
    names = {"Authorization": f"Bearer {operator_token}"}
    path = f"{api_url}/api/v1/dags/sales/runs/day%201/tasks/clean/logs/file"
    async with aiohttp.ClientSession(headers=names) as http:
        async with http.get(path, params={"map_index": 3}) as answer:
            assert await answer.read() == said
            assert answer.headers["Content-Length"] == str(len(said))
            assert answer.headers["Content-Disposition"] == "attachment; filename*=UTF-8''sales-day%201-clean-3-try-1.log"
        async with http.get(path, params={"map_index": 4}) as answer:
            assert (answer.status, await answer.read()) == (200, b"")
    part = await rest.read_log("sales", "day 1", "clean", map_index=3, offset=len(said) - 9)
    assert (part.size, part.offset) == (len(said), len(said))


async def test_logs_of_what_does_not_exist(rest: RestClient, world: World) -> None:
    world.run(world.add_dag())
    for run_id, task_id in (("r9", "extract"), ("r1", "nope")):
        with pytest.raises(ApiRefused, match="There is no task") as refused:
            await rest.read_log("sales", run_id, task_id)
        assert refused.value.status == 404
    nothing = await rest.read_log("sales", "r1", "extract")
    assert (nothing.text, nothing.offset, nothing.complete) == ("", 0, False)
