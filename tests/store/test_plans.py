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

from evenflow.core.people.approvals import PEOPLE
from evenflow.store.db.connect import UNBOUNDED, connect
from evenflow.store.db.rows import execute
from evenflow.store.db.sql import sql
from evenflow.store.scheduling.inbox import TURN_LIMITS
from tests.store.recording import bound_by_the_store

BIG = {
    "task_instance",
    "task_event",
    "task_event_default",
    "dag_run",
    "lane",
    "ready_task",
    "upstream_counter",
    "concurrency_limit",
    "xcom",
    "past_watch",
    "past_gate",
    "past_hold",
    "mapped_task",
    "backfill_run",
    "asset_queue",
    "dispatch",
    "deferral",
    "rendered",
    "try_record",
    "sealed_value",
    "audit_event",
    "run_wake",
}
N = 50  # rows that each statement is asked for
ROWS = {  # that others answer here
    "inbox/lock_runs": 200,
    "inbox/delete_orphans": 200,
    "runs/take_queued": 100,
    "selection/read_heads": 500,
    "selection/read_heads_of_bases": 500,
    "runs/pause_failing": 200,  # looks past the live runs of the DAG, of which there are 100,000 here
    "schedules/take_due_dags": 2 * N,  # of each DAG its version, its last run and those that are queued
    "backfills/make_runs": 2 * N,  # a date and a run each, which stands in six indexes
}
ROWS |= dict.fromkeys(
    (
        "xcom/pull_one",
        "xcom/pull_mapped",
        "xcom/find_state",
        "xcom/list_pushed",
        "xcom/push",
        "rendered/write",
        "records/write",
        "records/tell_sent",
        "runs/read_previous",
        "dispatch/find_held",
        "triggers/find_claimed",
        "once/ask",
        "once/set",
        "once/forget",
        "sealed/read_one",
        "sealed/set_one",
        "events/insert_one",
    ),
    1,
)
PAGES_PER_ROW = 25  # an index of 5 million rows is 4 pages deep, and a row is in one or two indexes and has a page of its own

