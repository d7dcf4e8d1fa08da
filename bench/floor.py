"""The reference: python bench/floor.py. What PostgreSQL needs to make the lives of tasks durable, with no decisions at all.

A task's row, its dispatch with what it holds, the claim, two reports and what they change, and three lines of history: a fixed
list of writes on the product's own tables, in batches, six commits a batch, from one process. It is a reference, not a bound: a
scheduler that writes less may pass it.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import measure
from server import Server, fresh_database, open_connection, serve

from evenflow.store.db.rows import Conn

BATCHES = (100, 500)
TASKS = 10_000
# Each list is a transaction. %(run)s is the run of the batch, its epochs are 1 to %(size)s above %(epoch)s.
_ROWS = (
    "insert into task_instance (run_key, task_index, state, epoch, try_number, queued_at)"
    " select %(run)s, i, 'queued', %(epoch)s::bigint + i, 1, now() from generate_series(1, %(size)s) i",
    "insert into dispatch (epoch, run_key, task_index, map_index, try_number, class, priority, queue, holds, pool_slots)"
    " select %(epoch)s::bigint + i, %(run)s, i, -1, 1, 1, 1, 'default', %(holds)s::bigint[], 1 from generate_series(1, %(size)s) i",
    "insert into task_event (run_key, task_index, map_index, epoch, try_number, event, state)"
    " select %(run)s, i, -1, %(epoch)s::bigint + i, 1, 'grant', 'queued' from generate_series(1, %(size)s) i",
    "update concurrency_limit set used = used + %(size)s where limit_id = any(%(holds)s::bigint[])",
)
_CLAIM = (
    "update dispatch set worker_id = 1, claim_key = '1', claimed_at = now()"
    " where epoch > %(epoch)s::bigint and epoch <= %(epoch)s::bigint + %(size)s",
)
_STARTED = (
    "insert into report (run_key, kind, epoch, payload)"
    " select %(run)s, 'started', %(epoch)s::bigint + i, null from generate_series(1, %(size)s) i",
)
_APPLY_STARTED = (
    "delete from report where run_key = %(run)s",
    "update task_instance set state = 'running', started_at = now() where run_key = %(run)s",
    "insert into task_event (run_key, task_index, map_index, epoch, try_number, event, state)"
    " select %(run)s, i, -1, %(epoch)s::bigint + i, 1, 'start', 'running' from generate_series(1, %(size)s) i",
)
_EXIT = (
    "insert into report (run_key, kind, epoch, payload)"
    """ select %(run)s, 'exit', %(epoch)s::bigint + i, '{"outcome": "success", "ran_s": 0.01}'"""
    " from generate_series(1, %(size)s) i",
)
_APPLY_EXIT = (
    "delete from report where run_key = %(run)s",
    "update task_instance set state = 'success', ended_at = now() where run_key = %(run)s",
    "delete from dispatch where epoch > %(epoch)s::bigint and epoch <= %(epoch)s::bigint + %(size)s",
    "insert into task_event (run_key, task_index, map_index, epoch, try_number, event, state)"
    " select %(run)s, i, -1, %(epoch)s::bigint + i, 1, 'succeed', 'success' from generate_series(1, %(size)s) i",
    "update concurrency_limit set used = used - %(size)s where limit_id = any(%(holds)s::bigint[])",
)
LIFE = (_ROWS, _CLAIM, _STARTED, _APPLY_STARTED, _EXIT, _APPLY_EXIT)


@dataclass(frozen=True, slots=True)
class Figures:
    batch: int
    tasks: int
    tasks_per_s: int
    wal_bytes_per_task: int


class Reference:
    """On a fresh database of ``server``, kept for as long as the context lasts. The first batch warms it up."""

    def __init__(self, server: Server) -> None:
        self._conn: Conn = open_connection(fresh_database(server, "reference"), "reference")
        rows = self._conn.execute(
            "select limit_id from concurrency_limit where run_key = 0 and kind in ('pool', 'executor') order by kind"
        ).fetchall()
        self._holds = "{" + ",".join(str(limit) for (limit,) in rows) + "}"
        self._epoch = 0
        for _ in range(6):  # the server plans a statement anew five times
            self._live(BATCHES[0])
        self._conn.execute("analyze")

    def __enter__(self) -> Reference:
        return self

    def __exit__(self, *_: object) -> None:
        self._conn.close()

    def measure(self, batch: int, tasks: int = TASKS) -> Figures:
        wal, begin = measure.wal_bytes(self._conn), time.perf_counter()
        for _ in range(tasks // batch):
            self._live(batch)
        took_s = time.perf_counter() - begin
        return Figures(batch, tasks, round(tasks / took_s), round((measure.wal_bytes(self._conn) - wal) / tasks))

    def _live(self, size: int) -> None:
        """The lives of one batch, from birth to history."""
        conn = self._conn
        run = conn.execute("select next_run_key()", prepare=True).fetchone()
        assert run is not None
        names = {"run": run[0], "epoch": self._epoch, "size": size, "holds": self._holds}
        self._epoch += size
        for writes in LIFE:
            with conn.pipeline(), conn.transaction():
                for write in writes:
                    conn.execute(write, names, prepare=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", "--tasks", type=int, default=TASKS)
    parser.add_argument("--dsn", help="measure on this server, not on an embedded one")
    given = parser.parse_args()
    with serve(given.dsn) as server, Reference(server) as reference:
        for batch in BATCHES:
            print(json.dumps({"case": "reference", "load": measure.load(), **asdict(reference.measure(batch, given.tasks))}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
