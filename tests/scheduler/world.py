"""A scheduler's transactions driven by hand, with workers that only claim and report."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from evenflow.core.limits import LEASE_S
from evenflow.explaining.audit import audit
from evenflow.scheduler.advance import TurnOutcome, advance
from evenflow.scheduler.catalog import Catalog
from evenflow.store.db.rows import execute
from tests.world import World as Shared

STARTABLE = """
select l.lane_id
from lane l
join limit_class n using (class_id)
join concurrency_limit p on p.limit_id = n.pool_limit
where l.parked_on not in (-1, -3) and p.capacity - p.used >= n.weight
  and not exists (
      select from concurrency_limit c where c.limit_id = any(l.locals || n.executor_limit || n.task_limit) and c.used >= c.capacity)
"""


@dataclass(frozen=True, slots=True)
class Try:
    epoch: int
    run_key: int
    task_id: str
    map_index: int
    try_number: int


@dataclass
class World(Shared):
    worker: int = field(init=False)
    catalog: Catalog = field(default_factory=Catalog)
    claims: int = 0

    def __post_init__(self) -> None:
        self.worker = self.service()

    def trigger(self, dag_id: str, **columns: Any) -> int:
        """A run of the newest version."""
        return self.run(self.one("select version_key from dag where dag_id = %s", dag_id), **columns)

    def resize(self, kind: str, name: str, capacity: int) -> None:
        """As the API changes a limit: where there is more room now, a wake says so."""
        self.conn.execute(
            "with changed as (update concurrency_limit l set capacity = %(capacity)s from concurrency_limit b"
            " where l.limit_id = b.limit_id and l.kind = %(kind)s and l.name = %(name)s returning l.limit_id, b.capacity)"
            " insert into wake (limit_id, released) select limit_id, 0 from changed where capacity < %(capacity)s",
            {"kind": kind, "name": name, "capacity": capacity},
        )

    def cancel(self, run_key: int) -> None:
        self.conn.execute("insert into report (run_key, kind, epoch) values (%s, 'cancel', 0)", [run_key])

    def startable(self) -> list[int]:
        """Lanes of which a task could start now. (Where pools backfill.)"""
        return [lane for (lane,) in self.conn.execute(STARTABLE)]

    def advance(self) -> TurnOutcome:
        """Transactions until one has nothing left to do; answers the last."""
        while (progress := advance(self.conn, self.catalog)).again:
            pass
        return progress

    def lose_worker(self) -> None:
        """It was heard of last a lease ago, and is given up."""
        self.conn.execute("update lease_clock set ticked_at = now(), counted_from = now() - interval '1 hour'")
        self.conn.execute("update service set state = 'lost', beat_at = now() - make_interval(secs => %s)", [LEASE_S + 1])

    def claim(
        self, slots: int = 1000, queues: tuple[str, ...] = ("default",), *, resumes: int | None = None, api: int | None = None
    ) -> list[Try]:
        """``resumes``: at most so many that resume; ``slots`` if not said. ``api``: where it waits if there is nothing."""
        self.claims += 1
        params = {
            "service_id": self.worker,
            "claim_key": str(self.claims),
            "slots": slots,
            "lease_s": 86_400,  # it sends no beats, and a test may take longer than a lease where others need the processor
            "since": "{}",
            "looks": False,
            "newest_run": 0,
            "api": api,
        }
        execute(self.conn, "dispatch/claim", {**params, "resumes": slots if resumes is None else resumes, "queues": list(queues)})
        return [
            Try(*row)
            for row in self.conn.execute(
                "select d.epoch, d.run_key, t.task_id, d.map_index, d.try_number from dispatch d join dag_run r using (run_key)"
                " join task t using (version_key, task_index) where claim_key = %s order by class, d.priority desc, epoch",
                [str(self.claims)],
            ).fetchall()
        ]

    def report(self, tries: list[Try], outcome: str = "success", *, started: bool = False, **payload: Any) -> None:
        kind = "started" if started else "exit"
        reports = [self._report(t, kind, None if started else {"outcome": outcome, "ran_s": 0.01, **payload}) for t in tries]
        execute(self.conn, "dispatch/insert_reports", {"reports": json.dumps(reports)})

    def _report(self, t: Try, kind: str, payload: dict[str, Any] | None) -> dict[str, Any]:
        (task_index,) = self.conn.execute(
            "select task_index from task join dag_run using (version_key) where run_key = %s and task_id = %s",
            [t.run_key, t.task_id],
        ).fetchone()
        report = {
            "run_key": t.run_key,
            "task_index": task_index,
            "map_index": t.map_index,
            "epoch": t.epoch,
            "kind": kind,
            "age_s": 0.0,
        }
        if payload is not None:
            result = payload.pop("result", None)
            report["payload"] = payload
            if result is not None:
                report["result"] = json.dumps(result)
        return report

    def defer(self, tries: list[Try], **said: Any) -> None:
        """These tries wait for triggers."""
        self.report(tries, "deferred", defer={"trigger": "module.Trigger", "queue": "default", "sealed": "c2VhbGVk", **said})

    def waiting(self, run_key: int) -> dict[tuple[int, int], int]:
        """The epochs of what has deferred, by (task_index, map_index)."""
        rows = self.conn.execute("select task_index, map_index, epoch from deferral where run_key = %s", [run_key])
        return {(task_index, map_index): epoch for task_index, map_index, epoch in rows}

    def fire(self, run_key: int, task_index: int = 0, map_index: int = -1, *, epoch: int | None = None, **said: Any) -> None:
        """A triggerer says what became of a trigger, of the one that waits unless ``epoch`` names another."""
        if epoch is None:
            epoch = self.waiting(run_key)[task_index, map_index]
        payload = {"task_index": task_index, "map_index": map_index, "claim": 1, "purpose": "event", **said}
        report = {"run_key": run_key, "epoch": epoch, "kind": "event", "age_s": 0.0, "payload": payload}
        execute(self.conn, "dispatch/insert_reports", {"reports": json.dumps([report])})

    def used(self, kind: str, name: str | None = None) -> int:
        """Of the limits of a kind, what is used of the one of this name, or of all."""
        rows = self.conn.execute(
            "select coalesce(sum(used), 0)::int from concurrency_limit"
            " where kind = %s::limit_kind and (%s::text is null or name = %s)",
            [kind, name, name],
        )
        (used,) = rows.fetchone()
        return used

    def drain(self, outcomes: dict[str, str] | None = None, *, slots: int = 1000) -> list[str]:
        """Runs everything to its end; answers task ids in the order of their exits."""
        order: list[str] = []
        self.advance()
        while tries := self.claim(slots):
            for t in tries:
                order.append(t.task_id)
                self.report([t], (outcomes or {}).get(t.task_id, "success"))
            self.advance()
        return order

    def states(self, run_key: int) -> dict[str, str]:
        rows = self.conn.execute(
            "select task_id || case when map_index < 0 then '' else '[' || map_index || ']' end, i.state::text from task_instance i"
            " join dag_run r using (run_key) join task t using (version_key, task_index) where run_key = %s",
            [run_key],
        )
        return dict(rows.fetchall())

    def run_state(self, run_key: int) -> str:
        return self.conn.execute("select state::text from dag_run where run_key = %s", [run_key]).fetchone()[0]

    def audit(self) -> None:
        """Every counter equals what it counts, and every lane is where it should be."""
        assert audit(self.conn) == []
