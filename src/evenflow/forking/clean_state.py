"""The state of a process before a try, as the kernel knows it. The next try begins in the same state, or in another process.

Simple settings are restored: folder, umask, soft limits. The process ends if something of the try still runs, or the process has
changed otherwise: processes, threads and descriptors that are left, other signal handlers, another user, too much memory. One read
of ``/proc/self/status`` answers most of that.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import gc
import os
import resource
import signal
import sys

from evenflow.forking.interpreter import Interpreter

_ANY_CHILD = -1
_HOWEVER_CLONED = 0x40000000  # __WALL: also children that do not signal their end
_HANDLERS = ("SigCgt", "SigIgn", "SigBlk")
_RIGHTS = (
    "Uid",
    "Gid",
    "Groups",
    "CapInh",
    "CapPrm",
    "CapEff",
    "CapBnd",
    "CapAmb",
    "NoNewPrivs",
    "Seccomp",
    "Cpus_allowed",
    "VmLck",
)
_LIMITS = tuple(sorted({value for name, value in vars(resource).items() if name.startswith("RLIMIT_")}))
_TIMERS = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)


class Dirty(Exception):
    """No other try may follow in this process; ``str(error)`` says why."""


class CleanState:
    """The state of this process at this moment. ``root`` is the folder of the user's code."""

    def __init__(self, root: str) -> None:
        self._interpreter = Interpreter(root)
        self._status = _status()
        self._folder = os.getcwd()
        self._handlers = _handlers(self._status)
        self._limits = [resource.getrlimit(which) for which in _LIMITS]
        self._scheduling = _scheduling()
        self._at_exit = atexit._ncallbacks()
        self._descriptors = _descriptors()

    def restore(self, memory: int) -> None:
        """Restores the state. Raises :class:`Dirty` where that is impossible, or when more than ``memory`` bytes were added."""
        if _has_children():
            raise Dirty("processes that it has started are still running")
        status = _status()
        if status["Threads"] != self._status["Threads"]:
            raise Dirty(f"{int(status['Threads']) - 1} threads are left")
        self._check_status(status, memory)
        self._interpreter.restore()
        if sys.stdout.closed or sys.stderr.closed:
            raise Dirty("sys.stdout or sys.stderr is closed")
        self._check_descriptors()
        os.chdir(self._folder)
        if status["Umask"] != self._status["Umask"]:
            os.umask(int(self._status["Umask"], 8))
        for which, before in zip(_LIMITS, self._limits, strict=True):
            if resource.getrlimit(which) != before:
                _set_limit(which, before)

    def _check_status(self, status: dict[str, str], memory: int) -> None:
        grown_kb = _rss_kb(status) - _rss_kb(self._status)
        if grown_kb * 1024 > memory:
            raise Dirty(f"it takes {grown_kb // 1024} MiB more than at first (EVENFLOW_REUSE_MEMORY)")
        has_timers = any(signal.getitimer(which)[0] for which in _TIMERS)
        if _differ(_HANDLERS, status, self._status) or _handlers(status) != self._handlers or has_timers:
            raise Dirty("signal handlers, or timers, are other ones")
        if atexit._ncallbacks() != self._at_exit:
            raise Dirty("functions are registered with atexit")
        if _differ(_RIGHTS, status, self._status) or _scheduling() != self._scheduling:
            raise Dirty("its user, rights, processors or priority are other ones")

    def _check_descriptors(self) -> None:
        """Collects garbage only if descriptors differ, because a collection costs more than a comparison. It closes unreferenced
        ones.
        """
        if _descriptors() == self._descriptors:
            return
        gc.collect()
        if (now := _descriptors()) != self._descriptors:
            changed = sorted(fd for fd, _ in now.items() ^ self._descriptors.items())
            raise Dirty(f"descriptors are left open, or are other ones: {', '.join(map(str, dict.fromkeys(changed)))}")


def rss_kb() -> int:
    """Returns the highest memory use of this process so far, in KiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _has_children() -> bool:
    """Returns whether children are running, including adopted ones; ended ones are collected."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(_ANY_CHILD, os.WNOHANG | _HOWEVER_CLONED)[0]:
            pass
        return True
    return False


def _status() -> dict[str, str]:
    with open("/proc/self/status", encoding="utf-8", errors="replace") as file:
        return dict(line.split(":\t", 1) for line in file.read().splitlines() if ":\t" in line)


def _rss_kb(status: dict[str, str]) -> int:
    return int(status["VmRSS"].split()[0])


def _differ(names: tuple[str, ...], one: dict[str, str], other: dict[str, str]) -> bool:
    return any(one.get(name) != other.get(name) for name in names)


def _handlers(status: dict[str, str]) -> dict[int, object]:
    """Returns Python's handlers of the signals that are not left to the kernel."""
    heeded = int(status["SigCgt"], 16) | int(status["SigIgn"], 16)
    return {signum: signal.getsignal(signum) for signum in range(1, signal.NSIG) if heeded >> (signum - 1) & 1}


def _scheduling() -> tuple[int, ...]:
    return os.getpriority(os.PRIO_PROCESS, 0), os.sched_getscheduler(0), os.getpgid(0)


def _descriptors() -> dict[int, tuple[int, ...]]:
    """Returns the open descriptors: the file behind each, its status flags, and whether exec closes it."""
    found: dict[int, tuple[int, ...]] = {}
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # the descriptor of that folder
            fd = int(name)
            stat = os.fstat(fd)
            found[fd] = stat.st_dev, stat.st_ino, fcntl.fcntl(fd, fcntl.F_GETFL), fcntl.fcntl(fd, fcntl.F_GETFD)
    return found


def _set_limit(which: int, before: tuple[int, int]) -> None:
    try:
        resource.setrlimit(which, before)
    except (ValueError, OSError) as error:
        raise Dirty(f"a limit of its resources cannot be set back: {error}") from None
