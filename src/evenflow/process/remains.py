"""What is left of a try whose own process has ended: killed, wherever it went, and seen to be dead."""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Collection
from contextlib import ExitStack

from evenflow.process.census import look_at
from evenflow.process.marks import mark_of

DEAD_WITHIN_S = (
    10.0  # a process that was killed and still is there hangs in the kernel: it does nothing more, and may stay for days
)


def end_remains(marks: Collection[int]) -> list[int]:
    """Kill every process that bears one of ``marks``, and wait until none is left. Answers the pids of those that could not be
    killed: they hang in the kernel, or have become another user's. Blocks; call it in a thread.
    """
    deadline = time.monotonic() + DEAD_WITHIN_S
    refused: set[int] = set()
    while left := [pid for pid in _bearing(marks) if pid not in refused]:
        if time.monotonic() > deadline:
            return sorted({*left, *refused})
        with ExitStack() as stack:
            dying = select.poll()
            waiting = 0
            for pid in left:
                try:
                    dying.register(_kill(pid, marks, stack), select.POLLIN)
                    waiting += 1
                except ProcessLookupError:
                    continue
                except PermissionError:
                    refused.add(pid)
            while waiting and (dead := dying.poll(max(1000 * (deadline - time.monotonic()), 0.0))):
                for descriptor, _ in dead:
                    dying.unregister(descriptor)
                waiting -= len(dead)
    return sorted(refused)


def _bearing(marks: Collection[int]) -> list[int]:
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return [pid for pid in pids if mark_of(pid) in marks and (seen := look_at(pid)) is not None and not seen.over]


def _kill(pid: int, marks: Collection[int], stack: ExitStack) -> int:
    """A descriptor that can be read when the process is dead; it makes sure that nobody else has got its pid meanwhile."""
    descriptor = os.pidfd_open(pid)
    stack.callback(os.close, descriptor)
    if mark_of(pid) not in marks:
        raise ProcessLookupError
    signal.pidfd_send_signal(descriptor, signal.SIGKILL)
    return descriptor