# History: finished runs of 100 task instances each, with an event for each. Then running runs that are at their limits, each with
# a parked lane of one task, a try that waits for a worker, and counters.
FILL = (
    "insert into code values ('c', '')",
    "insert into dag_version (version_key, dag_id, version_number, spec, spec_hash, code_hash, file) overriding system value"
    " values (9, 'd', 1, '{}', 's', 'c', 'x.py')",
    "insert into dag (dag_id, version_key, bundle, file) values ('d', 9, 'b', 'x.py')",
    "insert into task select 9, n, 't' || n, 'python' from generate_series(0, 99) n",
    "insert into dag_run (run_key, dag_id, run_id, version_key, state, run_type, backfill_id, logical_date, ended_at)"
    " select n, 'd', n::text, 9, 'success', 'scheduled', 1, timestamptz '2000-01-01 UTC' + n * interval '1 h', '2020-01-01'"
    " from generate_series(1, %(history)s / 100) n",
    "insert into task_instance (run_key, task_index, state, epoch)"
    " select r, t, 'success', r * 100 + t from generate_series(1, %(history)s / 100) r, generate_series(0, 99) t",
    "insert into task_event (run_key, task_index, map_index, epoch, try_number, event, state)"
    " select run_key, task_index, -1, epoch, 1, 'succeed', 'success' from task_instance",
    "insert into dag_run (run_key, dag_id, run_id, version_key, state, run_type, logical_date)"
    " select 1000000000 + n, 'd', 'live' || n, 9, 'running', 'scheduled', timestamptz '2100-01-01 UTC' + n * interval '1 min'"
    " from generate_series(1, %(lanes)s) n",
    "insert into task_instance (run_key, task_index, state, epoch)"
    " select 1000000000 + n, t, (array['queued', 'scheduled'])[t + 1]::task_state, (1 - t) * (1000000000 + n)"
    " from generate_series(1, %(lanes)s) n, generate_series(0, 1) t",
    "insert into upstream_counter (run_key, task_index, total) select 1000000000 + n, 1, 2 from generate_series(1, %(lanes)s) n",
    "insert into concurrency_limit (kind, run_key, name, capacity, used)"
    " select 'run', 1000000000 + n, '', 1, 1 from generate_series(1, %(lanes)s) n",
    "insert into limit_class (class_id, base_id, pool_limit, executor_limit, queue, weight) overriding system value"
    " values (1, 1, 1, 2, 'default', 1)",
    "insert into lane (lane_id, class_id, base_id, run_key, run_priority, priority, order_key, locals, parked_on, ready)"
    " select limit_id, 1, 1, run_key, 0, 1, int8send(limit_id), array[limit_id],"
    " case when limit_id %% 1000 = 0 then 0 else limit_id end, 1"
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
    " select 2000000000 + n, 'd', 'queued' || n, 9, 'manual' from generate_series(1, 1000) n",
    # Results, waits for the past, mapped tasks, backfills (one of the history, of which all is done, and one that has hardly
    # begun), events that wait for others.
    "insert into xcom (run_key, task_index, key, value, length, epoch)"
    " select run_key, task_index, 'return_value', '[1]', 1, epoch from task_instance where epoch > 0",
    "insert into past_gate select 1000000000 + n, 1, 1 from generate_series(1, %(lanes)s) n",
    "insert into past_hold select 1000000000 + n, 1, -1 from generate_series(1, %(lanes)s) n",
    "insert into past_watch select 1000000000 + n, 0, 1000000001 + n, 2 from generate_series(1, %(lanes)s) n",
    "insert into mapped_task select 1000000000 + n, 2, 5 from generate_series(1, %(lanes)s) n",
    "insert into task_instance (run_key, task_index, map_index) select 1000000000 + n, 2, 0 from generate_series(1, %(lanes)s) n",
    "insert into upstream_counter (run_key, task_index, map_index, total)"
    " select 1000000000 + n, 2, 0, 2 from generate_series(1, %(lanes)s) n",
    "insert into backfill (dag_id, from_date, to_date, is_reversed, reprocess, max_active_runs, params, priority, created_by)"
    " select 'd', now(), now(), false, 'none', 16, '{}', 0, 'ada' from generate_series(1, 2)",
    "insert into backfill_run select 1, run_key, logical_date, logical_date, logical_date, logical_date, run_key"
    " from dag_run where backfill_id = 1",
    "insert into backfill_run select 2, n, at, at, at, at"
    " from generate_series(1, 10000) n, lateral (select timestamptz '1900-01-01 UTC' + n * interval '1 h' as at) as x",
    "insert into asset (name, uri) values ('x', 'x')",
    "insert into asset_consumer values ('d', 'x', false)",
    "insert into asset_queue select 'd', 'x', false, -n from generate_series(1, %(lanes)s) n",
    "insert into sealed_value (kind, name, sealed, changed_by)"
    " select kind, left(kind, 1) || n, 'x', 'ada' from generate_series(1, 5000) n, unnest(array['connection', 'variable']) kind",
    "insert into rendered select run_key, task_index, -1, epoch, '{}' from dispatch",
    "insert into try_record (run_key, task_index, map_index, epoch, kind, try_number, value)"
    " select run_key, task_index, -1, epoch, 'lineage', 1, '{}' from dispatch",
    "insert into audit_event (actor, action, object) select 'ada', 'pool.set', 'p' || n from generate_series(1, 10000) n",
    # As many deferred, of which triggerers have every second one.
    "insert into task_instance (run_key, task_index, state, epoch)"
    " select 1000000000 + n, 3, 'deferred', 3000000000 + n from generate_series(1, %(lanes)s) n",
    "insert into service (kind, name, host, pid, version) values ('triggerer', 't', 'h', 1, '0')",
    "insert into deferral (run_key, task_index, map_index, epoch, queue, trigger, sealed, holds, pool_slots, retake, retake_slots,"
    " began_at, ran_s, ready_at, triggerer_id, claim_key)"
    " select 1000000000 + n, 3, -1, 3000000000 + n, 'default', 't.T', 'x', array[1], 1, array[2], 0, now(), 1, now(),"
    " case when n %% 2 = 0 then 2 end, case when n %% 2 = 0 then 'old' end from generate_series(1, %(lanes)s) n",
    "update dag set next_run_at = now() - interval '1 s' where dag_id = 'd'",
)


