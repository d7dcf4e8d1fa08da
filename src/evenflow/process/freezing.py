"""Stopping tries, or ending them, at once: all processes of theirs, and whatever those are just starting.

A try may start processes in other groups and sessions, so the tree is followed from parent to child through ``/proc``, together
with what has lost its parent, was adopted by the template and bears the try's mark. A process that is stopped, or killed, starts
nothing; one that stops or ends during a look may have started another before, which that look has missed. So the last look is one
that finds nothing but what stood still, or was killed, before it began.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Mapping

from evenflow.process.census import Process, census
from evenflow.process.marks import mark_of

LOOKS = 100  # until a try stands still: two are enough unless one of its processes hangs in the kernel
PAUSE_S = 0.002  # between two looks: a signal arrives in less

_STANDING = frozenset("TtZX")  # stopped, traced, dead: as /proc has them


class Freezer:
    """Of the template with this pid."""

    def __init__(self, template: int) -> None:
        self._template = template
        self._frozen: dict[int, int] = {}  # pid: when it was born; those that stood before are not ours to let go on

    def freeze(self, tries: Mapping[int, int]) -> None:
        """Stop the tries of these session leaders, children of the template, with these marks. Again is no harm, and stops what
        has gone on.
        """
        stood: set[int] = set()
        for _ in range(LOOKS if tries else 0):
            seen = census()
            tree = self._tree(seen, tries)
            running = [pid for pid in tree if seen[pid].state not in _STANDING]
            if not running and stood.issuperset(tree) and not seen.some_gone:
                return
            for pid in running:
                self._frozen[pid] = seen[pid].born
                _signal(pid, signal.SIGSTOP)
            stood = {*tree}.difference(running)
            time.sleep(PAUSE_S)

    def thaw(self) -> None:
        """Let all go on, children before their parents, so that nobody finds a child that stands still."""
        seen = census() if self._frozen else {}
        for pid, born in reversed(self._frozen.items()):
            if pid in seen and seen[pid].born == born:
                _signal(pid, signal.SIGCONT)
        self._frozen.clear()

    def kill(self, tries: Mapping[int, int]) -> None:
        """End tries with all their processes, frozen or not. What has been killed starts nothing, so it is not waited for."""
        killed: set[int] = set()
        for _ in range(LOOKS):
            seen = census()
            found = [pid for pid in self._tree(seen, tries) if pid not in killed]
            if not found and not seen.some_gone:
                return
            for pid in found:
                self._frozen.pop(pid, None)
                _signal(pid, signal.SIGKILL)
            killed.update(found)

    def _tree(self, seen: dict[int, Process], tries: Mapping[int, int]) -> list[int]:
        """Parents before their children."""
        children: dict[int, list[int]] = {}
        for pid, process in seen.items():
            children.setdefault(process.parent, []).append(pid)
        marks = set(tries.values())
        found = [pid for pid in children.get(self._template, ()) if pid in tries or mark_of(pid) in marks]
        for pid in found:
            found += children.get(pid, ())  # grows while it is walked
        return found


def _signal(pid: int, signum: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):  # gone, or another user's by now
        os.kill(pid, signum)
