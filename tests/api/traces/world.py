"""What schedulers have decided, and senders of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp

from evenflow.api.tracing.otlp import Collector
from evenflow.api.tracing.sending import TraceSender
from evenflow.api.tracing.settings import TraceSettings
from evenflow.core.meter import Meter
from evenflow.core.metrics import METRICS
from evenflow.core.service import ServiceKind
from evenflow.store.db.connect import open_pool
from tests.otlp import OtlpReceiver
from tests.scheduler.world import World as Scheduled


class World(Scheduled):
    @property
    def due(self) -> int:
        return int(self.one("select count(*) from trace_due"))


class Sender:
    def __init__(self, sender: TraceSender, collector: Collector, meter: Meter) -> None:
        self.sender, self.collector, self.meter = sender, collector, meter

    async def tell(self) -> None:
        """A look, and all that is due then."""
        await self.sender.look()
        while await self.sender.send_some(self.collector):
            pass


@asynccontextmanager
async def sender(database_url: str, receiver: OtlpReceiver, ratio: float = 1.0) -> AsyncIterator[Sender]:
    """As one of an API server."""
    meter = Meter(ServiceKind.API, "api", METRICS)
    headers = {"authorization": "Bearer shown-there"}
    settings = TraceSettings(url=receiver.url, headers=headers, ratio=ratio, public_url="https://evenflow.example")
    pool = await open_pool(database_url, name="sender", min_size=1, max_size=2)
    try:
        async with aiohttp.ClientSession() as session:
            resource = {"service.name": "evenflow", "service.version": "1"}
            collector = Collector(session, settings.url, settings.headers, resource)
            yield Sender(TraceSender(pool, settings, "here", meter), collector, meter)
    finally:
        await pool.close()
