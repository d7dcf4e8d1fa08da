"""Shapes without execution: real schedulers and a real PostgreSQL, durability on, and a worker that only claims and reports.

The c shapes end when the last task that was never blocked has ended; how far the blocked ones have come by then is a figure, not a
condition. So each run of them has a database and processes of its own.
"""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import measure
import psycopg
from crew import Crew, Usage
from distance import distant
from floor import Reference
from server import Server, fresh_database, open_connection, serve
from shapes import Shape, total_tasks, upstream
from stored_shape import store_shape, trigger

TIMEOUT_S = 300
RUNNABLE = "run"  # the group of the c shapes that nothing blocks
REFERENCE_BATCH = {"a_i": 100, "a_ii": 100, "a_iii": 500, "a_iv": 500}
REFERENCE_TASKS = 5_000  # half a second
MOST_DAGS = 20_000  # beyond, storing the DAGs takes minutes: rounds.py makes such backlogs in seconds

Done = list[tuple[str, int, int, int, float, float]]  # group, run_key, task_index, map_index, claimed, ended


class Bench:
    """A shape on a fresh database, with its processes. ``runs``: how many of each DAG are triggered."""

    def __init__(
        self,
        server: Server,
        case: str,
        shape: Shape,
        schedulers: int,
        rtt_ms: float = 0.0,
        database: str = "bench",
        workers: int = 1,
    ) -> None:
        self.case, self.shape = case, shape
        self._open = ExitStack()
        self.url = fresh_database(server, database)
        self.runs = {dag_id: plan.runs for dag_id, plan in asyncio.run(store_shape(self.url, shape)).items()}
        runnable = [g for g in shape["groups"] if g["name"] == RUNNABLE]
        self.awaited = total_tasks({"groups": runnable or shape["groups"]})
        self.partial = bool(runnable)
        ledger = ["tries", str(self.awaited), *([RUNNABLE] if runnable else [])]
        url = self._open.enter_context(distant(self.url, rtt_ms))
        self.crew = Crew(server, url, schedulers, shape.get("hold_s", {}), ledger, workers)
        self._open.callback(self.crew.stop)

    def stop(self) -> None:
        self._open.close()

    def run(self, repeat: int) -> dict[str, Any]:
        """Triggers the shape's runs and waits for their end. The first time (``repeat`` 0) everything is cold."""
        crew = self.crew
        with open_connection(self.url, "bench") as conn:
            crew.until_ready(conn)
            if repeat == 0:
                conn.execute("analyze")  # statistics as autovacuum would have them
            before = crew.usage(conn)
            crew.turns()
            contention = crew.contention()
            begin = trigger(conn, self.runs, f"bench_{repeat}_")
            done: Done = json.loads(crew.read(TIMEOUT_S))
            if not self.partial:
                self._await(conn, "select count(*) from dag_run where state in ('queued', 'running')", 0)
            turns, contention = crew.turns(), [now - was for now, was in zip(crew.contention(), contention, strict=True)]
            after = crew.usage(conn)
            peak = {name: round(measure.pss_mb(ps), 1) for name, ps in crew.processes().items() if name != "worker" and ps}
            result = {"cold": repeat == 0, "load": measure.load(), **self._result(conn, begin, done)}
        if len(crew.schedulers) > 1:
            result["contention"] = _contention(contention, len(self.runs))
        return {**result, **_costs(before, after, turns, len(done)), "peak_pss_mb": peak}

    def _await(self, conn: psycopg.Connection[Any], query: str, expected: int) -> None:
        deadline = time.monotonic() + TIMEOUT_S
        while conn.execute(query).fetchone() != (expected,):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self.case}: {query} is not {expected} after {TIMEOUT_S} s")
            time.sleep(0.01)

    def _result(self, conn: psycopg.Connection[Any], begin: float, done: Done) -> dict[str, Any]:
        mine = [d for d in done if d[0] == RUNNABLE] if self.partial else done
        run_keys = sorted({d[1] for d in mine})
        if self.partial:  # the last reports may still wait to be applied
            keys = ",".join(map(str, run_keys))
            self._await(conn, f"select count(*) from dag_run where run_key in ({keys}) and ended_at is null", 0)
        states = dict(
            conn.execute(
                "select state::text, count(*) from task_instance where run_key = any(%s) group by 1", [run_keys]
            ).fetchall()
        )
        created, ended = conn.execute(
            "select extract(epoch from max(started_at))::float8, extract(epoch from max(ended_at))::float8 from dag_run"
            " where run_key = any(%s)",
            [run_keys],
        ).fetchone() or (begin, begin)
        once = Counter(d[1:4] for d in map(tuple, done))
        total_s = ended - begin
        result = {
            "ok": states == {"success": self.awaited} and set(once.values()) == {1} and not _exceeded(conn),
            "tasks": self.awaited,
            "states": states,
            "total_s": round(total_s, 3),
            "tasks_per_s": round(self.awaited / total_s),
            "created_s": round(created - begin, 3),
            "first_start_s": round(min(d[4] for d in mine) - begin, 4),
            "lag_s": measure.quantiles(self._lags(done)),
        }
        if self.case.startswith("f_"):
            result |= {"runs_per_s": round(len(run_keys) / (created - begin)), "start_delay_s": self._start_delays(begin, done)}
        return {**result, **self._slots(begin, mine, len(done) - len(mine))} if self.partial else result

    def _start_delays(self, begin: float, done: Done) -> dict[str, float] | None:
        """From the trigger to the start of a run's first task."""
        firsts: dict[int, float] = {}
        for d in done:
            firsts[d[1]] = min(d[4], firsts.get(d[1], d[4]))
        return measure.quantiles([first - begin for first in firsts.values()])

    def _lags(self, done: Done) -> list[float]:
        """From the end of a task to the start of its successor."""
        graphs = {group["name"]: group["graph"] for group in self.shape["groups"]}
        ends = {(d[1], d[2]): d[5] for d in done}
        return [d[4] - ends[d[1], before] for d in done if (before := upstream(graphs[d[0]], d[2])) is not None]

    def _slots(self, begin: float, mine: Done, blocked: int) -> dict[str, Any]:
        """How much of the pool ``wide`` was idle while a runnable task waited, until the last of them started."""
        wide = self.shape["pools"]["wide"]
        changes: dict[float, int] = defaultdict(int)
        for d in mine:
            changes[d[4]] += 1
            changes[d[5]] -= 1
        last = max(d[4] for d in mine)
        idle, running, at = 0.0, 0, begin
        for moment in sorted(changes):
            if moment > last:
                break
            idle += (wide - running) * (moment - at)
            running += changes[moment]
            at = moment
        makespan = max(d[5] for d in mine) - begin
        return {
            "wide_slots_idle_pct": round(100 * idle / (wide * (last - begin)), 2),
            "makespan_s": round(makespan, 3),
            "ideal_s": round(len(mine) * self.shape["hold_s"][RUNNABLE] / wide, 3),
            "blocked_done_per_s": round(blocked / makespan, 2),
        }


