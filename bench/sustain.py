"""a_sustain: a million tasks of small DAGs, created as room allows; does it slow down?"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import measure
import psycopg
from crew import Crew
from server import fresh_database, open_connection, open_snapshot, serve
from shapes import Shape
from stored_shape import store_shape, trigger

ACTIVE_RUNS = 200
EVERY = 500  # tasks: as many as a claim takes; so often is room made use of
SNAPSHOT_S = 600
END_TIMEOUT_S = 30
BATCH_TIMEOUT_S = 60  # a batch takes a fifth of a second


def run(shape: Shape, *, tasks: int, snapshot: bool, runs: int, schedulers: int, dsn: str | None) -> Iterator[dict[str, Any]]:
    """The results of ``runs`` runs, each on a fresh database. ``tasks`` is rounded down to tenths of whole batches."""
    (group,) = shape["groups"]
    per_run = int(group["n"])
    tenth = tasks // 10 // EVERY * EVERY
    if not tenth:
        raise SystemExit(f"a_sustain needs {10 * EVERY:,} tasks at least.")
    with serve(dsn) as server:
        for _ in range(runs):
            url = fresh_database(server, "bench")
            dag_ids = list(asyncio.run(store_shape(url, shape)))
            crew = Crew(server, url, schedulers, {}, ["counts", str(EVERY)])
            try:
                with open_connection(url, "bench") as conn, ExitStack() as stack:
                    crew.until_ready(conn)
                    conn.execute("analyze")
                    if snapshot:
                        _hold_snapshot(stack, url)
                    yield _sustain(conn, crew, dag_ids, 10 * tenth, per_run) | {"snapshot": snapshot}
            finally:
                crew.stop()


def _hold_snapshot(stack: ExitStack, url: str) -> None:
    """For ten minutes or until the stack is left, whichever comes first."""
    over = threading.Event()
    held = threading.Event()

    def hold() -> None:
        with open_snapshot(url):
            held.set()
            over.wait(SNAPSHOT_S)

    thread = threading.Thread(target=hold)
    thread.start()
    stack.callback(thread.join)
    stack.callback(over.set)
    held.wait()


def _sustain(conn: psycopg.Connection[Any], crew: Crew, dag_ids: list[str], tasks: int, per_run: int) -> dict[str, Any]:
    before = crew.usage(conn)
    crew.turns()
    wanted = tasks // per_run
    created = min(ACTIVE_RUNS, wanted)
    begin = _create(conn, dag_ids, 0, created)
    tenths: list[dict[str, Any]] = []
    all_rounds: list[float] = []
    done, since = 0, begin
    while done < tasks:
        done, at = json.loads(crew.read(BATCH_TIMEOUT_S))
        room = min(done // per_run + ACTIVE_RUNS, wanted) - created
        if room > 0:
            _create(conn, dag_ids, created, room)
            created += room
        if done % (tasks // 10) == 0:
            rounds = [t[0] for t in crew.turns()]
            all_rounds += rounds
            tenths.append({"tasks_per_s": round(tasks / 10 / (at - since)), "round_ms": measure.quantiles(rounds, 2)})
            since = at
    total_s = since - begin
    states = _states(conn)
    after = crew.usage(conn)
    return {
        "load": measure.load(),
        "ok": states == {"success": tasks},
        "tasks": tasks,
        "states": states,
        "total_s": round(total_s, 3),
        "tasks_per_s": round(tasks / total_s),
        "round_ms": measure.quantiles(all_rounds, 2),
        "tenths": tenths,
        "last_to_first": round(tenths[-1]["tasks_per_s"] / tenths[0]["tasks_per_s"], 3),
        "cpu_s": {name: round(spent - before.cpu_s[name], 1) for name, spent in after.cpu_s.items()},
        "wal_bytes_per_task": round((after.wal_bytes - before.wal_bytes) / tasks),
        "commits_per_task": round((after.commits - before.commits) / tasks, 3),
    }


def _create(conn: psycopg.Connection[Any], dag_ids: list[str], created: int, runs: int) -> float:
    """So many more runs, of the DAGs in turn."""
    counts: dict[str, int] = {}
    for number in range(created, created + runs):
        dag_id = dag_ids[number % len(dag_ids)]
        counts[dag_id] = counts.get(dag_id, 0) + 1
    return trigger(conn, counts, f"bench_{created}_")


def _states(conn: psycopg.Connection[Any]) -> dict[str, int]:
    """What all tasks ended as, when the last reports have been applied."""
    deadline = time.monotonic() + END_TIMEOUT_S
    while conn.execute("select exists (select from dispatch)").fetchone() != (False,) and time.monotonic() < deadline:
        time.sleep(0.01)
    return dict(conn.execute("select state::text, count(*) from task_instance group by 1").fetchall())