# What is asked for here need not be there.
UNGUARDED = "create or replace function expect_rows(hit bigint, expected int, what text) returns void language sql as 'select'"


def fill(url: str, *, history: int, lanes: int) -> psycopg.Connection[Any]:
    conn = connect(url, name="test", timeouts=UNBOUNDED, generic_plans=True)
    for statement in FILL:
        conn.execute(statement, {"history": history, "lanes": lanes})
    conn.execute("vacuum analyze")
    conn.execute(UNGUARDED)
    conn.execute("set evenflow.lead = 'true'")  # as inbox/try_executor leaves it
    runs = "array(select run_key from report order by report_id limit %s)"
    conn.execute(f"select set_config('evenflow.runs', {runs}::text, false)", [N])
    return conn


def ids(conn: psycopg.Connection[Any], query: str) -> list[Any]:
    return [row[0] for row in conn.execute(f"{query} limit {N}").fetchall()]


def grants(run_keys: list[int], tasks: list[int], was_epochs: list[int]) -> dict[str, Any]:
    """Of resumes, whose deferrals are asked for, too."""
    zeros, ones = [0] * len(tasks), [1] * len(tasks)
    return {
        "epochs": [10**15 + n for n in range(len(tasks))],
        "run_keys": run_keys,
        "tasks": tasks,
        "maps": [-1] * len(tasks),
        "tries": ones,
        "classes": zeros,
        "priorities": ones,
        "queues": ["default"] * len(tasks),
        "holds": ["{1}"] * len(tasks),
        "slots": ones,
        "avoid": zeros,
        "events": ["resume"] * len(tasks),
        "details": [None] * len(tasks),
        "was_states": ["queued"] * len(tasks),
        "was_epochs": was_epochs,
        "losses": zeros,
        "workers": zeros,
        "takers": [],
        "keys": [],
        "lease_s": 15.0,
        "expected": len(tasks),
    }


