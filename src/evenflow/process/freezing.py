"""Stopping tries without ending them: all processes of theirs, and whatever those are just starting.

A try may start processes in other groups and sessions, so the tree is followed from parent to child through ``/proc``, together
with what has lost its parent and was adopted by the template. A process that is stopped starts nothing, so looking again until
nobody runs any more finds all of it. A process that left its session *and* lost its parent meant to outlive the try, and is let go.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Collection, Iterable
from typing import NamedTuple

LOOKS = 100  # until a try stands still: two are enough unless one of its processes hangs in the kernel
PAUSE_S = 0.002  # between two looks: a signal arrives in less

_STANDING = frozenset("TtZX")  # stopped, traced, dead: as /proc has them


class _Process(NamedTuple):
    parent: int
    session: int
    state: str
    born: int  # tells it from another one that gets its pid later


class Freezer:
    """Of the template with this pid."""

    def __init__(self, template: int) -> None:
        self._template = template
        self._frozen: dict[int, int] = {}  # pid: when it was born; those that stood before are not ours to let go on

    @property
    def holds(self) -> bool:
        """Whether anything is frozen."""
        return bool(self._frozen)

    def freeze(self, leaders: Collection[int]) -> None:
        """Stop the tries of these session leaders, children of the template. Again is no harm, and stops what has gone on."""
        for _ in range(LOOKS if leaders else 0):
            seen = _processes()
            running = [pid for pid in self._tree(seen, leaders) if seen[pid].state not in _STANDING]
            if not running:
                return
            for pid in running:
                self._frozen[pid] = seen[pid].born
                _signal(pid, signal.SIGSTOP)
            time.sleep(PAUSE_S)

    def thaw(self) -> None:
        """Let all go on, children before their parents, so that nobody finds a child that stands still."""
        seen = _processes() if self._frozen else {}
        for pid, born in reversed(self._frozen.items()):
            if pid in seen and seen[pid].born == born:
                _signal(pid, signal.SIGCONT)
        self._frozen.clear()

    def kill(self, leader: int) -> None:
        """End one try that is frozen, with all its processes."""
        for pid in self._tree(_processes(), [leader]):
            self._frozen.pop(pid, None)
            _signal(pid, signal.SIGKILL)

    def _tree(self, seen: dict[int, _Process], leaders: Collection[int]) -> Iterable[int]:
        """Parents before their children."""
        children: dict[int, list[int]] = {}
        for pid, process in seen.items():
            children.setdefault(process.parent, []).append(pid)
        found = [
            pid
            for pid in children.get(self._template, ())
            if pid in leaders or (seen[pid].session in leaders and seen[pid].session != pid)
        ]
        for pid in found:
            found += children.get(pid, ())  # grows while it is walked
        return found


def _processes() -> dict[int, _Process]:
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
                found[int(name)] = _Process(int(fields[1]), int(fields[3]), fields[0].decode(), int(fields[19]))
    return found


def _signal(pid: int, signum: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):  # gone, or another user's by now
        os.kill(pid, signum)
