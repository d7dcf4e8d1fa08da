"""The processes of an execution-free run: real schedulers and the worker that executes nothing."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import measure
import psycopg
from server import Server

HERE = Path(__file__).parent
READY_TIMEOUT_S = 30
PUBLISH_S = 2.2  # until all backends, which do something every second, have published what they counted in the last


@dataclass(slots=True)
class Usage:
    """What everything has burnt so far; ``cpu_s`` by component."""

    cpu_s: dict[str, float]
    wal_bytes: int
    commits: int
    blocks: int | None


class Crew:
    """``ledger`` are the arguments of the simulated worker that say what it prints; it is so many ``workers`` in one process."""

    def __init__(
        self, server: Server, url: str, schedulers: int, hold_s: dict[str, float], ledger: Sequence[str], workers: int = 1
    ) -> None:
        self._server = server
        self.schedulers = [
            _start("scheduler_process.py", url, f"scheduler-{number}", stdin=subprocess.PIPE) for number in range(schedulers)
        ]
        self.worker = _start("simulated_worker.py", url, json.dumps(hold_s), str(workers), *ledger)
        assert self.read(READY_TIMEOUT_S) == "ready\n"

    def read(self, timeout_s: float) -> str:
        """The worker's next line. Raises :class:`RuntimeError` when there is none in that time; the worker is gone then."""
        assert self.worker.stdout is not None
        timer = threading.Timer(timeout_s, self.worker.kill)
        timer.start()
        line = self.worker.stdout.readline()
        timer.cancel()
        if not line:
            raise RuntimeError(f"The simulated worker has ended, or had not seen what it waits for after {timeout_s:g} s.")
        return line

    def until_ready(self, conn: psycopg.Connection[Any]) -> None:
        deadline = time.monotonic() + READY_TIMEOUT_S
        while len(self._backends(conn)) < len(self.schedulers):
            if time.monotonic() > deadline:
                raise TimeoutError(f"Not all schedulers were there after {READY_TIMEOUT_S} s.")
            time.sleep(0.01)

    def turns(self) -> list[tuple[float, int, int]]:
        """The turns since the last call that did something: (milliseconds, starts, lanes touched)."""
        return [(ms, starts, lanes) for answer in self._ask("turns") for ms, starts, lanes in answer]

    def contention(self) -> list[Counter[str]]:
        """By scheduler since its start: turns, rounds, reports, picks, contended picks, looks at what its transactions do, by what
        that was.
        """
        return [Counter(answer) for answer in self._ask("contention")]

    def turns_lost(self) -> list[int]:
        """By scheduler: how many turns failed or lost their database, since its start."""
        return list(self._ask("lost"))

    def _ask(self, what: str) -> Iterator[Any]:
        for scheduler in self.schedulers:
            assert scheduler.stdin is not None
            assert scheduler.stdout is not None
            scheduler.stdin.write(f"{what}\n")
            scheduler.stdin.flush()
            yield json.loads(scheduler.stdout.readline())

    def usage(self, conn: psycopg.Connection[Any]) -> Usage:
        """Takes two seconds, of which nothing but the schedulers' sweeps is counted."""
        cpu = {name: measure.cpu_s(processes) for name, processes in self.processes().items() if processes}
        wal = measure.wal_bytes(conn)
        time.sleep(PUBLISH_S)
        return Usage(cpu, wal, measure.commits(conn), measure.blocks(conn, self._backends(conn)))

    def processes(self) -> dict[str, list[Any]]:
        """By component; no processes of a server that runs elsewhere."""
        return {
            "scheduler": [p for s in self.schedulers for p in measure.tree(s.pid)],
            "postgres": self._server.processes(),
            "worker": measure.tree(self.worker.pid),
        }

    def stop(self) -> None:
        for process in [*self.schedulers, self.worker]:
            process.terminate()
            process.wait(10)

    def _backends(self, conn: psycopg.Connection[Any]) -> list[int]:
        """Those that take turns."""
        query = (
            "select pid from pg_stat_activity"
            " where datname = current_database() and application_name like 'evenflow scheduler-% turns'"
        )
        return [pid for (pid,) in conn.execute(query).fetchall()]


def _start(script: str, *arguments: str, stdin: int | None = None) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, str(HERE / script), *arguments], stdin=stdin, stdout=subprocess.PIPE, text=True)
