"""The clock of leases on a host. It runs while the host is suspended, when the monotonic clock stands still."""

from __future__ import annotations

import time


def boot_time() -> float:
    """Returns the seconds since the host started, suspensions included; equal in all its processes."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
