"""The edge: errors in one form, bodies with a limit, and a description that fits."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import unquote, urlsplit

import aiohttp
import msgspec
import psycopg
import pytest

from evenflow.api import limits
from evenflow.api.execution.app import execution_routes
from evenflow.api.refusals import refusal
from evenflow.api.rest.app import described_rest
from evenflow.contracts.rest.problems import TITLES
from evenflow.core.service import USER_CODE_KINDS
from evenflow.wire import messages as m
from tests.api.world import World
from tests.tokens import fleet_token, service_token


@pytest.fixture(scope="module")
def description() -> dict[str, Any]:
    return described_rest().openapi()


@pytest.fixture
async def session(operator_token: str) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {operator_token}"}) as session:
        yield session


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code", "said"),
    [
        ("GET", "/api/v1/nothing", None, 404, "not_found", "There is nothing at /api/v1/nothing."),
        ("GET", "/", None, 404, "not_found", "There is nothing at /."),
        ("DELETE", "/api/v1/dags", None, 405, "method_not_allowed", "DELETE is not possible at /api/v1/dags."),
        ("GET", "/api/v1/dags/nope", None, 404, "not_found", "There is no DAG 'nope'"),
        ("PATCH", "/api/v1/dags/sales", b"{", 422, "bad_value", "the body is no JSON: JSON decode error at position 1"),
        ("PATCH", "/api/v1/dags/sales", b'{"is_pausd": true}', 422, "bad_value", "body.is_paused: Field required; body.is_pausd"),
        ("PATCH", "/api/v1/dags/sales", b'{"is_paused": "maybe"}', 422, "bad_value", "body.is_paused"),
        (
            "POST",
            "/api/v1/dags/sales/runs",
            b'{"params": {"a": "\\u0000"}}',
            422,
            "bad_value",
            "cannot store a value of the request",
        ),
        ("POST", "/api/v1/dags/sales/runs", b'{"logical_date": "2026-01-01T00:00:00"}', 422, "bad_value", "timezone"),
        (
            "POST",
            "/api/v1/dags/sales/runs",
            b'{"priority": 3000000000}',
            422,
            "bad_value",
            "priority is at most 2,147,483,647, not 3000000000",
        ),
        ("GET", "/api/v1/dags/d/grid?offset=99999999999", None, 422, "bad_value", "offset is at most 1,000, not 99999999999"),
        (
            "GET",
            "/api/v1/runs?state=sucess",
            None,
            422,
            "bad_value",
            "failed, not 'sucess'. Did you mean 'success'?",
        ),
        ("POST", "/api/v1/dags/sales/runs", b'{"run_id": "a/b"}', 422, "bad_value", "run_id has 1 to 250 characters, no slash"),
        ("GET", "/api/v1/dags/a%00b", None, 422, "bad_value", "NUL"),
    ],
)
async def test_errors_are_problem_details(
    session: aiohttp.ClientSession,
    api_url: str,
    world: World,
    method: str,
    path: str,
    body: bytes | None,
    status: int,
    code: str,
    said: str,
) -> None:
    world.add_dag()
    headers = {"Content-Type": "application/json"} if body else {}
    async with session.request(method, f"{api_url}{path}", data=body, headers=headers) as answer:
        assert answer.status == status
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Content-Type"] == "application/problem+json"
        problem = await answer.json()
    assert problem["type"] == f"/api/v1/problems/{code}"
    assert problem["title"] == TITLES[code]
    assert problem["status"] == status
    assert problem["instance"] == urlsplit(unquote(path)).path
    assert problem["request_id"]
    assert said in f"{problem['detail']} {problem['hint']}"


def test_a_database_that_takes_no_writes_is_away() -> None:
    """R-HA18: it was demoted, or is full. Couriers keep what they have for later, and count it against nothing."""
    assert refusal(psycopg.errors.ReadOnlySqlTransaction("cannot execute INSERT in a read-only transaction"))[:2] == (
        503,
        "database_unavailable",
    )


MOST_SENT = 64 * 2**20  # what the kernel has room for


class Endless:
    sent = 0

    async def parts(self) -> AsyncIterator[bytes]:
        while self.sent < 2 * MOST_SENT:
            self.sent += 65_536
            yield b"x" * 65_536


async def test_a_body_above_the_limit_is_refused_before_it_is_read(session: aiohttp.ClientSession, api_url: str) -> None:
    url = f"{api_url}/api/v1/dags/sales/runs"
    async with session.post(url, data=b"x" * (limits.REST_BODY + 1)) as answer:
        assert answer.status == 413
        assert (await answer.json())["type"] == "/api/v1/problems/too_large"

    body = Endless()
    with contextlib.suppress(aiohttp.ClientConnectionError):  # it hung up while we were sending, and that is as good
        async with session.post(url, data=body.parts()) as answer:
            assert answer.status == 411
    assert body.sent < MOST_SENT


async def test_every_execution_route_limits_its_body(api_url: str, world: World) -> None:
    tokens = {kind: service_token(world.conn, kind, 1) for kind in USER_CODE_KINDS}
    tokens |= {f"{kind} fleet": fleet_token(world.conn, kind) for kind in USER_CODE_KINDS}
    world.dispatch(world.run(world.add_dag()), 1)
    tokens["try"] = world.try_token(1)
    async with aiohttp.ClientSession() as session:
        for route in execution_routes(
            None,
            **dict.fromkeys(
                (
                    "reports",
                    "beats",
                    "tokens",
                    "versions",
                    "claims",
                    "trigger_claims",
                    "logs",
                    "vault",
                    "stores",
                    "judge",
                    "storage",
                )
            ),
        ).routes:
            if route.methods is None:  # of Airflow's clients
                continue
            path = route.path.replace("{service_id:int}", "1").replace("{code_hash}", "0" * 64)
            (method,) = route.methods - {"HEAD"}
            headers = {"Authorization": f"Bearer {tokens[max(route.endpoint._kinds)]}", "Content-Length": str(100 * 2**20)}
            async with session.request(method, f"{api_url}{path}", headers=headers, skip_auto_headers=["Content-Length"]) as answer:
                assert answer.status == 413, path
                assert msgspec.msgpack.decode(await answer.read(), type=m.Refusal).code == "too_large"


async def test_a_streamed_body_is_limited_too(api_url: str, world: World) -> None:
    body = Endless()
    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {service_token(world.conn, 'worker', 1)}"}) as session:
        with contextlib.suppress(aiohttp.ClientConnectionError):  # it hung up while we were sending, and that is as good
            async with session.post(f"{api_url}/execution/v1/claim", data=body.parts()) as answer:
                assert answer.status == 413
    assert body.sent < MOST_SENT


@pytest.mark.parametrize("body", [b"", b"\xc1", b"\x80", msgspec.msgpack.encode({"service_id": "one"})])
async def test_messages_that_cannot_be_read(api_url: str, world: World, body: bytes) -> None:
    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {service_token(world.conn, 'worker', 1)}"}) as session:
        async with session.post(f"{api_url}/execution/v1/claim", data=body) as answer:
            assert answer.status == 400
            assert answer.headers["Content-Type"] == m.CONTENT_TYPE
            assert msgspec.msgpack.decode(await answer.read(), type=m.Refusal).code == "bad_message"
        async with session.get(f"{api_url}/execution/v1/claim") as answer:
            assert answer.status == 405


async def test_unknown_fields_are_ignored(api_url: str, world: World) -> None:
    """Both sides can be upgraded in any order."""
    body = msgspec.msgpack.encode({"service_id": 1, "request_key": "k", "slots": 1, "queues": ["q"], "invented_later": 5})
    headers = {"Authorization": f"Bearer {service_token(world.conn, 'worker', 1)}"}
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.post(f"{api_url}/execution/v1/claim", data=body) as answer,
    ):
        assert answer.status == 200


# -- the description ---------------------------------------------------------------------------------------------------


async def test_the_description_is_served(api_url: str, description: dict[str, Any]) -> None:
    async with aiohttp.ClientSession() as session, session.get(f"{api_url}/api/v1/openapi.json") as answer:
        assert await answer.json() == description


LOGINS = {  # nobody has a token yet
    "get_problem_kind",
    "log_in",
    "get_provider",
    "begin_identity_login",
    "end_identity_login",
    "end_identity_session",
    "begin_device_login",
    "take_device_token",
}


def test_every_operation_is_described(description: dict[str, Any]) -> None:
    operations = [(path, op) for path, methods in description["paths"].items() for op in methods.values()]
    ids = [op["operationId"] for _, op in operations]
    assert len(ids) == len(set(ids))
    for path, op in operations:
        assert op["tags"], path
        is_open = path.startswith(("/metrics", "/health"))
        assert is_open or op["operationId"] in LOGINS or op["security"], path
        assert is_open or {"401", "403", "404", "409", "413", "422", "503"} <= op["responses"].keys(), path
    assert "HTTPValidationError" not in description["components"]["schemas"]
