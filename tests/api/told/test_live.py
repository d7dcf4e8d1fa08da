"""The stream of what moves: who may read it, what it tells, and that nothing is missed."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest

from evenflow.api import limits
from evenflow.api.service import ApiService
from evenflow.api.streams.moves import Live, Topic
from evenflow.store.db.notify import INBOX
from tests.api.streams import Reader, reading
from tests.api.world import World
from tests.waiting import until


class Streams:
    def __init__(self, session: aiohttp.ClientSession, api: ApiService, token: str) -> None:
        self._session, self._live, self._token = session, api._streams.moves, token
        self._rest = f"http://127.0.0.1:{api.port}/api/v1"
        self._url = f"{self._rest}/live"

    @asynccontextmanager
    async def open(self, query: str = "", token: str | None = None, **headers: str) -> AsyncIterator[Reader]:
        """Of a reader from whom nothing is kept back from now on."""
        async with reading(self._session, f"{self._url}?{query}", token or self._token, **headers) as reader:
            await until(lambda: self._live._cursor is not None, "the first look is over")
            yield reader

    async def status(self, query: str = "", **headers: str) -> tuple[int, str]:
        async with self._session.get(f"{self._url}?{query}", headers=headers) as answer:
            return answer.status, await answer.text()

    async def read(self, path: str, tag: str | None = None) -> tuple[aiohttp.ClientResponse, bytes]:
        shown = {"Authorization": f"Bearer {self._token}", **({} if tag is None else {"If-None-Match": tag})}
        async with self._session.get(f"{self._rest}/{path}", headers=shown) as answer:
            return answer, await answer.read()


@pytest.fixture
async def streams(api: ApiService, operator_token: str) -> AsyncIterator[Streams]:
    async with aiohttp.ClientSession() as session:
        yield Streams(session, api, operator_token)


def move(world: World, run: int, task: int, state: str, *, map_index: int = -1) -> None:
    """As a scheduler's turn commits it, which announces nothing."""
    columns = "run_key, task_index, map_index, epoch, try_number, event, state"
    world.conn.execute(f"insert into task_event ({columns}) values (%s, %s, %s, 1, 1, 'x', %s)", [run, task, map_index, state])


async def test_a_page_hears_what_moves_in_its_run_and_nothing_of_others(streams: Streams, world: World) -> None:
    """The newest move of an instance counts; what others do is not told, were it in the same look."""
    version = world.add_dag()
    run, other = world.run(version, "mine", state="running"), world.run(version, "theirs", state="running")
    async with streams.open("dag_id=sales&run_id=mine") as reader:
        with world.conn.transaction():
            move(world, run, 0, "queued")
            move(world, run, 0, "running")
            move(world, run, 1, "success", map_index=4)
            move(world, other, 0, "failed")
        heard = await reader.event()
    assert heard.kind == "news"
    assert heard.news == {
        "runs": [
            {
                "dag_id": "sales",
                "run_id": "mine",
                "state": "running",
                "tasks": [
                    {"task_id": "extract", "map_index": -1, "state": "running", "try_number": 1},
                    {"task_id": "clean", "map_index": 4, "state": "success", "try_number": 1},
                ],
            }
        ],
        "more": False,
        "quiet_s": limits.LIVE_QUIET,
    }


async def test_a_page_about_all_runs_hears_of_them_and_not_of_their_tasks(streams: Streams, world: World) -> None:
    run = world.run(world.add_dag(), "r", state="running")
    async with streams.open() as reader:
        move(world, run, 0, "success")
        heard = await reader.event()
    assert [(one["run_id"], one["tasks"]) for one in heard.news["runs"]] == [("r", [])]


async def test_what_a_notification_announces_is_heard_before_the_sweep(
    streams: Streams, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "LIVE_SWEEP", 3600.0)
    run = world.run(world.add_dag(), "r", state="running")
    async with streams.open() as reader:
        move(world, run, 0, "success")
        world.notify(INBOX)
        assert (await reader.event()).runs == [("r", "running")]


