"""The processes of this host, as ``/proc`` has them at this moment."""

from __future__ import annotations

import contextlib
import os
from typing import NamedTuple

Birth = tuple[int, int]  # a pid, and when its process was born: another one may have that pid later

_OVER = frozenset("ZX")


class Process(NamedTuple):
    parent: int
    group: int
    session: int
    state: str  # of its first thread
    threads: int
    born: int  # tells it from another one that gets its pid later

    @property
    def over(self) -> bool:
        """It has ended, and at most waits to be collected: when only its first thread has, the others go on."""
        return self.state in _OVER and self.threads <= 1


class Census(dict[int, Process]):
    """By pid, the newest first: they are gone soonest. A process that is forked meanwhile may be missing; ``some_gone``: one that
    was listed had ended and was collected before it was looked at, so it may have forked such.
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
    """The pids of all, the newest first."""
    return [int(name) for name in reversed(os.listdir("/proc")) if name.isdigit()]


def newest() -> int:
    """The pid that was given out last."""
    with open("/proc/loadavg", "rb") as file:
        return int(file.read().split()[-1])


def look_at(pid: int) -> Process | None:
    """None: it is gone."""
    with contextlib.suppress(OSError):
        fields = _stat(f"/proc/{pid}/stat")
        parent, group, session = map(int, fields[1:4])
        return Process(parent, group, session, fields[0].decode(), int(fields[17]), int(fields[19]))
    return None


def name_of(pid: int) -> str:
    """Of its program, at most 15 characters, or what it calls itself; never its arguments, which may hold secrets."""
    try:
        with open(f"/proc/{pid}/comm", "rb") as file:
            name = file.read().removesuffix(b"\n").decode(errors="replace")
    except OSError:
        return "?"
    return "".join(char if char.isprintable() else "?" for char in name)


def threads_of(pid: int) -> dict[int, str]:
    """The states of its threads, by their ids; none when it is gone."""
    states: dict[int, str] = {}
    with contextlib.suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError):
                states[int(name)] = _stat(f"/proc/{pid}/task/{name}/stat")[0].decode()
    return states


def _stat(path: str) -> list[bytes]:
    """From the state on: what is before it is a name, in which anything may be."""
    with open(path, "rb") as file:
        return file.read().rpartition(b")")[2].split()