def arguments(conn: psycopg.Connection[Any]) -> dict[str, dict[str, Any]]:
    """Realistic parameters of the hot statements."""
    run_keys = ids(conn, "select run_key from report order by report_id")
    limits = ids(conn, "select parked_on from lane where parked_on > 0")
    lanes = ids(conn, "select lane_id from lane")
    zeros, ones = [0] * N, [1] * N
    waiting = ids(conn, "select run_key from deferral where triggerer_id is not null order by run_key")
    claimed = {"run_keys": waiting, "tasks": [3] * N, "maps": [-1] * N, "epochs": [k + 2 * 10**9 for k in waiting], "claims": zeros}
    report = [
        {"run_key": k, "task_index": 0, "map_index": -1, "epoch": k, "kind": "exit", "age_s": 0, "payload": {}} for k in run_keys
    ]
    return {
        **bound_by_the_store(run_keys, limits),
        "states/read_closures": {},
        "states/read_exempt": {"released": limits, "closed": [1], "closed_queues": ["default"], "limit": 1000},
        "states/find_drained": {},
        "states/count_runs": {"dag_id": "e", "scope": None},
        "selection/find_lanes": {"run_keys": run_keys, "limit_classes": ones, "priorities": ones},
        "selection/take_ready": {"lanes": lanes, "counts": ones},
        "audit/find_lost_wakeups": {"after_limit": 0, "after_queue": 2**31 - 1, "most": N},
        "audit/find_forgotten_runs": {"after": "", "most": N},
        "audit/find_startable_heads": {"limit_classes": 1000},
        "runs/take_queued": {"since": "0", "wakes": 200, "dags": 200, "limit": 100, "share": 50, "lines": 256},
        "runs/count_down": {"run_keys": run_keys, "finished": ones, "failed_leaves": zeros},
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
            "expected": N,
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
        "tasks/insert_dispatches": grants(run_keys, zeros, run_keys),
        "tasks/delete_dispatches": {"epochs": run_keys, "expected": N},
        "tasks/count_indexed": {
            "run_keys": run_keys,
            "tasks": [2] * N,
            "maps": [n % 2 for n in range(N)],  # one half is made
            "wholes": ones,
            "total": zeros,
            "success": ones,
            "failed": zeros,
            "skipped": zeros,
        },
        "tasks/read_mapped": {"run_keys": run_keys, "tasks": [2] * N},
        "tasks/read_touched": {"run_keys": run_keys, "tasks": [2] * N},
        "tasks/result_lengths": {"run_keys": run_keys, "tasks": zeros, "keys": ["return_value"] * N, "mapped": [False] * N},
        "tasks/insert_reschedules": {
            "delays": [1.0] * N,
            "run_keys": run_keys,
            "tasks": zeros,
            "maps": [-1] * N,
            "epochs": run_keys,
        },
        "retention/find_old_runs": {
            "after": 0,
            "before": "2100-01-01",
            "before_key": 2**40,
            "past": 2**40,
            "most": 5 * N,
            "limit": N,
            "instances": 2000,
            "whole": 10_000,
        },
        "past/await_runs": {"run_keys": run_keys, "tasks": [3] * N, "task_ids": ["t0"] * N},
        "past/hold_instances": {"run_keys": run_keys, "tasks": ones, "maps": zeros},
        "past/open_gates": {"run_keys": run_keys, "tasks": ones, "counts": ones},
        "past/delete_gates": {"run_keys": run_keys},
        "past/tell_waiters": {"run_keys": run_keys, "tasks": zeros},
        "runs/lock_dags": {"dag_ids": ["d"]},
        "runs/pause_failing": {"dag_ids": ["d"], "most": [N]},
        "assets/list_pending": {},
        "assets/record_events": {
            "assets": ["x"] * N,
            "uris": ["x"] * N,
            "extras": ["{}"] * N,
            "aliases": [None] * N,
            "partitions": [str(n) for n in range(N)],
            "run_keys": run_keys,
            "tasks": zeros,
            "maps": [-1] * N,
        },
        "backfills/take_open": {"limit": 100},
        "backfills/make_runs": {"backfill_id": 2, "room": N},
        "backfills/end_finished": {},
        "callbacks/insert_runs": {
            "dag_id": "evenflow_callbacks",
            "run_keys": run_keys,
            "tasks": zeros,
            "maps": [-1] * N,
            "tries": ones,
            "events": ["on_failure_callback"] * N,
            "positions": zeros,
            "states": ["failed"] * N,
            "reasons": [None] * N,
        },
        "inbox/begin_turn": {"since": "0", **TURN_LIMITS},
        "leases/lock_clock": {},
        "leases/expire_services": {"before": 0.0},
        "leases/report_lost_tries": {"lease_s": 15.0},
        "leases/release_triggers": {},
        "triggers/claim": {"service_id": 2, "claim_key": "k", "capacity": N, "lease_s": 60.0, "queues": ["default"]},
        "triggers/find_queues": {},
        "triggers/record_failures": {**claimed, "worked_s": 600.0, "longest_s": 60.0, "first_s": 2.0},
        "triggers/give_back": claimed,
        "triggers/insert_events": {"events": json.dumps([{"run_key": k, "epoch": k, "age_s": 0, "payload": {}} for k in run_keys])},
        "dispatch/claim": {
            "service_id": 1,
            "claim_key": "k",
            "slots": N,
            "resumes": N,
            "lease_s": 60.0,
            "queues": ["default"],
            "since": "{}",
            "looks": True,
            "newest_run": 0,
            "api": None,
        },
        "xcom/carry": {"run_keys": run_keys, "tasks": zeros, "maps": [-1] * N, "were": run_keys, "epochs": run_keys},
        "dispatch/insert_reports": {"reports": json.dumps(report)},
        **of_deferred(run_keys, limits),
        **of_one_try(run_keys[0]),
    }


