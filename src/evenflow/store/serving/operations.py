"""What the API asks of runs on behalf of people, and what it tells of their history."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

import msgspec
from psycopg.rows import dict_row

from evenflow.core.flow.effects import OutsideWork
from evenflow.core.limits import DELETED_AT_ONCE, OUTSIDE_NAMED
from evenflow.core.operations import Operation, TargetKey
from evenflow.core.states import Ender
from evenflow.store.db.columns import numbers, words
from evenflow.store.db.connect import AsyncConn, Row
from evenflow.store.db.instant import read
from evenflow.store.db.sql import sql
from evenflow.store.scheduling.operations import key_columns


class OperatedRun(NamedTuple):
    run_key: int
    run_id: str
    state: str
    version_key: int
    unbegun: bool  # it has yet to run
    being_cancelled: bool
    never_began: bool  # it ended before
    marked_failed: bool  # a person said so of a success


async def find_runs(conn: AsyncConn, dag_id: str, run_id: str, *, past: bool, future: bool, limit: int) -> list[OperatedRun]:
    """Returns the run first, then those before and after it; empty without such a run."""
    params = {"dag_id": dag_id, "run_id": run_id, "past": past, "future": future, "limit": limit}
    return [OperatedRun(*row) for row in await (await conn.execute(sql("operations/find_runs"), params)).fetchall()]


async def read_specs(conn: AsyncConn, version_keys: Iterable[int]) -> dict[int, str]:
    """DagSpecs as JSON."""
    cursor = await conn.execute(sql("runs/read_specs"), {"version_keys": numbers(version_keys)})
    return dict(await cursor.fetchall())


async def list_touched(
    conn: AsyncConn,
    run_keys: Iterable[int],
    keys: Sequence[TargetKey],
    states: Collection[str],
    *,
    left: bool,
    limit: int,
    counted: int,
) -> list[Row]:
    """Of these runs, which are of one version, the task instances in these states; with ``left`` also what of cancelled ones never
    ran. Each row has the ``total``, ``counted`` at most, how many of these are ``mapped``, and how many are in which of the
    ``states``.
    """
    params = {"run_keys": numbers(run_keys), **key_columns(keys), "states": words(states), "limit": limit, "counted": counted}
    params["left_by"] = Ender.CANCEL if left else None
    return await (await conn.cursor(row_factory=dict_row).execute(sql("operations/list_touched"), params)).fetchall()


async def count_states(conn: AsyncConn, run_keys: Iterable[int]) -> tuple[dict[str, int], int]:
    """Returns how many task instances of these runs are in which state, and how many of all are of mapped tasks."""
    rows = await (await conn.execute(sql("operations/count_states"), {"run_keys": numbers(run_keys)})).fetchall()
    return {state: n for state, n, _ in rows}, sum(mapped for _, _, mapped in rows)


async def list_outside(conn: AsyncConn, run_keys: Iterable[int]) -> list[tuple[str, OutsideWork]]:
    """Returns what the tries of these runs have outside, each with its run."""
    params = {"run_keys": numbers(run_keys), "limit": OUTSIDE_NAMED}
    rows = await (await conn.execute(sql("operations/list_outside"), params)).fetchall()
    return [(run_id, OutsideWork(kind, name, task_id, map_index)) for kind, name, task_id, map_index, run_id in rows]


async def request(conn: AsyncConn, run_keys: Iterable[int], operation: Operation) -> None:
    """Asks the schedulers for an operation on each of these runs."""
    params = {"run_keys": numbers(run_keys), "payload": msgspec.json.encode(operation).decode()}
    await conn.execute(sql("operations/request"), params)


async def delete_runs(conn: AsyncConn, run_keys: Iterable[int]) -> int:
    """Deletes those of these runs that have ended, with everything of them in the database; returns how many. The rest of a large
    run goes in parts, see ``retention.delete_garbage``.
    """
    params = {"run_keys": numbers(run_keys), "whole": DELETED_AT_ONCE, "history": True}
    cursor = await conn.execute(sql("operations/delete_runs"), params)
    return len(await cursor.fetchall())


async def list_run_events(conn: AsyncConn, run_key: int, *, limit: int, after: str | None) -> list[Row]:
    params = {"run_key": run_key, "limit": limit, "after": after}
    return await read(conn, "views/list_run_events", params)


async def list_task_events(
    conn: AsyncConn, run_key: int, *, task_id: str, map_index: int | None, limit: int, after: str | None
) -> list[Row]:
    params = {"run_key": run_key, "task_id": task_id, "map_index": map_index, "limit": limit, "after": after}
    return await read(conn, "views/list_task_events", params)
