"""Gates and watches of tasks that depend on the previous run. Only DAGs with such tasks have any."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evenflow.store.db.columns import numbers, texts
from evenflow.store.db.rows import Conn, Rows, execute


def await_runs(conn: Conn, needs: Sequence[tuple[int, int, str]]) -> None:
    """New runs as (run_key, task_index, id of a task that must have ended well in the run before)."""
    run_keys, tasks, task_ids = zip(*needs, strict=True)
    execute(conn, "past/await_runs", {"run_keys": numbers(run_keys), "tasks": numbers(tasks), "task_ids": texts(task_ids)})


def forget_gates(conn: Conn, run_key: int) -> set[tuple[int, int]]:
    """Deletes those of a run, and its watches; returns the instances (task_index, map_index) that they held."""
    return set(execute(conn, "past/forget_gates", {"run_key": run_key}).fetchall())


def tell_waiters(conn: Conn, ended: Sequence[tuple[int, int]]) -> None:
    """Tasks as (run_key, task_index) of which an instance has ended well, as it is written."""
    run_keys, tasks = zip(*ended, strict=True)
    execute(conn, "past/tell_waiters", {"run_keys": numbers(run_keys), "tasks": numbers(tasks)})


def open_gates(conn: Conn, told: Mapping[tuple[int, int], int]) -> Rows[tuple[int, int, int, str, int, int]]:
    """``told`` says by (run_key, task_index) how many awaited tasks have ended well. Returns the instances that are no longer held:
    (run_key, task_index, map_index, state, epoch, try_number).
    """
    run_keys, tasks = zip(*told, strict=True)
    params = {"run_keys": numbers(run_keys), "tasks": numbers(tasks), "counts": numbers(told.values())}
    rows = Rows(execute(conn, "past/open_gates", params), tuple)
    execute(conn, "past/delete_gates", {"run_keys": numbers(run_keys)})
    return rows


def hold_instances(conn: Conn, keys: Sequence[tuple[int, int, int]]) -> Rows[tuple[int, int, int]]:
    """Returns those of these task instances whose gate is closed; they are held."""
    run_keys, tasks, maps = zip(*keys, strict=True)
    params = {"run_keys": numbers(run_keys), "tasks": numbers(tasks), "maps": numbers(maps)}
    return Rows(execute(conn, "past/hold_instances", params), tuple)
