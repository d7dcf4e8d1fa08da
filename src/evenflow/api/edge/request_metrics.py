"""How many requests there are, how they end and how long they take, by part of the API."""

from __future__ import annotations

from time import perf_counter

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from evenflow.contracts.rest import PREFIX
from evenflow.core.meter import Meter
from evenflow.core.metrics import API_REQUESTS, API_SECONDS
from evenflow.wire.messages import SCHEMA

_PARTS = ((f"{SCHEMA}/claim", "claim"), (f"{SCHEMA}/triggers/claim", "claim"), (f"{SCHEMA}/", "execution"), ("/api/", "rest"))


class MeasuredRequests:
    """``claim``, ``logs`` and ``live`` wait on purpose; ``other`` are health, metrics and what there is not."""

    def __init__(self, app: ASGIApp, meter: Meter) -> None:
        self._app, self._meter = app, meter

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began, status = perf_counter(), 500

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, watched)
        finally:
            part = part_of(scope["path"])
            self._meter.count(API_REQUESTS, 1, part, f"{status // 100}xx")
            self._meter.observe(API_SECONDS, perf_counter() - began, part)


def part_of(path: str) -> str:
    if path.startswith("/api/") and path.endswith("/logs"):
        return "logs"
    if path == f"{PREFIX}/live":
        return "live"
    return next((part for prefix, part in _PARTS if path.startswith(prefix)), "other")
