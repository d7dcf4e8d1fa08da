"""The processes that are left of an ended try: found or killed, wherever they went, and verified to be dead."""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Collection, Sequence

from evenflow.core.likeness import few
from evenflow.errors import EvenflowError
from evenflow.forking.census import Birth, Process, listed, look_at, name_of, newest
from evenflow.forking.marks import mark_of
from evenflow.forking.striking import hunt, strike_group

PROCESSES_NAMED = 10  # of those that tasks have left: a few identify them, and keep the line short
DEAD_WITHIN_S = 10.0  # a killed process that still exists hangs in the kernel: it does nothing more, and may stay for days
PAUSE_MS = 2  # between two looks, of which the first finds nothing new
QUIET_LOOKS = 20  # empty looks in a row: a process that forks all the time is seen in most of them


class Outrun(EvenflowError):
    """Some processes continue: they fork more quickly than they are killed."""

    def __init__(self) -> None:
        super().__init__("processes that it has started fork more quickly than they can be killed")


def still_running(marks: Collection[int], sessions: Collection[int] = ()) -> dict[int, list[int]]:
    """Returns by mark the pids of the processes with one of ``marks``, the oldest first, except in ``sessions``, which are being
    killed. Blocks; call it in a thread.
    """
    found: dict[int, list[int]] = {}
    for pid in reversed(listed()):
        mark = mark_of(pid)
        if mark is not None and mark in marks:
            process = look_at(pid)
            if process is not None and not process.over and process.session not in sessions:
                found.setdefault(mark, []).append(pid)
    return found


def named(pids: Sequence[int]) -> str:
    """Returns ``sleep (pid 12), python3 (pid 13)``, cut after the first ones."""
    most = PROCESSES_NAMED
    return few((f"{name_of(pid)} (pid {pid})" for pid in pids[: most + 1]), most)


def end_remains(marks: Collection[int]) -> list[int]:
    """Kills every process with one of ``marks``, and waits until none is left. Returns the pids of those that could not be killed:
    they hang in the kernel, or have become another user's. Raises :class:`Outrun` when others are left. Blocks; call it in a
    thread.
    """
    remains = _Remains(marks)
    try:
        return remains.end(time.monotonic() + DEAD_WITHIN_S)
    finally:
        remains.close()


class _Remains:
    def __init__(self, marks: Collection[int]) -> None:
        self._marks = marks
        self._struck: set[Birth] = set()
        self._refused: set[int] = set()
        self._dying: dict[int, int] = {}  # by descriptor: its pid
        self._poll = select.poll()
        self._some_gone = False  # in this look, before their marks were read

    def end(self, deadline: float) -> list[int]:
        """Repeats looks: a process that ends during a look may have started another one that the look missed. So the last look
        finds nothing new and nothing gone. A busy host always has processes that end.
        """
        quiet = 0
        while True:
            self._some_gone = False
            since = newest()
            found = [pid for pid in listed() if self._strike(pid)]
            if found:
                hunt(since, self._strike, deadline)
            quiet = 0 if found else quiet + 1
            over = quiet > 0 and not self._some_gone
            if over and not self._dying:
                return sorted(self._refused)
            if time.monotonic() > deadline:
                if over or quiet >= QUIET_LOOKS:
                    return sorted({*self._refused, *self._dying.values()})
                raise Outrun
            self._bury(0 if found else PAUSE_MS)

    def close(self) -> None:
        for descriptor in self._dying:
            os.close(descriptor)

    def _strike(self, pid: int) -> bool:
        """Kills a process with its group. Returns whether it was not killed before."""
        process = self._born_by(pid)
        if process is None or (born := (pid, process.born)) in self._struck:
            return False
        try:
            descriptor = os.pidfd_open(pid)  # ensures that no other process gets the signal
        except ProcessLookupError:
            return True
        self._dying[descriptor] = pid
        self._poll.register(descriptor, select.POLLIN)
        if (again := self._born_by(pid)) is None or again.born != process.born:
            self._forget(descriptor)
            return True
        self._struck.add(born)
        strike_group(process, signal.SIGKILL)
        try:
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        except ProcessLookupError:
            pass
        except PermissionError:
            self._refused.add(pid)
            self._forget(descriptor)
        return True

    def _born_by(self, pid: int) -> Process | None:
        """Returns the process, or None if it is not of these tries, or gone."""
        mark = mark_of(pid)
        process = look_at(pid) if mark in self._marks else None
        if mark is None or (mark in self._marks and process is None):
            self._some_gone = True
        return process

    def _bury(self, within_ms: int) -> None:
        for descriptor, _ in self._poll.poll(within_ms):
            self._forget(descriptor)

    def _forget(self, descriptor: int) -> None:
        self._poll.unregister(descriptor)
        del self._dying[descriptor]
        os.close(descriptor)
