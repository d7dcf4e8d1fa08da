"""Pauses between attempts while the API is away, and a limit on attempts that silence it."""

from __future__ import annotations

import asyncio

import aiohttp

from evenflow.core.limits import SILENCES
from evenflow.errors import ApiUnavailable, EvenflowError

FIRST_PAUSE_S = 0.2  # the API's client has waited already
LAST_PAUSE_S = 3.2  # short beside a lease, and a waiting fleet does not overload a returning API


class Backoff:
    """Each pause is twice the last one, up to a limit; call ``renew`` after a success."""

    def __init__(self) -> None:
        self._pause_s = FIRST_PAUSE_S

    def renew(self) -> None:
        self._pause_s = FIRST_PAUSE_S

    async def wait(self) -> None:
        pause_s, self._pause_s = self._pause_s, min(2 * self._pause_s, LAST_PAUSE_S)
        await asyncio.sleep(pause_s)


class ApiSilent(EvenflowError):
    """The API accepts a request, and does not answer it. The message is the end of a sentence about the request."""


class Silences:
    """Counts the silences after one request. A request that the API accepts and does not answer may be what silences it, and each
    server that it is sent to. An API that is away, or cannot be reached, does not count: the caller waits for it.
    """

    def __init__(self) -> None:
        self._count = 0

    def count(self, error: ApiUnavailable) -> None:
        """Raises :class:`ApiSilent` when ``error`` is one silence too many."""
        cause = error.__cause__
        self._count += isinstance(cause, TimeoutError) and not isinstance(cause, aiohttp.ConnectionTimeoutError)
        if self._count >= SILENCES:
            raise ApiSilent(f"the API took it {self._count} times and did not answer") from error