def of_deferred(run_keys: list[int], limits: list[int]) -> dict[str, dict[str, Any]]:
    """What tasks cost that defer and return: it does not follow how many wait."""
    keys = {"run_keys": run_keys, "tasks": [3] * N, "maps": [-1] * N}
    epochs, nothing = [2_000_000_000 + run_key for run_key in run_keys], [None] * N
    return {
        "deferrals/read_terms": {"limits": limits},
        "deferrals/read_keeping": {
            "task_limits": "deferred_keep_task_limits",
            "run": "deferred_keep_run_cap",
            "executor": "deferred_keep_executor_slot",
        },
        "deferrals/insert_all": {
            **keys,
            "epochs": epochs,
            "queues": ["default"] * N,
            "triggers": ["t.T"] * N,
            "sealed": ["eA=="] * N,
            "holds": ["{1}"] * N,
            "slots": [1] * N,
            "retake": ["{2}"] * N,
            "retake_slots": [0] * N,
            "ran": [1.0] * N,
            "timeouts": [60.0] * N,
            "execution_timeouts": [60.0] * N,
            "people": PEOPLE,
        },
        "deferrals/read_some": keys,
        "deferrals/resume_all": {
            **keys,
            "epochs": epochs,
            "purposes": ["event"] * N,
            "events": ["eA=="] * N,
            "reasons": nothing,
            "intents": nothing,
            "direct": [True] * N,
            "expected": N,
        },
        "deferrals/delete_all": keys,
        "triggers/claim": {"service_id": 2, "claim_key": "k", "capacity": N, "lease_s": 60.0, "queues": ["default"]},
    }


def of_one_try(run_key: int) -> dict[str, dict[str, Any]]:
    """What runs once for each try, or for each thing that it asks."""
    task = {"run_key": run_key, "task_index": 0}
    value = {"epoch": run_key, "key": "return_value"}
    return {
        "xcom/pull_one": {**task, **value, "map_index": -1},
        "xcom/pull_mapped": {**task, **value, "limit": 2**20},
        "xcom/find_state": {"epoch": run_key},
        "xcom/list_pushed": {**task, "key": "return_value"},
        "xcom/push": {**value, "value": "[1]", "secret": False, "object": None, "size": None, "length": None},
        "rendered/write": {"epoch": run_key, "fields": "{}"},
        "records/tell_sent": {"run_key": run_key, "epoch": run_key},
        "records/write": {
            "epoch": run_key,
            "run_key": run_key,
            "task_index": 0,
            "map_index": -1,
            "try_number": 1,
            "most_links": 50,
            "kind": "spark_cost",
            "value": "{}",
        },
        "runs/read_previous": {"run_key": run_key},
        "dispatch/find_held": {**task, "epoch": run_key, "map_index": -1},
        "triggers/find_claimed": {**task, "epoch": run_key, "map_index": -1, "claim": 1},
        "once/ask": {"epoch": run_key, "name": "job", "limit": 100},
        "once/set": {"epoch": run_key, "name": "job", "value": "1", "sealed": None, "replaces": False, "outside": False},
        "once/forget": {"epoch": run_key, "name": "job"},
        "sealed/read_one": {"kind": "connection", "name": "c77"},
        "sealed/set_one": {
            "kind": "variable",
            "name": "v77",
            "sealed": b"x",
            "description": None,
            "dags": None,
            "actor": "task d.t",
        },
        "events/insert_one": {
            "actor": "task d.t",
            "action": "variable.set",
            "object": "v77",
            "detail": None,
            "token_id": 7,
            "address": "127.0.0.1",
            "request_id": "r",
        },
    }


