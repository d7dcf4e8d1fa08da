"""How fast a token may ask: who is in a loop is told to wait, and nobody else is."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.api import limits
from evenflow.api.paces import Paces
from evenflow.api.refusals import Refused
from evenflow.api.service import ApiService
from evenflow.api.tokens import OperatorToken
from evenflow.client.rest import RestClient
from tests.apis import make_api
from tests.tokens import operator_token

ADA, BOB, HOST = OperatorToken("ada", 1), OperatorToken("bob", 2), OperatorToken("operator", 0)


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def may(paces: Paces, caller: OperatorToken) -> int:
    """Seconds to wait; 0: it may."""
    try:
        paces.check(caller)
    except Refused as refused:
        return refused.retry_after_s
    return 0


def test_so_many_at_once_and_then_so_many_a_second() -> None:
    """R-SE2: to the request, by a clock that is not waited for."""
    clock = Clock()
    paces = Paces(10, clock)
    assert [may(paces, ADA) for _ in range(51)] == [0] * 50 + [1]
    clock.now += 0.1
    assert [may(paces, ADA) for _ in range(2)] == [0, 1], "a tenth of a second later there is one more"
    clock.now += 2.0
    assert [may(paces, ADA) for _ in range(21)] == [0] * 20 + [1]
    clock.now += 3_600
    assert [may(paces, ADA) for _ in range(51)] == [0] * 50 + [1], "an hour saves no more than the bucket has"


def test_a_token_that_asks_too_fast_holds_up_no_other() -> None:
    """R-SE2: nor the API's own host."""
    paces = Paces(1, Clock())
    assert [may(paces, ADA) for _ in range(6)] == [0] * 5 + [1]
    assert may(paces, BOB) == 0
    assert [may(paces, HOST) for _ in range(100)] == [0] * 100


def test_no_number_is_no_limit() -> None:
    assert [may(Paces(0, Clock()), ADA) for _ in range(1_000)] == [0] * 1_000


def test_what_is_known_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """R-SE2: however many tokens there are; who asks is not forgotten for those who do not."""
    monkeypatch.setattr(limits, "PACED_TOKENS", 3)
    paces = Paces(1, Clock())
    for number in range(2, 10):
        may(paces, ADA)
        may(paces, OperatorToken("x", number))
    assert len(paces._full_at) == 3
    assert may(paces, ADA) > 0


@given(st.lists(st.floats(0, 3), max_size=200), st.integers(1, 20))
def test_no_stretch_of_time_has_more_than_its_rate_and_a_bucket(pauses: list[float], rate: int) -> None:
    """R-SE2: whoever waits as long as they are told is let in."""
    clock, let_in = Clock(), list[float]()
    paces = Paces(rate, clock)
    for pause in pauses:
        clock.now += pause
        for _ in range(rate):
            if wait := may(paces, ADA):
                clock.now += wait
                assert may(paces, ADA) == 0
            let_in.append(clock.now)
    for first, began in enumerate(let_in):
        for last in range(first, len(let_in), 7):
            assert last - first <= rate * (let_in[last] - began + limits.REQUESTS_BURST) + 1e-3


@pytest.fixture
async def slow_api(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ApiService]:
    """Of four requests a second, four at once."""
    monkeypatch.setattr(limits, "REQUESTS_BURST", 1.0)
    api = make_api(database_url, tmp_path, requests_each=4)
    await api.start()
    yield api
    await api.stop()


async def test_who_is_too_fast_is_told_for_how_long_to_wait(slow_api: ApiService, db: psycopg.Connection) -> None:
    """R-SE2: in words and in a header; before its body is read."""
    shown = {"Authorization": f"Bearer {operator_token(db)}"}
    async with aiohttp.ClientSession(f"http://127.0.0.1:{slow_api.port}", headers=shown) as http:
        for _ in range(4):
            async with http.get("/api/v1/session") as answer:
                assert answer.status == 200
        async with http.post("/api/v1/login-codes", json={"x": "y" * 100_000}) as answer:
            assert (answer.status, answer.headers["Retry-After"], answer.headers["Connection"]) == (429, "1", "close")
            told = await answer.json()
        assert told["type"] == "/api/v1/problems/too_many_requests"
        assert told["detail"].endswith("asks more often than 4 times a second.")
        assert told["hint"].startswith("Wait as long as Retry-After says")


async def test_the_client_waits_and_goes_on(slow_api: ApiService, db: psycopg.Connection) -> None:
    """R-SE2: also with what is not to be done twice, and without patience for servers that are gone."""
    async with RestClient(f"http://127.0.0.1:{slow_api.port}", operator_token(db)) as client:
        for _ in range(5):
            await client.make_login_code()
