"""The long poll behind claims: of tries by workers, of triggers by triggerers.

A claim is tried at once. When there is nothing, it joins a line. A notification that there may be work, or a sweep, has the line
served from its front, one claim at a time. Each kind of claim decides what it looks at first, and when it stops. So a wake-up costs
one look, and one claim for each service that gets work, however many wait.
"""

from __future__ import annotations

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Generic, Protocol, TypeVar

from evenflow.api import observations as seen
from evenflow.api.limits import CLAIM_WAIT
from evenflow.core.limits import SWEEP_S
from evenflow.store.db.connect import AsyncConn, AsyncPool
from evenflow.telemetry.observing import observe


class AnyClaim(Protocol):
    wait_s: float


class AnyAnswer(Protocol):
    """``state``: how the control plane regards the service that claims."""

    @property
    def assignments(self) -> Sequence[object]: ...

    @property
    def state(self) -> str: ...


C = TypeVar("C", bound=AnyClaim)
A = TypeVar("A", bound=AnyAnswer)


class WaitingClaim(Generic[C, A]):
    """A claim in line. ``first`` is the answer of its first attempt."""

    def __init__(self, claim: C, first: A, nothing: A) -> None:
        self.claim, self.first, self._nothing = claim, first, nothing
        self.answer: asyncio.Future[A] = asyncio.get_running_loop().create_future()
        self.served = False  # an attempt runs for it, and its work must not be lost
        self.expired = False

    def give(self, answer: A) -> None:
        if not self.answer.done():
            self.answer.set_result(answer)

    def expire(self) -> None:
        self.expired = True
        if not self.served:
            self.give(self._nothing)


class LongPoll(ABC, Generic[C, A]):
    """``wake`` says that there may be work, and on which of ``channels``; ``serve`` runs until the API stops."""

    channels: tuple[str, ...]

    def __init__(self, pool: AsyncPool, nothing: Callable[[], A]) -> None:
        self._pool, self._nothing = pool, nothing
        self._line: dict[WaitingClaim[C, A], None] = {}  # in order of arrival
        self._signal = asyncio.Event()
        self._wakes: Counter[str] = Counter()
        self._news: set[str] = set()  # channels with an announcement since the line was served
        self._closed = False
        self._held_until = 0.0  # by the loop's clock

    @abstractmethod
    async def _attempt(self, conn: AsyncConn, claim: C) -> A:
        """Makes the claim."""

    @abstractmethod
    async def _serve_line(self, line: Sequence[WaitingClaim[C, A]]) -> None:
        """Gives waiting claims the work that there is, perhaps none."""

    def _concerns(self, news: set[str], claim: C) -> bool:
        """Returns whether ``news`` may mean work for this claim."""
        return True

    async def _sweep(self, line: Sequence[WaitingClaim[C, A]]) -> None:
        """Gives waiting claims what they would have got from lost notifications."""
        return

    async def _last_look(self, claim: C, answer: A) -> A:
        """Returns the last answer to a claim that has waited in vain; ``answer`` is its answer so far."""
        return answer

    @property
    def waiting(self) -> int:
        return len(self._line)

    def wake(self, channel: str) -> None:
        self._wakes[channel] += 1
        self._news.add(channel)
        self._signal.set()

    def hold(self, seconds: float) -> None:
        """Gives out nothing for this many seconds."""
        self._held_until = asyncio.get_running_loop().time() + seconds

    def close(self) -> None:
        """Answers all waiting claims with nothing, and lets no claim wait any more."""
        self._closed = True
        for waiting in self._line:
            waiting.expire()

    async def claim(self, claim: C, *, hung_up: Callable[[], Coroutine[Any, Any, None]]) -> A:
        """Returns work at once or when there is some, and nothing after ``wait_s``, or when the service has ``hung_up``."""
        before = self._wakes.copy()
        async with self._pool.connection() as conn:
            answer = await self._made(conn, claim)
        if ends_wait(answer) or claim.wait_s <= 0:
            return answer
        if self._closed:  # perhaps since the attempt began, which has left it waiting
            return await self._last_look(claim, answer)
        waiting = WaitingClaim(claim, answer, self._nothing())
        self._join(waiting)
        if missed := self._wakes - before:  # these may have come too late for the attempt, when the line was already served
            self._news.update(missed)
            self._signal.set()
        expiry = asyncio.get_running_loop().call_later(min(claim.wait_s, CLAIM_WAIT), waiting.expire)
        hang_up = asyncio.create_task(hung_up())
        hang_up.add_done_callback(lambda _: waiting.expire())
        try:
            answer = await waiting.answer
        finally:
            expiry.cancel()
            hang_up.cancel()
            self._leave(waiting)
        return answer if ends_wait(answer) else await self._last_look(claim, answer)

    def _join(self, waiting: WaitingClaim[C, A]) -> None:
        self._line[waiting] = None

    def _leave(self, waiting: WaitingClaim[C, A]) -> None:
        del self._line[waiting]

    async def serve(self) -> None:
        clock = asyncio.get_running_loop().time
        sweep_at = clock() + SWEEP_S
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(sweep_at):
                    await self._signal.wait()
            self._signal.clear()
            if sweeps := clock() >= sweep_at:  # due at its time, however many announcements came since
                sweep_at = clock() + SWEEP_S
                self._news.update(self.channels)  # each may have work without an announcement
            news, self._news = self._news, set()
            line = [waiting for waiting in self._line if self._concerns(news, waiting.claim)]
            try:
                if sweeps:
                    await self._sweep(line)
                await self._serve_line(line)
            except Exception as error:  # the next sweep tries again
                self._news |= news
                observe(seen.work_not_found(str(error)))

    async def _attempt_for(self, conn: AsyncConn, waiting: WaitingClaim[C, A]) -> A:
        answer = self._nothing()
        waiting.served = True
        try:
            answer = await self._made(conn, waiting.claim)
        finally:
            waiting.served = False
            if waiting.expired:
                waiting.give(answer)
        return answer

    async def _made(self, conn: AsyncConn, claim: C) -> A:
        if asyncio.get_running_loop().time() < self._held_until:
            return self._nothing()
        return await self._attempt(conn, claim)


def ends_wait(answer: AnyAnswer) -> bool:
    return bool(answer.assignments) or answer.state != "active"