# DAGs that are due and have no room, with specs that are stored out of line; for one of them a great many runs by hand wait, and
# the last is continuous, with a long history.
BLOCKED = (
    "insert into code values ('c', '')",
    "insert into dag_version (version_key, dag_id, version_number, spec, spec_hash, code_hash, file) overriding system value"
    " select 1000 + n, 'd' || n, 1, jsonb_build_object('schedule', jsonb_build_object('kind', kind), 'tasks', tasks),"
    " 's', 'c', 'x.py' from generate_series(1, 500) n,"
    " lateral (select case n when 500 then 'continuous' else 'cron' end as kind) as k,"
    " lateral (select jsonb_agg(md5(n::text || t)) as tasks from generate_series(1, 500) t) as t",
    "insert into dag (dag_id, version_key, bundle, file, next_run_at)"
    " select 'd' || n, 1000 + n, 'b', 'x.py', now() - n * interval '1 s' from generate_series(1, 500) n",
    "update dag set forecast = (select jsonb_agg(md5(dag_id || t)) from generate_series(1, 500) t)",
    "insert into dag_run (dag_id, run_id, version_key, run_type)"
    " select 'd' || n, r::text, 1000 + n, 'scheduled' from generate_series(1, 499) n, generate_series(1, 16) r",
    "insert into dag_run (dag_id, run_id, version_key, run_type)"
    " select 'd1', 'm' || r, 1001, 'manual' from generate_series(1, 20000) r",
    "insert into dag_run (dag_id, run_id, version_key, run_type, state)"
    " select 'd500', r::text, 1500, 'scheduled', case r when 1 then 'running' else 'success' end::run_state"
    " from generate_series(1, 20000) r",
    "vacuum analyze",
)


def test_a_look_at_schedules_that_are_blocked_reads_no_specs_and_no_history(database_url: str) -> None:
    with connect(database_url, name="test", timeouts=UNBOUNDED, generic_plans=True) as conn:
        for statement in BLOCKED:
            conn.execute(statement)
        look = {"limit": 100, "waiting": 16, "served": []}
        assert pages_of(explained(conn, "schedules/take_due_dags", look)) < PAGES_PER_ROW * 500
        conn.execute("update dag_run set state = 'success' where dag_id = 'd500'")
        conn.execute("vacuum analyze dag_run")
        conn.execute("update dag set next_run_at = null where dag_id <> 'd500'")
        assert pages_of(explained(conn, "schedules/take_due_dags", look)) < 4 * PAGES_PER_ROW


# Files of which three are to be loaded: two have changed, and a DAG of the third wants more runs computed.
FILES = (
    "insert into code values ('c', '')",
    "insert into dag_version (version_key, dag_id, version_number, spec, spec_hash, code_hash, file) overriding system value"
    " select 1000 + n, 'd' || n, 1, '{}', 's', 'c', 'x.py' from generate_series(1, 20000) n",
    "insert into dag (dag_id, version_key, bundle, file, wants_forecast)"
    " select 'd' || n, 1000 + n, 'b', n || '.py', n = 3 from generate_series(1, 20000) n",
    "insert into dag_file (bundle, file, fingerprint, parsed)"
    " select 'b', n || '.py', '2', case when n < 3 then '1' else '2' end from generate_series(1, 20000) n",
    "vacuum analyze",
)


def test_a_look_for_files_to_load_reads_only_those(database_url: str) -> None:
    """R-ST5: each processor looks every two seconds."""
    with connect(database_url, name="test", timeouts=UNBOUNDED, generic_plans=True) as conn:
        for statement in FILES:
            conn.execute(statement)
        look = {"bundles": ["b"], "lacking_bundles": [], "lacking_files": [], "limit": 4, "most": 3, "service_id": 1}
        look |= {"lease_s": 15.0, "file_lease_s": 60.0, "again_s": 60.0}
        assert pages_of(explained(conn, "dags/lease_files", look)) < 3 * 2 * PAGES_PER_ROW


