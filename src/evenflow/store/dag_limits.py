"""The limits that DAGs bring with them, as their newest versions have them: of the DAG, of its tasks, and of its runs that run.

A limit that the newest version has no more stays, unbounded, for tries and runs hold it and lanes may be parked on it; it goes when
no stored version knows the task any more (the view ``unused_limit``). One that a run did not begin with stays out of that run.
Limits that are there are changed under the executor's lock, which comes before those of runs and limits: so no round is met half
way, and no two wait for each other.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from psycopg.rows import args_row

from evenflow.core.model import DagSpec
from evenflow.store.columns import numbers
from evenflow.store.dags import Conn
from evenflow.store.inbox import EXECUTOR_LOCK
from evenflow.store.sql import sql

UNBOUNDED = 2**31 - 1  # the largest capacity that the column takes

Capacities = dict[tuple[str, str], int]  # by kind and name


class StoredLimit(NamedTuple):
    limit_id: int
    kind: str
    run_key: int  # 0: of the DAG or of one of its tasks
    dag_id: str
    name: str
    capacity: int


class _Differences(NamedTuple):
    changed: list[tuple[StoredLimit, int]]  # with the capacity that it is to have
    new: list[tuple[str, str, int]]  # kind, name, capacity: of DAGs and tasks


async def set_limits(conn: Conn, specs: Collection[DagSpec]) -> None:
    """Makes the limits of these DAGs what their specs say. Comes before the DAGs are changed, in the same transaction, by one at a
    time for each DAG.
    """
    wanted = {spec.dag_id: _capacities(spec) for spec in specs}
    found = await _compare(conn, wanted)
    slots = [name for kind, name, _ in found.new if kind == "dag_runs"]
    if found.changed or (slots and await _has_live_runs(conn, slots)):
        await conn.execute(sql("dags/lock_executor"), {"executor": EXECUTOR_LOCK})
        found = await _compare(conn, wanted)
    if found.new:
        await _insert(conn, found.new)
    if found.changed:
        await _change(conn, found.changed)


def _capacities(spec: DagSpec) -> dict[tuple[str, str], int]:
    given: dict[tuple[str, str], int | None] = {("dag_runs", spec.dag_id): spec.max_active_runs, ("run", ""): spec.max_active_tasks}
    for task in spec.tasks:
        given["dag_task", f"{spec.dag_id}/{task.task_id}"] = task.max_active_tis_per_dag
        given["run_task", task.task_id] = task.max_active_tis_per_dagrun
    return {key: capacity for key, capacity in given.items() if capacity is not None}


async def _compare(conn: Conn, wanted: dict[str, Capacities]) -> _Differences:
    cursor = conn.cursor(row_factory=args_row(StoredLimit))
    stored = await (await cursor.execute(sql("dags/read_limits"), {"dag_ids": list(wanted)})).fetchall()
    known = {(limit.kind, limit.name) for limit in stored if limit.run_key == 0}
    capacities = ((limit, wanted[limit.dag_id].get((limit.kind, limit.name), UNBOUNDED)) for limit in stored)
    return _Differences(
        changed=[(limit, capacity) for limit, capacity in capacities if limit.capacity != capacity],
        new=[
            (*key, capacity)
            for limits in wanted.values()
            for key, capacity in limits.items()
            if key[0] in ("dag_runs", "dag_task") and key not in known
        ],
    )


async def _has_live_runs(conn: Conn, dag_ids: list[str]) -> bool:
    row = await (await conn.execute(sql("dags/has_live_runs"), {"dag_ids": dag_ids})).fetchone()
    return row is not None and bool(row[0])


async def _insert(conn: Conn, new: Sequence[tuple[str, str, int]]) -> None:
    kinds, names, capacities = zip(*sorted(new), strict=True)
    await conn.execute(sql("dags/insert_limits"), {"kinds": list(kinds), "names": list(names), "capacities": numbers(capacities)})
    if dag_ids := [name for kind, name, _ in new if kind == "dag_runs"]:
        await conn.execute(sql("dags/hold_run_slots"), {"dag_ids": dag_ids})


async def _change(conn: Conn, changed: Sequence[tuple[StoredLimit, int]]) -> None:
    names = {"limits": numbers(limit.limit_id for limit, _ in changed), "capacities": numbers(capacity for _, capacity in changed)}
    await conn.execute(sql("dags/change_limits"), names)