def _exceeded(conn: psycopg.Connection[Any]) -> bool:
    """Whether dispatches hold more of a limit than it has."""
    row = conn.execute(
        "select exists (select from concurrency_limit l join ("
        " select h.limit_id, sum(case h.n when 1 then d.pool_slots else 1 end) as held"
        " from dispatch d, unnest(d.holds) with ordinality as h (limit_id, n) group by 1) as h using (limit_id)"
        " where h.held > l.capacity)"
    ).fetchone()
    return row == (True,)


def _contention(by_scheduler: list[Counter[str]], dags: int) -> dict[str, Any]:
    """Beside it how often one of so many schedulers would pick what another has, were each to pick one DAG at random. Of time,
    that in transactions. By scheduler: its share of the reports, its turns, its rounds.
    """
    schedulers, counted = len(by_scheduler), sum(by_scheduler, Counter[str]())
    working, lock = counted["working"], counted["lock"]
    return {
        "picks": counted["picks"],
        "contended_pct": round(100 * counted["contended"] / counted["picks"], 3) if counted["picks"] else None,
        "birthday_pct": round(100 * (1 - math.prod(max(0.0, 1 - i / dags) for i in range(1, schedulers))), 3),
        "shares": [round(c["reports"] / max(1, counted["reports"]), 2) for c in by_scheduler],
        "turns": [round(c["turns"]) for c in by_scheduler],
        "rounds": [round(c["rounds"]) for c in by_scheduler],
        "looks": counted["idle"] + working + lock,
        "lock_wait_pct": round(100 * lock / (working + lock), 2) if working + lock else None,
    }


def _costs(before: Usage, after: Usage, turns: list[tuple[float, int, int]], tasks: int) -> dict[str, Any]:
    cpu = {name: round(spent - before.cpu_s[name], 3) for name, spent in after.cpu_s.items()}
    starts = sum(t[1] for t in turns)
    costs = {
        "cpu_s": cpu,
        "cpu_s_per_task": round((cpu["scheduler"] + cpu["postgres"]) / tasks, 6) if "postgres" in cpu else None,
        "wal_bytes_per_task": round((after.wal_bytes - before.wal_bytes) / tasks),
        "commits_per_task": round((after.commits - before.commits) / tasks, 3),
        "round_ms": measure.quantiles([t[0] for t in turns], 2),
        "lanes_touched_per_start": round(sum(t[2] for t in turns) / starts, 2) if starts else None,
    }
    if before.blocks is not None and after.blocks is not None and starts:
        costs["buffers_per_start"] = round((after.blocks - before.blocks) / starts, 1)
    return costs


def run(
    case: str, shape: Shape, *, runs: int, schedulers: int, rtt_ms: float = 0.0, dsn: str | None = None
) -> Iterator[dict[str, Any]]:
    """The results of ``runs`` runs: of a and f shapes one after the other by the same processes, so that only the first is cold.
    With one, two, three schedulers it is their scaling that shows (R-HA15). ``rtt_ms``: how far away PostgreSQL is from schedulers
    and worker.
    """
    if (dags := sum(g["dags"] for g in shape["groups"])) > MOST_DAGS:
        raise SystemExit(f"{case} has {dags:,} DAGs. Type: python bench/rounds.py lanes -n {dags - 1}")
    with serve(dsn) as server:
        if case.startswith("c_"):
            for _ in range(runs):
                yield _once(server, case, shape, schedulers, rtt_ms)
            return
        reference = Reference(server) if case in REFERENCE_BATCH else None
        bench = Bench(server, case, shape, schedulers, rtt_ms)
        try:
            for repeat in range(runs):
                result = bench.run(repeat)
                if reference is not None:
                    rate = reference.measure(REFERENCE_BATCH[case], REFERENCE_TASKS).tasks_per_s
                    result |= {"reference_tasks_per_s": rate, "share_of_reference": round(result["tasks_per_s"] / rate, 3)}
                yield result
        finally:
            bench.stop()


def _once(server: Server, case: str, shape: Shape, schedulers: int, rtt_ms: float) -> dict[str, Any]:
    bench = Bench(server, case, shape, schedulers, rtt_ms)
    try:
        return bench.run(0)
    finally:
        bench.stop()
