"""Decides which of two lanes comes first. This module alone defines the order.

The order is a key: of two lanes, the one with the smaller key comes first, byte by byte. So Python compares keys, an index of
PostgreSQL keeps lanes by them, and a statement needs only ``order by order_key``. A key is made once, with its lane.
"""

from __future__ import annotations

import struct
from enum import IntEnum

Order = bytes


class DispatchClass(IntEnum):
    """Of selected tries: the lower class is given to workers first (the clause tries_in_order)."""

    RESUME = 0  # it resumes, in a slot for resumes
    FIRST_START = 1


# These replace the lane's id while a lane is in memory: it sorts after every stored lane, or after every stored lane of resumes.
NEVER, NEWEST_RESUME = 1 << 62, -(1 << 40)
# First starts have the date of their run. Resumes have the time at which their task was first queued, moved back to before the year
# 1: so they come before all first starts of their priority.
BEFORE_ALL_DATES_US = 4_000 * 365 * 86_400 * 1_000_000

_FIRST, _KEY, _END = struct.Struct(">I"), struct.Struct(">IIQ"), struct.Struct(">Q")
_MOST = (1 << 31) - 1  # the highest priority
_WIDEST = (1 << 32) - 1
_MIDDLE = 1 << 63  # the zero of numbers that may be negative


def order_key(run_priority: int, priority: int, date_us: int, last: int) -> Order:
    """Makes a key: higher priorities of runs come first, then higher ones of tasks, then earlier dates, in microseconds since 1970.
    ``last``, the id of the lane, separates equal ones. Priorities have 32 bits, the others 64.
    """
    return _KEY.pack(min(_WIDEST, _MOST - run_priority), _MOST - priority, date_us + _MIDDLE) + key_end(last)


def try_priority(run_priority: int, priority: int) -> int:
    """Returns the priority by which workers get selected tries: both priorities as one number of 64 bits; higher ones come
    first.
    """
    return (run_priority << 32) + priority


def given_before(dispatch_class: DispatchClass, priority: int, epoch: int) -> tuple[DispatchClass, int, int]:
    """Returns a key of selected tries: the order within one turn in which they are given out, which is that of the clause
    tries_in_order.
    """
    return dispatch_class, -priority, epoch


def key_end(last: int) -> bytes:
    """Returns the last 8 bytes of a key: they differ between lanes that are made from one."""
    return _END.pack(last + _MIDDLE)


def aged(run_priority: int, aging_s: float | None, since_s: float) -> int:
    """Returns the run priority for the key of a lane whose tasks are ready at ``since_s``, seconds since 1970: one less for each
    step of ``aging_s`` that has begun by then. So a task that is ready a step earlier has one more for ever, and no key changes
    while tasks wait. Steps are the same for all, like the hours of a clock.
    """
    return run_priority if aging_s is None else run_priority - int(since_s // aging_s)


def present(key: Order, aging_s: float, now_s: float) -> Order:
    """Converts a key with an :func:`aged` priority, so that it compares with keys of lanes that age otherwise, or not at all: a
    task that has waited for a step counts as one of a run with the next higher priority.
    """
    (first,) = _FIRST.unpack_from(key)
    return _FIRST.pack(min(_WIDEST, max(0, first - int(now_s // aging_s)))) + key[_FIRST.size :]


def same_priority(key: Order, other: Order) -> bool:
    """Returns whether both keys have the same priority of a run, including its age."""
    return key[: _FIRST.size] == other[: _FIRST.size]
