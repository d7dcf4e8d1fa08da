"""The API as a service: REST for people and tools, and the execution API for processes that run user code."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections import defaultdict
from collections.abc import Callable, Coroutine
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from starlette.types import ASGIApp

from evenflow.api import observations as seen
from evenflow.api.app import application
from evenflow.api.claims import Claims
from evenflow.api.edge.web import WebServer
from evenflow.api.execution.app import execution_routes
from evenflow.api.garbage import delete_garbage
from evenflow.api.judge import Judge
from evenflow.api.keys import check_keys
from evenflow.api.limits import BEAT_POOL, CLAIM_POOL, POOL, PROBE_POOL, REPORT_POOL, REQUESTS_EACH
from evenflow.api.lineage import LineageSender
from evenflow.api.logs.objects import open_logs
from evenflow.api.metrics import system_metrics
from evenflow.api.probes import Probes
from evenflow.api.rest.app import rest_application
from evenflow.api.rest.context import ApiContext
from evenflow.api.secret_stores.lookup import open_stores
from evenflow.api.streams.streams import Streams
from evenflow.api.token_watch import ServerWatch, TokenWatch, read_keys
from evenflow.api.tokens import Tokens
from evenflow.api.tracing.settings import TraceSettings
from evenflow.api.trail import Trail
from evenflow.api.triggers import TriggerClaims
from evenflow.api.vault import Vault
from evenflow.api.versions import Versions
from evenflow.core import metrics
from evenflow.core.limits import BEAT_S, LEASE_S
from evenflow.core.people.identities import IdentityProvider
from evenflow.core.tracing import TracedRuns
from evenflow.errors import DatabaseNotMigrated, DatabaseTooNew, ExtraMissing
from evenflow.store.db import migrate
from evenflow.store.db.connect import AsyncPool, connect, open_pool
from evenflow.store.db.failures import OUTAGES
from evenflow.store.db.notify import TOKENS, AsyncListener
from evenflow.store.serving import services
from evenflow.telemetry.health import HealthMonitor
from evenflow.telemetry.listener import advertised
from evenflow.telemetry.observing import observe
from evenflow.telemetry.service import Loops, Service
from evenflow.wire.objects import ObjectStorage
from evenflow.wire.tls import Tls

if TYPE_CHECKING:
    from evenflow.api.identities import Identities


class ApiService(Service):
    """``port`` 0 takes a free port, which ``port`` then holds. ``listener`` is the descriptor of a socket that listens already, -1:
    none. ``operator_token`` is valid beside the tokens that the key signs.
    Scrapers show ``metrics_token``. ``logs`` is the URL of the storage for logs of tasks.
    """

    kind = "api"

    def __init__(
        self,
        database_url: str,
        *,
        host: str,
        port: int,
        listener: int = -1,
        proxies: str = "",
        logs: str,
        name: str,
        vault: Vault,
        storage: ObjectStorage,
        secret_stores: str = "",
        tls: Tls | None = None,
        operator_token: str | None = None,
        metrics_token: str = "",
        requests_each: float = REQUESTS_EACH,
        openlineage: tuple[str, str] = ("", ""),
        tracing: TraceSettings | None = None,
        provider: IdentityProvider | None = None,
        health: HealthMonitor | None = None,
    ) -> None:
        super().__init__(name, health)
        self.port = port
        self._url, self._host, self._listener = database_url, host, listener
        self._tls, self._proxies = tls or Tls(), proxies
        self._operator_token, self._metrics_token, self._vault, self._storage = operator_token, metrics_token, vault, storage
        meter = self.health.meter
        self._logs = open_logs(
            logs,
            lambda lost: meter.count(metrics.LOG_BYTES_LOST, lost),
            lambda chunks: meter.count(metrics.LOGS_REFUSED, chunks),
        )
        self._opened.callback(self._logs.close)
        self._stores, self._requests_each = open_stores(secret_stores), requests_each
        self._openlineage, self._provider, self._tracing = openlineage, provider, tracing
        self._judge = Judge()
        self._opened.push_async_callback(self._judge.close)
        self._server = ServerWatch(database_url, name)
        self._pools: list[AsyncPool] = []

    async def _begin(self) -> Loops:
        await asyncio.to_thread(self._check_schema)
        await self._logs.prepare()
        self._pool = pool = await self._open_pool("", min_size=2, max_size=POOL)
        # The database was reachable a moment ago. Each other pool connects when it is used for the first time.
        claiming = await self._open_pool(" claims", min_size=0, max_size=CLAIM_POOL, generic_plans=True)
        reports = await self._open_pool(" reports", min_size=0, max_size=REPORT_POOL, generic_plans=True)
        beats = await self._open_pool(" beats", min_size=0, max_size=BEAT_POOL, generic_plans=True)
        probing = await self._open_pool(" probes", min_size=0, max_size=PROBE_POOL)
        self._probes = Probes(probing)
        async with pool.connection() as conn:
            await check_keys(conn, self._vault, host=socket.gethostname())
            keys = await read_keys(conn, self._vault)
        tokens, versions = Tokens(keys, operator_token=self._operator_token), Versions()
        self._trail = trail = Trail(pool)
        watch = TokenWatch(pool, self._vault, tokens, keys)
        traced = TracedRuns(tokens.installation, self._tracing.ratio) if self._tracing is not None else None
        self._claims = claims = Claims(claiming, versions, tokens, self._vault, self.health.meter, traced)
        self._triggers = triggers = TriggerClaims(claiming, versions, tokens, self._vault, self.health.meter)
        if keys.quiet_s > 0:
            observe(seen.backup_restored(round(keys.quiet_s)))
            claims.hold(keys.quiet_s)
            triggers.hold(keys.quiet_s)
        self._streams = streams = Streams(pool, self._logs)
        await self._listen(watch)
        app = self._application(reports, beats, tokens, versions, traced)
        self._measure(pool, probing, claims, triggers)
        self._web = WebServer(app, host=self._host, port=self.port, listener=self._listener, proxies=self._proxies, tls=self._tls)
        self._opened.push_async_callback(self._web.stop)
        await self._web.start()
        self.port = self._web.port
        self.health.address, self.health.scheme = advertised(self._host, self.port), self._tls.scheme
        self._lease = self.health.lease(LEASE_S)
        self._service_id = await self._register()
        self._lease.beat()
        return {
            **self._sending(tokens),
            "web server": self._web.run(),
            "claims": claims.serve(),
            "triggers": triggers.serve(),
            **streams.loops(),
            "heartbeat": self._beat(),
            "tokens": watch.run(),
            "trail": trail.serve(),
            "server": self._server.run(),
            "logs": self._logs.tidy(),
            "garbage": delete_garbage(pool, self._storage, self._logs),
        }

    def _application(
        self, reports: AsyncPool, beats: AsyncPool, tokens: Tokens, versions: Versions, traced: TracedRuns | None
    ) -> ASGIApp:
        execution = execution_routes(
            self._pool,
            reports=reports,
            beats=beats,
            tokens=tokens,
            versions=versions,
            claims=self._claims,
            trigger_claims=self._triggers,
            logs=self._logs,
            vault=self._vault,
            stores=self._stores,
            judge=self._judge,
            storage=self._storage,
        )
        context = ApiContext(
            pool=self._pool,
            tokens=tokens,
            logs=self._logs,
            vault=self._vault,
            stores=self._stores,
            judge=self._judge,
            health=self.health,
            probes=self._probes,
            streams=self._streams,
            traced=traced,
            identities=self._identities(),
        )
        rest = rest_application(context, metrics_token=self._metrics_token, requests_each=self._requests_each)
        return application(execution, rest, self._trail, self.health.meter)

    def _identities(self) -> Identities | None:
        if self._provider is None:
            return None
        from evenflow.api.identities import Identities  # imports Authlib, which is not needed otherwise

        return Identities(self._provider, self._vault)

    def _sending(self, tokens: Tokens) -> Loops:
        url, key = self._openlineage
        loops = {"lineage": LineageSender(self._pool, url, key, tokens.installation).run()} if url else {}
        if self._tracing is not None:
            loops["traces"] = self._trace_sender(self._tracing, tokens.installation)
        return loops

    def _trace_sender(self, tracing: TraceSettings, installation: str) -> Coroutine[Any, Any, None]:
        try:
            from evenflow.api.tracing.sending import TraceSender  # imports OTLP's messages, which are an extra
        except ImportError as error:
            raise ExtraMissing("EVENFLOW_TRACES_URL", "otel", error) from None
        public_url = tracing.public_url or f"{self._tls.scheme}://{self.health.address}"
        return TraceSender(self._pool, replace(tracing, public_url=public_url), installation, self.health.meter).run()

    async def _finish(self) -> None:
        """Answers long polls and finishes requests in hand. New requests are refused, so their callers go to another API
        process.
        """
        self._claims.close()
        self._triggers.close()
        self._streams.open.close()
        await self._web.stop()

    async def _leave(self) -> None:
        if self._server.is_set_back:
            for pool in self._pools:
                await pool.close()  # it gives out no connection any more, so no request waits for one
        await self.drain()
        await self._end_loops()
        with contextlib.suppress(Exception):  # the database may be gone; the lease then tells that this service ended
            await self._trail.flush()
            async with self._pool.connection(timeout=1.0) as conn:
                await services.beat(conn, service_id=self._service_id, kind=self.kind, state="stopped")

    async def _listen(self, watch: TokenWatch) -> None:
        """Wakes whatever waits for an announcement."""
        wakes: dict[str, list[Callable[[], None]]] = defaultdict(list, {TOKENS: [watch.wake]})
        for poll in (self._claims, self._triggers):
            for channel in poll.channels:
                wakes[channel].append(partial(poll.wake, channel))
        for channel in self._streams.channels:
            wakes[channel].append(self._streams.wake)

        def woken(channel: str, word: str) -> None:
            if word:
                self._claims.hear(word)
                return
            for wake in wakes[channel]:
                wake()

        def lost(error: Exception) -> None:
            observe(seen.listener_lost(str(error)) if isinstance(error, OUTAGES) else seen.listener_failed(error))

        listener = AsyncListener(self._url, list(wakes), woken, lost, name=self.name)
        self._opened.push_async_callback(listener.stop)
        await listener.start()

    async def _open_pool(self, what: str, **options: Any) -> AsyncPool:
        pool = await open_pool(self._url, name=f"{self.name}{what}", look=self._server.look, **options)
        self._opened.push_async_callback(pool.close)
        self._pools.append(pool)
        return pool

    def _measure(self, pool: AsyncPool, probing: AsyncPool, claims: Claims, triggers: TriggerClaims) -> None:
        self.health.system = system_metrics(probing).get
        meter = self.health.meter
        meter.gauge(metrics.API_CLAIMS_WAITING, lambda: claims.waiting)
        meter.gauge(metrics.API_TRIGGER_CLAIMS_WAITING, lambda: triggers.waiting)
        meter.gauge(metrics.LOG_DISK_FREE, self._logs.free)

        def stat(name: str) -> Callable[[], float]:
            return lambda: pool.get_stats().get(name, 0)

        meter.gauge(metrics.POOL_CONNECTIONS, stat("pool_available"), "idle")
        meter.gauge(metrics.POOL_CONNECTIONS, lambda: stat("pool_size")() - stat("pool_available")(), "used")
        meter.gauge(metrics.POOL_WAITING, stat("requests_waiting"))
        meter.gauge(metrics.POOL_REQUESTS, stat("requests_num"))
        meter.gauge(metrics.POOL_FAILURES, stat("requests_errors"))
        meter.gauge(metrics.POOL_LOST, stat("connections_lost"))

    def _check_schema(self) -> None:
        with connect(self._url, name=self.name) as conn:
            migrate.check(conn)

    async def _register(self) -> int:
        async with self._pool.connection() as conn:
            self._claims.server = await services.register(
                conn,
                kind=self.kind,
                name=self.name,
                host=socket.gethostname(),
                pid=os.getpid(),
                version=version("evenflow"),
                detail={"port": self.port, **self.health.detail},
            )
        return self._claims.server

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(BEAT_S)
            try:
                async with self._pool.connection() as conn:
                    await migrate.check_async(conn)
                    known = await services.beat(conn, service_id=self._service_id, kind=self.kind, state=self._state)
                if known is None:  # declared lost while the database or this process was held up; it holds nothing
                    self._service_id = await self._register()
                self._lease.beat()
            except (DatabaseTooNew, DatabaseNotMigrated):  # a newer release has migrated it meanwhile
                raise
            except Exception as error:
                observe(seen.not_beaten(str(error)))
