"""The scheduler and a worker that executes nothing, by turns in one process: who waits for whom blurs no figure.

The worker claims and reports through the statements of a real one, on a connection of its own.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

import psycopg

from evenflow.core.model import UNMAPPED
from evenflow.scheduler.advance import TurnOutcome, advance
from evenflow.scheduler.catalog import Catalog
from evenflow.scheduler.duties.partitions import make_partitions
from evenflow.store.db.rows import Conn, execute

MOST = 500
LEASE_S = 1e6  # nobody beats here


class Try(NamedTuple):
    epoch: int
    run_key: int
    task_index: int
    map_index: int


@dataclass(slots=True)
class Turn:
    """One transaction of the scheduler, as the caller saw it."""

    progress: TurnOutcome
    ms: float


class Sequential:
    """``scheduler`` and ``worker`` are connections to the same migrated database, without a transaction open."""

    def __init__(self, scheduler: Conn, worker: Conn) -> None:
        self.scheduler, self.worker = scheduler, worker
        self.catalog = Catalog()
        self._claims = 0
        make_partitions(worker, datetime.now(UTC))
        worker.execute("listen dispatch")
        self._service, self._api = (
            _one(
                worker,
                "insert into service (kind, name, host, pid, version, beat_at)"
                f" values ('{kind}', 'bench', 'bench', 1, '0', now() + interval '1 day') returning service_id",
            )
            for kind in ("worker", "api")
        )

    def turn(self) -> Turn:
        begin = time.perf_counter()
        progress = advance(self.scheduler, self.catalog)
        return Turn(progress, (time.perf_counter() - begin) * 1e3)

    def settle(self) -> list[Turn]:
        """Turns until there is nothing to do at once."""
        turns = [self.turn()]
        while turns[-1].progress.again:
            turns.append(self.turn())
        return turns

    def claim(self, slots: int, *, waits: bool = False) -> list[Try]:
        """Up to ``slots`` tries, the best first. If there are none and it ``waits``, :meth:`given` says what turns give it."""
        self._claims += 1
        params = {
            "service_id": self._service,
            "claim_key": str(self._claims),
            "slots": slots,
            "resumes": slots,
            "queues": ["default"],
            "lease_s": LEASE_S,
            "since": "{}",
            "looks": False,
            "newest_run": 0,
            "api": self._api if waits else None,
        }
        rows = execute(self.worker, "dispatch/claim", params).fetchall()
        return [Try(*row[6:10]) for row in rows if row[6] is not None]

    def given(self) -> list[Try]:
        """What turns have given to the claim before, which found nothing."""
        words = [json.loads(heard.payload) for heard in self.worker.notifies(timeout=0) if heard.payload]
        if any("tries" not in word or word["tries"] is None for word in words):
            self._claims -= 1
            return self.claim(MOST)
        return [Try(epoch, run_key, task, UNMAPPED) for word in words for epoch, run_key, task, _ in word["tries"]]

    def report(self, tries: list[Try]) -> None:
        """All of them have ended well."""
        reports = [{**t._asdict(), "kind": "exit", "age_s": 0, "payload": {"outcome": "success", "ran_s": 0.01}} for t in tries]
        execute(self.worker, "dispatch/insert_reports", {"reports": json.dumps(reports)})


def _one(conn: psycopg.Connection[Any], query: str) -> Any:
    row = conn.execute(query).fetchone()
    assert row is not None
    return row[0]
