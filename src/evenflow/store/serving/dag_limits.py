"""The limits that DAGs bring with them, as their newest versions have them: of the DAG, of its tasks, and of its runs that run.

A limit that the newest version lacks stays, unbounded, because tries and runs hold it and lanes may be parked on it. It goes when
no stored version knows the task (the view ``unused_limit``). A run never gets limits that it did not begin with.

Limits that are there are changed under the executor's lock, which comes before those of runs and limits: so no round sees a
half-made change, and no two transactions wait for each other. No scheduler can lead meanwhile, so this is a short transaction of
its own, after the one that stores the DAGs, however many these are.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from psycopg.rows import args_row

from evenflow.core.limits import INT32_MAX
from evenflow.core.model import DagSpec
from evenflow.store.db.columns import numbers
from evenflow.store.db.connect import AsyncConn
from evenflow.store.db.sql import sql
from evenflow.store.scheduling.inbox import EXECUTOR_LOCK


class Difference(NamedTuple):
    """What a limit becomes; with ``is_new`` it does not exist yet."""

    is_new: bool
    kind: str
    name: str
    capacity: int


async def insert_limits(conn: AsyncConn, specs: Collection[DagSpec]) -> bool:
    """Inserts the limits that these DAGs did not have, for without them nothing of the new versions can start; answers whether
    :func:`change_limits` is to follow. Comes before the DAGs are changed, in the same transaction, by one at a time for each DAG.
    """
    found = await _compare(conn, specs, change=False)
    new = [difference for difference in found if difference.is_new]
    live = await _find_live(conn, [limit.name for limit in new if limit.kind == "dag_runs"])
    at_once = [limit for limit in new if limit.name not in live]
    await _insert(conn, at_once)
    return len(found) > len(at_once)


async def change_limits(conn: AsyncConn, specs: Collection[DagSpec]) -> None:
    """Makes the limits of these DAGs what their specs say. The last of its transaction, which ends with the executor's lock."""
    await conn.execute(sql("dags/lock_executor"), {"executor": EXECUTOR_LOCK})
    found = await _compare(conn, specs, change=True)
    await _insert(conn, [difference for difference in found if difference.is_new])


def _capacities(spec: DagSpec) -> dict[tuple[str, str], int]:
    given: dict[tuple[str, str], int | None] = {("dag_runs", spec.dag_id): spec.max_active_runs, ("run", ""): spec.max_active_tasks}
    for task in spec.tasks:
        given["dag_task", f"{spec.dag_id}/{task.task_id}"] = task.max_active_tis_per_dag
        given["run_task", task.task_id] = task.max_active_tis_per_dagrun
    return {key: capacity for key, capacity in given.items() if capacity is not None}


async def _compare(conn: AsyncConn, specs: Collection[DagSpec], *, change: bool) -> list[Difference]:
    wanted = [(spec.dag_id, kind, name, capacity) for spec in specs for (kind, name), capacity in _capacities(spec).items()]
    params = {
        "dag_ids": [spec.dag_id for spec in specs],
        "of": [dag_id for dag_id, _, _, _ in wanted],
        "kinds": [kind for _, kind, _, _ in wanted],
        "names": [name for _, _, name, _ in wanted],
        "capacities": numbers(capacity for _, _, _, capacity in wanted),
        "unbounded": INT32_MAX,
        "change": change,
    }
    cursor = conn.cursor(row_factory=args_row(Difference))
    return await (await cursor.execute(sql("dags/compare_limits"), params)).fetchall()


async def _find_live(conn: AsyncConn, dag_ids: list[str]) -> set[str]:
    if not dag_ids:
        return set()
    return {dag_id for (dag_id,) in await (await conn.execute(sql("dags/find_live"), {"dag_ids": dag_ids})).fetchall()}


async def _insert(conn: AsyncConn, new: Sequence[Difference]) -> None:
    """Limits of DAGs and tasks. The running runs of a DAG hold the one of its runs from now on."""
    if not new:
        return
    _, kinds, names, capacities = zip(*sorted(new, key=lambda limit: (limit.kind, limit.name)), strict=True)
    await conn.execute(sql("dags/insert_limits"), {"kinds": list(kinds), "names": list(names), "capacities": numbers(capacities)})
    if dag_ids := [limit.name for limit in new if limit.kind == "dag_runs"]:
        await conn.execute(sql("dags/hold_run_slots"), {"dag_ids": dag_ids})
