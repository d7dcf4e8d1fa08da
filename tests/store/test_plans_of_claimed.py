"""What workers have claimed costs nothing but those who ask for their own, however much that is (R-HA20); and the look for workers
that hang reads each claimed try once (R-CS6).
"""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from evenflow.core.limits import ENDING_S, STARTS_WITHIN_S
from evenflow.store.db.connect import UNBOUNDED, connect
from evenflow.store.scheduling import leases
from evenflow.store.scheduling.inbox import TURN_LIMITS
from tests.store.test_plans import explained, pages_of

OF_WORKER = 100  # tries that each worker has
PAGES_PER_TRY = 30  # its own row, that of its run, task and instance, and reports, each by an index that is three pages deep
QUIET = 100  # pages of a look that finds nothing

# Runs of 100 tasks that run, a worker for each run; of all tasks one in four has a timeout.
FILL = (
    "insert into code values ('c', '')",
    "insert into dag_version (version_key, dag_id, version_number, spec, spec_hash, code_hash, file) overriding system value"
    " values (9, 'd', 1, '{}', 's', 'c', 'x.py')",
    "insert into dag (dag_id, version_key, bundle, file) values ('d', 9, 'b', 'x.py')",
    "insert into task select 9, n, 't' || n, 'python', case when n %% 4 = 0 then 864000 end from generate_series(0, %(own)s - 1) n",
    "insert into service (service_id, kind, name, host, pid, version) overriding system value"
    " select n, 'worker', 'w' || n, 'h', 1, '0' from generate_series(1, %(workers)s) n",
    "insert into dag_run (run_key, dag_id, run_id, version_key, state, run_type, logical_date)"
    " select n, 'd', n::text, 9, 'running', 'scheduled', timestamptz '2000-01-01 UTC' + n * interval '1 h'"
    " from generate_series(1, %(workers)s) n",
    "insert into task_instance (run_key, task_index, state, epoch)"
    " select n, t, 'running', n * %(own)s + t from generate_series(1, %(workers)s) n, generate_series(0, %(own)s - 1) t",
    "insert into dispatch (epoch, run_key, task_index, map_index, try_number, class, priority, queue, holds, pool_slots, worker_id,"
    " claim_key, claimed_at)"
    " select epoch, run_key, task_index, -1, 1, 1, 1, 'default', '{1}', 1, run_key, 'k', now() - interval '1 day'"
    " from task_instance",
    "update lease_clock set ticked_at = now(), counted_from = now() - interval '1 year'",
)


def fill(conn: psycopg.Connection[Any], claimed: int) -> None:
    for statement in FILL:
        conn.execute(statement, {"workers": claimed // OF_WORKER, "own": OF_WORKER})


def look(conn: psycopg.Connection[Any], claimed: int) -> None:
    mine = list(range(7 * OF_WORKER, 8 * OF_WORKER))
    claim = {"service_id": 7, "claim_key": "new", "slots": 100, "resumes": 100, "lease_s": 60.0, "queues": ["default"]}
    claim |= {"since": "{}", "looks": True, "newest_run": 0, "api": None}
    quiet: dict[str, dict[str, Any]] = {
        "inbox/begin_turn": {"since": "0", **TURN_LIMITS},
        "dispatch/claim": claim,
        "dispatch/find_waiting": {"queues": ["default"], "since": "{}"},
        "leases/report_lost_tries": {"lease_s": 15.0},
        "leases/release_triggers": {},
        "leases/expire_services": {"before": 0.0},
    }
    own: dict[str, dict[str, Any]] = {
        "dispatch/compare_listed": {"service_id": 7, "epochs": mine, "resend_after_s": 2.0, "unmarked_after_s": 60.0},
        "dispatch/read_kills": {"workers": [7]},
    }
    for name, params in quiet.items():
        allowed = QUIET + (PAGES_PER_TRY * OF_WORKER if name == "dispatch/claim" else 0)  # it looks for the claim's own key
        assert pages_of(explained(conn, name, params)) < allowed, name
    for name, params in own.items():
        assert pages_of(explained(conn, name, params)) < PAGES_PER_TRY * OF_WORKER, name
    patience = {"starts_within_s": STARTS_WITHIN_S, "ending_s": ENDING_S, "stretch": 1.25}
    assert pages_of(explained(conn, "leases/expire_hung", patience)) < PAGES_PER_TRY * claimed
    assert leases.expire_hung(conn) == []


def check(database_url: str, claimed: int) -> None:
    """As they are planned on tables that nobody has analyzed yet, and on others."""
    with connect(database_url, name="test", timeouts=UNBOUNDED, generic_plans=True) as conn:
        fill(conn, claimed)
        look(conn, claimed)
        conn.execute("vacuum analyze")
        look(conn, claimed)
        conn.execute("update task_instance set state = 'queued' where run_key between 3 and 5 and task_index < 2")
        assert [(hung.service_id, hung.task_id, hung.missed) for hung in leases.expire_hung(conn)] == [
            (n, "t0", "started") for n in (3, 4, 5)
        ]


def test_what_is_claimed_costs_those_who_have_it(database_url: str) -> None:
    check(database_url, 10_000)


@pytest.mark.slow
def test_a_hundred_thousand_claimed_cost_those_who_have_them(database_url: str) -> None:
    """The same bounds."""
    check(database_url, 100_000)
