"""Runs as the scheduler handles them: taken, started, counted down, finished, and created when their DAG is due."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from psycopg.types.json import Json

from evenflow.store.columns import numbers, texts, words
from evenflow.store.rows import Conn, Rows, execute, row_of


class QueuedRun(NamedTuple):
    run_key: int
    dag_id: str
    version_key: int
    priority: int
    run_after_us: int
    slot_limit: int | None  # the DAG's max_active_runs limit
    due_at_s: float  # when it could start at the earliest, seconds since 1970


class RunStanding(NamedTuple):
    run_key: int
    unfinished: int
    failed_leaves: int
    cancelled_by: str | None
    slot_limit: int | None  # the max_active_runs limit that it holds one of
    others_wait: bool  # runs of its DAG are queued


class RunLimit(NamedTuple):
    limit_id: int
    kind: str
    run_key: int
    name: str


class DueDag(NamedTuple):
    dag_id: str
    version_key: int
    spec: str
    last_logical: datetime | None  # of its scheduled runs
    now: datetime  # by the database


class ScheduledRun(NamedTuple):
    dag_id: str
    run_id: str
    version_key: int
    params: dict[str, object]
    logical_date: datetime
    start: datetime
    end: datetime
    run_after: datetime


def read_specs(conn: Conn, version_keys: Iterable[int]) -> Rows[tuple[int, str]]:
    """The versions' DagSpecs as JSON."""
    return Rows(execute(conn, "runs/read_specs", {"version_keys": numbers(version_keys)}), tuple)


def take_queued(conn: Conn, *, after: str, limit: int, share: int) -> Rows[QueuedRun]:
    """Runs that may start, of the DAGs whose id comes after ``after``; of each DAG at most ``share``, the first of them first."""
    return Rows(execute(conn, "runs/take_queued", {"after": after, "limit": limit, "share": share}), row_of(QueuedRun))


def start(conn: Conn, runs: Sequence[tuple[int, int, int]]) -> None:
    """Runs as (run_key, unfinished task instances, max_active_runs limit held or 0) become running."""
    run_keys, unfinished, slots = zip(*runs, strict=True)
    params = {"run_keys": numbers(run_keys), "unfinished": numbers(unfinished), "slots": numbers(slots)}
    execute(conn, "runs/start", params)


def insert_counters(conn: Conn, counters: Sequence[tuple[int, int, int]]) -> None:
    """Upstream counters as (run_key, task_index, total)."""
    run_keys, tasks, totals = zip(*counters, strict=True)
    execute(conn, "runs/insert_counters", {"run_keys": numbers(run_keys), "tasks": numbers(tasks), "totals": numbers(totals)})


def insert_limits(conn: Conn, limits: Sequence[tuple[str, int, str, int]]) -> Rows[RunLimit]:
    """Limits as (kind, run_key, name, capacity)."""
    kinds, run_keys, names, capacities = zip(*limits, strict=True)
    params = {"kinds": words(kinds), "run_keys": numbers(run_keys), "names": texts(names), "capacities": numbers(capacities)}
    return Rows(execute(conn, "runs/insert_limits", params), row_of(RunLimit))


def delete_limits(conn: Conn, run_keys: Sequence[int]) -> None:
    execute(conn, "runs/delete_limits", {"run_keys": numbers(run_keys)})


def delete_ended_limits(conn: Conn, limits: Sequence[int]) -> None:
    """Deletes the limits of runs that have ended, among them one of these."""
    execute(conn, "runs/delete_ended_limits", {"limits": numbers(limits)})


def count_down(conn: Conn, finished: Sequence[tuple[int, int, int]]) -> Rows[RunStanding]:
    """Takes (run_key, finished instances, failed leaves) off the runs; a negative number of finished adds instances."""
    run_keys, counts, leaves = zip(*finished, strict=True)
    params = {"run_keys": numbers(run_keys), "finished": numbers(counts), "failed_leaves": numbers(leaves)}
    return Rows(execute(conn, "runs/count_down", params), row_of(RunStanding))


def finish(conn: Conn, runs: Sequence[tuple[int, str, str | None]]) -> None:
    """Runs as (run_key, final state, reason)."""
    run_keys, states, reasons = zip(*runs, strict=True)
    execute(conn, "runs/finish", {"run_keys": numbers(run_keys), "states": words(states), "reasons": texts(reasons)})


def mark_cancelled(conn: Conn, run_key: int, actor: str) -> None:
    execute(conn, "runs/mark_cancelled", {"run_key": run_key, "actor": actor})


def append_events(conn: Conn, events: Sequence[tuple[int, str, str, str]]) -> None:
    """History as (run_key, event, state, actor)."""
    run_keys, names, states, actors = zip(*events, strict=True)
    params = {"run_keys": numbers(run_keys), "events": words(names), "states": words(states), "actors": texts(actors)}
    execute(conn, "runs/append_events", params)


def take_due_dags(conn: Conn, *, limit: int) -> list[DueDag]:
    return list(map(row_of(DueDag), execute(conn, "runs/take_due_dags", {"limit": limit}).fetchall()))


def insert_scheduled(conn: Conn, run: ScheduledRun) -> bool:
    """Whether the run is new."""
    return execute(conn, "runs/insert_scheduled", {**run._asdict(), "params": Json(run.params)}).rowcount == 1


def set_next(conn: Conn, dag_id: str, next_run_at: datetime | None, next_logical: datetime | None) -> None:
    execute(conn, "runs/set_next", {"dag_id": dag_id, "next_run_at": next_run_at, "next_logical": next_logical})
