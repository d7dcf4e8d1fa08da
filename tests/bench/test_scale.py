"""The simulation of large systems: its parts alone, and that a system does what it is asked while nothing binds."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))

from scale import Costs, Disk, Simulation, Station, System

SMALL = System(tasks_per_s=50, ran_s=2.0, workers=5, schedulers=3, apis=1, cores=2, for_s=10.0)


def test_commits_that_come_during_a_flush_share_the_next() -> None:
    disk = Disk(1.0)
    assert [disk.commit(at) for at in (10.0, 10.2, 10.9, 11.5, 14.0)] == [11.0, 12.0, 12.0, 13.0, 15.0]
    assert disk.flushes == 4


def test_a_station_with_two_servers_serves_two() -> None:
    station = Station(2)
    assert [station.serve(0.0, 1.0) for _ in range(3)] == [1.0, 1.0, 2.0]


def test_what_is_asked_is_carried() -> None:
    """R-ST5"""
    result = Simulation(SMALL, Costs()).run()
    assert result["started_per_s"] == pytest.approx(50, rel=0.15)
    assert result["ready_to_claimed_s"]["p99"] < 0.05


def test_a_scheduler_that_is_too_slow_binds() -> None:
    """R-ST5: and waits say so."""
    costs = replace(Costs(), task_python=0.05)
    result = Simulation(replace(SMALL, schedulers=1), costs).run()
    assert result["binds_first"] == "schedulers"
    assert result["ready_to_claimed_s"]["median"] > 0.2
