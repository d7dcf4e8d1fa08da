"""The pace of one client: a number of requests a second, more after a rest, and a number at once."""

from __future__ import annotations

import asyncio
from types import TracebackType

from evenflow.core.pods.options import REQUESTS_PER_S
from evenflow.kubernetes import limits


class RequestPace:
    """Put ``async with`` around each request. Requests get their turns in the order of their arrival."""

    def __init__(self, per_s: float = REQUESTS_PER_S, burst: float = limits.BURST, in_flight: int = limits.IN_FLIGHT) -> None:
        self._per_s, self._burst = per_s, burst
        self._room = asyncio.Semaphore(in_flight)
        self._free_at = 0.0  # by the loop's clock: when all requests so far are paid for; a burst is paid afterwards

    async def __aenter__(self) -> None:
        await self._room.acquire()
        try:
            now = asyncio.get_running_loop().time()
            self._free_at = max(self._free_at, now - self._burst / self._per_s) + 1 / self._per_s
            if self._free_at > now:
                await asyncio.sleep(self._free_at - now)
        except BaseException:
            self._room.release()
            raise

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._room.release()
