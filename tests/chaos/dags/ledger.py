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


class Entry:
    """The lines of one execution."""

    def __init__(self, ti: Any) -> None:
        folder = Path(os.environ["CHAOS_LEDGER"])
        self._of = {
            "dag": ti.dag_id,
            "run": ti.run_id,
            "task": ti.task_id,
            "map": ti.map_index,
            "try": ti.try_number,
            "epoch": ti.epoch,
            "pid": os.getpid(),
        }
        self._lines = os.open(folder / "ledger.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        name = f"{ti.dag_id}.{ti.run_id}.{ti.task_id}.{ti.map_index}".replace("/", "_")
        self._lock = os.open(folder / "locks" / name, os.O_RDWR | os.O_CREAT, 0o644)

    def begin(self) -> None:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = int(os.pread(self._lock, 20, 0) or b"0")
            state = state_of(holder)
            if state not in "TtZX":
                self._write("overlap", holder=holder, state=state)
        os.pwrite(self._lock, b"%-20d" % os.getpid(), 0)
        self._write("begin")

    def work(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            time.sleep(min(left, STEP_S))
            self._write("step")

    def end(self, how: str = "end", **more: Any) -> None:
        self._write(how, **more)

    def _write(self, what: str, **more: Any) -> None:
        os.write(self._lines, json.dumps({"what": what, "at": time.monotonic(), **self._of, **more}).encode() + b"\n")


class Bell:
    """The lines of one execution of a trigger. ``of`` names the deferral that it is for."""

    def __init__(self, of: str) -> None:
        folder = Path(os.environ["CHAOS_LEDGER"])
        self._of = of
        self._lines = os.open(folder / "triggers.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        self._lock = os.open(folder / "locks" / f"bell.{of}".replace("/", "_"), os.O_RDWR | os.O_CREAT, 0o644)

    def begin(self) -> None:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = int(os.pread(self._lock, 20, 0) or b"0")
            state = state_of(holder)
            if state not in "TtZX":
                self._write("overlap", holder=holder, state=state)
        os.pwrite(self._lock, b"%-20d" % os.getpid(), 0)
        self._write("begin")

    def step(self) -> None:
        self._write("step")

    def end(self) -> None:
        self._write("fires")

    def close(self) -> None:
        os.close(self._lock)
        os.close(self._lines)

    def _write(self, what: str, **more: Any) -> None:
        line = {"what": what, "at": time.monotonic(), "of": self._of, "pid": os.getpid(), **more}
        os.write(self._lines, json.dumps(line).encode() + b"\n")


def state_of(pid: int) -> str:
    """As ``ps`` shows it; X when there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "X"
