"""What a round reads where 10,000 tasks have limits of their own: as much as where ten have."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from evenflow.core.limits import MOST_LIMIT_CLASSES
from evenflow.store.db.connect import UNBOUNDED, connect
from tests.store.test_plans import ROWS, check

CLASSES = 10_000
AHEAD = {"least": 2, "most": 32, "lanes": 500}
FILL = (
    "insert into code values ('c', '')",
    "insert into dag_version (version_key, dag_id, version_number, spec, spec_hash, code_hash, file) overriding system value"
    " values (9, 'd', 1, '{}', 's', 'c', 'x.py')",
    "insert into dag (dag_id, version_key, bundle, file) values ('d', 9, 'b', 'x.py')",
    "insert into dag_run (run_key, dag_id, run_id, version_key, state, run_type) values (1, 'd', 'r', 9, 'running', 'manual')",
    "insert into concurrency_limit (limit_id, kind, name, capacity, used) overriding system value"
    " select 100 + n, 'dag_task', 'd/t' || n, 1, n %% 2 from generate_series(1, %(classes)s) n",
    "update concurrency_limit set capacity = 5 where kind = 'pool' and name = 'default_pool'",
    "insert into limit_class (class_id, base_id, pool_limit, executor_limit, queue, weight, task_limit) overriding system value"
    " select 100 + n, 100, p.limit_id, e.limit_id, 'default', 1, case when n > 0 then 100 + n end"
    " from generate_series(0, %(classes)s) n, concurrency_limit p, concurrency_limit e"
    " where p.kind = 'pool' and p.name = 'default_pool' and e.kind = 'executor'",
    "insert into lane (lane_id, class_id, base_id, run_key, run_priority, priority, order_key, locals, parked_on, ready)"
    " select n, 100 + n, 100, 1, 0, 1, int8send(n), '{}', case n %% 3 when 0 then -2 else 0 end, 1"
    " from generate_series(1, %(classes)s) n",
)


@pytest.fixture
def many(database_url: str) -> Any:
    with connect(database_url, name="test", timeouts=UNBOUNDED, generic_plans=True) as conn:
        for statement in FILL:
            conn.execute(statement, {"classes": CLASSES})
        conn.execute("vacuum analyze")
        yield conn


def test_what_a_round_reads_does_not_follow_the_number_of_limits(
    many: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-ST5, R-HA20: half of the limits are full, every limit class has an open lane, and the pool has room."""
    (pool,) = many.execute("select limit_id from concurrency_limit where kind = 'pool' and name = 'default_pool'").fetchone()
    given = {"limits": [pool, 101], "released": [1, 1], "closed": [], "closed_queues": [], **AHEAD}
    hot: dict[str, tuple[int, dict[str, Any]]] = {
        "selection/count_open_classes": (MOST_LIMIT_CLASSES, {"most": MOST_LIMIT_CLASSES + 1}),
        "selection/read_heads": (MOST_LIMIT_CLASSES, {**given, "limit_classes": MOST_LIMIT_CLASSES}),
        "selection/read_heads_of_bases": (64, given),
        "selection/read_more_of_base": (64, {"parked_on": 0, "queue": 100, "seen": 32, "limit": 32}),
        "selection/find_waiting": (2, {"limits": [pool, 101], "of_locked": False}),
    }
    for name, (rows, names) in hot.items():
        monkeypatch.setitem(ROWS, name, rows)
        check(many, name, names)
