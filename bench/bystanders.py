"""Runs of another DAG while something large goes on: two tasks one after the other, each of a second, of which every 50 ms one
ends. From the end of the first to the start of the second, ``other_lag_s``, is what others have to wait. They are triggered before,
so that tasks end all the while, whatever keeps new runs from beginning.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import measure
import psycopg
from stored_shape import trigger

from evenflow.core.model import DagSpec, TaskSpec

TIMEOUT_S = 600
PROBE_S = 0.05
HOLD_S = {"other": 1.0}  # for the worker
BEFORE_S = 1.5  # so that tasks end when it begins
PROBE = DagSpec(
    dag_id="other",
    tasks=(TaskSpec(task_id="a", operator="python"), TaskSpec(task_id="b", operator="python", upstream=(0,))),
    max_active_runs=None,
)


def watch(conn: psycopg.Connection[Any], act: Callable[[], object], until: str) -> tuple[float, dict[str, Any]]:
    """Acts, and triggers runs of the other DAG until the query is true. Answers after how many seconds that was, and what others
    had to wait; leaves when the last of them has ended.
    """
    deadline = time.monotonic() + TIMEOUT_S
    _trigger_until(conn, time.monotonic() + BEFORE_S, "select false")
    began_at, began = _now(conn), time.monotonic()
    act()
    if not _trigger_until(conn, deadline, until):
        raise TimeoutError(f"{until} is not true after {TIMEOUT_S} s")
    took_s, ended_at = time.monotonic() - began, _now(conn)
    while conn.execute("select exists (select from dag_run where dag_id = 'other' and ended_at is null)").fetchone() == (True,):
        if time.monotonic() > deadline:
            raise TimeoutError("the other runs do not end")
        time.sleep(PROBE_S)
    lags = _lags(conn, began_at, ended_at)
    return took_s, {"other_lag_s": measure.quantiles(lags), "others": len(lags)}


def _trigger_until(conn: psycopg.Connection[Any], deadline: float, query: str) -> bool:
    while time.monotonic() < deadline:
        trigger(conn, {PROBE.dag_id: 1}, f"probe_{time.time_ns()}_")
        time.sleep(PROBE_S)
        if conn.execute(query.encode()).fetchone() == (True,):
            return True
    return False


def _now(conn: psycopg.Connection[Any]) -> Any:
    (now,) = conn.execute("select clock_timestamp()").fetchone() or (None,)
    return now


def _lags(conn: psycopg.Connection[Any], began_at: Any, ended_at: Any) -> list[float]:
    """Of the first tasks that ended in this time."""
    rows = conn.execute(
        "select extract(epoch from b.started_at - a.ended_at)::float8 from dag_run r"
        " join task_instance a on a.run_key = r.run_key and a.task_index = 0"
        " join task_instance b on b.run_key = r.run_key and b.task_index = 1"
        " where r.dag_id = 'other' and a.ended_at between %s and %s",
        [began_at, ended_at],
    )
    return [lag for (lag,) in rows]
