"""A history that was made long by repeating it breaks no limit, and each of its parts is one of its own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from evenflow.insights.engines import DuckDb

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))

import insights

TIMES = 3


@pytest.mark.system
def test_a_history_again_and_again_is_as_right_as_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-SP4: no violation, so no run, transaction or dispatch is there twice, and none is left open on the day before."""
    monkeypatch.setattr(insights, "MADE_UP", 1_000)
    once, often = tmp_path / "once", tmp_path / "often"
    made = insights.write_sample(once, 1_000, ends=True)
    assert insights.write_history(often, made * TIMES) == made * TIMES
    assert len(list((often / "bronze" / "runs").iterdir())) == TIMES
    engine = DuckDb()
    for lake in (once, often):
        engine.make(lake)
    assert engine.rows(often, "violations") == []
    paths, more = (engine.rows(lake, "critical_members") for lake in (once, often))
    assert {(row["dag_id"], row["task_id"]): TIMES * row["us"] for row in paths} == {
        (row["dag_id"], row["task_id"]): row["us"] for row in more
    }
