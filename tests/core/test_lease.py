"""Both sides of a lease, each by its own clock."""

from __future__ import annotations

import random

from evenflow.core.lease import Lease, LeaseClock
from evenflow.core.limits import API_SILENCE_S, BEAT_S, LEASE_S, MARGIN_S, PULSE_S, STANDSTILL_S

NOW = 1_000.0


def test_a_clock_that_is_ticked_counts() -> None:
    clock = LeaseClock(NOW, NOW - 100)
    ticked = clock.tick(NOW + 1, api_heard_at=NOW)
    assert ticked == LeaseClock(NOW + 1, NOW - 100)
    assert ticked.lost_before() == NOW + 1 - LEASE_S


def test_after_a_gap_every_lease_begins_anew() -> None:
    """R-CS7: the database was down, or all schedulers, or its clock was set forward."""
    back = NOW + STANDSTILL_S + 0.1
    clock = LeaseClock(NOW, NOW - 100).tick(back, api_heard_at=back)
    assert clock is not None
    assert clock.lost_before() is None
    later = clock
    while later.ticked_at < back + LEASE_S:
        assert later.lost_before() is None
        later = later.tick(later.ticked_at + 1, api_heard_at=later.ticked_at) or later
    assert later.lost_before() == later.ticked_at - LEASE_S


def test_a_clock_that_was_set_back_is_a_gap_too() -> None:
    clock = LeaseClock(NOW, NOW - 100).tick(NOW - 3600, api_heard_at=NOW - 3600)
    assert clock == LeaseClock(NOW - 3600, NOW - 3600)
    assert clock.lost_before() is None


def test_the_count_stands_still_without_an_api_server() -> None:
    """R-CS7: nobody could be heard."""
    clock = LeaseClock(NOW, NOW - 100)
    assert clock.tick(NOW + 1, api_heard_at=None) is None
    assert clock.tick(NOW + 1, api_heard_at=NOW + 1 - API_SILENCE_S - 0.1) is None
    assert clock.tick(NOW + 1, api_heard_at=NOW + 1 - API_SILENCE_S) is not None


def test_the_holder_stops_before_the_end() -> None:
    lease = Lease()
    assert not lease.holds(0.0)
    lease.renew(10.0, LEASE_S)
    assert lease.holds(10.0 + LEASE_S - MARGIN_S - 0.01)
    assert not lease.holds(10.0 + LEASE_S - MARGIN_S)
    lease.renew(5.0, LEASE_S)
    assert lease.until == 10.0 + LEASE_S - MARGIN_S, "an answer that was overtaken shortens nothing"


def test_the_numbers_fit_together() -> None:
    """What :mod:`evenflow.core.lease` says of them."""
    assert 3 * PULSE_S <= STANDSTILL_S <= MARGIN_S, "a step of the clock that is not seen is smaller than the margin"
    assert API_SILENCE_S + BEAT_S + 2 * PULSE_S < LEASE_S, "when the count stops, everybody who beat until then has time left"
    assert LEASE_S >= 4 * BEAT_S


def test_nobody_loses_what_its_holder_still_works_on() -> None:
    """R-CS7, by chance: beats that are lost, outages of the database and of the API, steps of the database's clock, late ticks."""
    for seed in range(400):
        _one_story(random.Random(seed))


def _one_story(chance: random.Random) -> None:
    real, step, skew = 0.0, 0.1, chance.uniform(-1e6, 1e6)  # the database's clock is real + skew; the holder's is real
    clock, lease = LeaseClock(skew, skew), Lease()
    lease.renew(0.0, LEASE_S)
    beat_at = api_heard_at = skew
    next_beat = next_api = next_tick = 0.0
    database_back = api_back = link_back = 0.0
    while real < 200:
        real += step
        if chance.random() < 0.002:
            database_back = real + chance.expovariate(1 / 20)
        if chance.random() < 0.002:
            api_back = real + chance.expovariate(1 / 20)
        if chance.random() < 0.004:
            link_back = real + chance.expovariate(1 / 12)
        if chance.random() < 0.002:
            skew += chance.choice([-1, 1]) * chance.choice([3600.0, 20.0, STANDSTILL_S + PULSE_S])
        if real < database_back:
            continue
        if real >= max(next_api, api_back):
            next_api, api_heard_at = real + BEAT_S, real + skew
        if real >= max(next_beat, api_back, link_back):
            next_beat, beat_at = real + BEAT_S, real + skew
            if chance.random() < 0.9:  # else the answer is lost
                lease.renew(real - chance.uniform(0, step), LEASE_S)
        if real >= next_tick:
            next_tick = real + PULSE_S + (chance.expovariate(1 / 2) if chance.random() < 0.02 else 0)
            ticked = clock.tick(real + skew, api_heard_at=api_heard_at)
            if ticked is None:
                continue
            if ticked.ticked_at < clock.ticked_at:
                beat_at, api_heard_at = min(beat_at, real + skew), min(api_heard_at, real + skew)
            clock = ticked
            before = clock.lost_before()
            if before is not None and beat_at < before:
                assert not lease.holds(real), (real, lease, clock)
                return
