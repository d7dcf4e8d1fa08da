"""Tokens: what they say, and that no route can be used without the right one."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import aiohttp
import jwt
import pytest
from starlette.routing import Route

from evenflow.api import tokens as tokens_module
from evenflow.api.execution.app import execution_routes
from evenflow.api.service import ApiService
from evenflow.api.tokens import (
    OperatorToken,
    ServiceToken,
    Tokens,
    TryToken,
    mint,
    mint_operator_token,
    mint_service_token,
    mint_try_token,
    verify,
)
from evenflow.api.vault import Vault
from evenflow.client.execution import ExecutionClient
from evenflow.errors import ApiRefused, NotAllowed, StaleEpoch
from evenflow.wire import messages as m
from evenflow.wire.objects import ObjectStorage
from tests.api.world import World

KEY = b"k" * 32
TRY = TryToken(epoch=5, run_key=2**60, task_index=3, map_index=-1, try_number=2)


@pytest.mark.parametrize(
    ("text", "token"),
    [
        (mint_service_token(KEY, "worker"), ServiceToken("worker")),
        (mint_service_token(KEY, "processor"), ServiceToken("processor")),
        (mint_try_token(KEY, TRY), TRY),
        (mint_operator_token(KEY, name="ada"), OperatorToken("ada")),
    ],
)
def test_a_token_says_what_was_minted(text: str, token: object) -> None:
    assert verify(KEY, text) == token


def test_a_token_is_what_any_reader_of_jwt_takes() -> None:
    text = mint_operator_token(KEY, name="ä")
    assert jwt.get_unverified_header(text) == {"alg": "HS256", "typ": "JWT"}
    claims = jwt.decode(text, KEY, algorithms=["HS256"])
    assert (claims["k"], claims["sub"]) == ("operator", "ä")


def test_tokens_that_are_not_good() -> None:
    with pytest.raises(NotAllowed, match="signed with another key"):
        verify(b"x" * 32, mint_service_token(KEY, "worker"))
    with pytest.raises(NotAllowed, match="expired"):
        verify(KEY, mint(KEY, TRY, ttl=-1))
    with pytest.raises(NotAllowed, match="not one of this Evenflow's"):
        verify(KEY, "nonsense")
    with pytest.raises(NotAllowed, match="not one of this Evenflow's"):
        verify(KEY, jwt.encode({"k": "worker"}, KEY, algorithm="HS256"))
    with pytest.raises(NotAllowed, match="not one of this Evenflow's"):
        verify(KEY, jwt.encode({"k": "worker", "exp": time.time() + 60}, "", algorithm="none"))
    with pytest.raises(NotAllowed, match="kind that this Evenflow does not know"):
        verify(KEY, jwt.encode({"k": "king", "exp": time.time() + 60}, KEY, algorithm="HS256"))


def test_a_remembered_token_expires_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = Tokens(KEY)
    token = mint(KEY, TRY, ttl=60)
    assert tokens.verify(token) == TRY
    later = time.time() + 61
    monkeypatch.setattr(tokens_module, "time", SimpleNamespace(time=lambda: later))
    with pytest.raises(NotAllowed, match="expired"):
        tokens.verify(token)


def test_the_memory_for_tokens_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens_module, "CACHED_TOKENS", 3)
    tokens = Tokens(KEY)
    for epoch in range(10):
        tokens.verify(mint_try_token(KEY, replace(TRY, epoch=epoch)))
        tokens.for_try(replace(TRY, epoch=100 + epoch))
    assert len(tokens._seen) == 3


# -- every route -------------------------------------------------------------------------------------------------------


def every_route() -> list[tuple[str, str, frozenset[str]]]:
    """(method, path, kinds of token that it takes), read from the applications themselves."""
    routes = []
    for route in execution_routes(None, tokens=None, versions=None, claims=None, logs=None, vault=None).routes:
        assert isinstance(route, Route)
        path = route.path.replace("{service_id:int}", "1").replace("{code_hash}", "0" * 64)
        routes += [(method, path, route.endpoint._kinds) for method in route.methods or () if method != "HEAD"]
    for path, methods in _rest_paths().items():
        for method in methods:
            operator = frozenset({"operator"})
            routes.append((method.upper(), path.replace("{", "").replace("}", ""), operator))
    return routes


def _rest_paths() -> dict[str, dict[str, object]]:
    from evenflow.api.rest.app import rest_application

    paths = rest_application(None, tokens=None, log_directory=None, vault=None).openapi()["paths"]
    return {path: methods for path, methods in paths.items() if path != "/metrics" and not path.startswith("/health/")}


ROUTES = every_route()


def test_there_are_routes() -> None:
    assert len(ROUTES) > 24


@pytest.fixture
def tokens(world: World, worker_token: str, processor_token: str, operator_token: str) -> dict[str, str]:
    world.dispatch(world.run(world.version()), 1)
    return {
        "worker": worker_token,
        "processor": processor_token,
        "triggerer": mint_service_token(world.key, "triggerer"),
        "operator": operator_token,
        "try": world.try_token(1),
    }


async def test_no_route_works_without_the_right_token(api_url: str, tokens: dict[str, str], world: World) -> None:
    """R-CS1"""
    wrong: list[str] = []
    expired = mint(world.key, ServiceToken("worker"), ttl=-5)
    async with aiohttp.ClientSession() as session:
        for method, path, kinds in ROUTES:
            cases = {"none": (None, 401), "garbage": ("garbage", 401), "expired": (expired, 401)}
            cases |= {kind: (token, 403) for kind, token in tokens.items() if kind not in kinds}
            for case, (token, status) in cases.items():
                headers = {} if token is None else {"Authorization": f"Bearer {token}"}
                async with session.request(method, f"{api_url}{path}", headers=headers) as answer:
                    if answer.status != status:
                        wrong.append(f"{method} {path} with {case}: {answer.status}")
            for kind in kinds:
                async with session.request(
                    method, f"{api_url}{path}", headers={"Authorization": f"Bearer {tokens[kind]}"}
                ) as answer:
                    if answer.status in (401, 403, 500):
                        wrong.append(f"{method} {path} with {kind}: {answer.status}")
    assert wrong == []


async def test_a_refusal_says_what_is_wrong(api_url: str, tokens: dict[str, str]) -> None:
    async with aiohttp.ClientSession() as session:
        async with session.get(f"{api_url}/api/v1/dags") as answer:
            assert answer.headers["WWW-Authenticate"] == "Bearer"
            error = (await answer.json())["error"]
        assert error["code"] == "unauthorized"
        assert "Set EVENFLOW_TOKEN" in error["message"]
        headers = {"Authorization": f"Bearer {tokens['worker']}"}
        async with session.get(f"{api_url}/api/v1/dags", headers=headers) as answer:
            assert (await answer.json())["error"]["code"] == "forbidden"
    refused = ExecutionClient(api_url, tokens["operator"])
    with pytest.raises(ApiRefused, match="A token of kind 'operator' may not do this; it takes: worker") as error_info:
        await refused.claim(m.Claim(service_id=1, request_key="k", slots=1, queues=["default"]))
    assert error_info.value.status == 403
    await refused.close()


async def test_one_try_cannot_act_for_another(client: ExecutionClient, world: World) -> None:
    """R-CS1, R-CS3: all that a try can name is signed into its token; another try's data stays as it is."""
    version = world.version()
    first, second = world.run(version), world.run(version, "r2")
    world.dispatch(first, 1)
    world.dispatch(second, 2)
    one, two = world.try_token(1), world.try_token(2)
    await client.push_xcom(two, m.XComPush(key="secret", value=b'"of two"'))
    await client.push_xcom(one, m.XComPush(key="secret", value=b'"of one"'))
    assert (await client.pull_xcom(one, m.XComPull(task_id="extract", key="secret"))).value == b'"of one"'
    await client.report(m.Reports(reports=[m.Report(token=one, kind="exit", outcome="success", result=b"1")]))
    await client.send_logs(m.Logs(chunks=[m.LogChunk(token=one, offset=0, data=b"one")]))
    await client.send_progress(one, m.Progress(label="one", done=1, total=2))
    assert world.all("select run_key, epoch from report") == [(first, 1)]
    assert world.all("select run_key from xcom where key = 'return_value'") == [first]
    assert world.all("select run_key, epoch from task_progress") == [(first, 1)]
    assert world.one("select value from xcom where run_key = %s", second) == "of two"


