"""Ends of runs whose traces are to be sent, and the history that these are made from. For API servers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from psycopg.rows import args_row, dict_row

from evenflow.core.limits import MOST_COUNTED
from evenflow.store.db.columns import numbers
from evenflow.store.db.connect import AsyncConn, Row
from evenflow.store.db.sql import sql

_READER = "traces"  # of history


class DueTrace(NamedTuple):
    """``traceparent`` is null, too, when the run was deleted meanwhile."""

    run_key: int
    ended_at: datetime
    traceparent: str | None


async def look(conn: AsyncConn, *, age_s: float, most: int) -> int:
    """Notes runs that have ended since the look before, none while another API server looks. Returns how many were forgotten: they
    had waited for longer than ``age_s`` seconds, or more than ``most`` waited.
    """
    async with conn.transaction():
        if await (await conn.execute(sql("traces/lock_look"), {"reader": _READER})).fetchone() is None:
            return 0
        await conn.execute(sql("traces/look"), {"reader": _READER, "age_s": age_s})
        return (await conn.execute(sql("traces/drop_old"), {"age_s": age_s, "most": most})).rowcount


async def take_due(conn: AsyncConn, *, limit: int, again_s: float) -> list[DueTrace]:
    """Takes ends of runs. A caller that does not forget them or give them back leaves them to others after ``again_s`` seconds."""
    cursor = conn.cursor(row_factory=args_row(DueTrace))
    return await (await cursor.execute(sql("traces/take_due"), {"limit": limit, "again_s": again_s})).fetchall()


async def give_back(conn: AsyncConn, taken: Sequence[DueTrace]) -> None:
    await conn.execute(sql("traces/give_back"), _names(taken))


async def forget(conn: AsyncConn, taken: Sequence[DueTrace]) -> None:
    await conn.execute(sql("traces/forget"), _names(taken))


def _names(taken: Sequence[DueTrace]) -> dict[str, Any]:
    return {"run_keys": numbers(one.run_key for one in taken), "ended": [one.ended_at for one in taken]}


async def read_caller(conn: AsyncConn, run_key: int) -> str | None:
    """Returns the ``traceparent`` of the program that asked for the run; None when it said none."""
    row = await (await conn.execute(sql("traces/read_caller"), {"run_key": run_key})).fetchone()
    return None if row is None else row[0]


async def read_run(conn: AsyncConn, run_key: int, *, causes: int) -> Row | None:
    """Returns what a span of the run says, and at most ``causes`` runs that changed its assets; None when it was deleted."""
    cursor = conn.cursor(row_factory=dict_row)
    return await (await cursor.execute(sql("traces/read_run"), {"run_key": run_key, "causes": causes})).fetchone()


async def list_run_moves(conn: AsyncConn, run_key: int) -> list[tuple[Any, ...]]:
    return await (await conn.execute(sql("traces/list_run_moves"), {"run_key": run_key})).fetchall()


async def list_moves(conn: AsyncConn, run_key: int, *, after: tuple[int, int], limit: int) -> list[tuple[Any, ...]]:
    """Returns moves of the task instances behind the one with this task and map index, each instance's together and in order."""
    names = {"run_key": run_key, "task_index": after[0], "map_index": after[1], "limit": limit}
    return await (await conn.execute(sql("traces/list_moves"), names)).fetchall()


async def count_due(conn: AsyncConn) -> int:
    """Counts up to :data:`MOST_COUNTED`."""
    row = await (await conn.execute(sql("traces/count_due"), {"most": MOST_COUNTED})).fetchone()
    return 0 if row is None else int(row[0])
