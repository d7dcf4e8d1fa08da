"""What ending or changing a great deal at once costs, and what it does to others (R-HA19): real schedulers, a worker that executes
nothing.

``cancel_burst``: 10,000 running runs of 20 tasks are cancelled at once. ``cancel_mapped``: a run is cancelled with a mapped task of
100,000 instances, half of which have succeeded and half wait for their next try; then another one, with a setup and its teardown.
``change_mapped``: in runs that have failed with half of such a task, the task is cleared, what failed of it is, and it is marked.
Meanwhile the runs of ``bystanders.py``. ``total_s`` is until what was cancelled has ended, its teardowns too, and until what was
cleared goes on; ``turn_ms`` is the longest transaction of a scheduler.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import measure
import psycopg
from bystanders import HOLD_S, PROBE, watch
from crew import Crew
from server import fresh_database, open_connection, serve
from stored_shape import failed_run, store_specs, trigger

from evenflow.core.model import DagSpec, MapInput, Mapping, TaskSpec
from evenflow.core.operations import Only, Operation
from evenflow.core.states import TaskEvent
from evenflow.store.db.columns import numbers
from evenflow.store.db.connect import connect_async
from evenflow.store.scheduling.operations import request
from evenflow.store.serving.dags import request_cancel

SIZES = {"cancel_burst": 10_000, "cancel_mapped": 100_000, "change_mapped": 100_000}
TASKS = 20  # of each run of a burst
POLL_S = 0.05
NEVER = str(10**9)  # what the worker counts is of no interest
SHUT = "shut"  # a pool without a slot
ENDED = "select not exists (select from dag_run where dag_id like 'bulk%' and ended_at is null)"
APPLIED = (
    "select not exists (select from report where kind in ('operate', 'settle'))"
    " and not exists (select from dag_run where state = 'queued' and clears = 1)"
)
CHANGES = {
    "clear": Operation(event=TaskEvent.CLEAR, actor="bench", tasks=("m",)),
    "clear failed": Operation(event=TaskEvent.CLEAR, actor="bench", tasks=("m",), only=Only.FAILED),
    "mark_success": Operation(event=TaskEvent.MARK_SUCCESS, actor="bench", tasks=("m",)),
}


def run(case: str, *, size: int | None, runs: int, schedulers: int, dsn: str | None) -> Iterator[dict[str, Any]]:
    size = size or SIZES[case]
    with serve(dsn) as server:
        for _ in range(runs):
            url = fresh_database(server, "bench")
            asyncio.run(store_specs(url, [*_specs(size), PROBE], {SHUT: 0}))
            crew = Crew(server, url, schedulers, HOLD_S, ["counts", NEVER])
            try:
                with open_connection(url, "bench") as conn:
                    crew.until_ready(conn)
                    for result in _CASES[case](conn, url, size, crew):
                        yield {"size": size, **result, "load": measure.load()}
            finally:
                crew.stop()


def _specs(size: int) -> list[DagSpec]:
    chain = tuple(TaskSpec(task_id=f"t{i}", operator="python", upstream=(i - 1,) if i else (), pool=SHUT) for i in range(TASKS))
    mapping = Mapping(inputs=(MapInput(name="x", length=size),))
    mapped = TaskSpec(task_id="m", operator="python", upstream=(0,), mapping=mapping, pool=SHUT)
    last = TaskSpec(task_id="last", operator="python", upstream=(1,), pool=SHUT)
    first = TaskSpec(task_id="first", operator="python")
    setup = TaskSpec(task_id="first", operator="python", setup=True)
    teardown = TaskSpec(task_id="last", operator="python", upstream=(0, 1), teardown=True)
    return [
        DagSpec(dag_id="bulk", tasks=chain, max_active_runs=None),
        DagSpec(dag_id="bulk_mapped", tasks=(first, mapped, last), max_active_runs=None),
        DagSpec(dag_id="bulk_teardown", tasks=(setup, mapped, teardown), max_active_runs=None),
    ]


def _cancel_burst(conn: psycopg.Connection[Any], url: str, size: int, crew: Crew) -> Iterator[dict[str, Any]]:
    trigger(conn, {"bulk": size}, "run_")
    _wait(conn, "select not exists (select from dag_run where state = 'queued')")
    yield _cancelled(conn, url, crew)


def _cancel_mapped(conn: psycopg.Connection[Any], url: str, size: int, crew: Crew) -> Iterator[dict[str, Any]]:
    for dag_id in ("bulk_mapped", "bulk_teardown"):
        _half_done(conn, dag_id, "cancelled", size)
        yield {"teardown": dag_id == "bulk_teardown", **_cancelled(conn, url, crew)}


def _change_mapped(conn: psycopg.Connection[Any], _: str, size: int, crew: Crew) -> Iterator[dict[str, Any]]:
    for name, operation in CHANGES.items():
        run_key = _half_failed(conn, name, size)
        measured = _measured(conn, crew, partial(request, conn, [run_key], operation), APPLIED)
        changed = conn.execute("select clears from dag_run where run_key = %s", [run_key]).fetchone()
        yield {"change": name, **measured, "ok": changed == (1,)}


def _cancelled(conn: psycopg.Connection[Any], url: str, crew: Crew) -> dict[str, Any]:
    """All runs that go on."""
    run_keys = [
        key for (key,) in conn.execute("select run_key from dag_run where dag_id like 'bulk%' and ended_at is null").fetchall()
    ]
    measured = _measured(conn, crew, lambda: asyncio.run(_request_cancel(url, run_keys)), ENDED)
    states = conn.execute(
        f"select distinct state::text from dag_run where run_key = any('{numbers(run_keys)}'::bigint[])".encode()
    ).fetchall()
    return {**measured, "ok": states == [("failed",)]}


def _measured(conn: psycopg.Connection[Any], crew: Crew, act: Callable[[], object], until: str) -> dict[str, Any]:
    conn.execute("vacuum analyze")
    crew.turns()
    total_s, others = watch(conn, act, until)
    return {"total_s": round(total_s, 3), **others, "turn_ms": max(ms for ms, _, _ in crew.turns())}


async def _request_cancel(url: str, run_keys: list[int]) -> None:
    async with await connect_async(url, name="bench") as conn:
        await request_cancel(conn, run_keys, actor="bench")


def _half_done(conn: psycopg.Connection[Any], dag_id: str, run_id: str, size: int) -> int:
    """A running run: of the mapped task half of the instances have succeeded, and half are to be tried again in an hour."""
    trigger(conn, {dag_id: 1}, run_id)
    (run_key,) = conn.execute(
        "select run_key from dag_run where dag_id = %s and run_id like %s", [dag_id, f"{run_id}%"]
    ).fetchone() or (0,)
    _wait(conn, f"select exists (select from mapped_task where run_key = {run_key})")
    with conn.transaction():
        conn.execute("update dag_run set unfinished = unfinished - %s where run_key = %s", [size // 2, run_key])
        _instances(conn, run_key, size, "up_for_retry")
        conn.execute(
            "insert into timer (due_at, kind, run_key, task_index, map_index, epoch)"
            " select now() + interval '1 hour', 'retry', run_key, task_index, map_index, epoch from task_instance"
            " where run_key = %s and state = 'up_for_retry'",
            [run_key],
        )
        conn.execute(
            "update upstream_counter set success = success + %s where run_key = %s and task_index = 2", [size // 2, run_key]
        )
        conn.execute("delete from lane where run_key = %s", [run_key])
    return int(run_key)


def _half_failed(conn: psycopg.Connection[Any], run_id: str, size: int) -> int:
    """A run that has failed, and half of the instances of its mapped task."""
    run_key = failed_run(conn, "bulk_mapped", run_id)
    conn.execute("insert into mapped_task (run_key, task_index, length) values (%s, 1, %s)", [run_key, size])
    conn.execute(
        "insert into task_instance (run_key, task_index, state, ended_at)"
        " values (%s, 0, 'success', now()), (%s, 2, 'upstream_failed', now())",
        [run_key, run_key],
    )
    _instances(conn, run_key, size, "failed")
    conn.execute(
        "insert into upstream_counter (run_key, task_index, total, success, failed) values (%s, 1, 1, 1, 0), (%s, 2, %s, %s, %s)",
        [run_key, run_key, size, size // 2, size // 2],
    )
    return run_key


def _instances(conn: psycopg.Connection[Any], run_key: int, size: int, state: str) -> None:
    """Of the mapped task: half of them in this state, the others have succeeded."""
    conn.execute(
        "insert into task_instance (run_key, task_index, map_index, state, try_number, started_at, ended_at)"
        " select %s, 1, n, case when n %% 2 = 0 then 'success' else %s end::task_state, 1, now(), now()"
        " from generate_series(0, %s) n",
        [run_key, state, size - 1],
    )


def _wait(conn: psycopg.Connection[Any], query: str) -> None:
    while conn.execute(query.encode()).fetchone() != (True,):
        time.sleep(POLL_S)


_CASES = {"cancel_burst": _cancel_burst, "cancel_mapped": _cancel_mapped, "change_mapped": _change_mapped}
