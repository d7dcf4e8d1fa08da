"""Shapes without execution: real schedulers and a real PostgreSQL, durability on, and a worker that only claims and reports."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import measure
import psycopg
import specs
from shapes import total_tasks, upstream

from evenflow.runtime.embedded import EmbeddedPostgres
from evenflow.store import dags
from evenflow.store.connect import UNBOUNDED, connect, connect_async
from evenflow.store.migrate import migrate

HERE = Path(__file__).parent
TIMEOUT_S = 300


@contextmanager
def fresh_server() -> Iterator[tuple[EmbeddedPostgres, str]]:
    """An embedded server of its own, as users have it, and the URL of its migrated database."""
    with tempfile.TemporaryDirectory(prefix="evenflow-bench-") as directory:
        home = Path(directory)
        home.chmod(0o755)
        server = EmbeddedPostgres(home)
        with server.lease() as url:
            yield server, url


def fresh_database(server: EmbeddedPostgres, name: str) -> str:
    with connect(server.url("postgres"), name="bench", timeouts=UNBOUNDED) as conn:
        conn.execute(f"drop database if exists {name} with (force)")
        conn.execute(f"create database {name}")
    url = server.url(name)
    with connect(url, name="bench", timeouts=UNBOUNDED) as conn:
        migrate(conn)
    return url


async def store_shape(url: str, shape: dict[str, Any]) -> dict[str, specs.Planned]:
    """The DAGs and pools of the shape, as the API stores them."""
    plans = {p.spec.dag_id: p for p in specs.plan(shape)}
    async with await connect_async(url, name="bench", timeouts=UNBOUNDED) as conn, conn.transaction():
        for name, slots in specs.pools(shape).items():
            await conn.execute(
                "insert into concurrency_limit (kind, name, capacity) values ('pool', %s, %s)"
                " on conflict (run_key, kind, name) do update set capacity = excluded.capacity",
                [name, slots],
            )
            await conn.execute("insert into pool (name) values (%s) on conflict do nothing", [name])
        await dags.insert_code(conn, "none", b"")
        for plan in plans.values():
            spec = plan.spec
            version = await dags.insert_version(
                conn,
                dag_id=spec.dag_id,
                spec=spec.to_json(),
                spec_hash=spec.hash(),
                code_hash="none",
                file="bench.py",
                tasks=[(t.task_id, t.operator) for t in spec.tasks],
            )
            await dags.upsert(
                conn,
                dag_id=spec.dag_id,
                version_key=version,
                bundle="bench",
                file="bench.py",
                is_paused=False,
                next_run=dags.NextRun(None, None),
            )
            slots = {t.task_id: n for t in spec.tasks if (n := t.max_active_tis_per_dag) is not None}
            await dags.set_limits(conn, spec.dag_id, run_slots=spec.max_active_runs, task_slots=slots)
    return plans


class Bench:
    """One run of one shape on a fresh database."""

    def __init__(self, server: EmbeddedPostgres, case: str, shape: dict[str, Any], schedulers: int) -> None:
        self.server, self.case, self.shape = server, case, shape
        self.url = fresh_database(server, "bench")
        self.plans = asyncio.run(store_shape(self.url, shape))
        self.schedulers = [self._scheduler(i) for i in range(schedulers)]
        self.worker = subprocess.Popen(
            [
                sys.executable,
                str(HERE / "simulated_worker.py"),
                self.url,
                str(total_tasks(shape)),
                json.dumps(shape.get("hold_s", {})),
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.worker.stdout is not None
        assert self.worker.stdout.readline() == "ready\n"

    def _scheduler(self, number: int) -> subprocess.Popen[str]:
        code = (
            "import asyncio, sys\n"
            "from evenflow.scheduler.service import SchedulerService\n"
            "from evenflow.runtime.lifecycle import host\n"
            "asyncio.run(host(SchedulerService(sys.argv[1], name=sys.argv[2]), drain_timeout=5))\n"
        )
        return subprocess.Popen([sys.executable, "-c", code, self.url, f"scheduler-{number}"], stdout=sys.stderr, text=True)

    def run(self, repeat: int) -> dict[str, Any]:
        """Triggers the shape's runs and waits for their end. The first time (``repeat`` 0) everything is cold."""
        with connect(self.url, name="bench", timeouts=UNBOUNDED) as conn:
            self._await(conn, "select count(*) from service where kind = 'scheduler'", len(self.schedulers))
            if repeat == 0:
                conn.execute("analyze")  # statistics as autovacuum would have them
            postmaster = self.server.running()
            assert postmaster is not None
            groups = {
                "scheduler": [p for s in self.schedulers for p in measure.tree(s.pid)],
                "postgres": measure.tree(postmaster.pid),
                "worker": measure.tree(self.worker.pid),
            }
            cpu = {name: measure.cpu_s(ps) for name, ps in groups.items()}
            wal, commits = self._wal(conn)
            begin = self._trigger(conn, repeat)
            assert self.worker.stdout is not None
            done = json.loads(self.worker.stdout.readline())
            self._await(conn, "select count(*) from dag_run where state in ('queued', 'running')", 0)
            wal_after, commits_after = self._wal(conn)
            spent = {name: round(measure.cpu_s(ps) - cpu[name], 3) for name, ps in groups.items()}
            peak = {name: round(measure.pss_mb(ps), 1) for name, ps in groups.items() if name != "worker"}
            result = {"cold": repeat == 0} | self._result(conn, begin, done)
        tasks = total_tasks(self.shape)
        result |= {
            "cpu_s": spent,
            "cpu_s_per_task": round(sum(v for k, v in spent.items() if k != "worker") / tasks, 6),
            "peak_pss_mb": peak,
            "wal_bytes_per_task": round((wal_after - wal) / tasks),
            "commits_per_task": round((commits_after - commits) / tasks, 3),
        }
        return result

    def stop(self) -> None:
        for process in [*self.schedulers, self.worker]:
            process.terminate()
            process.wait(10)

    def _await(self, conn: psycopg.Connection[Any], query: str, expected: int) -> None:
        deadline = time.monotonic() + TIMEOUT_S
        while conn.execute(query).fetchone()[0] != expected:  # type: ignore[index]
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self.case}: {query} is not {expected} after {TIMEOUT_S} s")
            time.sleep(0.01)

    def _wal(self, conn: psycopg.Connection[Any]) -> tuple[int, int]:
        row = conn.execute(
            "select pg_current_wal_insert_lsn() - '0/0', xact_commit from pg_stat_database where datname = current_database()"
        ).fetchone()
        assert row is not None
        return int(row[0]), int(row[1])

    def _trigger(self, conn: psycopg.Connection[Any], repeat: int) -> float:
        """Creates the runs in one commit; answers when, seconds since 1970."""
        with conn.transaction():
            for plan in self.plans.values():
                conn.execute(
                    "insert into dag_run (dag_id, run_id, version_key, run_type)"
                    " select dag_id, %s || i, version_key, 'manual' from dag, generate_series(1, %s) i where dag_id = %s",
                    [f"bench_{repeat}_", plan.runs, plan.spec.dag_id],
                )
            conn.execute("select pg_notify('inbox', '')")
            return time.time()

    def _result(self, conn: psycopg.Connection[Any], begin: float, done: list[list[Any]]) -> dict[str, Any]:
        tasks = total_tasks(self.shape)
        run_keys = sorted({d[1] for d in done})
        states = dict(
            conn.execute(
                "select state::text, count(*) from task_instance where run_key = any(%s) group by 1", [run_keys]
            ).fetchall()
        )
        created, ended = conn.execute(
            "select extract(epoch from max(started_at))::float8, extract(epoch from max(ended_at))::float8 from dag_run"
            " where run_key = any(%s)",
            [run_keys],
        ).fetchone()  # type: ignore[misc]
        once = Counter((run, task, index) for _, run, task, index, _, _ in done)
        total_s = ended - begin
        runnable = [d for d in done if d[0] == "run"] or done
        result = {
            "ok": states == {"success": tasks} and len(once) == tasks and set(once.values()) == {1},
            "tasks": tasks,
            "states": states,
            "total_s": round(total_s, 3),
            "tasks_per_s": round(tasks / total_s),
            "created_s": round(created - begin, 3),
            "first_start_s": round(min(d[4] for d in runnable) - begin, 4),
            "lag_s": measure.quantiles(self._lags(conn, done)),
        }
        if any(d[0] == "run" for d in done):
            result |= self._slots(begin, done)
        return result

    def _lags(self, conn: psycopg.Connection[Any], done: list[list[Any]]) -> list[float]:
        """From the end of a task to the start of its successor."""
        graphs = {group["name"]: group["graph"] for group in self.shape["groups"]}
        ends = {(d[1], d[2]): d[5] for d in done}
        return [d[4] - ends[d[1], before] for d in done if (before := upstream(graphs[d[0]], d[2])) is not None]

    def _slots(self, begin: float, done: list[list[Any]]) -> dict[str, Any]:
        """How much of the pool ``wide`` was idle while a runnable task waited, until the last of them started."""
        wide = self.shape["pools"]["wide"]
        mine = [d for d in done if d[0] == "run"]
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
        blocked = [d for d in done if d[0] != "run"]
        return {
            "wide_slots_idle_pct": round(100 * idle / (wide * (last - begin)), 2),
            "makespan_s": round(makespan, 3),
            "ideal_s": round(len(mine) * self.shape["hold_s"]["run"] / wide, 3),
            "blocked_done_per_s": round(sum(d[5] - begin <= makespan for d in blocked) / makespan, 2),
        }


def run(case: str, shape: dict[str, Any], *, runs: int, schedulers: int) -> Iterator[dict[str, Any]]:
    """The results of ``runs`` runs, one after the other on one database by the same processes: the first is cold."""
    with fresh_server() as (server, _):
        bench = Bench(server, case, shape, schedulers)
        try:
            for repeat in range(runs):
                yield bench.run(repeat)
        finally:
            bench.stop()
