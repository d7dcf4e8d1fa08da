"""One ASGI application of three: the execution API, which every task uses, REST for people and tools, and the pages of the
web UI.
"""

from __future__ import annotations

from time import perf_counter

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from evenflow.api.trail import KnownRequests, Trail
from evenflow.api.ui import built_ui
from evenflow.contracts.rest import PREFIX
from evenflow.core.meter import Meter
from evenflow.core.metrics import API_REQUESTS, API_SECONDS
from evenflow.wire.messages import AIRFLOW_API, SCHEMA

_PARTS = (
    (f"{SCHEMA}/claim", "claim"),
    (f"{SCHEMA}/triggers/claim", "claim"),
    (f"{SCHEMA}/", "execution"),
    (f"{AIRFLOW_API}/", "execution"),
    ("/api/", "rest"),
)


_STREAMS = (f"{PREFIX}/live", f"{PREFIX}/capacity/live")


class MeasuredRequests:
    """Requests of kind ``claim``, ``logs`` and ``live`` wait on purpose; ``other`` are health, metrics and paths that do
    not exist.
    """

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
    if path in _STREAMS or (path.startswith("/api/") and path.endswith("/logs/live")):
        return "live"
    return next((part for prefix, part in _PARTS if path.startswith(prefix)), "other")


def application(execution: ASGIApp, rest: ASGIApp, trail: Trail, meter: Meter) -> ASGIApp:
    prefixes, ui = (f"{SCHEMA}/", f"{AIRFLOW_API}/"), built_ui()

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        chosen = execution if scope["path"].startswith(prefixes) else ui if ui.has(scope) else rest
        await chosen(scope, receive, send)

    return MeasuredRequests(KnownRequests(application, trail), meter)
