"""What the kernel says of this process, for its meter."""

from __future__ import annotations

import os
import time
from importlib.metadata import version

from evenflow.core import metrics
from evenflow.core.observation import Meter

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def watch_process(meter: Meter) -> None:
    started = time.time()
    meter.gauge(metrics.SERVICE_INFO, lambda: 1.0, version("evenflow"))
    meter.gauge(metrics.SERVICE_START_TIME, lambda: started)
    meter.gauge(metrics.PROCESS_MEMORY, _resident_bytes)
    meter.gauge(metrics.PROCESS_CPU, time.process_time)
    meter.gauge(metrics.PROCESS_FILES, lambda: float(len(os.listdir("/proc/self/fd"))))


def _resident_bytes() -> float:
    with open("/proc/self/statm", encoding="ascii") as statm:
        return float(int(statm.read().split()[1]) * _PAGE_BYTES)
