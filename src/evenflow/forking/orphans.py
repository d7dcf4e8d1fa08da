"""What tries leave behind: killed when their template died before it could do so, collected when it was let go and has ended."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Collection, Iterable

from evenflow.forking.census import census
from evenflow.forking.marks import mark_of
from evenflow.forking.prctl import children
from evenflow.forking.striking import strike_group

LOOKS = 10  # at all processes, which takes milliseconds in which nothing else is done: three are enough almost always
REAP_EVERY_S = 0.1
REAP_ROUNDS = 50  # 5 s in all: a killed process that is a zombie no earlier hangs in the kernel


def end_orphans(leaders: Iterable[int], marks: Collection[int]) -> None:
    """Kill everything in the sessions of these dead or dying leaders, and what bears one of ``marks``, and collect what of it has
    become a child of this process. Rare, so it may look at every process of the host.
    """
    sessions = set(leaders)
    killed: set[int] = set()
    for _ in range(LOOKS if marks else 0):
        seen = census()
        bears = {pid: mark_of(pid) for pid in seen if pid not in killed}
        found = [pid for pid, mark in bears.items() if mark in marks or seen[pid].session in sessions]
        if not found and not seen.some_gone and None not in bears.values():
            break  # what ended during a look may have started another, which that look has missed
        for pid in found:
            strike_group(seen[pid], signal.SIGKILL)
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        killed.update(found)
    _reap(sessions, REAP_ROUNDS)


def reap_adopted(templates: Collection[int]) -> None:
    """Collect what has ended of the processes that outlived their try and then its template. Call it now and then.

    All other children have somebody who waits for their end. What this process starts stays in its session, except its
    templates, and no process of a try can enter that session.
    """
    session = os.getsid(0)
    for pid in children():
        if pid not in templates:
            with contextlib.suppress(OSError):  # another thread has just waited for it
                if os.getsid(pid) != session:
                    os.waitpid(pid, os.WNOHANG)


def _reap(groups: set[int], rounds: int) -> None:
    left = {group for group in groups if not _reaped(group)}
    if left and rounds:
        asyncio.get_running_loop().call_later(REAP_EVERY_S, _reap, left, rounds - 1)


def _reaped(group: int) -> bool:
    """Whether this process has no child left in the process group."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-group, os.WNOHANG) != (0, 0):
            pass
        return False
    return True
