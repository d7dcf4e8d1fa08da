"""Decisions of branches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from evenflow.store.db.columns import arrays, numbers
from evenflow.store.db.rows import Conn, Rows, execute, row_of


class BranchDecision(NamedTuple):
    task_index: int  # of the branch
    map_index: int
    skipped: list[int]  # task indexes


def keep(conn: Conn, decisions: Sequence[tuple[int, int, int, Sequence[int]]]) -> None:
    """Decisions as (run_key, task_index, map_index, task indexes that are skipped); one of an earlier try is replaced."""
    run_keys, tasks, maps, skipped = zip(*decisions, strict=True)
    params = {"run_keys": numbers(run_keys), "tasks": numbers(tasks), "maps": numbers(maps), "skipped": arrays(skipped)}
    execute(conn, "branches/keep", params)


def read_standing(conn: Conn, run_key: int) -> Rows[BranchDecision]:
    """The decisions of a run whose branch is a success."""
    return Rows(execute(conn, "branches/read_standing", {"run_key": run_key}), row_of(BranchDecision))
