"""Logs in object storage: few objects, whoever wrote them; storage that is away, or is none (R-EX3, R-SE4)."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from evenflow.api import limits
from evenflow.api.logs.objects import ObjectLogs
from evenflow.api.logs.store import Chunk, LogName
from evenflow.errors import LogStorageError, SettingsError
from tests.clouds import CREDENTIALS, Cloud
from tests.logs.test_stores import put, text_of
from tests.waiting import until

NAME = LogName("d", "r", "t", -1, 1)


@pytest.fixture
def prefix(cloud: Cloud) -> str:
    return uuid.uuid4().hex


@pytest.fixture
def logs(prefix: str) -> ObjectLogs:
    return ObjectLogs(f"s3://logs/{prefix}")


@pytest.fixture
def tidying(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LOG_TIDY", 0.02)
    monkeypatch.setattr(limits, "LOG_LOOSE", 3)


@asynccontextmanager
async def tidied(logs: ObjectLogs) -> AsyncIterator[None]:
    loop = asyncio.create_task(logs.tidy())
    try:
        yield
    finally:
        loop.cancel()
        await asyncio.gather(loop, return_exceptions=True)


def keys_of(cloud: Cloud, prefix: str) -> list[str]:
    return [key for key in cloud.keys("logs") if key.startswith(prefix)]


async def test_a_log_is_one_object_once_it_is_quiet(
    logs: ObjectLogs, cloud: Cloud, prefix: str, tidying: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "LOG_QUIET", 0.2)
    async with tidied(logs):
        for line in range(12):
            await put(logs, line * 8, b"line %02d\n" % line)
        await until(lambda: len(keys_of(cloud, prefix)) == 1)
    assert keys_of(cloud, prefix) == [f"{prefix}/d/r/t/-1/1/0.1.0-96.log"]
    assert await text_of(logs) == "".join(f"line {line:02d}\n" for line in range(12))
    assert await put(logs, 96, b"more") == ([100], "")
    assert (await logs.read(NAME, 88)).data == b"line 11\nmore"


async def test_small_objects_are_merged_while_a_log_grows(logs: ObjectLogs, cloud: Cloud, prefix: str, tidying: None) -> None:
    """Who follows it sees each byte once, also in the moment of a merge."""
    seen = b""
    async with tidied(logs):
        for line in range(30):
            await put(logs, line * 8, b"line %02d\n" % line)
            seen += (await logs.read(NAME, len(seen))).data
        await until(lambda: len(keys_of(cloud, prefix)) <= 10)
    assert seen == b"".join(b"line %02d\n" % line for line in range(30))


async def test_merging_is_waited_for_where_a_log_has_too_many_objects(
    logs: ObjectLogs, cloud: Cloud, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "LOG_OBJECTS", 5)
    for line in range(12):
        await put(logs, line * 8, b"line %02d\n" % line)
        assert len(keys_of(cloud, prefix)) <= 6
    assert len(await text_of(logs)) == 96


async def test_servers_that_know_of_each_other_by_the_storage_alone(prefix: str, tidying: None) -> None:
    """A worker that asks one, then the other; both merge meanwhile, and one has killed the answers of the other."""
    one, two = ObjectLogs(f"s3://logs/{prefix}"), ObjectLogs(f"s3://logs/{prefix}")
    sent = b"".join(b"line %03d\n" % line for line in range(60))
    async with tidied(one), tidied(two):
        at = 0
        for turn in range(30):
            known = max(0, at - 9 * (turn % 3))  # an answer that did not arrive
            (at,), failure = await put((one, two)[turn // 2 % 2], known, sent[known : turn * 18 + 18])
            assert not failure
    assert await text_of(one) == await text_of(two) == sent[:at].decode() == sent.decode()


async def test_runs_are_deleted_with_all_their_logs(logs: ObjectLogs, cloud: Cloud, prefix: str) -> None:
    for run in ("r", "r2"):
        for index in range(2):
            await put(logs, 0, b"x", name=LogName("d", run, "t", index, 1))
    await logs.delete_run("d", "r")
    await logs.delete_run("d", "never was")
    assert keys_of(cloud, prefix) == [f"{prefix}/d/r2/t/{index}/1/0.1.0-1.log" for index in range(2)]
    await logs.delete_dag("d")
    assert keys_of(cloud, prefix) == []


async def test_storage_that_stands_still_holds_nobody(logs: ObjectLogs, cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its writers are told that nothing is stored, within the limit; when it goes on, so do they."""
    assert await put(logs, 0, b"before ") == ([7], "")
    monkeypatch.setattr(limits, "LOG_STORAGE", 0.3)
    cloud.stand_still()
    begun = time.monotonic()
    names = [NAME, *(LogName("d", "r", "t", index, 1) for index in range(100))]
    offsets, failure = await logs.append([Chunk(name, "1", 7 if name is NAME else 0, b"during") for name in names])
    assert time.monotonic() - begun < 5
    assert offsets == [7] + [0] * 100
    assert "did not answer within 0.3 s" in failure


async def test_a_log_that_cannot_be_read_says_why(logs: ObjectLogs, cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    await put(logs, 0, b"before ")
    monkeypatch.setattr(limits, "LOG_STORAGE", 0.3)
    cloud.stand_still()
    with pytest.raises(LogStorageError, match=r"did not answer within 0.3 s. Look at this storage, and at EVENFLOW_LOG_URL"):
        await logs.read(NAME, 0)
    cloud.go_on()
    monkeypatch.setattr(limits, "LOG_STORAGE", 10.0)
    assert await text_of(logs) == "before "


async def test_what_was_under_way_when_storage_stood_still_is_there_once(
    prefix: str, cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same bytes are sent again: what arrives late has them already."""
    monkeypatch.setattr(limits, "LOG_STORAGE", 1.0)
    logs = ObjectLogs(f"s3://logs/{prefix}")
    await put(logs, 0, b"before ")
    cloud.stand_still()
    assert (await put(logs, 7, b"during "))[0] == [7]
    cloud.go_on()
    while (await put(logs, 7, b"during and after"))[1]:
        continue
    assert await text_of(logs) == "before during and after"


async def test_a_bucket_that_is_not_there_is_an_error_at_the_start(cloud: Cloud) -> None:
    logs = ObjectLogs("s3://nobody-made-it/logs")
    with pytest.raises(SettingsError, match=r"Logs cannot be stored in s3://nobody-made-it/logs: .*bucket does not exist") as error:
        await logs.prepare()
    assert "EVENFLOW_LOG_URL" in str(error.value)
    assert CREDENTIALS["AWS_SECRET_ACCESS_KEY"] not in str(error.value)
    offsets, failure = await put(logs, 0, b"x")
    assert (offsets, "bucket does not exist" in failure) == ([0], True)
    with pytest.raises(LogStorageError, match="bucket does not exist"):
        await logs.read(NAME, 0)


async def test_a_place_that_can_be_used_leaves_nothing_of_the_look(logs: ObjectLogs, cloud: Cloud, prefix: str) -> None:
    await logs.prepare()
    assert keys_of(cloud, prefix) == []


async def test_what_is_to_be_installed_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(protocol: str) -> None:
        raise ImportError("Install s3fs to access S3")

    monkeypatch.setattr("fsspec.core.get_filesystem_class", missing)
    with pytest.raises(SettingsError, match=r"Type: pip install 'evenflow\[s3\]'"):
        await ObjectLogs("s3://logs/x").prepare()


async def test_a_protocol_that_nobody_knows() -> None:
    with pytest.raises(SettingsError, match="nonsense://logs cannot be used as storage here"):
        await ObjectLogs("nonsense://logs").prepare()
