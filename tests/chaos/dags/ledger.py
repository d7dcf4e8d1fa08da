"""What tasks and triggers did, written by themselves: one JSON line for each step, appended in one write, never changed.

Each execution holds a lock of its task instance as long as its process lives. Who finds it taken by a process that runs, and is not
stopped, has proof that two tries of one task run side by side.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from pathlib import Path
from typing import Any

STEP_S = 0.05  # between two lines of a task that works: what a revoked try may do unseen


class Execution:
    """Of something that must not run twice at once: ``of`` names it, and is in each of its lines."""

    def __init__(self, file: str, lock: str, of: dict[str, Any]) -> None:
        folder = Path(os.environ["CHAOS_LEDGER"])
        self._of = {**of, "pid": os.getpid()}
        self._lines = os.open(folder / file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        self._lock = os.open(folder / "locks" / lock.replace("/", "_"), os.O_RDWR | os.O_CREAT, 0o644)

    def begin(self) -> None:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = int(os.pread(self._lock, 20, 0) or b"0")
            state = state_of(holder)
            if state not in "TtZX":
                self.write("overlap", holder=holder, state=state)
        os.pwrite(self._lock, b"%-20d" % os.getpid(), 0)
        self.write("begin")

    def write(self, what: str, **more: Any) -> None:
        os.write(self._lines, json.dumps({"what": what, "at": time.monotonic(), **self._of, **more}).encode() + b"\n")

    def close(self) -> None:
        os.close(self._lock)
        os.close(self._lines)


class Entry(Execution):
    """The lines of a task."""

    def __init__(self, ti: Any, file: str = "ledger.jsonl", kind: str = "") -> None:
        of = {
            "dag": ti.dag_id,
            "run": ti.run_id,
            "task": ti.task_id,
            "map": ti.map_index,
            "try": ti.try_number,
            "epoch": ti.epoch,
        }
        super().__init__(file, f"{kind}{ti.dag_id}.{ti.run_id}.{ti.task_id}.{ti.map_index}", of)

    def work(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            time.sleep(min(left, STEP_S))
            self.write("step")

    def end(self, how: str = "end", **more: Any) -> None:
        self.write(how, **more)


class Stray(Entry):
    """The lines of a process that a task has started."""

    def __init__(self, ti: Any) -> None:
        super().__init__(ti, "strays.jsonl", "stray.")


class Bell(Execution):
    """The lines of a trigger. ``of`` names the deferral that it is for."""

    def __init__(self, of: str) -> None:
        super().__init__("triggers.jsonl", f"bell.{of}", {"of": of})

    def step(self) -> None:
        self.write("step")

    def end(self) -> None:
        self.write("fires")


def state_of(pid: int) -> str:
    """As ``ps`` shows it; X when there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "X"
