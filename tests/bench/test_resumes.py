"""What the d shapes say is what tasks wrote."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))

from resumes import Plan, _running, _told
from shapes import SHAPES

PLAN = Plan(low=2, defer_s=1.0, together=False, high=2, sleep_s=10.0)
LINES = ["low t0 1 100.0 100.25", "low t1 1 101.0 101.05", "high begin 99.0", "high begin 99.5", "high end 100.5"]


def told(*lines: str) -> dict[str, object]:
    return _told(PLAN, [line.split() for line in lines])


def test_what_tasks_wrote() -> None:
    line = told(*LINES)
    assert line["ok"]
    assert line["resumes"] == 2
    assert line["fire_to_resume_s"] == {"median": 0.25, "p95": 0.25, "p99": 0.25, "max": 0.25}
    assert line["high_at_fire"] == {"least": 1, "median": 1}
    assert line["fires_within_s"] == 1.0


@pytest.mark.parametrize("lines", [LINES[1:], [LINES[0], *LINES], LINES[2:]])
def test_a_resume_that_is_missing_or_doubled_shows(lines: list[str]) -> None:
    assert not told(*lines)["ok"]


def test_how_many_run() -> None:
    assert _running([(3.0, "end"), (1.0, "begin"), (2.0, "begin")], [0.5, 1.0, 2.5, 9.0]) == [0, 1, 2, 1]


def test_low_tasks_wait_as_long_as_slots_are_full() -> None:
    full = Plan.of(SHAPES["d_full"], busy_s=None)
    assert 500 < full.waits * full.defer_s < 600
    assert Plan.of(SHAPES["d_full"], busy_s=30.0).waits == 2
    assert Plan.of(SHAPES["d_busy"], busy_s=None).waits == 1
    assert Plan.of(SHAPES["d_many"], busy_s=None).together
    for shape in ("d_idle", "d_busy", "d_full", "d_many"):
        compile(Plan.of(SHAPES[shape], busy_s=None).file(Path("/tmp/times")), shape, "exec")
