"""Stops or ends tries at once: all their processes, including those that are just starting.

A try may start processes in other groups and sessions. So the tree is followed from parent to child through ``/proc``, and orphans
that the template adopted are found by the try's mark. A stopped or killed process starts nothing. A process that stops or ends
during a look may have started another one that the look missed. So the last look is one that finds only processes that stood still,
or were killed, before it began.

Both have a deadline: a lease is over soon, and other workers may start these tries then. What does not stand by then is killed.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterable, Mapping

from evenflow.forking.census import Birth, Census, Process, census, look_at, newest, threads_of
from evenflow.forking.marks import mark_of
from evenflow.forking.prctl import signal_thread
from evenflow.forking.striking import hunt, strike_group

STANDS_WITHIN_S = 1.0  # milliseconds are enough unless a process forks all the time, or the host is overloaded; a third of MARGIN_S
DEAD_WITHIN_S = 1.0  # another third, for processes that did not stand
PAUSE_S = 0.002  # between two looks: a signal arrives in less

_UNSURE = frozenset("tZD")  # states of a first thread while other threads may run
_STILL = frozenset("TtZXD")  # D hangs in the kernel, like a process in vfork that waits for its child: it stops before it continues


class Freezer:
    """Freezes the tries of the template with this pid."""

    def __init__(self, template: int) -> None:
        self._template = template
        self._frozen: dict[int, int] = {}  # pid: when it was born; processes that stood before are not resumed here

    def freeze(self, tries: Mapping[int, int]) -> set[int]:
        """Stops the tries of these session leaders, children of the template, with these marks. A second call is harmless, and
        stops what was resumed. Returns the leaders of tries that it killed instead, because one of their processes did not stop in
        time.
        """
        deadline = time.monotonic() + STANDS_WITHIN_S
        freeze = _Freeze(self._frozen, set(tries.values()))
        while tries:
            since = newest()
            seen = census()
            tree = self._tree(seen, tries)
            running = freeze.look(seen, tree)
            if not running and not seen.some_gone:
                break
            if time.monotonic() > deadline:
                return self._kill_what_runs(tries, seen, running)
            hunt(since, freeze.stop_newcomer, deadline)
            time.sleep(PAUSE_S)
        return set()

    def thaw(self) -> None:
        """Resumes all, children before their parents, so that no parent finds a stopped child."""
        seen = census() if self._frozen else {}
        for pid, born in reversed(self._frozen.items()):
            if pid in seen and seen[pid].born == born:
                _signal(pid, signal.SIGCONT)
        self._frozen.clear()

    def kill(self, tries: Mapping[int, int]) -> None:
        """Ends tries with all their processes, frozen or not. Killed processes start nothing, so it does not wait for their end."""
        deadline = time.monotonic() + DEAD_WITHIN_S
        marks = set(tries.values())
        killed: set[Birth] = set()

        def strike(pid: int, process: Process) -> None:
            self._frozen.pop(pid, None)
            strike_group(process, signal.SIGKILL)
            _signal(pid, signal.SIGKILL)
            killed.add((pid, process.born))

        def strike_newcomer(pid: int) -> bool:
            process = look_at(pid) if mark_of(pid) in marks else None
            if process is None or (pid, process.born) in killed:
                return False
            strike(pid, process)
            return True

        while time.monotonic() < deadline:
            since = newest()
            seen = census()
            found = [pid for pid in self._tree(seen, tries) if (pid, seen[pid].born) not in killed]
            if not found and not seen.some_gone:
                return
            for pid in found:
                strike(pid, seen[pid])
            hunt(since, strike_newcomer, deadline)

    def _kill_what_runs(self, tries: Mapping[int, int], seen: Census, running: Iterable[int]) -> set[int]:
        """Kills the tries of processes that were seen running. Processes that ended unseen count for no try: a busy host always has
        some.
        """
        by_mark = {mark: leader for leader, mark in tries.items()}
        leaders = set[int]()
        for pid in running:
            while pid in seen and pid != self._template:
                if (leader := pid if pid in tries else by_mark.get(mark_of(pid) or 0)) is not None:
                    leaders.add(leader)
                    break
                pid = seen[pid].parent
        self.kill({leader: tries[leader] for leader in leaders})
        return leaders

    def _tree(self, seen: Census, tries: Mapping[int, int]) -> list[int]:
        """Returns the processes of these tries, parents before their children."""
        children: dict[int, list[int]] = {}
        for pid, process in seen.items():
            children.setdefault(process.parent, []).append(pid)
        marks = set(tries.values())
        found = []
        for pid in children.get(self._template, ()):
            mark = None if pid in tries else mark_of(pid)
            if pid in tries or mark in marks:
                found.append(pid)
            elif mark is None:
                seen.some_gone = True
        for pid in found:
            found += children.get(pid, ())  # the list grows while it is walked
        return found


class _Freeze:
    """One freeze. ``frozen`` has the processes that were stopped so far, here and earlier."""

    def __init__(self, frozen: dict[int, int], marks: set[int]) -> None:
        self._frozen, self._marks = frozen, marks
        self._struck: set[Birth] = set()
        self._by_thread: set[Birth] = set()  # of those, with each thread stopped by itself
        self._groups: set[int] = set()  # groups that were stopped
        self._stood: set[Birth] = set()  # at the begin of the last look
        self._refused: set[Birth] = set()  # another user's by now: this process cannot stop them

    def look(self, seen: Census, tree: list[int]) -> list[int]:
        """Stops running processes. Returns those that did not stand before and can be stopped."""
        stood = {(pid, seen[pid].born) for pid in tree if self._stands(pid, seen[pid])}
        groups = self._groups.copy()
        for pid in tree:
            process = seen[pid]
            if (pid, process.born) not in stood:
                self._stop(pid, process)
            elif process.over:
                self._strike_group(process)  # it may have handed over to another process of its group
            elif (pid, process.born) not in self._stood and process.group in groups:
                self._frozen[pid] = process.born  # it was stopped with its group before it was seen
        stand, self._stood = (stood & self._stood) | self._refused, stood
        return [pid for pid in tree if (pid, seen[pid].born) not in stand]

    def stop_newcomer(self, pid: int) -> bool:
        process = look_at(pid) if mark_of(pid) in self._marks else None
        if process is None or (pid, process.born) in self._struck:
            return False
        self._stop(pid, process)
        return True

    def _stop(self, pid: int, process: Process) -> None:
        self._frozen[pid] = process.born
        self._strike_group(process)
        try:
            os.kill(pid, signal.SIGSTOP)
        except PermissionError:
            self._refused.add((pid, process.born))
        except ProcessLookupError:
            pass
        if process.state in _UNSURE or (pid, process.born) in self._struck:
            for thread in threads_of(pid):  # one of them got the signal for all, and may be unable to take it now
                signal_thread(pid, thread, signal.SIGSTOP)
            self._by_thread.add((pid, process.born))
        self._struck.add((pid, process.born))

    def _strike_group(self, process: Process) -> None:
        strike_group(process, signal.SIGSTOP)
        self._groups.add(process.group)

    def _stands(self, pid: int, process: Process) -> bool:
        if process.over or process.state == "T":
            return True
        if process.state not in _UNSURE or (pid, process.born) not in self._by_thread:
            return False
        return _STILL.issuperset(threads_of(pid).values())


def _signal(pid: int, signum: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):  # gone, or another user's by now
        os.kill(pid, signum)
