"""Linux' functions for a process and its descendants that the standard library lacks."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence

from evenflow.forking.census import census

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38

libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent(signum: int) -> None:
    """Has the kernel send ``signum`` to this process when its parent dies; 0 switches that off.

    The parent may have died before the call: compare :func:`os.getppid` afterwards.
    """
    _prctl(_PR_SET_PDEATHSIG, signum)


def hide() -> None:
    """Closes this process's memory, environment and descriptors in ``/proc`` to all but root, and refuses to be traced or dumped.

    Forks stay hidden, programs that ``execve`` begins do not: templates, and so tasks, are not affected. Call it first of all.
    """
    _prctl(_PR_SET_DUMPABLE, 0)


def adopt_orphans() -> None:
    """Makes this process the parent of every descendant whose own parent dies, in place of init."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def gain_no_privileges() -> None:
    """Prevents programs that this process executes from gaining rights by their files' owner or capabilities."""
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)


def show_command(words: Sequence[str]) -> None:
    """Has ``ps`` show these words as the command of this process, as far as the space of its arguments allows."""
    with open("/proc/self/stat", "rb") as file:
        start, end = map(int, file.read().rpartition(b")")[2].split()[45:47])
    room = end - start - 1
    if start and room > 0:
        ctypes.memmove(start, b"\0".join(map(os.fsencode, words))[:room].ljust(room + 1, b"\0"), room + 1)


def signal_thread(pid: int, thread: int, signum: int) -> None:
    """Sends a signal to a thread; does nothing if it is gone, or another user's."""
    libc.tgkill(pid, thread, signum)


def children() -> list[int]:
    """Returns the children of this process's main thread: those that it started, and those that it adopted."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children") as file:
            return [int(child) for child in file.read().split()]
    except FileNotFoundError:  # a kernel without CONFIG_PROC_CHILDREN
        return [pid for pid, process in census().items() if process.parent == os.getpid()]


def _prctl(option: int, value: int) -> None:
    if libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        errno = ctypes.get_errno()
        raise OSError(errno, os.strerror(errno))
