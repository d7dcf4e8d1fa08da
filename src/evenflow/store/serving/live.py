"""What has moved since a page looked last."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from evenflow.store.db.connect import AsyncConn
from evenflow.store.db.sql import sql


class LiveMoves(NamedTuple):
    """``cursor`` is a snapshot of the database, as text: the next look goes on behind it. ``is_cut``: not all is told."""

    cursor: str
    is_cut: bool
    runs: list[dict[str, Any]]  # dag_id, run_id, state, tasks, and in which of the scopes it is


async def read_moves(
    conn: AsyncConn, since: str | None, *, dags: Iterable[str], scopes: Iterable[str], moves: int, tasks: int, age: int
) -> LiveMoves:
    """``since`` null: nothing but where to go on from. ``dags``: whose tasks are told, so many ``tasks`` of a run, and one more
    where there are more. ``scopes`` are those of who listens. ``age``: transactions.
    """
    names = {"since": since, "dags": sorted(dags), "scopes": sorted(scopes), "moves": moves, "tasks": tasks, "age": age}
    row = await (await conn.execute(sql("views/read_moves"), names, prepare=False)).fetchone()
    assert row is not None
    return LiveMoves(*row)