# DAGs that each have a running and a queued run, at their max_active_runs.
FULL = (
    "insert into code values ('c', '') on conflict do nothing",
    "insert into dag_version (version_key, dag_id, version_number, spec, spec_hash, code_hash, file) overriding system value"
    " select 10000 + n, 'full' || n, 1, '{}', 's', 'c', 'x.py' from generate_series(%(first)s::int, %(last)s::int) n",
    "insert into dag (dag_id, version_key, bundle, file)"
    " select 'full' || n, 10000 + n, 'b', 'x.py' from generate_series(%(first)s::int, %(last)s::int) n",
    "insert into concurrency_limit (kind, name, capacity, used)"
    " select 'dag_runs', 'full' || n, 1, 1 from generate_series(%(first)s::int, %(last)s::int) n",
    "insert into dag_run (dag_id, run_id, version_key, run_type, state)"
    " select 'full' || n, state, 10000 + n, 'manual', state::run_state"
    " from generate_series(%(first)s::int, %(last)s::int) n, unnest(array['running', 'queued']) state",
)


def test_dags_whose_queued_runs_cannot_begin_cost_a_turn_nothing(database_url: str) -> None:
    """R-ST5, R-HA20: once they have been looked at, a turn reads the same however many there are."""
    pages: list[dict[str, int]] = []
    looked_at = {"since": "0", "wakes": 200, "dags": 200, "limit": 100, "share": 50, "lines": 256}
    with connect(database_url, name="test", timeouts=UNBOUNDED, generic_plans=True) as conn:
        for first, last in ((1, 10), (11, 10_000)):
            for statement in FULL:
                conn.execute(statement, {"first": first, "last": last})
            assert conn.execute("select count(*) from run_wake").fetchone() == (last - first + 1,)
            conn.execute("vacuum analyze")
            if last > 10:  # so much for the first look at them
                assert pages_of(explained(conn, "runs/take_queued", looked_at)) < 200 * PAGES_PER_ROW
            while execute(conn, "inbox/begin_turn", {"since": "0", **TURN_LIMITS}).fetchone()[3]:
                assert execute(conn, "runs/take_queued", looked_at).fetchall()[0][0] == 0
            conn.execute("vacuum analyze")
            pages.append({"runs/take_queued": 0, "inbox/begin_turn": 0})
            for name, names in (("runs/take_queued", looked_at), ("inbox/begin_turn", {"since": "0", **TURN_LIMITS})):
                pages[-1][name] = pages_of(explained(conn, name, names))
        assert all(pages[1][name] <= pages[0][name] + 10 for name in pages[0]), pages
        conn.execute("update concurrency_limit set used = 0 where name = 'full77'")
        assert [row[1] for row in execute(conn, "runs/take_queued", looked_at).fetchall()] == ["full77"]


def check(conn: psycopg.Connection[Any], name: str, names: dict[str, Any]) -> None:
    plan = explained(conn, name, names)
    whole = {node["Relation Name"] for node in _nodes(plan) if node["Node Type"] == "Seq Scan"} & BIG
    rows = ROWS.get(name, N)
    assert whole == set(), json.dumps(plan)
    if pages_of(plan) > PAGES_PER_ROW * rows:  # of which some may be what a connection reads once of each table that it writes
        plan = explained(conn, name, names)
    assert pages_of(plan) <= PAGES_PER_ROW * rows, (name, rows, json.dumps(plan))


def explained(conn: psycopg.Connection[Any], name: str, names: dict[str, Any]) -> dict[str, Any]:
    """Runs the statement as a prepared one with a generic plan, as schedulers do; nothing is kept."""
    binds: dict[str, int] = {}
    text = re.sub(r"%\((\w+)\)s", lambda m: f"${binds.setdefault(m[1], len(binds) + 1)}", sql(name).decode()).replace("%%", "%")
    with conn.transaction(force_rollback=True):
        conn.execute(f"prepare hot as {text}".encode())
        with psycopg.ClientCursor(conn) as cursor:  # EXECUTE takes literals
            asked = f"({', '.join(['%s'] * len(binds))})" if binds else ""
            cursor.execute(f"explain (analyze, buffers, format json) execute hot {asked}".encode(), [names[key] for key in binds])
            (((plan,),),) = cursor.fetchall()
        conn.execute("deallocate hot")
    return dict(plan["Plan"])


