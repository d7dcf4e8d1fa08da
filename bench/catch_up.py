"""catch_up: a DAG that runs every 5 s and was missed for a day, beside DAGs that run every second; how fast does it catch up, and
do they wait for it?
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import measure
import psycopg
from crew import Crew
from server import fresh_database, open_connection, serve
from shapes import Shape
from stored_shape import store_specs

from evenflow.core.model import DagSpec, Schedule, TaskSpec

EVERY_S = 5
OTHERS = 20  # DAGs, each due every second
TIMEOUT_S = 3_600
TASKS = (TaskSpec(task_id="t0", operator="python"),)  # a no-op


def run(shape: Shape, *, missed: int, runs: int, schedulers: int, dsn: str | None) -> Iterator[dict[str, Any]]:
    """The results of ``runs`` runs, each on a fresh database, of so many ``missed`` dates; ``max_active_runs`` is the default."""
    with serve(dsn) as server:
        for _ in range(runs):
            url = fresh_database(server, "bench")
            now = datetime.now(UTC)
            asyncio.run(
                store_specs(
                    url, [_late(now, missed), *(_punctual(number) for number in range(OTHERS))], {"default_pool": 1_000_000}
                )
            )
            crew = Crew(server, url, schedulers, {}, ["counts", str(missed)])
            try:
                with open_connection(url, "bench") as conn:
                    crew.until_ready(conn)
                    conn.execute("analyze")
                    yield _catch_up(conn, missed)
            finally:
                crew.stop()


def _late(now: datetime, missed: int) -> DagSpec:
    """With so many dates between its first and its last, both passed."""
    start = now - timedelta(seconds=EVERY_S * missed)
    end = start + timedelta(seconds=EVERY_S * (missed - 1))
    schedule = Schedule(kind="delta", every_s=EVERY_S, trigger=True)
    return DagSpec(
        dag_id="late", tasks=TASKS, schedule=schedule, start_date=start.isoformat(), end_date=end.isoformat(), catchup=True
    )


def _punctual(number: int) -> DagSpec:
    return DagSpec(dag_id=f"punctual_{number}", tasks=TASKS, schedule=Schedule(kind="delta", every_s=1, trigger=True))


def _catch_up(conn: psycopg.Connection[Any], missed: int) -> dict[str, Any]:
    begin = time.time()
    conn.execute("update dag set next_run_at = now() where bundle = 'bench'")
    deadline = time.monotonic() + TIMEOUT_S
    query = "select count(*) from (select from dag_run where dag_id = 'late' and state = 'success' limit %s) as ended"
    while conn.execute(query, [missed]).fetchone() != (missed,):
        if time.monotonic() > deadline:
            raise TimeoutError(f"catch_up: not all runs have ended after {TIMEOUT_S} s")
        time.sleep(0.1)
    dates, first, last, ended = conn.execute(
        "select count(distinct logical_date), min(logical_date), max(logical_date), extract(epoch from max(ended_at))::float8"
        " from dag_run where dag_id = 'late'"
    ).fetchone() or (0, None, None, begin)
    rows = conn.execute(
        "select extract(epoch from created_at - run_after)::float8 from dag_run"
        " where dag_id like 'punctual%%' and created_at > to_timestamp(%s)",
        [begin + 1],
    )
    waits = [wait for (wait,) in rows]
    total_s = ended - begin
    return {
        "ok": dates == missed and first and last and last - first == timedelta(seconds=EVERY_S * (missed - 1)),
        "load": measure.load(),
        "runs": missed,
        "total_s": round(total_s, 3),
        "runs_per_s": round(missed / total_s, 1),
        "other_delay_s": measure.quantiles(waits),  # from when a run of another DAG is due to its creation; one looks each second
    }
