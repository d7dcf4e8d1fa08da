"""How a service is known to the control plane: it registers anew when it must, and never when it has left."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator

import pytest

from evenflow.errors import ApiRefused, ApiUnavailable
from evenflow.membership import presence
from evenflow.membership.presence import Presence
from evenflow.wire.messages import Beat, BeatAnswer, Register, Registered
from tests.observed import observations


class Api:
    """``refusals``: what the next registrations get."""

    def __init__(self) -> None:
        self.registered: list[int] = []
        self.refusals: list[ApiRefused | ApiUnavailable] = []
        self.farewell = asyncio.Event()  # until then a farewell is on its way
        self.said_farewell = asyncio.Event()

    async def register(self, message: Register) -> Registered:
        if self.refusals:
            raise self.refusals.pop(0)
        self.registered.append(len(self.registered) + 1)
        return Registered(service_id=self.registered[-1], lease_s=15.0, beat_s=0.0, token="t")

    async def beat(self, service_id: int, message: Beat, *, patience_s: float | None = None) -> BeatAnswer:
        if message.state == "stopped":
            self.said_farewell.set()
            await self.farewell.wait()
        await asyncio.sleep(0)
        return BeatAnswer()


@pytest.fixture
async def api() -> Api:
    return Api()


@contextlib.contextmanager
def kept(api: Api) -> Iterator[tuple[Presence, asyncio.Task[None]]]:
    me = Register(kind="worker", name="w", host="h", pid=1, version="1")
    service = Presence(api, lambda: me, beat=Beat, answered=lambda *_: None, lapsed=lambda: None, lost=lambda: None)
    keeping = asyncio.create_task(service.keep())
    try:
        yield service, keeping
    finally:
        keeping.cancel()


async def turns(count: int) -> None:
    """Of the event loop: far more than anything here takes."""
    for _ in range(count):
        await asyncio.sleep(0)


async def test_who_leaves_does_not_register_anew(api: Api) -> None:
    """Else a service that nobody runs is counted for a lease, and then as lost."""
    with kept(api) as (service, keeping):
        await service.joined()
        leaving = asyncio.create_task(service.leave(Beat(state="stopped")))
        await api.said_farewell.wait()
        await turns(100)
        api.farewell.set()
        await leaving
        await turns(100)
        assert api.registered == [1]
        assert not keeping.done()


async def test_an_api_that_fails_at_a_registration_is_asked_again(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """As at a beat: what this service has in hand must not end because of it."""
    monkeypatch.setattr(presence, "RETRY_S", 0.0)
    with kept(api) as (service, keeping):
        await service.joined()
        api.refusals = [ApiRefused(500, "the API failed")] * 2
        service.lose()
        assert await asyncio.wait_for(service.joined(), 30) == 2
        api.refusals = [ApiRefused(401, "revoked")]
        service.lose()
        with pytest.raises(ApiRefused, match="revoked"):
            await asyncio.wait_for(keeping, 30)


async def test_a_service_that_starts_before_its_api_waits_for_it(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line says so, however often it looks; a token that is no good is no reason to wait."""
    monkeypatch.setattr("evenflow.membership.backoff.FIRST_PAUSE_S", 0.0)
    monkeypatch.setattr("evenflow.membership.backoff.LAST_PAUSE_S", 0.0)
    api.refusals = [ApiUnavailable("it is away"), ApiRefused(503, "its database is"), ApiUnavailable("it is away")]
    with kept(api) as (service, keeping), observations() as logged:
        keeping.cancel()
        await service.join()
        assert api.registered == [1]
        assert [line["fact"] for line in logged] == ["api_away"]
        api.refusals = [ApiRefused(401, "the token is no good")]
        with pytest.raises(ApiRefused, match="no good"):
            await service.join()
