"""Questions of user code on their way to an API that is away, or that falls silent over them."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest

from evenflow.errors import ApiRefused, ApiUnavailable
from evenflow.membership.asking import ask_patiently
from evenflow.wire.messages import Message


class Api:
    """Fails with each of ``causes``, then answers."""

    def __init__(self, *causes: BaseException) -> None:
        self.causes = list(causes)
        self.asked = 0

    async def ask(self, token: str, question: str, message: Message) -> Message:
        self.asked += 1
        if self.causes:
            raise ApiUnavailable("no answer") from self.causes.pop(0)
        return message


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evenflow.membership.backoff.FIRST_PAUSE_S", 0.0)
    monkeypatch.setattr("evenflow.membership.backoff.LAST_PAUSE_S", 0.0)


async def test_what_silences_an_api_is_asked_three_times_and_no_more() -> None:
    """R-SE2. Each server that it is asked of might fall silent."""
    api = Api(*[TimeoutError() for _ in range(20)])
    async with asyncio.timeout(30):
        with pytest.raises(ApiRefused, match="'trigger' has no answer: the API took it 3 times and did not answer") as refused:
            await ask_patiently(api, "t", "trigger", Message())
    assert (refused.value.status, api.asked) == (504, 3)


@pytest.mark.parametrize(
    "cause", [ConnectionRefusedError(), aiohttp.ConnectionTimeoutError(), aiohttp.ServerDisconnectedError(), None]
)
async def test_an_api_that_is_away_is_waited_for(cause: BaseException | None) -> None:
    """R-HA18: it never had the question. A host that drops packets takes as long as one that is silent."""
    message = Message()
    api = Api(*[cause for _ in range(50)], TimeoutError(), TimeoutError())
    async with asyncio.timeout(30):
        assert await ask_patiently(api, "t", "trigger", message) is message
    assert api.asked == 53
