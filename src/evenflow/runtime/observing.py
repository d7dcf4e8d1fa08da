"""Makes a service observable: a listener for health and metrics, a sender to StatsD, a watch on its event loop."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import time
from collections.abc import AsyncIterator, Callable
from importlib.metadata import version

from evenflow.core import metrics
from evenflow.core.meter import Meter
from evenflow.core.metrics import LOOP_LAG
from evenflow.core.service import ServiceKind
from evenflow.runtime import observations as seen
from evenflow.runtime.service_settings import ServiceSettings
from evenflow.telemetry import prometheus
from evenflow.telemetry.health import HealthMonitor, HealthVerdict
from evenflow.telemetry.listener import HttpAnswer, Listener, advertised
from evenflow.telemetry.observing import observe
from evenflow.telemetry.statsd import Sender, StatsD, parse_address

LOOK_S = 1.0  # how often the event loop is checked
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@contextlib.asynccontextmanager
async def observed(kind: ServiceKind, health: HealthMonitor, settings: ServiceSettings) -> AsyncIterator[None]:
    """Observes the service inside. An API answers at its own port. Raises :class:`SettingsError` when an address is not
    available.
    """
    watch_process(health.meter)
    watching = asyncio.create_task(_watch_loop(health), name="event loop watch")
    async with contextlib.AsyncExitStack() as contexts:
        contexts.callback(watching.cancel)
        if kind is not ServiceKind.API and settings.metrics_port >= 0:
            if settings.tls.check_bind("Health and metrics of this service", settings.metrics_host):
                observe(seen.health_plain(settings.metrics_host))
            shown = {"/metrics": settings.metrics_token} if settings.metrics_token else {}
            tls = settings.tls.for_server()
            listener = Listener(settings.metrics_host, settings.metrics_port, _pages(health), tls, shown=shown)
            health.scheme = settings.tls.scheme
            health.address = advertised(settings.metrics_host, listener.port)
            listener.start()
            contexts.push_async_callback(asyncio.to_thread, listener.stop)
            observe(seen.health_served(f"{health.scheme}://{health.address}"))
        if settings.statsd_address:
            statsd = StatsD(settings.statsd_prefix, settings.statsd_style)
            sender = Sender(health, statsd, parse_address(settings.statsd_address), asyncio.get_running_loop())
            sender.start()
            contexts.push_async_callback(asyncio.to_thread, sender.stop)
        yield


def _pages(health: HealthMonitor) -> dict[str, Callable[[], HttpAnswer]]:
    return {
        "/health/live": lambda: _health(health.live()),
        "/health/ready": lambda: _health(health.ready()),
        "/metrics": lambda: HttpAnswer(200, prometheus.CONTENT_TYPE, prometheus.exposition(health.meter.read())),
    }


def _health(verdict: HealthVerdict) -> HttpAnswer:
    return HttpAnswer(200 if verdict.ok else 503, "application/json", json.dumps(verdict.as_json()).encode())


async def _watch_loop(health: HealthMonitor) -> None:
    """Watches the event loop: a late loop delays everything, such as beats, claims and answers."""
    pulse, loop = health.loop("event loop"), asyncio.get_running_loop()
    while True:
        due = loop.time() + LOOK_S
        await asyncio.sleep(LOOK_S)
        health.meter.observe(LOOP_LAG, max(0.0, loop.time() - due))
        pulse.beat()


def watch_process(meter: Meter) -> None:
    """Registers what the kernel knows of this process in its meter."""
    started = time.time()
    meter.gauge(metrics.SERVICE_INFO, lambda: 1.0, version("evenflow"))
    meter.gauge(metrics.SERVICE_START_TIME, lambda: started)
    meter.gauge(metrics.PROCESS_MEMORY, _resident_bytes)
    meter.gauge(metrics.PROCESS_CPU, time.process_time)
    meter.gauge(metrics.PROCESS_FILES, lambda: float(len(os.listdir("/proc/self/fd"))))


def _resident_bytes() -> float:
    with open("/proc/self/statm", encoding="ascii") as statm:
        return float(int(statm.read().split()[1]) * _PAGE_BYTES)
