"""The processes of this host, as ``/proc`` lists them at this moment."""

from __future__ import annotations

import contextlib
import os
from typing import NamedTuple

Birth = tuple[int, int]  # a pid, and when its process was born: another process may have that pid later

_OVER = frozenset("ZX")


class Process(NamedTuple):
    parent: int
    group: int
    session: int
    state: str  # of its first thread
    threads: int
    born: int  # distinguishes it from a later process with its pid

    @property
    def over(self) -> bool:
        """Whether the process has ended, and at most waits to be collected. While other threads than the first live, it has not."""
        return self.state in _OVER and self.threads <= 1


class Census(dict[int, Process]):
    """Processes by pid, the newest first, because they end soonest. A process that is forked meanwhile may be missing.
    ``some_gone``: a listed process had ended before it was looked at, so it may have forked a missing one.
    """

    some_gone = False


def census() -> Census:
    found = Census()
    for pid in listed():
        if (process := look_at(pid)) is not None:
            found[pid] = process
        else:
            found.some_gone = True
    return found


def listed() -> list[int]:
    """Returns all pids, the newest first."""
    return [int(name) for name in reversed(os.listdir("/proc")) if name.isdigit()]


def newest() -> int:
    """Returns the pid that was given out last."""
    with open("/proc/loadavg", "rb") as file:
        return int(file.read().split()[-1])


def look_at(pid: int) -> Process | None:
    """Returns the process, or None if it is gone."""
    with contextlib.suppress(OSError):
        fields = _stat(f"/proc/{pid}/stat")
        parent, group, session = map(int, fields[1:4])
        return Process(parent, group, session, fields[0].decode(), int(fields[17]), int(fields[19]))
    return None


def name_of(pid: int) -> str:
    """Returns the name of the program, at most 15 characters, or the name that it gave itself; never its arguments, which may hold
    secrets.
    """
    try:
        with open(f"/proc/{pid}/comm", "rb") as file:
            name = file.read().removesuffix(b"\n").decode(errors="replace")
    except OSError:
        return "?"
    return "".join(char if char.isprintable() else "?" for char in name)


def threads_of(pid: int) -> dict[int, str]:
    """Returns the states of its threads by id; none when it is gone."""
    states: dict[int, str] = {}
    with contextlib.suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError):
                states[int(name)] = _stat(f"/proc/{pid}/task/{name}/stat")[0].decode()
    return states


def _stat(path: str) -> list[bytes]:
    """Returns the fields from the state on. The field before it is a name, which may contain anything."""
    with open(path, "rb") as file:
        return file.read().rpartition(b")")[2].split()
