"""What is left of a try whose own process has ended: killed, wherever it went, and seen to be dead."""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Collection
from contextlib import ExitStack

from evenflow.process.census import listed, look_at
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
    struck: set[int] = set()
    while _strike(marks, struck, refused, deadline):
        if time.monotonic() > deadline:
            return sorted(pid for pid in struck if mark_of(pid) in marks and (seen := look_at(pid)) is not None and not seen.over)
    return sorted(refused)


def _strike(marks: Collection[int], struck: set[int], refused: set[int], deadline: float) -> bool:
    """Kill what is found now, and wait for its end. Whether there may be more: what ends during a look may have started another,
    which that look has missed, so in the last one there is nothing new and nothing has gone.
    """
    more = False
    with ExitStack() as stack:
        dying = select.poll()
        waiting = 0
        for pid in listed():
            if pid in struck:
                continue
            try:
                descriptor = _kill(pid, marks, stack)
            except ProcessLookupError:
                more = True
                continue
            except PermissionError:
                refused.add(pid)
            else:
                if descriptor is None:
                    continue
                dying.register(descriptor, select.POLLIN)
                waiting += 1
            struck.add(pid)
            more = True
        while waiting and (dead := dying.poll(max(1000 * (deadline - time.monotonic()), 0.0))):
            for descriptor, _ in dead:
                dying.unregister(descriptor)
            waiting -= len(dead)
    return more


def _kill(pid: int, marks: Collection[int], stack: ExitStack) -> int | None:
    """A descriptor that can be read when the process is dead; it makes sure that nobody else has got its pid meanwhile. None: it
    bears none of ``marks``.
    """
    if not _bears(pid, marks):
        return None
    descriptor = os.pidfd_open(pid)
    stack.callback(os.close, descriptor)
    if not _bears(pid, marks):
        raise ProcessLookupError
    signal.pidfd_send_signal(descriptor, signal.SIGKILL)
    return descriptor


def _bears(pid: int, marks: Collection[int]) -> bool:
    if (mark := mark_of(pid)) is None:
        raise ProcessLookupError
    return mark in marks
