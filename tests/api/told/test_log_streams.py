"""The stream of a log: it tells all of it once, to who may read it, and goes on where it was cut."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import aiohttp
import psycopg
import pytest

from evenflow.api import limits
from evenflow.api.service import ApiService
from evenflow.client.execution import ExecutionClient
from evenflow.client.rest import RestClient
from evenflow.core.people.roles import Role
from evenflow.core.people.scopes import PersonScope
from evenflow.errors import ApiRefused
from evenflow.wire import messages as m
from tests.api.people.test_person_scopes import spec
from tests.api.streams import Reader, reading
from tests.api.world import ClientOfAll, World
from tests.apis import running_api
from tests.tokens import operator_token as new_token
from tests.waiting import until

PAGES = 20
PATH = "/api/v1/dags/sales/runs/r1/tasks/extract/logs/live"


class Talking:
    """A try of the task ``extract`` that runs, and prints."""

    def __init__(self, world: World, client: ExecutionClient) -> None:
        self.world, self._client, self._said = world, client, 0
        self.run = world.run(world.add_dag(), "r1")
        self.begin(1)

    def begin(self, number: int) -> None:
        self.epoch, self._said = number, 0
        self.world.dispatch(self.run, number, tries=number)
        self.world.instance(self.run, 0, state="running", epoch=number, tries=number)

    async def say(self, data: bytes) -> None:
        chunk = m.LogChunk(token=self.world.try_token(self.epoch), offset=self._said, data=data)
        await self._client.send_logs(m.Logs(chunks=[chunk]))
        self._said += len(data)

    def end(self) -> None:
        self.world.instance(self.run, 0, state="success", epoch=self.epoch, tries=self.epoch)
        self.world.end(self.epoch)


@pytest.fixture
def talking(world: World, client: ExecutionClient, monkeypatch: pytest.MonkeyPatch) -> Talking:
    monkeypatch.setattr(limits, "LOG_STATE_CHECK", 0.1)
    return Talking(world, client)


async def heard(reader: Reader) -> tuple[str, str, bool]:
    event = await reader.event()
    assert event.kind == "log"
    assert event.cursor.endswith(f":{event.news['offset']}")
    return event.cursor, event.news["text"], event.news["complete"]


async def test_a_log_is_told_as_it_grows_up_to_its_end(
    talking: Talking, api_url: str, http: aiohttp.ClientSession, operator_token: str
) -> None:
    snowman = "☃".encode()
    await talking.say("grüße ".encode())
    async with reading(http, f"{api_url}{PATH}", operator_token) as reader:
        assert await heard(reader) == ("1:8", "grüße ", False)
        await talking.say(b"bye " + snowman[:2])
        assert await heard(reader) == ("1:12", "bye ", False), "no half characters"
        await talking.say(snowman[2:])
        assert await heard(reader) == ("1:15", "☃", False)
        talking.end()
        assert await heard(reader) == ("1:15", "", True)
        with pytest.raises(EOFError):
            await reader.event()


async def test_a_stream_that_was_cut_goes_on_behind_what_was_heard_of_its_try(
    talking: Talking, api_url: str, http: aiohttp.ClientSession, operator_token: str
) -> None:
    """There is another try meanwhile, whose log begins anew."""
    url = f"{api_url}{PATH}"
    await talking.say(b"one ")
    async with reading(http, url, operator_token) as reader:
        cursor, _, _ = await heard(reader)
    await talking.say(b"two")
    talking.end()
    talking.begin(2)
    await talking.say(b"other")
    async with reading(http, url, operator_token, **{"Last-Event-ID": cursor}) as reader:
        assert await heard(reader) == ("1:7", "two", True)
    async with reading(http, url, operator_token) as reader:
        assert await heard(reader) == ("2:5", "other", False)
    async with reading(http, f"{url}?try_number=1&offset=4", operator_token) as reader:
        assert await heard(reader) == ("1:7", "two", True)


async def test_a_long_log_comes_in_messages_that_a_client_can_read(
    talking: Talking, api_url: str, http: aiohttp.ClientSession, operator_token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "LIVE_LOG_TEXT", 16)
    text = "ä\x1b[1m€" * 20
    await talking.say(text.encode())
    talking.end()
    parts: list[str] = []
    complete = False
    async with reading(http, f"{api_url}{PATH}", operator_token) as reader:
        while not complete:
            _, part, complete = await heard(reader)
            assert len(part.encode()) <= 16
            parts.append(part)
    assert "".join(parts) == text
    async with RestClient(api_url, operator_token) as rest:
        assert "".join([part.text async for part in rest.follow_log("sales", "r1", "extract")]) == text


async def test_all_who_look_at_a_log_share_its_readings(
    talking: Talking, api: ApiService, api_url: str, http: aiohttp.ClientSession, operator_token: str
) -> None:
    """ADR 0081: what it costs does not grow with them."""
    logs = api._streams.logs
    readers = [reading(http, f"{api_url}{PATH}", operator_token) for _ in range(PAGES)]
    opened = [await one.__aenter__() for one in readers]
    await until(lambda: [log.pages for log in logs._followed.values()] == [PAGES])
    await talking.say(b"hello")
    assert {await heard(one) for one in opened} == {("1:5", "hello", False)}
    (log,) = logs._followed.values()
    await until(lambda: list(log._waits._waits) == [5], "one of them waits for what follows")
    for one in readers:
        await one.__aexit__(None, None, None)
    await until(lambda: not logs._followed, "what nobody looks at is forgotten")


async def test_what_is_beyond_the_scope_is_not_there_and_stops_when_it_gets_there(
    world: World, client: ExecutionClient, api_url: str, http: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-SE3"""
    monkeypatch.setattr(limits, "LOG_STATE_CHECK", 0.1)
    run = world.run(world.add_dag(spec("mine", "etl"), file="mine.py", files={"mine.py": b""}), "r")
    world.dispatch(run, 1)
    world.instance(run, 0, state="running", epoch=1)
    url = f"{api_url}/api/v1/dags/mine/runs/r/tasks/mine_task/logs/live"
    theirs = new_token(world.conn, role=Role.VIEWER, scope=PersonScope(tags=("hr",)))
    async with http.get(url, headers={"Authorization": f"Bearer {theirs}"}) as answer:
        assert (answer.status, "no DAG 'mine'" in await answer.text()) == (404, True)
    mine = new_token(world.conn, role=Role.VIEWER, scope=PersonScope(tags=("etl",)))
    async with reading(http, url, mine) as reader:
        await client.send_logs(m.Logs(chunks=[m.LogChunk(token=world.try_token(1), offset=0, data=b"x")]))
        assert (await reader.event()).news["text"] == "x"
        world.add_dag(spec("mine", "hr"), file="mine.py", files={"mine.py": b""})
        with pytest.raises(EOFError):
            await reader.event()


