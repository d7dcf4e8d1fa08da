"""Logs that cannot be stored, or are not where they are looked for: how much is missing is said in the log, to the byte."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from evenflow.api.logs.directory import LogDirectory
from evenflow.api.logs.store import Chunk, LogName, StoredLogs, writer_of
from evenflow.client.execution import ExecutionClient
from evenflow.client.rest import RestClient
from evenflow.errors import LogsNotStored
from evenflow.wire.messages import LogChunk, Logs, LostLog
from tests.api.world import World
from tests.disks import needs_mount, small_disk

NAME = LogName("d", "r", "t", -1, 1)
LOST = LostLog(bytes=40, lines=3, since=90, until=30, reason="No space\nleft on device")


async def put(logs: LogDirectory, offset: int, data: bytes, *, lost: LostLog | None = None, name: LogName = NAME) -> StoredLogs:
    return await logs.append([Chunk(name, writer_of(1), offset, data, lost)])


async def text_of(logs: LogDirectory, name: LogName = NAME) -> str:
    return (await logs.read(name, 0)).data.decode()


def files_under(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.log"))


def missing_in(text: str) -> list[int]:
    return [int(number.replace(",", "")) for number in re.findall(r"-- ([0-9,]+) bytes of this log are missing here: ", text)]


async def test_two_that_share_none_say_what_each_lacks(tmp_path: Path) -> None:
    one, two = LogDirectory(tmp_path / "1"), LogDirectory(tmp_path / "2")
    for turn in range(6):
        assert await put((one, two)[turn % 2], turn * 100, b"x" * 100) == ([turn * 100 + 100], "")
    assert missing_in(await text_of(one)) == [100, 100]
    assert missing_in(await text_of(two)) == [100, 100, 100]
    assert (await text_of(one)).count("x") == (await text_of(two)).count("x") == 300
    one.close()
    two.close()


async def test_a_part_whose_first_line_is_not_finished_is_begun_again(tmp_path: Path) -> None:
    """Its server was killed while it wrote that."""
    logs = LogDirectory(tmp_path)
    await put(logs, 0, b"abc")
    (whole,) = files_under(tmp_path)
    (whole.parent / "1.1+100.log").write_bytes(b"\n-- 97 by")
    logs.close()
    assert await put(logs, 100, b"def") == ([103], "")
    assert missing_in(await text_of(logs)) == [97]
    logs.close()


# -- no room -----------------------------------------------------------------------------------------------------------


@needs_mount
async def test_a_full_disk_refuses_with_what_it_has(tmp_path: Path) -> None:
    """Nothing counts as stored that is not, and all is there once there is room again."""
    refused: list[int] = []
    with small_disk(tmp_path / "disk") as disk:
        logs = LogDirectory(disk.folder / "logs", refused=refused.append)
        assert await put(logs, 0, b"a" * 1000) == ([1000], "")
        disk.fill()
        (offset,), failure = await put(logs, 1000, b"b" * 100_000)
        assert "No space left on device" in failure
        assert 1000 <= offset < 5000
        assert await put(logs, offset, b"b" * 10) == ([offset], failure)
        (gap_offset,), failure = await put(logs, 200_000, b"", lost=LOST)
        assert (gap_offset, bool(failure)) == (offset, True)
        assert refused == [1, 1, 1]
        disk.clean_up()
        assert await put(logs, offset, b"b" * (101_000 - offset)) == ([101_000], "")
        assert await text_of(logs) == "a" * 1000 + "b" * 100_000
        logs.close()


async def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "d").write_text("a file where a folder belongs")
    logs = LogDirectory(tmp_path)
    other = LogName("other", "r", "t", -1, 1)
    offsets, failure = await logs.append([Chunk(NAME, "1", 0, b"hello"), Chunk(other, "2", 0, b"world")])
    assert offsets == [0, 5]
    assert "Not a directory" in failure
    (tmp_path / "d").unlink()
    assert await put(logs, 0, b"hello") == ([5], "")
    assert (await text_of(logs), await text_of(logs, other)) == ("hello", "world")
    logs.close()


def test_a_limit_of_the_system(tmp_path: Path) -> None:
    """The kernel refuses to let files grow: what is written before that is stored, and the rest comes later."""
    script = """
import asyncio, resource, sys
from pathlib import Path
from evenflow.api.logs.directory import LogDirectory
from evenflow.api.logs.store import Chunk, LogName

async def main():
    logs = LogDirectory(Path(sys.argv[1]))
    name = LogName("d", "r", "t", -1, 1)
    print(await logs.append([Chunk(name, "1", 0, b"a" * 1000)]))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1500, resource.RLIM_INFINITY))
    print(await logs.append([Chunk(name, "1", 1000, b"b" * 1000)]))
    resource.setrlimit(resource.RLIMIT_FSIZE, (4000, resource.RLIM_INFINITY))
    print(await logs.append([Chunk(name, "1", 1500, b"b" * 500)]))

asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout.splitlines() == [
        "StoredLogs(offsets=[1000], failure='')",
        "StoredLogs(offsets=[1500], failure='[Errno 27] File too large')",
        "StoredLogs(offsets=[2000], failure='')",
    ]
    assert "logs of tasks cannot be stored: [Errno 27] File too large" in done.stderr
    assert "logs of tasks are stored again" in done.stderr


async def test_the_api_answers_that_it_cannot_store(
    client: ExecutionClient, world: World, operator_token: str, api_url: str, tmp_path: Path
) -> None:
    """With 507 and the offsets, in the order of the chunks; what can be stored is."""
    run = world.run(world.add_dag())
    for epoch in (1, 2):
        world.dispatch(run, epoch, task=1, map_index=epoch)
    folder = tmp_path / "logs" / "sales" / "r1" / "clean"
    folder.mkdir(parents=True)
    (folder / "1").write_text("a file where a folder belongs")
    chunks = [LogChunk(token=world.try_token(epoch), offset=0, data=b"hello") for epoch in (1, 2)]
    chunks.append(LogChunk(token="forged", offset=0, data=b"x"))
    with pytest.raises(LogsNotStored, match=r"Logs of tasks cannot be stored: .*Not a directory") as refused:
        await client.send_logs(Logs(chunks=chunks))
    assert (refused.value.status, refused.value.offsets) == (507, [0, 5, -1])
    shutil.move(folder / "1", tmp_path / "away")
    assert (await client.send_logs(Logs(chunks=chunks))).offsets == [5, 5, -1]
    async with RestClient(api_url, operator_token) as rest:
        assert [(await rest.read_log("sales", "r1", "clean", map_index=n)).text for n in (1, 2)] == ["hello", "hello"]


async def test_no_part_is_readable_by_all(tmp_path: Path) -> None:
    logs = LogDirectory(tmp_path)
    await put(logs, 0, b"a")
    await put(logs, 9, b"b")
    logs.close()
    assert [path.stat().st_mode & 0o007 for path in files_under(tmp_path)] == [0, 0]
