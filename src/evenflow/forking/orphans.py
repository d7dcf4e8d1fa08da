"""What tries leave behind: killed here if their template died before it could do so, and collected once it was let go and has
ended.
"""

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

LOOKS = 10  # at all processes, each some milliseconds during which nothing else happens: three are nearly always enough
REAP_EVERY_S = 0.1
REAP_ROUNDS = 50  # 5 s in all: a killed process that is not a zombie by then hangs in the kernel


def end_orphans(leaders: Iterable[int], marks: Collection[int]) -> None:
    """Kills everything in the sessions of these dead or dying leaders, and every process with one of ``marks``, and collects those
    that have become children of this process. This is rare, so it may look at every process of the host.
    """
    sessions = set(leaders)
    killed: set[int] = set()
    for _ in range(LOOKS if marks else 0):
        seen = census()
        bears = {pid: mark_of(pid) for pid in seen if pid not in killed}
        found = [pid for pid, mark in bears.items() if mark in marks or seen[pid].session in sessions]
        if not found and not seen.some_gone and None not in bears.values():
            break  # a process that ended during a look may have started another one that the look missed
        for pid in found:
            strike_group(seen[pid], signal.SIGKILL)
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        killed.update(found)
    _reap(sessions, REAP_ROUNDS)


def reap_adopted(templates: Collection[int]) -> None:
    """Collects ended processes that outlived their try and then its template. Call it regularly.

    Other code waits for the end of all other children. What this process starts stays in its session, except its templates, and a
    process of a try cannot enter that session.
    """
    session = os.getsid(0)
    for pid in children():
        if pid not in templates:
            with contextlib.suppress(OSError):  # another thread has just collected it
                if os.getsid(pid) != session:
                    os.waitpid(pid, os.WNOHANG)


def _reap(groups: set[int], rounds: int) -> None:
    left = {group for group in groups if not _reaped(group)}
    if left and rounds:
        asyncio.get_running_loop().call_later(REAP_EVERY_S, _reap, left, rounds - 1)


def _reaped(group: int) -> bool:
    """Returns whether this process has no child left in the process group."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-group, os.WNOHANG) != (0, 0):
            pass
        return False
    return True
