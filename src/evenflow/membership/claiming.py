"""Claims for work: long polls under one registration after the other. A poll whose answer may bring work is never dropped."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

from evenflow.errors import ApiRefused, ApiUnavailable
from evenflow.membership import limits
from evenflow.membership import observations as seen
from evenflow.membership.backoff import Backoff
from evenflow.membership.presence import Presence
from evenflow.telemetry.observing import observe

Q = TypeVar("Q")  # a claim
A = TypeVar("A")  # its answer


class Polls(Generic[Q, A]):
    """The claims under way, each sent by ``ask``."""

    def __init__(self, ask: Callable[[Q], Coroutine[Any, Any, A]]) -> None:
        self._ask = ask
        self._under_way: dict[asyncio.Future[A], Q] = {}
        self.draining = asyncio.Event()  # once it is set, no new claim is sent

    @property
    def under_way(self) -> list[Q]:
        return list(self._under_way.values())

    async def answer(self, claim: Callable[[str], Q]) -> A | None:
        """Returns the answer to one claim, or None when this service drains. A claim without an answer is made anew with the same
        request key, because the API may have received it. Raises :class:`ApiRefused` when this service may not claim.
        """
        request_key, backoff = uuid.uuid4().hex, Backoff()
        while not self.draining.is_set():
            answer = await self._once(claim(request_key))
            if answer is not None:
                return answer
            await backoff.wait()
        return None

    async def drain(self) -> None:
        """Stops claiming. Call it once the control plane knows: then an answer with work is under way already, or will
        never come.
        """
        self.draining.set()
        if polls := set(self._under_way):
            await asyncio.wait(polls, timeout=limits.CLAIM_GRACE)
            for poll in polls:
                poll.cancel()

    def halt(self) -> None:
        """Sends no new claim; an answer that is under way is still received."""
        self.draining.set()

    async def _once(self, claim: Q) -> A | None:
        poll = asyncio.ensure_future(self._ask(claim))
        self._under_way[poll] = claim
        try:
            return await poll
        except ApiUnavailable as error:
            observe(seen.claims_wait(str(error)))
        except ApiRefused as error:
            if error.status < 500:
                raise
            observe(seen.claim_refused(str(error)))
        except asyncio.CancelledError:
            poll.cancel()
            if not self.draining.is_set():
                raise
        finally:
            del self._under_way[poll]
        return None


class Claiming:
    """Runs ``run`` for a service id until it is drained, and anew under each registration."""

    def __init__(self, presence: Presence, run: Callable[[int], Coroutine[Any, Any, None]]) -> None:
        self._presence, self._run = presence, run
        self._running: asyncio.Task[None] | None = None

    async def keep(self) -> None:
        """Runs until it is cancelled: only a failure may end a loop of a service."""
        while True:
            service_id = await self._presence.joined()
            self._running = asyncio.create_task(self._run(service_id), name="claims")
            try:
                await asyncio.wait({self._running})
            finally:
                self._running.cancel()
            if not self._running.cancelled():
                self._running.result()
                break
        await asyncio.Event().wait()  # drained

    def drop(self) -> None:
        """Ends the claims of a registration that is over."""
        if self._running is not None:
            self._running.cancel()
