"""What people read: rows as the SQL names them. Each is one short statement, so that no reader holds back vacuum."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, NamedTuple

import msgspec
from psycopg.rows import dict_row

from evenflow.contracts.rest.insights import Insights
from evenflow.core.likeness import did_you_mean
from evenflow.core.limits import INSIGHT_DAYS, INSIGHT_ROWS, OUTRUN_NAMED
from evenflow.core.model import DagSpec
from evenflow.store.db.connect import AsyncConn, Row
from evenflow.store.db.instant import read
from evenflow.store.db.sql import sql


class CurrentVersion(NamedTuple):
    version_key: int
    spec: str
    is_active: bool
    is_paused: bool
    file: str
    bundle: str


class VersionSource(NamedTuple):
    version_number: int
    spec: str
    file: str
    code_hash: str


class InstanceState(NamedTuple):
    """Both null while the task instance has no row."""

    state: str | None
    try_number: int | None


async def _rows(conn: AsyncConn, name: str, **names: Any) -> list[Row]:
    return await read(conn, name, names)


async def list_dags(
    conn: AsyncConn,
    *,
    dag_id: str | None = None,
    retired: bool = False,
    search: str | None = None,
    recent: int = 0,
    scope: str | None = None,
    limit: int = 1,
    after: str | None = None,
) -> list[Row]:
    """DAGs by name, with ``retired`` also those whose file is gone; each with its ``recent`` newest runs."""
    names = {"dag_id": dag_id, "retired": retired, "search": search, "recent": recent, "scope": scope}
    return await _rows(conn, "views/list_dags", **names, limit=limit, after=after)


async def read_grid(conn: AsyncConn, dag_id: str, *, limit: int, offset: int) -> list[Row]:
    """The newest runs first, each with the indexes of its tasks by state; which tasks these are says its version."""
    return await _rows(conn, "views/read_grid", dag_id=dag_id, limit=limit, offset=offset)


async def count_grid(conn: AsyncConn, dag_id: str, *, most: int) -> int:
    """Returns how many runs the DAG has, at most ``most``."""
    (row,) = await _rows(conn, "views/count_grid", dag_id=dag_id, most=most)
    return int(row["total"])


async def count_by_task(conn: AsyncConn, run_key: int) -> dict[str, dict[str, int]]:
    """Returns of each task of a run how many instances are in which state; one that is untouched is left out."""
    return {row["task_id"]: row["states"] for row in await _rows(conn, "views/count_by_task", run_key=run_key)}


async def read_calendar(conn: AsyncConn, dag_id: str, *, runs: int) -> list[Row]:
    """The days of the last year on which the DAG has runs, by the newest ``runs`` runs."""
    return await _rows(conn, "views/read_calendar", dag_id=dag_id, runs=runs)


async def list_task_names(conn: AsyncConn, version_keys: Iterable[int]) -> dict[int, list[str]]:
    """The tasks of each version, that of the newest first."""
    rows = await _rows(conn, "views/list_task_names", version_keys=list(version_keys))
    return {row["version_key"]: row["task_ids"] for row in rows}


async def list_moves(conn: AsyncConn, run_key: int, *, task_id: str, map_index: int, limit: int) -> list[Row]:
    """The newest moves of a task instance, the oldest of them first."""
    return await _rows(conn, "views/list_moves", run_key=run_key, task_id=task_id, map_index=map_index, limit=limit)


SIMILAR = 1000  # names that are searched for the one that was meant


async def similar_dag(conn: AsyncConn, dag_id: str, *, scope: str | None = None) -> str:
    """A sentence that says which DAG may have been meant, or which refused file may define it; or nothing."""
    if scope is None and (refused := await _rows(conn, "views/find_refused", wanted=dag_id)):
        return f" The file {refused[0]['file']}, which may define it, is refused: evenflow dags list says why."
    rows = await _rows(conn, "views/list_similar_dags", wanted=dag_id, scope=scope, limit=SIMILAR)
    return did_you_mean(dag_id, (row["dag_id"] for row in rows))


async def similar_task(conn: AsyncConn, dag_id: str, task_id: str) -> str:
    """The same of a task that the newest version of the DAG does not have, or of the DAG itself."""
    current = await read_spec(conn, dag_id)
    if current is None:
        return await similar_dag(conn, dag_id)
    known = [task.task_id for task in DagSpec.from_json(current.spec).tasks]
    return "" if task_id in known else did_you_mean(task_id, known)


async def read_spec(conn: AsyncConn, dag_id: str) -> CurrentVersion | None:
    row = await (await conn.execute(sql("views/read_spec"), {"dag_id": dag_id})).fetchone()
    return None if row is None else CurrentVersion(*row)


async def list_runs(
    conn: AsyncConn,
    *,
    dag_id: str | None = None,
    run_id: str | None = None,
    state: str | None = None,
    scope: str | None = None,
    limit: int = 1,
    after: str | None = None,
) -> list[Row]:
    """Runs, the newest first."""
    names: dict[str, Any] = {"dag_id": dag_id, "run_id": run_id, "state": state, "limit": limit, "after": after}
    if scope is None:
        return await _rows(conn, "views/list_runs", **names)
    return await _rows(conn, "views/list_runs_in_scope", **names, scope=scope)


async def count_tasks(conn: AsyncConn, run_key: int) -> dict[str, int]:
    """Task instances by state, pending ones included; states without any are left out."""
    return {row["state"]: row["n"] for row in await _rows(conn, "views/count_tasks", run_key=run_key)}


async def list_progress(conn: AsyncConn, run_key: int, *, limit: int) -> list[Row]:
    return await _rows(conn, "views/list_progress", run_key=run_key, limit=limit)


async def list_tasks(
    conn: AsyncConn, run_key: int, *, task_id: str | None, state: str | None, limit: int, after: str | None
) -> list[Row]:
    """Task instances in the order of the DAG and of their map index."""
    names = {"run_key": run_key, "task_id": task_id, "limit": limit, "after": after}
    if state is not None:
        return await _rows(conn, "views/list_tasks_in_state", **names, state=state)
    return await _rows(conn, "views/list_tasks", **names)


async def find_instance(conn: AsyncConn, *, dag_id: str, run_id: str, task_id: str, map_index: int) -> InstanceState | None:
    """Null when the run does not exist, or has no such task."""
    names = {"dag_id": dag_id, "run_id": run_id, "task_id": task_id, "map_index": map_index}
    row = await (await conn.execute(sql("views/find_instance"), names)).fetchone()
    return None if row is None else InstanceState(*row)


async def list_parse_errors(conn: AsyncConn, *, lease_s: float, scope: str | None, limit: int, after: str | None) -> list[Row]:
    return await _rows(conn, "views/list_parse_errors", lease_s=lease_s, scope=scope, limit=limit, after=after)


async def list_parse_warnings(conn: AsyncConn, *, scope: str | None, limit: int, after: str | None) -> list[Row]:
    return await _rows(conn, "views/list_parse_warnings", scope=scope, limit=limit, after=after)


async def list_versions(conn: AsyncConn, dag_id: str, *, limit: int, after: str | None) -> list[Row]:
    """The newest first."""
    return await _rows(conn, "views/list_versions", dag_id=dag_id, limit=limit, after=after)


async def read_version(conn: AsyncConn, dag_id: str, number: int) -> VersionSource | None:
    """A version by its number; 0 is the newest, -1 the one before that."""
    row = await (await conn.execute(sql("views/read_version"), {"dag_id": dag_id, "number": number})).fetchone()
    return None if row is None else VersionSource(*row)


async def has_dag(conn: AsyncConn, dag_id: str, *, scope: str | None) -> bool:
    """Whether there is such a DAG in the scope."""
    return bool(await _rows(conn, "views/find_dag", dag_id=dag_id, scope=scope))


async def list_bundles(conn: AsyncConn, *, lease_s: float, scope: str | None, limit: int, after: str | None) -> list[Row]:
    """A row for each bundle and processor that reads it."""
    return await _rows(conn, "views/list_bundles", lease_s=lease_s, scope=scope, limit=limit, after=after)


async def list_services(conn: AsyncConn, *, lease_s: float, scope: str | None = None, limit: int) -> list[Row]:
    return await _rows(conn, "views/list_services", lease_s=lease_s, scope=scope, limit=limit)


async def list_outrun(conn: AsyncConn, *, scope: str | None) -> list[Row]:
    return await _rows(conn, "views/list_outrun", scope=scope, limit=OUTRUN_NAMED)


async def list_queues(conn: AsyncConn, *, lease_s: float, scope: str | None = None) -> list[Row]:
    return await _rows(conn, "views/list_queues", lease_s=lease_s, scope=scope)


async def list_push_executors(conn: AsyncConn, *, lease_s: float, scope: str | None = None) -> list[Row]:
    return await _rows(conn, "views/list_push_executors", lease_s=lease_s, scope=scope)


async def read_health(conn: AsyncConn) -> Row:
    (row,) = await _rows(conn, "views/read_health")
    return row


class LiveMoves(NamedTuple):
    """``cursor`` is a snapshot of the database, as text: the next look continues behind it. ``is_cut``: not everything is told."""

    cursor: str
    is_cut: bool
    runs: list[dict[str, Any]]  # dag_id, run_id, state, tasks, and in which of the scopes it is


async def read_moves(
    conn: AsyncConn, since: str | None, *, dags: Iterable[str], scopes: Iterable[str], moves: int, tasks: int, age: int
) -> LiveMoves:
    """``since`` null returns only the position from which to continue. ``dags``: the DAGs whose tasks are told, ``tasks`` of each
    run, and one more where there are more. ``scopes`` are those of the listeners. ``age``: transactions.
    """
    names = {"since": since, "dags": sorted(dags), "scopes": sorted(scopes), "moves": moves, "tasks": tasks, "age": age}
    row = await (await conn.execute(sql("views/read_moves"), names, prepare=False)).fetchone()
    assert row is not None
    cursor, is_cut, runs = row
    return LiveMoves(cursor, is_cut, msgspec.json.decode(runs))  # thousands of moves a second: several times as fast as by psycopg


async def read_insights(conn: AsyncConn) -> Insights:
    """Without days where the pipeline has never returned anything."""
    (made,) = await _of_marts(conn, "insights/read_made", 1)
    made_at: datetime | None = made["made_at"]
    return Insights(
        made_at=made_at,
        violations=made["violations"],
        days=list(reversed(await _of_marts(conn, "insights/read_days", INSIGHT_DAYS))),
        advice=await _of_marts(conn, "insights/list_worth_raising", INSIGHT_ROWS),
        dearest=await _of_marts(conn, "insights/list_dearest", INSIGHT_ROWS),
        drifting=await _of_marts(conn, "insights/list_drifting", INSIGHT_ROWS),
        anomalies=await _of_marts(conn, "insights/list_anomalies", INSIGHT_ROWS),
    )


async def _of_marts(conn: AsyncConn, name: str, most: int) -> list[Any]:
    return await (await conn.cursor(row_factory=dict_row).execute(sql(name), {"most": most}, prepare=False)).fetchall()
