"""Sends a service's readings to a StatsD server, again and again, in a thread of its own."""

from __future__ import annotations

import asyncio
import threading

from evenflow.core.meter import Reading
from evenflow.telemetry.observing import metrics_not_sent, observe, statsd_away, statsd_back, system_not_sent
from evenflow.telemetry.statsd import EVERY_S, StatsD, send
from evenflow.telemetry.vitals import Vitals

SYSTEM_TIMEOUT_S = 5.0  # for what an API server reads from the database; without it the rest is sent


class Sender:
    """What ``vitals.system`` answers is read on ``loop``."""

    def __init__(self, vitals: Vitals, statsd: StatsD, address: tuple[str, int], loop: asyncio.AbstractEventLoop) -> None:
        self._vitals, self._statsd, self._address, self._loop = vitals, statsd, address, loop
        self._where = f"{address[0]}:{address[1]}"
        self._stop = threading.Event()
        self._failed = False
        self._thread = threading.Thread(target=self._run, name="statsd", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Sends once more, so that what a short-lived service did is counted."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(EVERY_S):
            try:
                self._send([*self._vitals.meter.read(), *self._system()])
            except Exception as error:
                observe(metrics_not_sent(error))
        self._send(self._vitals.meter.read())

    def _system(self) -> list[Reading]:
        async def read() -> list[Reading]:
            return [] if self._vitals.system is None else await self._vitals.system()

        try:
            return asyncio.run_coroutine_threadsafe(read(), self._loop).result(SYSTEM_TIMEOUT_S)
        except Exception as error:
            observe(system_not_sent(str(error) or type(error).__name__))
            return []

    def _send(self, readings: list[Reading]) -> None:
        """A server that is away is named once, and once more when it is back."""
        try:
            send(self._address, self._statsd.datagrams(readings))
        except OSError as error:
            if not self._failed:
                observe(statsd_away(self._where, str(error)))
            self._failed = True
        else:
            if self._failed:
                observe(statsd_back(self._where))
            self._failed = False
