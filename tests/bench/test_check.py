"""The gate says which figure moved, and is not misled by a machine that is slower today."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))

from check import BASELINE, CASES, COUNTED, Figure, compare, counted, figures_of
from run import SHAPES

RATE = Figure("tasks_per_s", "rate", 0.1)
LAG = Figure("lag_s.median", "time", 0.1)
BYTES = Figure("wal_bytes_per_task", "count", 0.1)
IDLE = Figure("wide_slots_idle_pct", "points", 1.0)
ALL = (RATE, LAG, BYTES, IDLE)


def lines(speed: float, **more: Any) -> list[dict[str, Any]]:
    cold = {"cold": True, "tasks_per_s": 1.0, "lag_s": {"median": 9.0}, "wal_bytes_per_task": 9_000, "wide_slots_idle_pct": 90.0}
    warm = {"cold": False, "tasks_per_s": 4_000 * speed, "lag_s": {"median": 0.01 / speed}, "wal_bytes_per_task": 2_000}
    return [cold, {**warm, "wide_slots_idle_pct": 5.0, **more}]


def test_a_slower_machine_moves_nothing() -> None:
    """R-ST5"""
    base = {"wide_slots_idle_pct": 4.0}
    before, now = (figures_of(ALL, lines(speed), 1 / (8_000 * speed), base) for speed in (1.0, 0.5))
    assert before == now == {"tasks_per_s": 0.5, "lag_s.median": 80.0, "wal_bytes_per_task": 2_000, "wide_slots_idle_pct": 1.0}
    assert not any(row.worse or row.better for row in compare("x", ALL, before, now))


def test_what_is_counted_is_kept() -> None:
    """On a machine that others use, too, the gate compares these."""
    assert {figure.path for figures in CASES.values() for figure in counted(figures)} == COUNTED
    kept = json.loads(BASELINE.read_text())
    assert set(kept) <= set(CASES)
    assert {figure.path for figure in counted(CASES["a_i"])} <= set(kept["a_i"])


@pytest.mark.parametrize(
    ("change", "figure", "better"),
    [
        ({"tasks_per_s": 3_500}, "tasks_per_s", False),
        ({"tasks_per_s": 4_500}, "tasks_per_s", True),
        ({"lag_s": {"median": 0.012}}, "lag_s.median", False),
        ({"wal_bytes_per_task": 1_500}, "wal_bytes_per_task", True),
        ({"wide_slots_idle_pct": 6.5}, "wide_slots_idle_pct", False),
    ],
)
def test_the_figure_that_moved_is_named(change: dict[str, Any], figure: str, better: bool) -> None:
    """R-ST5"""
    base = {"wide_slots_idle_pct": 4.0}
    before, now = (figures_of(ALL, given, 1 / 8_000, base) for given in (lines(1.0), lines(1.0, **change)))
    moved = {row.figure: row.better for row in compare("x", ALL, before, now) if row.worse or row.better}
    assert moved == {figure: better}


def test_what_both_do_not_have_is_not_compared() -> None:
    assert [row.figure for row in compare("x", ALL, {"tasks_per_s": 1.0, "lag_s.median": 2.0}, {"tasks_per_s": 1.0})] == [
        "tasks_per_s"
    ]


def test_each_case_of_the_gate_is_a_shape() -> None:
    assert CASES.keys() <= SHAPES.keys()