def pages_of(plan: dict[str, Any]) -> int:
    return max(node["Shared Hit Blocks"] + node["Shared Read Blocks"] for node in _nodes(plan))


def _nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for child in node.get("Plans", []):
        yield from _nodes(child)


def drifted(given: dict[str, dict[str, Any]]) -> dict[str, set[str]]:
    """Statements that bind other names than they are asked with here."""
    binds = {name: set(re.findall(r"%\((\w+)\)s", sql(name).decode())) for name in given}
    return {name: binds[name] ^ given[name].keys() for name in given if binds[name] != given[name].keys()}


def test_hot_statements_read_what_they_touch(database_url: str) -> None:
    with fill(database_url, history=20_000, lanes=10_000) as conn:
        assert drifted(arguments(conn)) == {}
        for name, names in arguments(conn).items():
            check(conn, name, names)


def test_a_drain_is_not_followed_by_reading_all_that_is_deferred(database_url: str) -> None:
    with fill(database_url, history=1_000, lanes=10_000) as conn:
        conn.execute("insert into service_state (kind, name, state, actor) values ('pool', 'default_pool', 'draining', 'ada')")
        pages, rows = "explain (analyze, buffers, format json) ", sql("states/find_drained").decode()
        assert conn.execute(rows).fetchall() == []
        (((plan,),),) = conn.execute((pages + rows).encode()).fetchall()
        read = plan["Plan"]["Shared Hit Blocks"] + plan["Plan"]["Shared Read Blocks"]
        assert read <= PAGES_PER_ROW * N, json.dumps(plan)
        conn.execute("delete from deferral")
        assert conn.execute(rows).fetchall() == [("pool", "default_pool", False)]


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_hot_statements_read_what_they_touch_with_five_million_finished(database_url: str) -> None:
    """The same bounds with 5 million finished task instances, as many events, and 100,000 parked lanes."""
    with fill(database_url, history=5_000_000, lanes=100_000) as conn:
        for name, names in arguments(conn).items():
            check(conn, name, names)


def test_hot_tables_are_cleaned_by_number(db: psycopg.Connection[Any]) -> None:
    """On any server: a share of 20 % is a moment of an empty queue, or never."""
    rows = db.execute(
        "select relname from pg_class where 'autovacuum_vacuum_scale_factor=0' = any(reloptions) order by 1"
    ).fetchall()
    hot = {"dispatch", "deferral", "report", "lane", "ready_task", "wake", "run_wake", "timer", "concurrency_limit", "service"}
    assert {name for (name,) in rows} == hot


def find_events_after_a_cycle(db: psycopg.Connection, runs: int) -> None:
    """Of so many runs the first third is deleted, and as many again are made: rows go where deleted ones were."""
    fill = (
        "insert into run_event (run_key, event, state, actor) select n / 3, 'x', 'success', 'a'"
        " from generate_series(%s::int, %s::int) n"
    )
    db.execute(fill, [1, 3 * runs])
    db.execute("delete from run_event where run_key < %s", [runs // 3])
    db.execute("vacuum run_event")
    db.execute(fill, [3 * runs + 1, 4 * runs])
    db.execute("vacuum analyze run_event")
    look = "explain (analyze, buffers, format json) select * from run_event where run_key = %s"
    (plan,) = db.execute(look, [2 * runs // 3]).fetchone()  # type: ignore[misc]
    top = plan[0]["Plan"]
    assert top["Actual Rows"] == 3
    assert top["Shared Hit Blocks"] + top["Shared Read Blocks"] < 10


def test_events_of_a_run_are_found_by_index_after_a_cycle_of_retention(db: psycopg.Connection) -> None:
    """R-HA20: the table is in no order any more."""
    find_events_after_a_cycle(db, 30_000)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_events_of_a_run_are_found_by_index_among_three_million(db: psycopg.Connection) -> None:
    """R-HA20: the same bound."""
    find_events_after_a_cycle(db, 1_000_000)
