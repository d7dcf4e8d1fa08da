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


def census() -> dict[int, Process]:
    """By pid. A process that is forked meanwhile may be missing."""
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and (process := look_at(int(name))) is not None:
            found[int(name)] = process
    return found


def look_at(pid: int) -> Process | None:
    """None: it is gone."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
        return Process(int(fields[1]), int(fields[3]), fields[0].decode(), int(fields[19]))
    return None