async def test_a_stream_goes_on_behind_the_last_event_that_was_heard(streams: Streams, world: World) -> None:
    """Nothing that was committed meanwhile is missed, not even by a transaction that had begun before: no number says so."""
    version = world.add_dag()
    first, late, missed = (world.run(version, name, state="running") for name in ("first", "late", "missed"))
    slow = world.conn.__class__.connect(world.conn.info.dsn, password=world.conn.info.password)
    move(World(slow), late, 0, "success")  # has its number, and is not committed
    async with streams.open() as reader:
        move(world, first, 0, "success")
        heard = await reader.event()
    assert heard.runs == [("first", "running")]
    move(world, missed, 0, "failed")
    slow.commit()
    slow.close()
    async with streams.open(**{"Last-Event-ID": heard.cursor}) as reader:
        after = await reader.event()
    assert sorted(after.runs) == [("late", "running"), ("missed", "running")]


async def test_who_was_away_for_too_long_reads_all_again(streams: Streams, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LIVE_AGE", 0)
    async with streams.open(**{"Last-Event-ID": "100:100:"}) as reader:
        heard = await reader.event()
    assert (heard.news["runs"], heard.news["more"]) == ([], True)


async def test_the_more_pages_listen_the_longer_each_is_quiet(
    streams: Streams, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Together they ask as often as before, so what open pages cost does not grow with them."""
    monkeypatch.setattr(limits, "LIVE_ASKING", 0.5)
    run = world.run(world.add_dag(), "r", state="running")
    async with streams.open() as one, streams.open() as another, streams.open():
        move(world, run, 0, "success")
        assert [(await reader.event()).news["quiet_s"] for reader in (one, another)] == [6.0, 6.0]


@pytest.mark.parametrize("cursor", ["", "x", "1", "0:5:", "5:4:", "1:9:3,3", "1:9:9", "1:9:3,", "1" * 30 + ":2:"])
async def test_what_is_no_cursor_is_refused(streams: Streams, operator_token: str, cursor: str) -> None:
    status, text = await streams.status(Authorization=f"Bearer {operator_token}", **{"Last-Event-ID": cursor})
    assert (status, "Last-Event-ID" in text) == (422, True)


async def test_a_stranger_hears_nothing(streams: Streams, worker_token: str) -> None:
    """R-SE4"""
    assert (await streams.status())[0] == 401
    assert (await streams.status(Authorization=f"Bearer {worker_token}"))[0] == 403


async def test_there_are_as_many_streams_as_a_process_serves(
    streams: Streams, operator_token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "LIVE_STREAMS", 1)
    async with streams.open():
        status, text = await streams.status(Authorization=f"Bearer {operator_token}")
    assert (status, "Read again every few seconds" in text) == (503, True)


async def test_an_api_server_that_is_drained_ends_its_streams(streams: Streams, api: ApiService) -> None:
    async with streams.open() as reader:
        api._streams.open.close()
        with pytest.raises(EOFError):
            await reader.event()


async def test_who_reads_too_slowly_is_told_to_read_all_again(api: ApiService) -> None:
    """What waits for a page is bounded."""
    with Live(api._pool).stream(Topic()) as stream:
        for number in range(10 * limits.LIVE_KEPT):
            stream.tell(b"data: %d\n\n" % number)
        told = await stream.heard()
    assert told.startswith(b"event: behind")
    assert told.count(b"data") <= limits.LIVE_KEPT + 1
    assert told.endswith(b"data: %d\n\n" % (10 * limits.LIVE_KEPT - 1))


async def test_a_list_that_has_not_changed_is_not_sent_again(streams: Streams, world: World) -> None:
    """Who polls shows the tag of what it has; a tag of something else, or none, gets all."""
    version = world.add_dag()
    world.run(version, "first")
    answer, body = await streams.read("runs")
    tag = answer.headers["ETag"]
    again, nothing = await streams.read("runs", tag)
    assert (again.status, nothing, again.headers["ETag"]) == (304, b"", tag)
    assert "Content-Type" not in again.headers
    assert (await streams.read("runs", f'W/{tag}, "other"'))[0].status == 304
    assert (await streams.read("runs", '"other"'))[1] == body
    world.run(version, "second")
    other, news = await streams.read("runs", tag)
    assert (other.status, len(json.loads(news)["items"])) == (200, 2)
    assert (await streams.read("nothing-is-here", tag))[0].status == 404
