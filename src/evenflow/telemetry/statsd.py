"""Readings for a StatsD server: the changes since the last time, in datagrams, whether or not a server receives them.

A counter is sent as its increase. A histogram is sent as two counters, ``.count`` and ``.sum``, and two gauges, ``.p50`` and
``.p99`` of its increase: a datagram for each value would be one for every task. A service sends from a separate thread.
"""

from __future__ import annotations

import asyncio
import math
import re
import socket
import threading
from collections.abc import Iterable, Iterator
from typing import Literal

from evenflow.core.meter import BOUNDS_S, Distribution, Labels, Metric, MetricKind, Reading
from evenflow.errors import SettingsError
from evenflow.telemetry.health import HealthMonitor
from evenflow.telemetry.observing import metrics_not_sent, observe, statsd_away, statsd_back, system_not_sent

Style = Literal["plain", "datadog"]

DATAGRAM_BYTES = 1_432  # the size of one Ethernet frame; larger datagrams may be lost as a whole
EVERY_S = 10.0  # the flush interval of StatsD itself
DEFAULT_PORT = 8125

_FORBIDDEN = re.compile(r"[^A-Za-z0-9_-]+")  # in a part of a plain name
_FORBIDDEN_IN_TAG = re.compile(r"[|,#:\n\s]+")


def parse_address(address: str) -> tuple[str, int]:
    """Reads ``host``, ``host:port`` or ``[v6]:port``. Raises :class:`SettingsError`."""
    found = re.fullmatch(r"(?:\[([0-9A-Fa-f:.]+)\]|([^:\[\]\s]+))(?::(\d{1,5}))?", address)
    if found is None or not 0 < int(found[3] or DEFAULT_PORT) < 65_536:
        raise SettingsError(f"EVENFLOW_STATSD_ADDRESS is {address!r}; it should be host:port, as in statsd.internal:8125.")
    return found[1] or found[2], int(found[3] or DEFAULT_PORT)


class StatsD:
    """The datagrams of one process; it remembers what it has sent."""

    def __init__(self, prefix: str, style: Style) -> None:
        self._prefix, self._style = prefix, style
        self._sent: dict[tuple[Metric, Labels], float | Distribution] = {}

    def datagrams(self, readings: Iterable[Reading]) -> Iterator[bytes]:
        lines: list[bytes] = []
        size = 0
        for line in self._lines(readings):
            if lines and size + len(line) + 1 > DATAGRAM_BYTES:
                yield b"\n".join(lines)
                lines, size = [], 0
            lines.append(line)
            size += len(line) + 1
        if lines:
            yield b"\n".join(lines)

    def _lines(self, readings: Iterable[Reading]) -> Iterator[bytes]:
        for reading in readings:
            value = reading.value
            if reading.metric.kind is MetricKind.GAUGE:
                assert not isinstance(value, Distribution)
                if math.isfinite(value):
                    yield self._line(reading, "", value, "g")
                continue
            key = (reading.metric, reading.labels)
            before = self._sent.get(key)
            self._sent[key] = value
            if isinstance(value, Distribution):
                assert before is None or isinstance(before, Distribution)
                yield from self._distribution(reading, value, before)
            else:
                assert not isinstance(before, Distribution)
                yield self._line(reading, "", value - (before or 0), "c")

    def _distribution(self, reading: Reading, now: Distribution, before: Distribution | None) -> Iterator[bytes]:
        counts = [n - b for n, b in zip(now.counts, before.counts if before else [0] * len(now.counts), strict=True)]
        yield self._line(reading, ".count", sum(counts), "c")
        yield self._line(reading, ".sum", now.sum - (before.sum if before else 0.0), "c")
        if sum(counts):
            yield self._line(reading, ".p50", quantile(counts, 0.5), "g")
            yield self._line(reading, ".p99", quantile(counts, 0.99), "g")

    def _line(self, reading: Reading, suffix: str, value: float, kind: str) -> bytes:
        metric = reading.metric
        name = metric.name.removeprefix("evenflow_")
        parts = [self._prefix, name] if self._prefix else [name]
        tags = ""
        if self._style == "datadog":
            pairs = zip((*metric.own_labels, *metric.labels), reading.labels, strict=True)
            tags = ",".join(f"{label}:{_FORBIDDEN_IN_TAG.sub('_', text)}" for label, text in pairs)
        else:
            parts += [_FORBIDDEN.sub("_", text) or "_" for text in reading.labels]
        return f"{'.'.join(parts)}{suffix}:{value:.12g}|{kind}{'|#' + tags if tags else ''}".encode()


def quantile(counts: list[int], share: float) -> float:
    """Returns the upper bound of the quantile's bucket; above all bounds, the last bound."""
    rank, seen = share * sum(counts), 0
    for bound, count in zip(BOUNDS_S, counts, strict=False):
        seen += count
        if seen >= rank:
            return bound
    return BOUNDS_S[-1]


def send(address: tuple[str, int], datagrams: Iterable[bytes]) -> None:
    """Sends datagrams. Raises :class:`OSError` when the name is not known, or the host cannot be reached."""
    family, kind, protocol, _, target = socket.getaddrinfo(*address, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, kind, protocol) as sender:
        for datagram in datagrams:
            sender.sendto(datagram, target)


SYSTEM_TIMEOUT_S = 5.0  # for an API server's reading from the database; without it the rest is sent


class Sender:
    """Reads ``health.system`` on ``loop``."""

    def __init__(self, health: HealthMonitor, statsd: StatsD, address: tuple[str, int], loop: asyncio.AbstractEventLoop) -> None:
        self._health, self._statsd, self._address, self._loop = health, statsd, address, loop
        self._where = f"{address[0]}:{address[1]}"
        self._stop = threading.Event()
        self._failed = False
        self._thread = threading.Thread(target=self._run, name="statsd", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Sends once more, so that the work of a short-lived service is counted."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(EVERY_S):
            try:
                self._send([*self._health.meter.read(), *self._system()])
            except Exception as error:
                observe(metrics_not_sent(error))
        self._send(self._health.meter.read())

    def _system(self) -> list[Reading]:
        async def read() -> list[Reading]:
            return [] if self._health.system is None else await self._health.system()

        try:
            return asyncio.run_coroutine_threadsafe(read(), self._loop).result(SYSTEM_TIMEOUT_S)
        except Exception as error:
            observe(system_not_sent(str(error) or type(error).__name__))
            return []

    def _send(self, readings: list[Reading]) -> None:
        """Sends readings. A missing server is reported once, and once more when it is back."""
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
