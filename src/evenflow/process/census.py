"""The processes of this host, as ``/proc`` has them at this moment."""

from __future__ import annotations

import contextlib
import os
from typing import NamedTuple

_OVER = frozenset("ZX")


class Process(NamedTuple):
    parent: int
    session: int
    state: str
    born: int  # tells it from another one that gets its pid later

    @property
    def over(self) -> bool:
        """It has ended, and at most waits to be collected."""
        return self.state in _OVER


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


def look_at(pid: int) -> Process | None:
    """None: it is gone."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
        return Process(int(fields[1]), int(fields[3]), fields[0].decode(), int(fields[19]))
    return None