async def test_a_try_that_is_over_writes_nothing(client: ExecutionClient, world: World) -> None:
    """R-CS3"""
    run = world.run(world.version())
    world.dispatch(run, 1)
    token = world.try_token(1)
    world.end(1)
    world.dispatch(run, 2, tries=2)
    with pytest.raises(StaleEpoch, match="This try is over"):
        await client.push_xcom(token, m.XComPush(key="k", value=b"1"))
    with pytest.raises(StaleEpoch):
        await client.send_progress(token, m.Progress(label="x", done=0, total=0))
    answer = await client.send_logs(m.Logs(chunks=[m.LogChunk(token=token, offset=0, data=b"late")]))
    assert answer.offsets == [m.REFUSED_LOG]
    assert world.one("select (select count(*) from xcom) + (select count(*) from task_progress)") == 0


async def test_a_host_may_bring_its_own_operator_token(database_url: str, tmp_path: Path) -> None:
    service = ApiService(
        database_url,
        host="127.0.0.1",
        port=0,
        log_dir=tmp_path,
        name="api",
        vault=Vault(tmp_path / "secrets.key"),
        storage=ObjectStorage(str(tmp_path / "xcom")),
        operator_token="sesame",
    )
    await service.start()
    try:
        async with aiohttp.ClientSession() as session:
            for token, status in (("sesame", 200), ("sesam", 401)):
                headers = {"Authorization": f"Bearer {token}"}
                async with session.get(f"http://127.0.0.1:{service.port}/api/v1/dags", headers=headers) as answer:
                    assert answer.status == status
    finally:
        await service.stop()
