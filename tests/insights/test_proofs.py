"""Every violation that is put into a history is told, and of one that is right nothing is."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from evenflow.insights.engines import DuckDb
from evenflow.insights.export import export
from tests.insights.decided import decide
from tests.insights.seeding import History, seed


@pytest.mark.system
def test_fifty_violations_are_found_and_a_clean_history_has_none(tmp_path: Path) -> None:
    """R-ST1, R-CS3: limits, moves, and that each happens once."""
    history = History(40_000, seed=3)
    history.write(tmp_path)
    DuckDb().make(tmp_path)
    assert DuckDb().rows(tmp_path, "violations") == []
    seeds = seed(history, 50)
    history.write(tmp_path)
    DuckDb().make(tmp_path)
    violations = DuckDb().rows(tmp_path, "violations")
    assert [seed.what for seed in seeds if not seed.is_found(violations)] == []


def test_what_a_scheduler_did_is_proven(db: psycopg.Connection, tmp_path: Path) -> None:
    """R-ST1, R-SP4: a narrow pool, a cap of a run, a mapped task, retries and a clear, as a real scheduler decides them."""
    decide(db)
    export(db, tmp_path)
    engine = DuckDb()
    engine.make(tmp_path)
    assert engine.rows(tmp_path, "violations") == []
    used = {row["name"]: row["most"] for row in engine.rows(tmp_path, "slot_use") if row["kind"] == "pool"}
    assert used["narrow"] == 2, "the pool was full, and never more"
    assert any(row["cause"] == "pool" or row["cause"] == "run cap" for row in engine.rows(tmp_path, "wait_by_cause"))
