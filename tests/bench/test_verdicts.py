"""What benchmarks say of what they saw: whether it was flat, and what chance alone would give."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))

from execution_free import _contention
from failover import FAULTS
from soak import FAULTS as SOAKED
from soak import growth_of

Points = list[tuple[float, float]]


def minutes(*values: float) -> Points:
    """Three looks at each value."""
    return [(20.0 * look, value) for look, value in enumerate(value for value in values for _ in range(3))]


@pytest.mark.parametrize(
    ("unit", "points", "flat"),
    [
        ("mb", minutes(50, 80, 80, 81, 80, 81, 80), True),  # what is loaded in the beginning is not growth
        ("mb", minutes(50, 60, 70, 80, 90, 100, 110), False),
        ("kb", minutes(100, 400, 100, 400, 100, 400, 100), True),
        ("kb", minutes(1_000, 4_000, 8_000, 12_000, 16_000, 20_000, 24_000), False),
        ("files", minutes(20, 20, 24, 28, 32, 36, 40), True),  # fewer than it swings by
    ],
)
def test_what_grows_over_the_last_two_thirds_is_not_flat(unit: str, points: Points, flat: bool) -> None:
    assert growth_of({f"{unit}:x": points})[f"{unit}:x"]["flat"] is flat


def test_of_what_is_kept_growth_is_told_and_not_judged() -> None:
    (told,) = growth_of({"history_kb:all": minutes(0, 100, 200, 300, 400, 500, 600)}).values()
    assert told["added"] > 350
    assert "flat" not in told


def test_a_few_looks_are_not_judged() -> None:
    (told,) = growth_of({"mb:api": minutes(30, 60, 90)}).values()
    assert "flat" not in told


@pytest.mark.parametrize(("schedulers", "dags", "percent"), [(2, 200, 0.5), (2, 300, 0.333), (3, 200, 1.495), (2, 1, 100.0)])
def test_contention_is_told_beside_the_birthday_formula(schedulers: int, dags: int, percent: float) -> None:
    """R-HA14."""
    counted = Counter({"picks": 1000, "contended": 5, "idle": 80, "working": 19, "lock": 1})
    shares = [Counter({"reports": 10 * n, "turns": n, "rounds": 1}) for n in range(1, schedulers)]
    told = _contention([counted, *shares], dags)
    assert told == {
        "picks": 1000,
        "contended_pct": 0.5,
        "birthday_pct": percent,
        "shares": [0, 1] if schedulers == 2 else [0, 0.33, 0.67],
        "turns": list(range(schedulers)),
        "rounds": [0] + [1] * (schedulers - 1),
        "looks": 100,
        "lock_wait_pct": 5.0,
    }


def test_a_scheduler_that_takes_too_long_or_a_task_that_begins_twice_misses_the_bar() -> None:
    unharmed = {"at_once": 0, "tries_used": 0, "not_successful": 0, "begun_twice": 0, "extra_s": 1.9, "longest_lag_s": 4.9}
    within = FAULTS["kill-scheduler"].within
    assert within(unharmed)
    assert not any(within({**unharmed, **worse}) for worse in ({"extra_s": 2.1}, {"begun_twice": 1}, {"tries_used": 1}))
    assert not FAULTS["stop-scheduler"].within({**unharmed, "longest_lag_s": 5.1})


def test_a_soak_strikes_services_hosts_wires_and_the_database() -> None:
    assert {"kill-scheduler", "freeze-host", "worker-half-open", "postgres-killed", "disk-full"} <= set(SOAKED)
