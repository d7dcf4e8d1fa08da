"""The clock that leases count by on a host. It goes on while the host is suspended, when the monotonic one stands still."""

from __future__ import annotations

import time


def boot_time() -> float:
    """Seconds since the host has started, suspensions included; the same for all its processes."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
