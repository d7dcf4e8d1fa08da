"""How large a fleet is to be: loads that people know, and any."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bench.fleet_simulation import Fleet, evenflow
from evenflow.core.scaling.policy import Algorithm, ScalingPolicy
from evenflow.core.scaling.sizing import GAP_S, LoadHistory, Look, decide, load_of, replicas_for, slots_needed

QUIET = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # a busy machine is no finding
PLAIN = ScalingPolicy(min=0, max=20, slots=10, up_after=5, down_after=60, up_rate=100, down_rate=100)


def decided(demands: list[int], policy: ScalingPolicy, *, size: int = 0, every_s: float = 1.0) -> list[int]:
    """The size after each look."""
    history, sizes = LoadHistory(), []
    for number, demand in enumerate(demands):
        history.add(Look(at=number * every_s, running=0, waiting=demand, replicas=size), policy)
        to = decide(history, policy).replicas
        if to != size:
            history.moved(number * every_s, to - size)
        size = to
        sizes.append(size)
    return sizes


def test_nothing_waits_for_a_fleet_of_none() -> None:
    """R-AS7: from zero at once, to what is needed, without a look before."""
    assert decided([35], PLAIN) == [5]  # 35 slots at a load of 0.8 are 43.75
    assert decided([0], PLAIN) == [0]


def test_a_load_has_to_last_before_a_fleet_grows() -> None:
    """R-AS2: above A for B seconds, in every look of them."""
    assert decided([30, 0, 30, 0, 30, 0, 30, 0, 30], PLAIN, size=2) == [2] * 9
    assert decided([30] * 7, PLAIN, size=2) == [2, 2, 2, 2, 2, 4, 4]


def test_a_fleet_shrinks_to_the_most_that_was_needed_in_all_of_the_time() -> None:
    """R-AS2: below X for Y seconds; what came up meanwhile counts until it is Y seconds old."""
    sizes = decided([*[30] * 10, *[0] * 30, 30, *[0] * 61], PLAIN, size=10)
    assert sizes == [10] * 60 + [4] * 41 + [0]
    assert decided([*[30] * 61], PLAIN, size=10)[-2:] == [10, 4]
    assert decided([*[0] * 61], PLAIN, size=10)[-1] == 0


def test_rates_up_and_down_are_apart() -> None:
    """R-AS2: so many replicas a minute either way, whatever the other did."""
    policy = ScalingPolicy(min=0, max=20, slots=10, up_after=0, down_after=0, up_rate=6, down_rate=2, down_load=0.5)
    sizes = decided([200] * 130, policy)
    assert [sizes[at] for at in (0, 59, 60, 119, 120)] == [6, 6, 12, 12, 18]
    sizes = decided([0] * 130, policy, size=5)
    assert [sizes[at] for at in (0, 59, 60, 119, 120)] == [3, 3, 1, 1, 0]


def test_a_clock_that_is_set_back_holds_no_fleet() -> None:
    """What moved in a time that is to come again counts for a minute from now on, or a fleet would wait for that time."""
    policy = ScalingPolicy(min=0, max=20, slots=10, up_after=0, down_after=10, up_rate=6)
    history, size, sizes = LoadHistory(), 0, []
    for at in (3_600.0, 3_601.0, 10.0, 69.0, 71.0):
        history.add(Look(at=at, running=0, waiting=200, replicas=size), policy)
        if by := decide(history, policy).replicas - size:
            history.moved(at, by)
        size += by
        sizes.append(size)
    assert sizes == [6, 6, 6, 6, 12]
    assert [look.at for look in history.looks] == [69.0, 71.0]


def test_a_gap_in_what_was_seen_proves_nothing() -> None:
    """R-AS3: who takes over does not shrink a fleet by what another saw before nobody looked."""
    history = LoadHistory()
    for at in [*range(50), *range(50 + int(GAP_S) + 1, 80)]:
        history.add(Look(at=float(at), running=0, waiting=0, replicas=4), PLAIN)
        assert decide(history, PLAIN).replicas == 4


def test_bounds_that_people_change_hold_at_once() -> None:
    history = LoadHistory()
    history.add(Look(at=0.0, running=0, waiting=0, replicas=0), PLAIN)
    assert decide(history, ScalingPolicy(min=3)).replicas == 3
    history.add(Look(at=1.0, running=300, waiting=0, replicas=20), PLAIN)
    assert decide(history, ScalingPolicy(max=8)).replicas == 8


def test_slots_of_others_are_not_asked_for_again() -> None:
    """R-AS1: load is what is needed over all that is there, also workers of no fleet."""
    look = Look(at=0.0, running=40, waiting=40, replicas=0, others=100)
    assert replicas_for(slots_needed(look, PLAIN), look, PLAIN) == 0
    assert load_of(80, look, PLAIN) == 0.8


def test_latency_needs_fewer_slots_for_short_tasks_and_all_for_long_ones() -> None:
    policy = ScalingPolicy(algorithm=Algorithm.LATENCY, wait=10.0, slots=10, max=100)
    short = Look(at=0.0, running=10, waiting=1_000, duration=0.05, replicas=1)
    assert slots_needed(short, policy) == pytest.approx(15)
    long = Look(at=0.0, running=10, waiting=1_000, duration=600.0, replicas=1)
    assert slots_needed(long, policy) == 1_010


def test_a_forecast_counts_as_what_waits() -> None:
    look = Look(at=0.0, running=0, waiting=0, expected=25, replicas=0)
    history = LoadHistory()
    history.add(look, PLAIN)
    assert decide(history, PLAIN).replicas == 4


@QUIET
@given(demand=st.integers(0, 1_000), size=st.integers(0, 20), slots=st.integers(1, 64), target=st.floats(0.3, 1.0))
def test_a_load_that_stays_makes_one_move_at_most(demand: int, size: int, slots: int, target: float) -> None:
    """R-AS2: wherever a fleet begins, and whatever is needed."""
    policy = ScalingPolicy(
        min=0, max=20, slots=slots, target_load=target, up_load=1.0, down_load=target / 2, down_after=20, up_rate=100, down_rate=100
    )
    sizes = [size, *decided([demand] * 60, policy, size=size)]
    assert sum(a != b for a, b in pairwise(sizes)) <= 1
    if demand > policy.up_load * size * slots:
        assert sizes[-1] == min(20, math.ceil(demand / target / slots - 1e-9))


@QUIET
@given(
    demands=st.lists(st.integers(0, 500), min_size=1, max_size=150),
    size=st.integers(0, 30),
    low=st.integers(0, 5),
    up_rate=st.integers(1, 10),
    down_rate=st.integers(1, 10),
)
def test_whatever_comes_a_fleet_keeps_its_bounds_and_rates(
    demands: list[int], size: int, low: int, up_rate: int, down_rate: int
) -> None:
    """R-AS2: never out of bounds, unless it was and the rate lets it back no faster; never more than the rate in any minute."""
    policy = ScalingPolicy(min=low, max=20, slots=10, up_after=2, down_after=5, up_rate=up_rate, down_rate=down_rate)
    sizes = [size, *decided(demands, policy, size=size)]
    steps = [b - a for a, b in pairwise(sizes)]
    for at in range(len(steps)):
        minute = steps[at : at + 60]
        assert sum(step for step in minute if step > 0) <= up_rate
        assert -sum(step for step in minute if step < 0) <= down_rate
    for before, after in pairwise(sizes):
        assert low <= after <= 20 or low > after >= before or 20 < after <= before


@QUIET
@given(high=st.integers(50, 150), low=st.integers(0, 40), period=st.integers(2, 50))
def test_a_sawtooth_shorter_than_the_patience_makes_no_swing(high: int, low: int, period: int) -> None:
    """R-AS2: it grows to the peak and stays there while peaks return within Y."""
    tooth = [low + (high - low) * step // period for step in range(period)]
    sizes = decided((tooth * 400)[:400], PLAIN, size=0)
    steps = [b - a for a, b in pairwise(sizes)]
    assert all(step >= 0 for step in steps)


def test_a_step_a_sawtooth_and_a_day_make_as_few_turns_as_there_are_hills() -> None:
    """R-AS2, R-AS7: simulated with workers that take 10 s to start; it goes down to none and comes back, and no task waits long."""
    policy = ScalingPolicy(min=0, max=20, slots=10, up_after=5, down_after=120)
    step = [(100.0 + n / 2, 20.0) for n in range(1_200)]  # 40 slots for ten minutes
    outcome = Fleet(step, slots=10, start_s=10).run(evenflow(policy), until=1_500, every_s=1)
    assert outcome.turns == 1
    assert outcome.sizes[-1][1] == 0
    assert outcome.wait(0.95) < 11
    teeth = [(600.0 * tooth + 300 * (n / 600) ** 0.5, 10.0) for tooth in range(6) for n in range(600)]
    outcome = Fleet(teeth, slots=10, start_s=10).run(evenflow(policy), until=3_600, every_s=1)
    assert outcome.turns <= 2 * 6
    assert outcome.wait(0.95) < 15
    rate = [1 - math.cos(2 * math.pi * hour / 24) for hour in range(24)]  # tasks in two seconds
    day = [(3_600.0 * hour + n / rate[hour], 30.0) for hour in range(24) for n in range(int(3_600 * rate[hour]))]
    outcome = Fleet(day, slots=10, start_s=10, size=1).run(evenflow(policy), until=86_400, every_s=5)
    assert outcome.turns <= 3
    assert outcome.wait(0.99) < 15
