"""One suite for all places where logs are stored: every byte once and in order, what is missing told to the byte (R-EX3)."""

from __future__ import annotations

import asyncio
import re

import pytest

from evenflow.api import limits
from evenflow.api.logs.store import Chunk, LogName, LogStore, StoredLogs, writer_of
from evenflow.wire.messages import LostLog
from tests.logs.conftest import MakeLogs

NAME = LogName("d", "r", "t", -1, 1)
LOST = LostLog(bytes=40, lines=3, since=90, until=30, reason="No space\nleft on device")


async def put(
    logs: LogStore, offset: int, data: bytes, *, name: LogName = NAME, epoch: int = 1, lost: LostLog | None = None
) -> StoredLogs:
    return await logs.append([Chunk(name, writer_of(epoch), offset, data, lost)])


async def text_of(logs: LogStore, name: LogName = NAME) -> str:
    return (await logs.read(name, 0)).data.decode()


def missing_in(text: str) -> list[int]:
    return [int(number.replace(",", "")) for number in re.findall(r"-- ([0-9,]+) bytes of this log are missing here: ", text)]


async def test_chunks_are_appended_once(logs: LogStore) -> None:
    assert await put(logs, 0, b"hello ") == ([6], "")
    assert await put(logs, 0, b"hello ") == ([6], "")
    assert await put(logs, 3, b"lo world") == ([11], "")
    assert await put(logs, 2, b"llo") == ([11], "")
    assert await put(logs, 11, b"") == ([11], "")
    assert await logs.read(NAME, 0) == (b"hello world", 11, 11)
    assert await logs.read(NAME, 6) == (b"world", 11, 11)
    assert await logs.read(NAME, 50) == (b"", 50, 11)


