"""What a scheduler does all the time costs what it touches, however much there is (R-ST5): no hot statement reads a big
table whole, and each reads a bounded number of pages.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from evenflow.store.connect import UNBOUNDED, connect
from evenflow.store.sql import sql

BIG = {
    "task_instance",
    "task_event",
    "task_event_default",
    "dag_run",
    "lane",
    "ready_task",
    "upstream_counter",
    "concurrency_limit",
}
N = 50  # rows that each statement is asked for
ROWS = {"inbox/lock_runs": 200, "runs/take_queued": 100, "selection/read_heads": 500}  # that others answer here
PAGES_PER_ROW = 25  # an index of 5 million rows is 4 pages deep, and a row is in one or two indexes and has a page of its own

# History: finished runs of 100 task instances each, with an event for each. Then running runs that are at their limits, each with
# a parked lane of one task, a try that waits for a worker, and counters.
FILL = (
    "insert into code values ('c', '')",
    "insert into dag_version (dag_id, version_number, spec, spec_hash, code_hash, file) values ('d', 1, '{}', 's', 'c', 'x.py')",
    "insert into dag (dag_id, version_key, bundle, file) values ('d', 1, 'b', 'x.py')",
    "insert into dag_run (run_key, dag_id, run_id, version_key, state, run_type)"
    " select n, 'd', n::text, 1, 'success', 'manual' from generate_series(1, %(history)s / 100) n",
    "insert into task_instance (run_key, task_index, state, epoch)"
    " select r, t, 'success', r * 100 + t from generate_series(1, %(history)s / 100) r, generate_series(0, 99) t",
    "insert into task_event (run_key, task_index, map_index, epoch, try_number, event, state)"
    " select run_key, task_index, -1, epoch, 1, 'succeed', 'success' from task_instance",
    "insert into dag_run (run_key, dag_id, run_id, version_key, state, run_type)"
    " select 1000000000 + n, 'd', 'live' || n, 1, 'running', 'manual' from generate_series(1, %(lanes)s) n",
    "insert into task_instance (run_key, task_index, state, epoch)"
    " select 1000000000 + n, t, (array['queued', 'scheduled'])[t + 1]::task_state, (1 - t) * (1000000000 + n)"
    " from generate_series(1, %(lanes)s) n, generate_series(0, 1) t",
    "insert into upstream_counter (run_key, task_index, total) select 1000000000 + n, 1, 2 from generate_series(1, %(lanes)s) n",
    "insert into concurrency_limit (kind, run_key, name, capacity, used)"
    " select 'run', 1000000000 + n, '', 1, 1 from generate_series(1, %(lanes)s) n",
    "insert into node (node_id, base_id, pool_limit, executor_limit, queue, weight) overriding system value"
    " values (1, 1, 1, 2, 'default', 1)",
    "insert into lane (lane_id, node_id, queue_id, run_key, run_priority, priority, run_after, locals, parked_on, ready)"
    " select limit_id, 1, 1, run_key, 0, 1, now(), array[limit_id], case when limit_id %% 1000 = 0 then 0 else limit_id end, 1"
    " from concurrency_limit where kind = 'run'",
    "insert into ready_task (lane_id, task_index, map_index) select lane_id, 1, -1 from lane",
    "insert into dispatch (epoch, run_key, task_index, map_index, try_number, class, priority, queue, holds, pool_slots)"
    " select run_key, run_key, 0, -1, 1, 1, 1, 'default', array[1, 2, limit_id], 1 from concurrency_limit where kind = 'run'",
    "insert into report (run_key, kind, epoch, payload)"
    " select run_key, 'exit', epoch, '{\"outcome\": \"success\"}' from dispatch order by epoch limit 200",
    "insert into timer (due_at, kind, run_key, task_index, map_index, epoch)"
    " select now() + n * interval '1 s', 'retry', 1000000000 + n, 0, -1, 1000000000 + n from generate_series(1, 200) n",
    "insert into service (kind, name, host, pid, version) values ('worker', 'w', 'h', 1, '0')",
    "insert into dag_run (run_key, dag_id, run_id, version_key, run_type)"
    " select 2000000000 + n, 'd', 'queued' || n, 1, 'manual' from generate_series(1, 1000) n",
)


def fill(url: str, *, history: int, lanes: int) -> psycopg.Connection[Any]:
    conn = connect(url, name="test", timeouts=UNBOUNDED, generic_plans=True)
    for statement in FILL:
        conn.execute(statement, {"history": history, "lanes": lanes})
    conn.execute("vacuum analyze")
    return conn


def ids(conn: psycopg.Connection[Any], query: str) -> list[Any]:
    return [row[0] for row in conn.execute(f"{query} limit {N}").fetchall()]


def arguments(conn: psycopg.Connection[Any]) -> dict[str, dict[str, Any]]:
    """Realistic parameters of the hot statements."""
    run_keys = ids(conn, "select run_key from report order by report_id")
    limits = ids(conn, "select parked_on from lane where parked_on > 0")
    lanes = ids(conn, "select lane_id from lane")
    zeros, ones = [0] * N, [1] * N
    ahead = {"least": 2, "most": 32, "lanes": 500}
    report = [
        {"run_key": k, "task_index": 0, "map_index": -1, "epoch": k, "kind": "exit", "age_s": 0, "payload": {}} for k in run_keys
    ]
    return {
        "inbox/lock_runs": {"limit": 200, "reports": 4000},
        "inbox/take_reports": {"run_keys": run_keys, "lead": True, "limit": 1000},
        "inbox/take_timers": {"run_keys": run_keys},
        "selection/read_heads": {"limits": limits, "released": ones, **ahead},
        "selection/read_parked": {"limits": limits, **ahead},
        "selection/read_limits": {"limits": limits},
        "selection/find_waiting": {"limits": limits},
        "selection/find_lanes": {"run_keys": run_keys, "nodes": ones, "priorities": ones},
        "selection/take_ready": {"lanes": lanes, "counts": ones},
        "audit/find_lost_wakeups": {"after_limit": 0, "after_queue": 2**31 - 1, "most": N},
        "runs/take_queued": {"after": "", "limit": 100, "share": 50},
        "runs/count_down": {"run_keys": run_keys, "finished": ones, "failed_leaves": zeros},
        "tasks/read_instances": {"run_keys": run_keys, "tasks": ones},
        "tasks/count_upstreams": {
            "run_keys": run_keys,
            "tasks": ones,
            "maps": [-1] * N,
            "total": zeros,
            "success": ones,
            "failed": zeros,
            "skipped": zeros,
        },
        "tasks/move": {
            "run_keys": run_keys,
            "tasks": zeros,
            "maps": [-1] * N,
            "was_states": ["queued"] * N,
            "was_epochs": run_keys,
            "states": ["success"] * N,
            "epochs": run_keys,
            "tries": ones,
            "losses": zeros,
            "started": [None] * N,
            "ended": [None] * N,
            "events": ["succeed"] * N,
            "details": [None] * N,
        },
        "tasks/delete_dispatches": {"epochs": run_keys},
        "dispatch/claim": {"service_id": 1, "claim_key": "k", "slots": N, "lease_s": 60.0, "queues": ["default"]},
        "dispatch/insert_reports": {"reports": json.dumps(report)},
    }


def check(conn: psycopg.Connection[Any], name: str, names: dict[str, Any]) -> None:
    """Runs the statement as a prepared one with a generic plan, as schedulers do; nothing is kept."""
    binds: dict[str, int] = {}
    text = re.sub(r"%\((\w+)\)s", lambda m: f"${binds.setdefault(m[1], len(binds) + 1)}", sql(name).decode()).replace("%%", "%")
    with conn.transaction(force_rollback=True):
        conn.execute(f"prepare hot as {text}".encode())
        with psycopg.ClientCursor(conn) as cursor:  # EXECUTE takes literals
            asked = ", ".join(["%s"] * len(binds))
            cursor.execute(f"explain (analyze, buffers, format json) execute hot ({asked})".encode(), [names[key] for key in binds])
            (((plan,),),) = cursor.fetchall()
        conn.execute("deallocate hot")
    top = plan["Plan"]
    whole = {node["Relation Name"] for node in _nodes(top) if node["Node Type"] == "Seq Scan"} & BIG
    pages = max(node["Shared Hit Blocks"] + node["Shared Read Blocks"] for node in _nodes(top))
    rows = ROWS.get(name, N)
    assert whole == set(), json.dumps(plan)
    assert pages <= PAGES_PER_ROW * rows, (name, pages, rows, json.dumps(plan))


def _nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for child in node.get("Plans", []):
        yield from _nodes(child)


def test_hot_statements_read_what_they_touch(database_url: str) -> None:
    with fill(database_url, history=20_000, lanes=10_000) as conn:
        for name, names in arguments(conn).items():
            check(conn, name, names)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_hot_statements_read_what_they_touch_with_five_million_finished(database_url: str) -> None:
    """The same bounds with 5 million finished task instances, as many events, and 100,000 parked lanes."""
    with fill(database_url, history=5_000_000, lanes=100_000) as conn:
        for name, names in arguments(conn).items():
            check(conn, name, names)
