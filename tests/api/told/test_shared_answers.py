"""Pages that ask the same at the same moment have one answer, and none that is another's, or older than its question."""

from __future__ import annotations

import asyncio
import inspect
import json
import re
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from fastapi.routing import APIRoute

from evenflow.api.kept import SharedAnswers
from evenflow.api.rest import context
from evenflow.api.rest.app import described_rest
from evenflow.api.rest.routes import SharedRoute
from evenflow.api.service import ApiService
from evenflow.core.people.roles import Role
from evenflow.core.people.scopes import PersonScope
from evenflow.store.db.connect import connect
from tests.api.people.test_person_scopes import spec
from tests.api.world import World
from tests.tokens import operator_token
from tests.waiting import WAIT_FOR_LOCKS, until

PAGES = 20
SHARED = {
    "/api/v1/status",
    "/api/v1/plan",
    "/api/v1/runs",
    "/api/v1/dags",
    "/api/v1/dags/{dag_id}",
    "/api/v1/dags/{dag_id}/grid",
    "/api/v1/dags/{dag_id}/calendar",
    "/api/v1/dags/{dag_id}/runs/{run_id}",
    "/api/v1/dags/{dag_id}/runs/{run_id}/task-counts",
    "/api/v1/dags/{dag_id}/runs/{run_id}/tasks",
    "/api/v1/dags/{dag_id}/runs/{run_id}/tasks/{task_id}/tries",
}


class Database:
    """Of one value, which is read when a reading begins. Readings end when they are let go."""

    def __init__(self) -> None:
        self.value = "old"
        self.readings: list[asyncio.Event] = []
        self.error: Exception | None = None

    async def read(self) -> str:
        seen, error, end = self.value, self.error, asyncio.Event()
        self.readings.append(end)
        await end.wait()
        if error is not None:
            raise error
        return seen


async def test_no_caller_gets_what_was_read_before_it_asked() -> None:
    """Those who ask during a reading share the next one, which begins when it has ended."""
    shared, database = SharedAnswers[str](), Database()
    early = [asyncio.create_task(shared.get("q", database.read)) for _ in range(3)]
    await until(lambda: database.readings)
    database.value = "new"
    late = [asyncio.create_task(shared.get("q", database.read)) for _ in range(3)]
    other = asyncio.create_task(shared.get("another", database.read))
    await until(lambda: len(database.readings) == 2)  # the other question waits for nothing
    database.readings[1].set()
    assert await other == "new"
    database.readings[0].set()
    assert await asyncio.gather(*early) == ["old"] * 3
    await until(lambda: len(database.readings) == 3)
    database.readings[2].set()
    assert await asyncio.gather(*late) == ["new"] * 3
    assert not shared._last


async def test_an_error_is_of_all_who_ask_at_that_moment_and_of_no_later_one() -> None:
    """Neither does a caller that goes away take the answer from the others."""
    shared, database = SharedAnswers[str](), Database()
    database.error = OSError("gone")
    asked = [asyncio.create_task(shared.get("q", database.read)) for _ in range(3)]
    await until(lambda: database.readings)
    database.error = None
    after = asyncio.create_task(shared.get("q", database.read))
    asked[0].cancel()
    database.readings[0].set()
    gone, *failed = await asyncio.gather(*asked, return_exceptions=True)
    assert isinstance(gone, asyncio.CancelledError)
    assert [str(error) for error in failed] == ["gone"] * 2
    await until(lambda: len(database.readings) == 2)
    database.readings[1].set()
    assert await after == "old"
    assert not shared._last


def test_shared_answers_depend_on_nothing_of_a_caller_but_role_and_scope() -> None:
    """A route that looks at the name, the address or the headers of its caller must not be one of these (R-SE3)."""
    routes = [route for route in described_rest().routes if isinstance(route, SharedRoute)]
    assert {route.path for route in routes} == SHARED
    for route in routes:
        assert isinstance(route, APIRoute)
        assert route.methods == {"GET"}
        used = {one.call for one in route.dependant.dependencies if one.name is not None}
        assert used <= {context.context, context.connection, context.scope_of}, route.path
        assert not route.dependant.header_params
        assert not route.dependant.cookie_params
        assert not re.search(r"caller_of|address_of|agent_of|\bactor\b|\bhttp\.(?!scope\[.path)", inspect.getsource(route.endpoint))


