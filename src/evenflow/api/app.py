"""One ASGI application of three: the execution API, which every task uses, REST for people and tools, and the pages of the
web UI.
"""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from evenflow.api.claims import Claims
from evenflow.api.execution.app import execution_routes
from evenflow.api.judge import Judge
from evenflow.api.logs.store import LogStore
from evenflow.api.probes import Probes
from evenflow.api.rest.app import rest_application
from evenflow.api.secret_stores.lookup import SecretStores
from evenflow.api.streams.streams import Streams
from evenflow.api.tokens import Tokens
from evenflow.api.trail import KnownRequests, Trail
from evenflow.api.triggers import TriggerClaims
from evenflow.api.ui import built_ui
from evenflow.api.vault import Vault
from evenflow.api.versions import Versions
from evenflow.contracts.rest import PREFIX
from evenflow.core.meter import Meter
from evenflow.core.metrics import API_REQUESTS, API_SECONDS
from evenflow.core.tracing import TracedRuns
from evenflow.store.db.connect import AsyncPool
from evenflow.telemetry.health import HealthMonitor
from evenflow.wire.messages import AIRFLOW_API, SCHEMA
from evenflow.wire.objects import ObjectStorage

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


if TYPE_CHECKING:
    from evenflow.api.identities import Identities


def application(
    pool: AsyncPool,
    *,
    reports: AsyncPool,
    beats: AsyncPool,
    tokens: Tokens,
    versions: Versions,
    claims: Claims,
    trigger_claims: TriggerClaims,
    logs: LogStore,
    vault: Vault,
    stores: SecretStores,
    judge: Judge,
    storage: ObjectStorage,
    service_health: HealthMonitor,
    probes: Probes,
    trail: Trail,
    streams: Streams,
    traced: TracedRuns | None,
    identities: Identities | None,
    metrics_token: str,
    requests_each: float,
) -> ASGIApp:
    """``reports`` and ``beats`` are the connection pools for reports and for beats."""
    execution = execution_routes(
        pool,
        reports=reports,
        beats=beats,
        tokens=tokens,
        versions=versions,
        claims=claims,
        trigger_claims=trigger_claims,
        logs=logs,
        vault=vault,
        stores=stores,
        judge=judge,
        storage=storage,
    )
    rest = rest_application(
        pool,
        tokens=tokens,
        log_store=logs,
        vault=vault,
        stores=stores,
        judge=judge,
        service_health=service_health,
        probes=probes,
        streams=streams,
        traced=traced,
        identities=identities,
        metrics_token=metrics_token,
        requests_each=requests_each,
    )
    prefixes, ui = (f"{SCHEMA}/", f"{AIRFLOW_API}/"), built_ui()

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        chosen = execution if scope["path"].startswith(prefixes) else ui if ui.has(scope) else rest
        await chosen(scope, receive, send)

    return MeasuredRequests(KnownRequests(application, trail), service_health.meter)
