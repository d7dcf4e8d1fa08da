"""turn_dags: what a turn costs beside DAGs that each have a running and a queued run, at their max_active_runs of 1.

One scheduler in this process, no worker. In each turn a run of another DAG begins. ``ratio_to_10``: the median of turns with ``-n``
such DAGs over that with 10 of them.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Iterator
from typing import Any

import measure
from server import fresh_database, open_connection, serve
from stored_shape import store_specs, trigger

from evenflow.core.model import DagSpec, TaskSpec
from evenflow.scheduler.advance import advance
from evenflow.scheduler.catalog import Catalog
from evenflow.store.db.connect import connect

CASE = "turn_dags"
FEW = 10
WARM_UP, TURNS = 20, 200
TASKS = (TaskSpec(task_id="t", operator="python"),)
OTHER = DagSpec(dag_id="other", tasks=TASKS, max_active_runs=None)
FULL = (
    "insert into dag (dag_id, version_key, bundle, file)"
    " select 'full' || n, version_key, bundle, file from dag, generate_series(1, %(dags)s) n where dag_id = 'other'",
    "insert into concurrency_limit (kind, name, capacity, used)"
    " select 'dag_runs', dag_id, 1, 1 from dag where dag_id like 'full%%'",
    "insert into dag_run (dag_id, run_id, version_key, run_type, state)"
    " select dag_id, state, version_key, 'manual', state::run_state from dag, unnest(array['running', 'queued']) state"
    " where dag_id like 'full%%'",
)


def run(*, dags: int, dsn: str | None) -> Iterator[dict[str, Any]]:
    with serve(dsn) as server:
        few, many = _turn_ms(server, FEW), _turn_ms(server, dags)
        yield {
            "ok": True,
            "dags": dags,
            "turn_ms_of_10": round(few, 3),
            "turn_ms": round(many, 3),
            "ratio_to_10": round(many / few, 3),
            "load": measure.load(),
        }


def _turn_ms(server: Any, dags: int) -> float:
    """The median, once the DAGs have been looked at."""
    url = fresh_database(server, "bench")
    asyncio.run(store_specs(url, [OTHER], {}))
    taken: list[float] = []
    with open_connection(url, "bench") as conn, connect(url, name="scheduler", generic_plans=True) as scheduler:
        for statement in FULL:
            conn.execute(statement, {"dags": dags})
        conn.execute("vacuum analyze")
        catalog = Catalog()
        while advance(scheduler, catalog).again:
            pass
        for number in range(WARM_UP + TURNS):
            trigger(conn, {OTHER.dag_id: 1}, f"r{number}_")
            begin = time.perf_counter()
            advance(scheduler, catalog)
            taken.append(1000 * (time.perf_counter() - begin))
    return statistics.median(taken[WARM_UP:])
