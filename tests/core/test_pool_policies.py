"""What a pool's policy lets smaller tasks do while a big one does not fit: each against a scan of its own (R-ST11)."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evenflow.core.selection.lanes import Lane, LimitClass
from tests.core.selection_model import ALL, Model, happen, small_model
from tests.core.test_selection import events

POOL, EXECUTOR, CAP = 1, 2, 3
PATIENCE_S = 3.0  # a step takes a second
STRICT = 0.0  # seconds of patience
QUIET = settings(max_examples=300, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))

pools = st.lists(st.sampled_from([2, 3, 4, 5, 9]), min_size=1, max_size=2)
some_events = st.lists(st.lists(events, max_size=6), min_size=1, max_size=12)


def go(model: Model, steps: list[list[tuple[str, int]]]) -> None:
    """A second a step: a whole round starts what the scan would, no limit is exceeded, and nothing startable is left at rest.

    A round may free a pool that it has kept, when it starts something else of the run that kept it: then another one follows.
    """
    since: dict[int, int] = {}
    for now, happenings in enumerate(steps):
        for what, number in happenings:
            happen(model, what, number)
        for lane in model.lanes.values():
            lane.waited_s = now - since.setdefault(lane.key, now)
        expected, started = model.exhaustive(), Counter[int]()
        decision = model.round(ALL, ALL)
        for lane, count in decision.grants:
            started[lane.key] += count
        assert started == expected
        if decision.again:
            model.rounds(ALL, ALL)
        assert model.exhaustive() == {}
        assert model.stranded() == []


@settings(QUIET)
@given(pools, some_events)
def test_strict_equals_a_scan_that_stops_at_what_does_not_fit(slots: list[int], happenings: list[list[tuple[str, int]]]) -> None:
    """The first task that only the pool's slots keep back keeps the pool: nothing of lower order starts there."""
    model = small_model(slots, [50, 50], heads=ALL)
    model.patience = dict.fromkeys(range(1, len(slots) + 1), STRICT)
    go(model, happenings)


@settings(QUIET)
@given(pools, some_events)
def test_reserve_after_equals_a_scan_that_stops_at_what_has_waited(
    slots: list[int], happenings: list[list[tuple[str, int]]]
) -> None:
    """The first such task of its base keeps the pool once it has waited so long; until then smaller ones pass."""
    model = small_model(slots, [50, 50], heads=ALL)
    model.patience = dict.fromkeys(range(1, len(slots) + 1), PATIENCE_S)
    go(model, happenings)


@settings(QUIET)
@given(pools, some_events)
def test_backfill_equals_a_scan_that_skips_what_does_not_fit(slots: list[int], happenings: list[list[tuple[str, int]]]) -> None:
    go(small_model(slots, [50, 50], heads=ALL), happenings)


def pool_with(patience: dict[int, float], *, waited_s: float) -> Model:
    """Two of three slots are free, a task of three waits, and then one of one."""
    limit_classes = {weight: LimitClass(weight, weight, POOL, EXECUTOR, "default", weight) for weight in (1, 3)}
    model = Model(capacity={POOL: 3, EXECUTOR: 9, CAP: 0}, limit_classes=limit_classes, patience=patience)
    model.add((0, 1, 9, ()), 1)
    model.rounds()
    model.add((0, 3, 2, ()), 1)
    model.add((0, 1, 1, ()), 1)
    _lane(model, weight=3).waited_s = waited_s
    return model


def _lane(model: Model, *, weight: int) -> Lane:
    return next(lane for lane in model.lanes.values() if lane.class_id == weight)


@pytest.mark.parametrize(
    ("patience", "waited_s", "passes"),
    [({}, 1e9, True), ({POOL: 0.0}, 0.0, False), ({POOL: 5.0}, 4.9, True), ({POOL: 5.0}, 5.0, False)],
    ids=["backfill", "strict", "reserve_after, not yet", "reserve_after"],
)
def test_a_small_task_passes_a_big_one_as_the_policy_says(patience: dict[int, float], waited_s: float, passes: bool) -> None:
    model = pool_with(patience, waited_s=waited_s)
    decision = model.round()
    assert [lane.class_id for lane, _ in decision.grants] == ([1] if passes else [])
    assert list(decision.reserved) == ([] if passes else [POOL])
    model.finish(0)
    model.rounds()
    assert (3 in {one.lane.class_id for one in model.tries}) != passes  # once the slots are free, who kept them has them


def test_who_another_limit_keeps_back_keeps_no_pool() -> None:
    """A strict pool is kept only by who could use it."""
    model = pool_with({POOL: STRICT}, waited_s=0.0)
    _lane(model, weight=3).locals = (CAP,)
    assert [lane.class_id for lane, _ in model.round().grants] == [1]


def test_who_does_not_fit_uses_up_no_budget() -> None:
    """R-ST2: however many limit classes wait for slots, a round gets to what can start below them."""
    model = Model(capacity={POOL: 2, EXECUTOR: 9, CAP: 5}, patience={POOL: 1e9})
    for limit_class in range(1, 20):
        model.limit_classes[limit_class] = LimitClass(limit_class, limit_class, POOL, EXECUTOR, f"q{limit_class}", 3)
        model.add((0, limit_class, 2, ()), 1)
    model.limit_classes[99] = LimitClass(99, 99, CAP, EXECUTOR, "default", 1)
    model.add((0, 99, 1, ()), 1)
    assert sum(model.rounds(2).values()) == 1