async def test_what_cannot_be_followed_is_refused(
    talking: Talking, api_url: str, http: aiohttp.ClientSession, operator_token: str, worker_token: str
) -> None:
    async def status(path: str = PATH, token: str = operator_token, **headers: str) -> int:
        async with http.get(f"{api_url}{path}", headers={"Authorization": f"Bearer {token}", **headers}) as answer:
            return answer.status

    for cursor in ("", "x", "1", "0:1", "1:-1", "1:", f"1:{'9' * 19}", "1:2:3"):
        assert await status(**{"Last-Event-ID": cursor}) == 422, cursor
    assert await status(**{"Last-Event-ID": "7:0"}) == 404
    assert await status(f"{PATH}?try_number=2") == 404
    assert await status(PATH.replace("extract", "nothing")) == 404
    assert await status(token=worker_token) == 403


async def test_a_token_has_so_many_streams_of_whatever_kind(
    talking: Talking, api: ApiService, http: aiohttp.ClientSession, operator_token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others have room."""
    api_url = f"http://127.0.0.1:{api.port}"
    monkeypatch.setattr(limits, "LIVE_STREAMS_EACH", 1)
    shown = {"Authorization": f"Bearer {operator_token}"}
    async with reading(http, f"{api_url}{PATH}", operator_token):
        for path in (PATH, "/api/v1/live", "/api/v1/capacity/live"):
            async with http.get(f"{api_url}{path}", headers=shown) as answer:
                assert (answer.status, answer.headers["Retry-After"]) == (429, str(limits.LIVE_FULL))
                assert "too_many_streams" in await answer.text()
        async with reading(http, f"{api_url}{PATH}", new_token(talking.world.conn, name="eve")):
            pass

    await until(lambda: not api._streams.open._of_name, "closed streams are not counted")
    async with reading(http, f"{api_url}{PATH}", operator_token):
        pass


async def test_a_follower_goes_on_when_the_api_was_away(
    database_url: str, db: psycopg.Connection[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is told twice, and nothing is missed."""
    monkeypatch.setattr(limits, "LOG_STATE_CHECK", 0.1)
    async with running_api(database_url, tmp_path) as api:
        port = api.port
        url = f"http://127.0.0.1:{port}"
        client = ClientOfAll(url, db, "worker")
        talking = Talking(World(db), client)
        await talking.say(b"before ")
        rest = RestClient(url, new_token(db))
        parts = aiter(rest.follow_log("sales", "r1", "extract"))
        assert (await anext(parts)).text == "before "
    async with running_api(database_url, tmp_path, port=port), rest:
        await talking.say(b"after")
        talking.end()
        rest_of = [part async for part in parts]
        await client.close()
    assert ("".join(part.text for part in rest_of), rest_of[-1].complete) == ("after", True)


async def test_a_follower_is_told_at_once_what_is_wrong(talking: Talking, api_url: str, operator_token: str) -> None:
    async with RestClient(api_url, operator_token) as rest:
        with pytest.raises(ApiRefused, match="There is no task 'nothing'"):
            await anext(aiter(rest.follow_log("sales", "r1", "nothing")))
