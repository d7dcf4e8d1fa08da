"""How long DAG files take to load, for the metrics: all of them as a distribution, the slowest by name."""

from __future__ import annotations

import heapq
import time

from evenflow.core import metrics
from evenflow.core.meter import Meter
from evenflow.processor import observations as seen
from evenflow.processor.limits import FILES_MEASURED
from evenflow.processor.parsing import Parsed
from evenflow.telemetry.observing import observe


class Parses:
    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._last: dict[tuple[str, str], tuple[float, float]] = {}  # bundle and file: seconds, and when
        meter.family(metrics.FILE_SECONDS, lambda: [(file, seconds) for file, (seconds, _) in list(self._last.items())])
        meter.family(metrics.FILE_TIME, lambda: [(file, at) for file, (_, at) in list(self._last.items())])

    def add(self, bundle: str, file: str, parsed: Parsed) -> None:
        observe(seen.file_parsed(parsed.seconds, parsed.error is not None), self._meter)
        self._last[bundle, file] = (parsed.seconds, time.time())
        if len(self._last) > 2 * FILES_MEASURED:
            self._last = dict(heapq.nlargest(FILES_MEASURED, self._last.items(), key=lambda item: item[1][0]))
