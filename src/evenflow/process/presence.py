"""Being known to the control plane: register, beat, notice when the lease is over, register anew.

The control plane gives a service up ``lease_s`` after the last beat that it saw, and hands its work to others. A service must
stop working before that, by its own clock alone, so it counts from the moment at which it *sent* the last beat that was
answered, and stops ``MARGIN_S`` early.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Protocol

import structlog

from evenflow.errors import ApiRefused, ApiUnavailable
from evenflow.wire.messages import Beat, BeatAnswer, Register, Registered

MARGIN_S = 3.0  # killing takes well under a second; the rest is for a clock that runs slow and a host that stalls
RETRY_S = 0.5  # after a beat without an answer: some twenty tries before a lease lapses
LEAVE_TIMEOUT_S = 2.0  # for the farewell; without it the lease says the same, later

log = structlog.get_logger(__name__)


class ServiceApi(Protocol):
    async def register(self, message: Register) -> Registered: ...

    async def beat(self, service_id: int, message: Beat, *, patience_s: float | None = None) -> BeatAnswer: ...


class Presence:
    """``beat`` makes the next beat, ``answered`` hears every answer, ``lost`` is called when all work must end at once."""

    def __init__(
        self,
        api: ServiceApi,
        identity: Register,
        *,
        beat: Callable[[], Beat],
        answered: Callable[[BeatAnswer], None],
        lost: Callable[[], None],
    ) -> None:
        self._api, self._identity = api, identity
        self._make_beat, self._answered, self._lost = beat, answered, lost
        self._registered: Registered | None = None
        self._joined = asyncio.Event()
        self._hurry = asyncio.Event()
        self._expiry: asyncio.TimerHandle | None = None

    async def join(self) -> None:
        """Register. Raises :class:`ApiUnavailable` and :class:`ApiRefused`."""
        sent = asyncio.get_running_loop().time()
        self._registered = await self._api.register(self._identity)
        self._renew(sent)
        self._joined.set()

    async def joined(self) -> int:
        """The service's id, as soon as it is registered."""
        await self._joined.wait()
        assert self._registered is not None
        return self._registered.service_id

    async def keep(self) -> None:
        """Beat for ever, and register again when that is needed. Raises :class:`ApiRefused` when the token is not good any more."""
        while True:
            self._hurry.clear()
            pause = await (self._beat() if self._joined.is_set() else self._join_again())
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._hurry.wait()

    async def beat_now(self) -> None:
        """One beat out of turn, for a state that others should know; without an answer the next one in turn will do."""
        if self._joined.is_set():
            await self._beat()

    def lose(self) -> None:
        """The control plane has given this service up, or will have before it is heard again."""
        if self._expiry is not None:
            self._expiry.cancel()
        if self._joined.is_set():
            self._joined.clear()
            self._hurry.set()
            self._lost()

    async def leave(self) -> None:
        """Say that this service ends, so that nobody waits for its lease."""
        if self._expiry is not None:
            self._expiry.cancel()
        if self._registered is not None and self._joined.is_set():
            self._joined.clear()
            with contextlib.suppress(ApiUnavailable, ApiRefused, TimeoutError):
                async with asyncio.timeout(LEAVE_TIMEOUT_S):
                    await self._api.beat(self._registered.service_id, Beat(state="stopped"), patience_s=LEAVE_TIMEOUT_S)

    async def _beat(self) -> float:
        """Beat once; the answer is how long to wait with the next one."""
        assert self._registered is not None
        registered, sent = self._registered, asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(registered.beat_s):
                answer = await self._api.beat(registered.service_id, self._make_beat(), patience_s=0.0)
        except (ApiUnavailable, TimeoutError):
            return RETRY_S
        except ApiRefused as error:
            if error.status < 500:
                raise
            log.warning("beat refused", reason=str(error))
            return RETRY_S
        if registered is not self._registered or not self._joined.is_set():
            return 0.0  # the lease lapsed while this was on its way
        if answer.known:
            self._renew(sent)
            self._answered(answer)
        else:
            log.warning("given up by the control plane", service_id=registered.service_id)
            self.lose()
        return registered.beat_s

    async def _join_again(self) -> float:
        try:
            await self.join()
        except ApiUnavailable:
            return RETRY_S
        assert self._registered is not None
        log.info("registered anew", service_id=self._registered.service_id)
        return self._registered.beat_s

    def _renew(self, sent: float) -> None:
        assert self._registered is not None
        if self._expiry is not None:
            self._expiry.cancel()
        self._expiry = asyncio.get_running_loop().call_at(sent + self._registered.lease_s - MARGIN_S, self._lapse)

    def _lapse(self) -> None:
        log.warning("no beat was answered in time, so the lease is over")
        self.lose()
