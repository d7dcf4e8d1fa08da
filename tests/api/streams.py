"""Readers of the API's server-sent events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp

WITHIN_S = 30.0


@dataclass
class Event:
    cursor: str
    kind: str
    news: dict[str, Any]

    @property
    def runs(self) -> list[tuple[str, str]]:
        return [(run["run_id"], run["state"]) for run in self.news["runs"]]


class Reader:
    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self._answer = answer

    async def event(self) -> Event:
        """The next. Raises :class:`EOFError` when the stream has ended."""
        said: dict[str, str] = {}
        async with asyncio.timeout(WITHIN_S):
            while line := (await self._answer.content.readline()).decode():
                name, _, text = line.rstrip("\n").partition(": ")
                if name and text:
                    said[name] = text
                elif "event" in said:
                    return Event(said.get("id", ""), said["event"], json.loads(said["data"]))
        raise EOFError

    async def comment(self) -> str:
        """The text of the next comment, if nothing is told before."""
        async with asyncio.timeout(WITHIN_S):
            while (line := (await self._answer.content.readline()).decode()).startswith(("\n", "retry:")):
                pass
        assert line.startswith(":"), line
        return line[1:].strip()


@asynccontextmanager
async def reading(session: aiohttp.ClientSession, url: str, token: str, **headers: str) -> AsyncIterator[Reader]:
    async with session.get(url, headers={"Authorization": f"Bearer {token}", **headers}) as answer:
        assert answer.status == 200, await answer.text()
        yield Reader(answer)
