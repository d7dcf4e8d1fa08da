"""Pauses between attempts while the API is away."""

from __future__ import annotations

import asyncio

FIRST_PAUSE_S = 0.2  # the API's client has already been patient
LAST_PAUSE_S = 3.2  # little beside a lease, and a fleet that waits does not weigh on an API that comes back


class Patience:
    """Each pause is twice the one before, up to a limit; ``renew`` it after a success."""

    def __init__(self) -> None:
        self._pause_s = FIRST_PAUSE_S

    def renew(self) -> None:
        self._pause_s = FIRST_PAUSE_S

    async def wait(self) -> None:
        pause_s, self._pause_s = self._pause_s, min(2 * self._pause_s, LAST_PAUSE_S)
        await asyncio.sleep(pause_s)
