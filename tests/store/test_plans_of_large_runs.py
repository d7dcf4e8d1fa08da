"""No statement about one run is quadratic in its tasks or instances, whenever it was planned (R-HA19): rows are counted, not time.

The runs are small copies of large ones: what is quadratic reads two thousand times what it is asked for here, and shows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from evenflow.core.states import Ender
from evenflow.store.db.connect import UNBOUNDED, connect
from evenflow.store.db.sql import sql
from tests.store.test_plans import UNGUARDED, grants

N = 2_000
DEEP, WIDE, MANY = (
    1,
    2,
    3,
)  # the runs of a chain, of a mapped task of which one fifth has rows, and of many mapped tasks, half of each begun
LENGTH = 5 * N
ROWS_PER_ROW = 60  # that all nodes of a plan see together for each row that is asked for; a statement has a dozen parts

# Of four tasks of the chain one has succeeded, one waits, one is queued, one has resumed from being deferred.
FILL = (
    "insert into code values ('c', '')",
    "insert into dag_version (version_key, dag_id, version_number, spec, spec_hash, code_hash, file) overriding system value"
    " values (9, 'd', 1, '{}', 's', 'c', 'x.py')",
    "insert into dag (dag_id, version_key, bundle, file) values ('d', 9, 'b', 'x.py')",
    "insert into task select 9, n, 't' || n, 'python' from generate_series(0, %(n)s - 1) n",
    "insert into dag_run (run_key, dag_id, run_id, version_key, state, run_type, logical_date, cancelled_by)"
    " select n, 'd', n::text, 9, 'running', 'scheduled', timestamptz '2000-01-01 UTC' + n * interval '1 h', 'ann'"
    " from generate_series(1, 3) n",
    "insert into task_instance (run_key, task_index, state, epoch)"
    " select 1, t, (array['success', 'none', 'queued', 'scheduled'])[t %% 4 + 1]::task_state, t + 1"
    " from generate_series(0, %(n)s - 1) t",
    "insert into task_instance (run_key, task_index, map_index, state, epoch)"
    " select 2, 0, m, 'success', 1000000 + m from generate_series(0, %(n)s - 1) m",
    "insert into mapped_task (run_key, task_index, length, virtual_state) values (2, 0, %(length)s, 'none')",
    "insert into task_instance (run_key, task_index, map_index, state, epoch)"
    " select 3, t, 0, 'success', 2000000 + t from generate_series(0, %(n)s - 1) t",
    "insert into mapped_task (run_key, task_index, length, virtual_state)"
    " select 3, t, 2, (array['none', 'removed'])[t %% 2 + 1]::task_state from generate_series(0, %(n)s - 1) t",
    "insert into upstream_counter (run_key, task_index, map_index, total)"
    " select run_key, task_index, map_index, 2 from task_instance",
    "insert into dispatch (epoch, run_key, task_index, map_index, try_number, class, priority, queue, holds, pool_slots, worker_id)"
    " select epoch, run_key, task_index, map_index, 1, 1, 1, 'default', '{}', 0, 1 from task_instance where state = 'queued'",
    "insert into service (kind, name, host, pid, version, state, beat_at)"
    " values ('worker', 'w', 'h', 1, '0', 'lost', now() - interval '1 h')",
    "update lease_clock set counted_from = now() - interval '1 day'",
    "insert into deferral (run_key, task_index, map_index, epoch, queue, trigger, sealed, holds, pool_slots, retake, retake_slots,"
    " began_at, ran_s, ready_at) select run_key, task_index, map_index, epoch, 'default', 't.T', 'x', '{}', 0, '{}', 0, now(),"
    " 1, now()"
    " from task_instance where state = 'scheduled'",
    "insert into limit_class (class_id, base_id, pool_limit, executor_limit, queue, weight) overriding system value"
    " values (1, 1, 1, 2, 'default', 1)",
    "insert into lane (lane_id, class_id, base_id, run_key, run_priority, priority, order_key, locals, ready)"
    " select task_index, 1, 1, 1, 0, 1, int8send(task_index), '{}', 1 from task_instance where state = 'scheduled'",
    "insert into ready_task (lane_id, task_index, map_index)"
    " select task_index, task_index, -1 from task_instance where state = 'scheduled'",
    "insert into xcom (run_key, task_index, map_index, key, value, length, epoch)"
    " select run_key, task_index, map_index, 'return_value', '[1]', 1, epoch from task_instance",
    "insert into rendered (run_key, task_index, map_index, epoch, fields)"
    " select run_key, task_index, map_index, epoch, '{}' from task_instance",
    "insert into once_value (run_key, task_index, map_index, name, epoch)"
    " select run_key, task_index, map_index, 'x', epoch from task_instance",
    "insert into branch_decision (run_key, task_index, map_index, skipped)"
    " select run_key, task_index, map_index, '{}' from task_instance",
    "insert into past_gate select 1, n, 1 from generate_series(0, %(n)s - 1) n",
    "insert into past_hold select 1, n, -1 from generate_series(0, %(n)s - 1) n",
    "insert into past_watch select 1, n, 2, n from generate_series(0, %(n)s - 1) n",
    "insert into report (run_key, kind, epoch, payload)"
    " select run_key, 'exit', epoch, '{\"outcome\": \"failed\"}' from task_instance",
    "insert into timer (due_at, kind, run_key, task_index, map_index, epoch)"
    " select now(), 'retry', run_key, task_index, map_index, epoch from task_instance",
)


def arguments() -> Iterator[tuple[str, dict[str, Any]]]:
    """The statements that are asked for many tasks or instances of a run, with parameters for both runs."""
    n, ones, zeros, none = list(range(N)), [1] * N, [0] * N, [None] * N
    chain = {"tasks": n, "maps": [-1] * N}
    whole = {"tasks": n, "maps": none}
    some = {"tasks": zeros, "maps": n}
    counts = {"total": ones, "success": zeros, "failed": ones, "skipped": zeros}
    change = {
        "event": "clear",
        "state": "none",
        "states": ["success", "scheduled", "none"],
        "cleared": True,
        "reason": None,
        "ended_by": None,
        "detail": "{}",
    }
    live = list(range(3, N, 4))  # epochs of the queued
    for run, keys in ((DEEP, chain), (DEEP, whole), (WIDE, some), (WIDE, {"tasks": [0], "maps": [None]}), (MANY, whole)):
        of_run = {"run_key": run, **keys}
        yield "operations/move_instances", {**of_run, **change, "live": live}
        yield "operations/insert_virtual", {**of_run, **change}
        yield "operations/find_live", {**of_run, "states": ["queued", "running"]}
        yield "operations/find_deferred", {**of_run, "states": ["deferred", "scheduled"]}
        yield "operations/delete_results", of_run
        yield (
            "operations/list_touched",
            {"run_keys": [run], **keys, "states": ["success", "none"], "left_by": Ender.CANCEL, "limit": 1000, "counted": 100_001},
        )
    for run, tasks in ((DEEP, n), (WIDE, [0]), (MANY, n)):
        one = {"run_key": run, "tasks": tasks}
        yield "operations/count_ended", one
        yield "operations/read_indexed", one
        yield "operations/read_ranges", one
        yield "operations/withdraw_ranges", one
        yield "operations/end_virtual", {**one, "state": "success", "states": ["none"], "reason": "r", "ended_by": Ender.MARK}
        yield "operations/remove_instances", {**one, "live": live, "event": "remove", "state": "removed", "detail": "{}"}
        anew = {"event": "clear", "state": "none", "states": ["removed"], "regions": [t // 10 for t in tasks]}
        yield "operations/collapse_mapped", {**one, **anew}
        yield "operations/recount_run", {"run_key": run, "leaves": tasks, "cancel": Ender.CANCEL}
        yield "operations/read_waiting", {"run_key": run, "task_index": -1, "map_index": -1, "limit": None}
        yield "operations/find_left", {"run_key": run, "cancel": Ender.CANCEL}
        yield (
            "tasks/read_unfinished",
            {"run_key": run, "states": ["none", "queued", "scheduled"], "limit": N, "every": False, "spared": []},
        )
        yield "tasks/find_processes", {"run_key": run, "spared": []}
        withdrawn = {
            "states": ["none", "scheduled", "removed"],
            "state": "skipped",
            "removed": "removed",
            "reason": "r",
            "ended_by": Ender.CANCEL,
        }
        yield "tasks/skip_virtual", {"run_key": run, "spared": tasks[:1], **withdrawn}
        yield "branches/read_decisions", {"run_key": run}
        yield "operations/withdraw_ready", {"run_key": run}
        yield "operations/delete_empty_lanes", {"run_key": run}
        yield "selection/delete_run_lanes", {"run_key": run}
        yield "quarantine/end_tries", {"run_key": run}
        ends = {"was": ["none", "queued"], "events": ["skip", "fail"], "states": ["skipped", "failed"]}
        yield "quarantine/end_instances", {"run_key": run, **ends, "reason": "", "ended_by": Ender.CANCEL, "actor": ""}
    yield "operations/withdraw_some", {"run_key": DEEP, **chain}
    yield "operations/set_counters", {"run_key": DEEP, "tasks": n, **counts}
    yield "operations/set_indexed", {"run_key": WIDE, **some, **counts}
    yield "operations/set_intents", {"epochs": live, "intent": "{}"}
    for run, keys in ((DEEP, chain), (WIDE, some)):
        many = {"run_keys": [run] * N, **keys}
        yield "operations/read_cleared", {"run_keys": [run], "tasks": [0]}
        yield "tasks/read_instances", many
        yield "tasks/count_upstreams", {**many, **counts}
        yield "tasks/count_indexed", {**many, **counts, "wholes": ones}
        yield "tasks/set_reasons", {**many, "reasons": ["r"] * N, "enders": [None] * N}
        yield "tasks/read_mapped", {"run_keys": [run] * N, "tasks": n}
        yield "tasks/read_touched", {"run_keys": [run], "tasks": [0]}
        yield "tasks/delete_operator_rows", {"run_keys": [run] * N, "tasks": n}
        yield "tasks/insert_reschedules", {**many, "delays": [1.0] * N, "epochs": ones}
        yield (
            "tasks/result_lengths",
            {
                "run_keys": [run] * N,
                "tasks": keys["tasks"][: N if run == DEEP else 1] * (1 if run == DEEP else N),
                "keys": [f"k{i}" for i in n] if run == WIDE else ["return_value"] * N,
                "mapped": [run == WIDE] * N,
            },
        )
        yield "xcom/carry", {**many, "were": n, "epochs": n}
        yield "deferrals/read_some", many
        yield "deferrals/delete_all", many
        yield (
            "deferrals/resume_all",
            {
                **many,
                "epochs": n,
                "expected": N,
                "purposes": ["event"] * N,
                "events": none,
                "reasons": none,
                "intents": none,
                "direct": [True] * N,
            },
        )
        yield (
            "tasks/move",
            {
                **many,
                "was_states": ["success"] * N,
                "expected": N,
                "was_epochs": n,
                "states": ["failed"] * N,
                "epochs": n,
                "tries": ones,
                "losses": zeros,
                "started": none,
                "ended": none,
                "events": none,
                "details": none,
            },
        )
        yield "tasks/insert_dispatches", grants([run] * N, n, n)
        yield "past/hold_instances", many
    many = {"run_keys": [MANY] * N, "tasks": n}
    yield "operations/read_cleared", many
    yield "tasks/read_touched", many
    yield "tasks/read_mapped", many
    yield "tasks/delete_operator_rows", many
    yield "tasks/write_mapped", {**many, "lengths": [2] * N, "virtual_states": ["scheduled"] * N, "tries_before": zeros}
    yield "past/open_gates", {"run_keys": [DEEP] * N, "tasks": n, "counts": ones}
    yield "past/tell_waiters", {"run_keys": [DEEP] * N, "tasks": n}
    yield "tasks/delete_dispatches", {"epochs": live, "expected": len(live)}
    yield "tasks/kill_dispatches", {"epochs": live}
    yield "dispatch/compare_listed", {"service_id": 1, "epochs": n, "resend_after_s": -1.0, "unmarked_after_s": 60.0}
    yield "leases/report_lost_tries", {"lease_s": 15.0}
    yield (
        "inbox/take_reports",
        {"limit": N, "changes": 25, "instances": 500, "overhead": 19},
    )
    yield "inbox/take_timers", {"run_keys": [DEEP, WIDE], "share": 500}
    yield "selection/take_ready", {"lanes": list(range(3, N, 4)), "counts": [1] * (N // 4)}
    yield "selection/find_lanes", {"run_keys": [DEEP], "limit_classes": [1], "priorities": [1]}


def rows_seen(conn: psycopg.Connection[Any], name: str, names: dict[str, Any]) -> tuple[int, str]:
    """How many rows all nodes of the plan see, what they filter out included; nothing is kept."""
    binds: dict[str, int] = {}
    text = re.sub(r"%\((\w+)\)s", lambda m: f"${binds.setdefault(m[1], len(binds) + 1)}", sql(name).decode()).replace("%%", "%")
    with conn.transaction(force_rollback=True):
        conn.execute(f"prepare large as {text}".encode())
        with psycopg.ClientCursor(conn) as cursor:  # EXECUTE takes literals
            asked = f"({', '.join(['%s'] * len(binds))})" if binds else ""
            cursor.execute(f"explain (analyze, format json) execute large {asked}".encode(), [names[key] for key in binds])
            (((plan,),),) = cursor.fetchall()
        conn.execute("deallocate large")
    return sum(_rows(plan["Plan"])), json.dumps(plan)


def _rows(node: dict[str, Any]) -> Iterator[int]:
    gone = sum(node.get(f"Rows Removed by {what}", 0) for what in ("Filter", "Join Filter", "Index Recheck"))
    yield round((node["Actual Rows"] + gone) * node["Actual Loops"])
    for child in node.get("Plans", []):
        yield from _rows(child)


@pytest.mark.parametrize("generic", [True, False], ids=["as schedulers plan", "as the API plans"])
@pytest.mark.parametrize("analyzed", [False, True], ids=["without statistics", "with statistics"])
def test_a_large_run_costs_its_size(database_url: str, generic: bool, analyzed: bool) -> None:
    """R-HA19: under the settings of a scheduler's session and those of the API, on tables nobody has analyzed yet and on others."""
    with connect(database_url, name="test", timeouts=UNBOUNDED, generic_plans=generic) as conn:
        conn.execute("set evenflow.lead = 'true'")  # as inbox/try_executor leaves it, and inbox/lock_runs
        conn.execute(f"set evenflow.runs = '{{{DEEP}, {WIDE}}}'")
        conn.execute("set plan_cache_mode = force_generic_plan")
        conn.execute(UNGUARDED)
        for statement in FILL:
            conn.execute(statement, {"n": N, "length": LENGTH})
        if analyzed:
            conn.execute("vacuum analyze")
        quadratic = {}
        for name, names in arguments():
            seen, plan = rows_seen(conn, name, names)
            if seen > ROWS_PER_ROW * LENGTH:
                quadratic[name] = seen
                print(name, seen, plan)  # for whoever mends it
    assert not quadratic, " ".join(f"{name}:{seen}" for name, seen in quadratic.items())
