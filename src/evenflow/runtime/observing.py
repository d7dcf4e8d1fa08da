"""Shows a service to those who watch it: a listener for health and metrics, a sender to StatsD, an eye on its event loop."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator, Callable

from evenflow.core.metrics import LOOP_LAG
from evenflow.runtime.service_settings import Kind, ServiceSettings
from evenflow.telemetry import prometheus
from evenflow.telemetry.listener import HttpAnswer, Listener, advertised
from evenflow.telemetry.own_process import watch_process
from evenflow.telemetry.sender import Sender
from evenflow.telemetry.statsd import StatsD, parse_address
from evenflow.telemetry.vitals import HealthVerdict, Vitals

LOOK_S = 1.0  # how often the event loop is looked at

log = logging.getLogger(__name__)


@contextlib.asynccontextmanager
async def observed(kind: Kind, vitals: Vitals, settings: ServiceSettings) -> AsyncIterator[None]:
    """An API answers for itself, at its own port. Raises :class:`SettingsError` when an address cannot be had."""
    watch_process(vitals.meter)
    watching = asyncio.create_task(_watch_loop(vitals), name="event loop watch")
    async with contextlib.AsyncExitStack() as contexts:
        contexts.callback(watching.cancel)
        if kind is not Kind.API and settings.metrics_port >= 0:
            if settings.tls.check_bind("Health and metrics of this service", settings.metrics_host):
                log.warning("health and metrics are plain HTTP on %s (EVENFLOW_PLAINTEXT)", settings.metrics_host)
            shown = {"/metrics": settings.metrics_token} if settings.metrics_token else {}
            tls = settings.tls.for_server()
            listener = Listener(settings.metrics_host, settings.metrics_port, _pages(vitals), tls, shown=shown)
            vitals.scheme = settings.tls.scheme
            vitals.address = advertised(settings.metrics_host, listener.port)
            listener.start()
            contexts.push_async_callback(asyncio.to_thread, listener.stop)
            log.info("health and metrics at %s://%s", vitals.scheme, vitals.address)
        if settings.statsd_address:
            statsd = StatsD(settings.statsd_prefix, settings.statsd_style)
            sender = Sender(vitals, statsd, parse_address(settings.statsd_address), asyncio.get_running_loop())
            sender.start()
            contexts.push_async_callback(asyncio.to_thread, sender.stop)
        yield


def _pages(vitals: Vitals) -> dict[str, Callable[[], HttpAnswer]]:
    return {
        "/health/live": lambda: _health(vitals.live()),
        "/health/ready": lambda: _health(vitals.ready()),
        "/metrics": lambda: HttpAnswer(200, prometheus.CONTENT_TYPE, prometheus.exposition(vitals.meter.read())),
    }


def _health(verdict: HealthVerdict) -> HttpAnswer:
    return HttpAnswer(200 if verdict.ok else 503, "application/json", json.dumps(verdict.as_json()).encode())


async def _watch_loop(vitals: Vitals) -> None:
    """A loop that is late makes everything late: beats, claims, answers."""
    pulse, loop = vitals.loop("event loop"), asyncio.get_running_loop()
    while True:
        due = loop.time() + LOOK_S
        await asyncio.sleep(LOOK_S)
        vitals.meter.observe(LOOP_LAG, max(0.0, loop.time() - due))
        pulse.beat()
