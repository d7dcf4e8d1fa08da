"""Benchmarks of autoscalers, made small: they measure what they say."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))

import autoscaler_steps
import fleet_week
import from_zero
import sawtooth
import scaling_decision


def test_a_week_is_drawn_and_each_scaler_has_the_same_tasks(tmp_path: Path) -> None:
    """R-AS2: beside others, which end what runs, fewer worker-hours with no longer waits."""
    drawn = tmp_path / "week.svg"
    [result] = fleet_week.run(days=0.2, plot=drawn)
    assert "<svg" in drawn.read_text()
    assert result["evenflow"]["evicted"] == 0
    assert result["keda_queue"]["evicted"] > 0
    assert result["tasks"] == len(fleet_week.week(0.2))
    assert result["hpa_memory"]["turns"] == 0, "what a process has once taken it keeps, so it never shrinks"


@pytest.mark.system
def test_a_decision_is_measured_with_all_slots_taken() -> None:
    [result] = scaling_decision.run(workers=20, waiting=500, number=10)
    assert (result["workers"], result["waiting"]) == (20, 500)
    assert 0 < result["decision_s"]["median"] <= result["decision_s"]["p99"]


@pytest.mark.slow
@pytest.mark.parametrize("target", autoscaler_steps.TARGETS)
def test_whoever_stands_by_restores_a_fleet_after_any_step(target: str) -> None:
    """R-AS3, here after each seventh step."""
    [result] = autoscaler_steps.run(target=target, every=7)
    assert (result["not_restored"], result["which"]) == (0, [])
    assert result["deaths"] >= 4


@pytest.mark.slow
@pytest.mark.parametrize("target", sawtooth.TARGETS)
def test_nothing_is_evicted_while_a_fleet_is_cut_and_made_large_again(target: str) -> None:
    """R-AS6"""
    [result] = sawtooth.run(target=target, tasks=600, many=6)
    assert (result["done"], result["evicted"], result["retried"]) == (result["tasks"], 0, 0)
    assert result["cuts"] > 0


@pytest.mark.slow
def test_a_burst_is_done_though_there_was_no_worker() -> None:
    """R-AS7"""
    [result] = from_zero.run(tasks=50)
    assert result["states"] == {"success": 50}
    assert result["workers"] > 0
