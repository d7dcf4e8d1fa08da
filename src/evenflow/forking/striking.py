"""Signals to the processes of a try, sent more quickly than those fork.

A process may do nothing but start another one and end. A search for it finds only processes that are gone. Two means are quicker. A
signal to a process group reaches all of it at once: the kernel allows no fork in between. And pids are given out in order, so a new
process is found without a look at all processes.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable

from evenflow.forking.census import Process, newest

_FEW = 2_000  # pids in one hunt: for more, a look at all processes is quicker


def strike_group(process: Process, signum: int) -> None:
    """Signals the whole group of this process of a try. All processes in it belong to that try: it has its own session, and the
    others in it were forked there. Only a child that has just been forked is in the session of its template, which calls this.
    """
    if process.group > 1 and process.session != os.getsid(0):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.group, signum)


def hunt(since: int, strike: Callable[[int], bool], deadline: float) -> None:
    """Calls ``strike`` for pids given out after ``since``, the newest first, until a pass finds nothing to strike."""
    while time.monotonic() < deadline:
        last = newest()
        if not since < last <= since + _FEW:
            return
        struck = [pid for pid in range(last, since, -1) if strike(pid)]
        if not struck:
            return
        since = last
