"""What the bulk work of operators costs, and what it does to others (R-HA19): real schedulers, a worker that executes nothing.

``clear_burst``: 8,760 runs are cleared at once. ``clear_chain``: a run of a chain of 10,000 is cleared. ``clear_mapped``: of a
mapped task of 50,000 instances, 10,000 of which have rows, it is asked what would be cleared; it is cleared; another such run is
marked. ``delete_dag``: a DAG whose file is gone is deleted with 100,000 runs of 20 tasks. Meanwhile the runs of ``bystanders.py``.
``total_s`` is until all has been applied, and of the chain until its first task has begun again.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from typing import Any

import measure
import psycopg
from bystanders import HOLD_S, PROBE, watch
from crew import Crew
from server import fresh_database, open_connection, serve
from stored_shape import failed_run, store_specs

from evenflow.api.limits import OPERATED_COUNTED
from evenflow.core.limits import PAGE
from evenflow.core.model import DagSpec, MapInput, Mapping, TaskSpec
from evenflow.core.operations import Operation
from evenflow.core.states import TaskEvent
from evenflow.store.db.connect import connect_async
from evenflow.store.scheduling.operations import request
from evenflow.store.serving import dag_deletion, operations

SIZES = {"clear_burst": 8_760, "clear_chain": 10_000, "clear_mapped": 50_000, "delete_dag": 100_000}
TASKS = 20  # of each run of a burst
BEGUN = 5  # of so many instances one has a row
NEVER = str(10**9)  # what the worker counts is of no interest


def run(case: str, *, size: int | None, runs: int, schedulers: int, dsn: str | None) -> Iterator[dict[str, Any]]:
    with serve(dsn) as server:
        for _ in range(runs):
            url = fresh_database(server, "bench")
            size = size or SIZES[case]
            asyncio.run(store_specs(url, [_spec(case, size), PROBE], {}))
            crew = Crew(server, url, schedulers, HOLD_S, ["counts", NEVER])
            try:
                with open_connection(url, "bench") as conn:
                    crew.until_ready(conn)
                    yield {"size": size, **_CASES[case](conn, url, size), "load": measure.load()}
            finally:
                crew.stop()


def _spec(case: str, size: int) -> DagSpec:
    if case == "clear_mapped":
        mapping = Mapping(inputs=(MapInput(name="x", length=size),))
        tasks: tuple[TaskSpec, ...] = (TaskSpec(task_id="m", operator="python", mapping=mapping),)
    else:
        n = TASKS if case == "clear_burst" else size
        tasks = tuple(TaskSpec(task_id=f"t{i}", operator="python", upstream=(i - 1,) if i else ()) for i in range(n))
    return DagSpec(dag_id="bulk", tasks=tasks)


def _ended(conn: psycopg.Connection[Any], runs: int, tasks: int) -> list[int]:
    """So many runs of the DAG that have succeeded."""
    made = conn.execute(
        "insert into dag_run (dag_id, run_id, version_key, run_type, state, started_at, ended_at)"
        " select dag_id, 'run_' || n, version_key, 'manual', 'success', now(), now() from dag, generate_series(1, %s) n"
        " where dag_id = 'bulk' returning run_key",
        [runs],
    ).fetchall()
    run_keys = [run_key for (run_key,) in made]
    conn.execute(
        "insert into task_instance (run_key, task_index, state, try_number, ended_at)"
        " select k, t, 'success', 1, now() from unnest(%s::bigint[]) k, generate_series(0, %s) t",
        [run_keys, tasks - 1],
    )
    return run_keys


def _burst(conn: psycopg.Connection[Any], _: str, size: int) -> dict[str, Any]:
    return _clear(conn, _ended(conn, size, TASKS), "select not exists (select from report where kind = 'operate')")


def _chain(conn: psycopg.Connection[Any], _: str, size: int) -> dict[str, Any]:
    run_keys = _ended(conn, 1, size)
    began = f"select exists (select from task_instance where run_key = {run_keys[0]} and task_index = 0 and try_number > 1)"
    return _clear(conn, run_keys, began)


def _clear(conn: psycopg.Connection[Any], run_keys: list[int], until: str) -> dict[str, Any]:
    conn.execute("vacuum analyze")
    total_s, others = watch(conn, lambda: request(conn, run_keys, Operation(event=TaskEvent.CLEAR, actor="bench")), until)
    cleared = conn.execute("select count(*) from dag_run where clears = 1").fetchone()
    return {
        "ok": cleared == (len(run_keys),),
        "total_s": round(total_s, 3),
        **others,
    }


def _mapped(conn: psycopg.Connection[Any], url: str, size: int) -> dict[str, Any]:
    run_keys = [_half_done(conn, f"run_{n}", size) for n in range(2)]
    conn.execute("vacuum analyze")
    begin = time.monotonic()
    shown = asyncio.run(_dry_run(url, run_keys[0]))
    dry_run_s = time.monotonic() - begin

    def change() -> None:
        for run_key, event in zip(run_keys, (TaskEvent.CLEAR, TaskEvent.MARK_SUCCESS), strict=True):
            request(conn, [run_key], Operation(event=event, actor="bench", tasks=("m",)))

    took_s, others = watch(conn, change, "select not exists (select from report where kind = 'operate')")
    clears = conn.execute("select count(*) from dag_run where clears = 1").fetchone()
    return {
        "ok": clears == (2,) and shown == min(size, OPERATED_COUNTED),
        "total_s": round(dry_run_s + took_s, 3),
        "dry_run_s": round(dry_run_s, 3),
        **others,
    }


def _half_done(conn: psycopg.Connection[Any], run_id: str, size: int) -> int:
    """A run that has failed half way: most of its instances were never touched."""
    run_key = failed_run(conn, "bulk", run_id)
    conn.execute(
        "insert into mapped_task (run_key, task_index, length, virtual_state) values (%s, 0, %s, 'skipped')", [run_key, size]
    )
    conn.execute(
        "insert into task_instance (run_key, task_index, map_index, state, try_number, ended_at)"
        " select %s, 0, n, 'failed', 1, now() from generate_series(0, %s) n",
        [run_key, size // BEGUN - 1],
    )
    return run_key


async def _dry_run(url: str, run_key: int) -> int:
    async with await connect_async(url, name="bench") as conn:
        states = ["failed", "skipped"]
        touched = operations.list_touched(conn, [run_key], [(0, None)], states, left=False, limit=PAGE, counted=OPERATED_COUNTED)
        return int((await touched)[0]["total"])


def _delete(conn: psycopg.Connection[Any], url: str, size: int) -> dict[str, Any]:
    _ended(conn, size, TASKS)
    conn.execute("update dag set is_active = false where dag_id = 'bulk'")
    conn.execute("vacuum analyze")
    deleted: list[dag_deletion.Deletion] = []
    thread = threading.Thread(target=lambda: deleted.append(asyncio.run(_deleted(url))))
    total_s, others = watch(conn, thread.start, "select not exists (select from dag where dag_id = 'bulk')")
    thread.join()
    left = conn.execute("select count(*) from dag_run where dag_id = 'bulk'").fetchone()
    return {"ok": deleted == [dag_deletion.Deletion(True, size)] and left == (0,), "total_s": round(total_s, 3), **others}


async def _deleted(url: str) -> dag_deletion.Deletion:
    async with await connect_async(url, name="bench") as conn:
        return await dag_deletion.delete_dag(conn, "bulk", actor="bench")


_CASES = {"clear_burst": _burst, "clear_chain": _chain, "clear_mapped": _mapped, "delete_dag": _delete}
