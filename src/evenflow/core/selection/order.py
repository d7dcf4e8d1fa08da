"""Which of two lanes comes first. Nothing else says so: whoever wants another order changes this module.

The order is a key: of two lanes that one comes first whose key is smaller, byte by byte. So Python compares keys, an index of
PostgreSQL keeps lanes by them, and a statement says no more than ``order by order_key``. A key is made once, when its lane is.
"""

from __future__ import annotations

import struct

Order = bytes

# In the place of the lane's id, while a lane is in memory: after every lane that is stored, and after every stored lane of resumes.
NEVER, NEWEST_RESUME = 1 << 62, -(1 << 40)
# First starts have the date of their run. Resumes have the time at which their task was first queued, moved back so far, to before
# the year 1: so they come before all first starts of their priority.
BEFORE_ALL_DATES_US = 4_000 * 365 * 86_400 * 1_000_000

_KEY, _END = struct.Struct(">IIQ"), struct.Struct(">Q")
_MOST = (1 << 31) - 1  # the highest priority
_MIDDLE = 1 << 63  # where numbers that may be negative begin


def order_key(run_priority: int, priority: int, date_us: int, last: int) -> Order:
    """Higher priorities of runs come first, then higher ones of tasks, then earlier dates, in microseconds since 1970. What is
    still equal is told apart by ``last``, the id of the lane. Priorities have 32 bits, the others 64.
    """
    return _KEY.pack(_MOST - run_priority, _MOST - priority, date_us + _MIDDLE) + key_end(last)


def key_end(last: int) -> bytes:
    """The last 8 bytes of a key: what differs between lanes that are made of one."""
    return _END.pack(last + _MIDDLE)