async def test_a_log_above_the_limit_is_cut_and_says_so(logs: LogStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LOG_TRY", 10)
    assert await put(logs, 0, b"12345678") == ([8], "")
    assert await put(logs, 8, b"90abcdef") == ([16], ""), "what lies above counts as stored, so that the worker goes on"
    text = (await logs.read(NAME, 0)).data
    assert text.startswith(b"1234567890\n-- The log is cut here")
    assert await put(logs, 16, b"more") == ([20], "")
    assert (await logs.read(NAME, 0)).data == text


async def test_a_long_log_is_read_in_parts(logs: LogStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LOG_READ", 4)
    await put(logs, 0, b"0123456789")
    part = await logs.read(NAME, 0)
    got = part.data
    while not part.at_end:
        assert (len(part.data), part.size) == (4, 10)
        part = await logs.read(NAME, part.next_offset)
        got += part.data
    assert (got, part.next_offset) == (b"0123456789", 10)


async def test_a_try_that_was_sent_again_has_one_log(logs: LogStore) -> None:
    """Offsets keep their meaning: what the first epoch wrote stays in front. Epochs of two schedulers need not grow."""
    await put(logs, 0, b"first ", epoch=9)
    assert await put(logs, 0, b"second", epoch=4) == ([6], "")
    assert await logs.read(NAME, 0) == (b"first second", 12, 12)
    assert await logs.read(NAME, 8) == (b"cond", 12, 12)
    await put(logs, 0, b"other try", name=LogName("d", "r", "t", -1, 11))
    assert await logs.read(NAME, 0) == (b"first second", 12, 12)


async def test_different_names_have_different_logs(logs: LogStore) -> None:
    names = ["a/b", "a%2Fb", "a b", "a+b", "y" * 300, "y" * 301]
    for name in names:
        await put(logs, 0, name.encode(), name=LogName(name, "r", "t", -1, 1))
    for name in names:
        assert (await logs.read(LogName(name, "r", "t", -1, 1), 0)).data == name.encode()


async def test_a_log_that_was_deleted_begins_anew(logs: LogStore, make_logs: MakeLogs) -> None:
    await put(logs, 0, b"abc")
    await make_logs().delete_run("d", "r")
    assert await put(logs, 3, b"def") == ([6], "")
    text = (await logs.read(NAME, 0)).data
    assert text.startswith(b"\n-- 3 bytes of this log are missing here")
    assert text.endswith(b" --\ndef")


async def test_a_reader_waits_for_what_this_process_stores(logs: LogStore) -> None:
    waiting = [asyncio.create_task(logs.wait(NAME, 0, 10)) for _ in range(3)]
    await asyncio.sleep(0)
    await put(logs, 0, b"x")
    assert [text.data for text in await asyncio.gather(*waiting)] == [b"x"] * 3
    assert len(logs._news) == 0


async def test_a_reader_finds_what_another_process_stores(logs: LogStore, make_logs: MakeLogs) -> None:
    other = make_logs()
    waiting = asyncio.create_task(logs.wait(NAME, 0, 10))
    await asyncio.sleep(0)
    await put(other, 0, b"x")
    assert (await asyncio.wait_for(waiting, 5)).data == b"x"


async def test_waiting_for_a_log_ends(logs: LogStore) -> None:
    assert await logs.wait(NAME, 0, 0.05) == (b"", 0, 0)


async def test_a_gap_says_how_much_is_missing_and_positions_go_on(make_logs: MakeLogs) -> None:
    lost: list[int] = []
    logs = make_logs(lost.append)
    assert await put(logs, 0, b"abc") == ([3], "")
    assert await put(logs, 1003, b"def") == ([1006], "")
    assert await put(logs, 1003, b"defg") == ([1007], "")
    assert await put(logs, 2, b"late") == ([1007], "")
    assert await put(logs, 1107, b"h") == ([1108], "")
    text = await text_of(logs)
    assert re.sub("here: .* --", "here --", text) == (
        "abc\n-- 1,000 bytes of this log are missing here --\ndefg\n-- 100 bytes of this log are missing here --\nh"
    )
    assert lost == [1000, 100]
    assert "another API server has them in a folder of its own" in text


async def test_a_writer_that_lies_about_where_it_is_has_lost_no_more_than_a_log(make_logs: MakeLogs) -> None:
    """R-SE2: the text says what was said; what is counted for all is bounded, also by many small lies."""
    lost: list[int] = []
    logs = make_logs(lost.append)
    await put(logs, 0, b"abc")
    for offset in (1_003, limits.LOG_TRY - 10, 2**40, 2**62):
        assert await put(logs, offset, b"x") == ([offset + 1], "")
    assert lost[:2] == [1_000, limits.LOG_TRY - 10 - 1_004]
    assert sum(lost) <= limits.LOG_TRY
    assert missing_in(await text_of(logs))[-1] == 2**62 - 2**40 - 1


async def test_a_log_of_which_the_beginning_is_missing(make_logs: MakeLogs) -> None:
    logs = make_logs()
    assert await put(logs, 7, b"def") == ([10], "")
    assert missing_in(await text_of(logs)) == [7]


@pytest.mark.parametrize(
    ("offset", "said"),
    [
        (43, "40 bytes of this log are missing here: 3 lines written from "),
        (33, "30 bytes of this log are missing here: up to 3 lines written from "),
        (53, "50 bytes of this log are missing here: 40 of them, 3 lines, written from "),
    ],
)
async def test_what_its_writer_knows_of_what_is_missing(make_logs: MakeLogs, offset: int, said: str) -> None:
    """A part of it may have been stored, and more may be gone: the number is that of what is missing here."""
    logs = make_logs()
    await put(logs, 0, b"abc")
    assert await put(logs, offset, b"", lost=LOST) == ([offset], "")
    text = await text_of(logs)
    assert said in text
    assert re.search(
        r"from \d{4}-\d\d-\d\d \d\d:\d\d:\d\d to [-0-9: ]{19} UTC could not be stored: No space left on device --", text
    )


async def test_what_was_stored_after_all_is_not_called_missing(make_logs: MakeLogs) -> None:
    logs = make_logs()
    await put(logs, 0, b"0123456789")
    assert await put(logs, 5, b"56789ab", lost=LOST) == ([12], "")
    assert await text_of(logs) == "0123456789ab"


async def test_two_that_share_a_folder_agree(make_logs: MakeLogs) -> None:
    """Also on where a gap is that the other one has found."""
    one, two = make_logs(), make_logs()
    assert await put(one, 0, b"abc") == ([3], "")
    assert await put(two, 0, b"abcdef") == ([6], "")
    assert await put(one, 3, b"def") == ([6], "")
    assert await put(two, 16, b"x") == ([17], "")
    assert await put(one, 17, b"y") == ([18], "")
    assert await put(two, 16, b"xyz") == ([19], "")
    assert missing_in(await text_of(one)) == [10]
    assert (await text_of(one)).endswith("--\nxyz")
    assert await text_of(one) == await text_of(two)


async def test_gaps_are_bounded(make_logs: MakeLogs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LOG_PARTS", 3)
    logs = make_logs()
    for turn in range(6):
        assert await put(logs, turn * 100, b"x" * 50) == ([turn * 100 + 50], "")
    text = await text_of(logs)
    assert text.count("x" * 50) == 3
    assert "The log is cut here" in text


async def test_a_reader_goes_on_over_a_gap(make_logs: MakeLogs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LOG_READ", 4)
    logs = make_logs()
    await put(logs, 0, b"abc")
    await put(logs, 10, b"def")
    got, text = b"", await logs.read(NAME, 0)
    while text.data:
        got += text.data
        text = await logs.read(NAME, text.next_offset)
    assert got.startswith(b"abc\n-- 7 bytes")
    assert got.endswith(b"--\ndef")
    logs.close()
