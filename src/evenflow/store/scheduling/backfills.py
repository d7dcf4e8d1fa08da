"""The runs of backfills, made as there is room. For the scheduler."""

from __future__ import annotations

from typing import NamedTuple

from evenflow.store.db.rows import Conn, execute, row_of


class OpenBackfill(NamedTuple):
    backfill_id: int
    room: int  # how many more of its runs may be active


def take_open(conn: Conn, *, limit: int) -> list[OpenBackfill]:
    return list(map(row_of(OpenBackfill), execute(conn, "backfills/take_open", {"limit": limit}).fetchall()))


def make_runs(conn: Conn, backfill: OpenBackfill) -> int:
    """How many dates were gone through; those that are passed over need no room."""
    return execute(conn, "backfills/make_runs", {"backfill_id": backfill.backfill_id, "room": backfill.room}).rowcount


def end_finished(conn: Conn) -> None:
    execute(conn, "backfills/end_finished")