class Pages:
    def __init__(self, api: ApiService, world: World, http: aiohttp.ClientSession, database_url: str) -> None:
        self._api, self._world, self._http, self._database_url = api, world, http, database_url
        for of, tag in (("mine", "etl"), ("theirs", "hr")):
            world.run(world.add_dag(spec(of, tag), file=f"{of}.py", files={f"{of}.py": b""}), f"{of}_run")

    def token(self, **how: Any) -> str:
        return operator_token(self._world.conn, **how)

    async def ask(self, path: str, token: str) -> tuple[int, str]:
        url = f"http://127.0.0.1:{self._api.port}/api/v1/{path}"
        async with self._http.get(url, headers={"Authorization": f"Bearer {token}"}) as answer:
            return answer.status, await answer.text()

    async def ask_at_once(self, path: str, tokens: list[str]) -> tuple[list[tuple[int, str]], int]:
        """Their answers while nobody could read runs, and how often a connection to the database was asked for."""
        with connect(self._database_url, name="other") as other:
            before = self._count()
            with other.transaction():
                other.execute("lock table dag_run")
                asked = [asyncio.create_task(self.ask(path, token)) for token in tokens]
                await until(self._locked)
                await until(lambda: len(self._api._web._server.server_state.tasks) == len(tokens))
            answers = await asyncio.gather(*asked)
        return answers, self._count() - before

    def _locked(self) -> bool:
        row = self._world.conn.execute(WAIT_FOR_LOCKS).fetchone()
        return row is not None and row[0] > 0

    def _count(self) -> int:
        return int(self._api._pool.get_stats().get("requests_num", 0))


@pytest.fixture
async def pages(api: ApiService, world: World, database_url: str) -> AsyncIterator[Pages]:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http:
        yield Pages(api, world, http, database_url)


async def test_pages_that_ask_the_same_at_once_are_answered_together(pages: Pages) -> None:
    """Each with a token of its own."""
    tokens = [pages.token(name=f"p{number}", role=Role.VIEWER) for number in range(PAGES)]
    answers, readings = await pages.ask_at_once("runs", tokens)
    assert {status for status, _ in answers} == {200}
    assert {body for _, body in answers} == {answers[0][1]}
    assert readings < PAGES / 2


async def test_callers_with_different_scopes_and_roles_share_nothing(pages: Pages) -> None:
    """R-SE3"""
    scopes = [None, PersonScope(tags=("etl",)), PersonScope(tags=("hr",)), PersonScope(bundles=("none",))]
    tokens = [pages.token(name=f"p{number}", role=Role.VIEWER, scope=scope) for number, scope in enumerate(scopes * 3)]
    answers, _ = await pages.ask_at_once("runs", tokens)
    assert [[run["dag_id"] for run in json.loads(body)["items"]] for _, body in answers] == [
        ["theirs", "mine"],
        ["mine"],
        ["theirs"],
        [],
    ] * 3


async def test_a_refusal_names_the_request_that_it_answers(pages: Pages) -> None:
    """Refused alike, by a rule about the question and by what the database has, each is told its own."""
    token = pages.token(name="p", role=Role.VIEWER)
    for path, status in (("runs?limit=-1", 422), ("dags/none/grid", 404)):
        answers = await asyncio.gather(*(pages.ask(path, token) for _ in range(5)))
        assert [found for found, _ in answers] == [status] * 5
        assert len({json.loads(body)["request_id"] for _, body in answers}) == 5


def test_no_request_waits_for_a_thread() -> None:
    """What a route depends on that is no coroutine is run in a thread: for 200 open pages that was a sixth of the API's CPU."""
    asked = [route.dependant for route in described_rest().routes if isinstance(route, APIRoute)]
    called = set()
    while asked:
        dependant = asked.pop()
        asked += dependant.dependencies
        called.update(one.call for one in dependant.dependencies)
    threaded = {
        call
        for call in called
        if not any(map(inspect.iscoroutinefunction, (call, call.__call__))) and not inspect.isasyncgenfunction(call)
    }
    assert called
    assert threaded == set()
