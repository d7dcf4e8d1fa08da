"""Server-sent events of the API, also over a connection that is lost meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from dataclasses import dataclass

import aiohttp

from evenflow.client.http import FIRST_BACKOFF_S, MAX_BACKOFF_S, RETRIED, HttpClient, Response
from evenflow.errors import ApiRefused, ApiUnavailable

HEALED_S = 60.0  # for which a lost stream is asked for again: an API is restarted or replaced in less


@dataclass(frozen=True, slots=True)
class ServerEvent:
    kind: str
    id: str
    data: bytes


async def server_events(
    http: HttpClient, path: str, params: Mapping[str, str], refused: Callable[[Response], ApiRefused], *, heals_s: float = HEALED_S
) -> AsyncGenerator[ServerEvent]:
    """Yields the events of a stream without an end. When it is cut, it is asked for again from the last event on. Raises
    :class:`ApiUnavailable`, or what ``refused`` returns, when it was not there for ``heals_s``, and at once at the first attempt.
    """
    clock = asyncio.get_running_loop().time
    until, backoff, last = 0.0, FIRST_BACKOFF_S, ""
    while True:
        pause = backoff
        try:
            async with http.stream(path, params=params, headers={"Last-Event-ID": last} if last else {}) as answer:
                if answer.status >= 400:
                    response = Response(answer.status, answer.headers, await answer.read())
                    if response.status not in RETRIED or clock() >= until:
                        raise refused(response)
                    pause = max(pause, response.asks_for_s)
                else:
                    until, backoff = clock() + heals_s, FIRST_BACKOFF_S
                    async for event in _events(answer):
                        last, until = event.id or last, clock() + heals_s
                        yield event
        except ApiUnavailable:
            if clock() >= until:
                raise
        await asyncio.sleep(pause)
        backoff = min(2 * backoff, MAX_BACKOFF_S)


async def _events(answer: aiohttp.ClientResponse) -> AsyncIterator[ServerEvent]:
    said: dict[bytes, bytes] = {}
    async for line in answer.content:
        name, colon, text = line.rstrip(b"\n").partition(b":")
        if name and colon:
            said[name] = text.removeprefix(b" ")
        elif not name and b"data" in said:
            yield ServerEvent(said.get(b"event", b"message").decode(), said.get(b"id", b"").decode(), said[b"data"])
            said = {}
