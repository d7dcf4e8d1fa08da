"""Requests that make something, sent twice with one Idempotency-Key: what they make is there once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from evenflow.client.rest import RestClient
from evenflow.core.limits import ANSWER_HOURS
from evenflow.core.model import DagSpec, Schedule, TaskSpec
from evenflow.store.db.connect import connect
from evenflow.store.scheduling import retention
from tests import tokens
from tests.api.world import World
from tests.waiting import WAIT_FOR_LOCKS, until

KEY = "2026-01-31/sales"
DAILY = DagSpec(
    dag_id="daily", tasks=(TaskSpec(task_id="t", operator="python"),), schedule=Schedule(kind="cron", cron="@daily", trigger=True)
)


class Caller:
    """Posts as one person."""

    def __init__(self, api_url: str, token: str, session: aiohttp.ClientSession) -> None:
        self._url, self._token, self._session = f"{api_url}/api/v1/", token, session

    async def post(self, path: str, body: dict[str, Any], key: str | None = KEY) -> tuple[int, Any, bool]:
        """The status, the answer, and whether it was kept."""
        headers = {"Authorization": f"Bearer {self._token}"} | ({} if key is None else {"Idempotency-Key": key})
        async with self._session.post(self._url + path, json=body, headers=headers) as answer:
            return answer.status, await answer.json(), answer.headers.get("Idempotent-Replayed") == "true"


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


@pytest.fixture
def ada(api_url: str, operator_token: str, session: aiohttp.ClientSession, world: World) -> Caller:
    world.add_dag()
    return Caller(api_url, operator_token, session)


async def test_a_repeated_trigger_is_answered_as_the_first_time(ada: Caller, world: World) -> None:
    """R-SE3: also when the run has moved on, and however the body is written."""
    first = await ada.post("dags/sales/runs", {"note": "n", "priority": 3})
    assert (first[0], first[1]["state"], first[2]) == (201, "queued", False)
    world.conn.execute("update dag_run set state = 'running'")
    assert await ada.post("dags/sales/runs", {"priority": 3, "note": "n"}) == (201, first[1], True)
    assert world.one("select count(*) from dag_run") == 1
    assert world.one("select count(*) from audit_event where action = 'run.trigger'") == 1


async def test_the_kept_answer_says_where_the_run_is(ada: Caller, api_url: str, operator_token: str) -> None:
    places = []
    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {operator_token}", "Idempotency-Key": KEY}) as session:
        for _ in range(2):
            async with session.post(f"{api_url}/api/v1/dags/sales/runs", json={"run_id": "r"}) as answer:
                places.append((answer.headers["Location"], answer.content_type))
    assert places == [("/api/v1/dags/sales/runs/r", "application/json")] * 2


async def test_the_place_of_a_run_is_an_address_whatever_its_name(
    world: World, api_url: str, operator_token: str, session: aiohttp.ClientSession
) -> None:
    """R-SE3: a header has no letters but those of ASCII."""
    world.add_dag()
    shown = {"Authorization": f"Bearer {operator_token}"}
    async with session.post(f"{api_url}/api/v1/dags/sales/runs", json={"run_id": "früh 朝?"}, headers=shown) as answer:
        assert (answer.status, answer.headers["Location"]) == (201, "/api/v1/dags/sales/runs/fr%C3%BCh%20%E6%9C%9D%3F")


async def test_a_key_is_of_one_request(ada: Caller, world: World) -> None:
    """R-SE3: with another body or path it is refused, and nothing is made."""
    world.add_dag(DAILY)
    await ada.post("dags/sales/runs", {"run_id": "r"})
    for path, body in (("dags/sales/runs", {"run_id": "s"}), ("dags/daily/runs", {"run_id": "r"})):
        status, answer, _ = await ada.post(path, body)
        assert (status, answer["type"]) == (422, "/api/v1/problems/key_reused")
        assert answer["detail"] == f"You have sent the Idempotency-Key {KEY!r} with another request."
        assert answer["hint"] == "Send that request as it was, or take another key."
    assert world.one("select count(*) from dag_run") == 1
    assert (await ada.post("dags/sales/runs", {"run_id": "s"}, key="another"))[0] == 201


async def test_a_key_is_of_one_person(ada: Caller, api_url: str, session: aiohttp.ClientSession, world: World) -> None:
    """R-SE3: nobody sees by a key what another one has made."""
    await ada.post("dags/sales/runs", {"note": "mine"})
    bob = Caller(api_url, tokens.operator_token(world.conn, name="bob"), session)
    status, answer, kept = await bob.post("dags/sales/runs", {"note": "mine"})
    assert (status, answer["note"], kept) == (201, "mine", False)
    assert world.one("select count(*) from dag_run") == 2


async def test_what_was_refused_keeps_no_key(ada: Caller, world: World) -> None:
    """R-SE3: it is looked at anew, since what stood in its way may have gone."""
    await ada.post("dags/sales/runs", {"run_id": "r"}, key=None)
    assert (await ada.post("dags/sales/runs", {"run_id": "r"}))[0] == 409
    world.conn.execute("delete from dag_run")
    assert (await ada.post("dags/sales/runs", {"run_id": "r"}))[0] == 201


@pytest.mark.parametrize("commits", [True, False])
async def test_two_at_once_make_one(ada: Caller, world: World, database_url: str, commits: bool) -> None:
    """R-SE3: the second waits for the end of the first, and makes it itself when nothing came of that."""
    digest = await _digest_of(ada, world)
    kept = "insert into kept_answer (person, key, digest, status, answer) values (%s, %s, %s, 201, %s)"
    with connect(database_url, name="first") as first, first.transaction(force_rollback=not commits):
        first.execute(kept, ["ada", KEY, digest, '{"run_id": "of the first"}'])
        second = asyncio.create_task(ada.post("dags/sales/runs", {"run_id": "r"}))
        await until(lambda: world.one(WAIT_FOR_LOCKS))
    status, answer, replayed = await second
    assert (status, answer["run_id"], replayed) == (201, "of the first" if commits else "r", commits)
    assert world.one("select count(*) from dag_run") == (0 if commits else 1)


async def _digest_of(ada: Caller, world: World) -> bytes:
    await ada.post("dags/sales/runs", {"run_id": "r"})
    digest: bytes = world.one("select digest from kept_answer")
    world.conn.execute("delete from kept_answer")
    world.conn.execute("delete from dag_run")
    return digest


@pytest.mark.parametrize(
    ("path", "body", "made"),
    [
        ("dags/daily/backfills", {"from_date": "2026-01-01T00:00:00Z", "to_date": "2026-01-03T00:00:00Z"}, "backfill"),
        ("assets/events", {"asset": "orders", "extra": {"rows": 3}}, "asset_event"),
    ],
)
async def test_all_of_these_may_be_repeated(ada: Caller, world: World, path: str, body: dict[str, Any], made: str) -> None:
    """R-SE3"""
    world.add_dag(DAILY)
    world.conn.execute("insert into asset (name, uri) values ('orders', 'x://orders')")
    first = await ada.post(path, body)
    assert first[0] == 201
    assert await ada.post(path, body) == (201, first[1], True)
    assert world.one(f"select count(*) from {made}") == 1


async def test_a_key_is_plain_text(ada: Caller) -> None:
    for key in ("two words", "k" * 201):
        status, answer, _ = await ada.post("dags/sales/runs", {}, key=key)
        assert (status, answer["type"]) == (422, "/api/v1/problems/bad_value")


async def test_answers_go_after_a_day(ada: Caller, world: World) -> None:
    await ada.post("dags/sales/runs", {})
    await ada.post("dags/sales/runs", {}, key="younger")
    world.conn.execute(
        "update kept_answer set at = now() - make_interval(hours => %s, secs => 1) where key = %s", [ANSWER_HOURS, KEY]
    )
    assert retention.delete_answers(world.conn, hours=ANSWER_HOURS, limit=10) == 1
    assert world.all("select key from kept_answer") == ["younger"]


async def test_the_client_repeats_what_got_no_answer(api_url: str, operator_token: str, world: World) -> None:
    """R-SE3: the first answer is lost on its way, and the run is there once."""
    world.add_dag()
    answers: list[bytes] = []

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(next(line.split(b":")[1] for line in head.lower().splitlines() if line.startswith(b"content-length")))
        request = head.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n") + await reader.readexactly(length)
        there, back = await asyncio.open_connection("127.0.0.1", int(api_url.rpartition(":")[2]))
        back.write(request)
        answers.append(await there.read())
        back.close()
        if len(answers) > 1:
            writer.write(answers[-1])
        writer.close()

    async with await asyncio.start_server(relay, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with RestClient(url, operator_token, patience_s=30) as rest:
            run = await rest.trigger_run("sales", note="once")
    assert [b" 201 " in answer.splitlines()[0] for answer in answers] == [True, True]
    assert world.all("select run_id, note from dag_run") == [(run.run_id, "once")]
