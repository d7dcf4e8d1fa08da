"""The round against an exhaustive greedy scan, on workloads that hypothesis makes, with queues loaded a few lanes at a time."""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evenflow.core.selection.lanes import WOKEN, Lane, LimitClass, saturated
from tests.core.selection_model import ALL, MAPPED, Model, happen, small_model

Steps = list[tuple[list[tuple[str, int]], tuple[int, int]]]

EVENTS = (
    "ready",
    "ready",
    "ready",
    "mapped",
    "finish",
    "finish",
    "retry",
    "clear",
    "defer",
    "capacity",
    "mark",
    "cancel",
    "pause",
    "close",
)
BOUNDS = ((1, 3), (2, ALL), (500, 1), (500, ALL))  # of one round: lanes touched, tasks started
QUIET = settings(max_examples=1_000, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))

models = st.builds(
    small_model,
    st.lists(st.sampled_from([1, 2, 3, 5, 9]), min_size=1, max_size=3),
    st.tuples(st.sampled_from([1, 4, 50]), st.sampled_from([2, 50])).map(list),
    heads=st.sampled_from([2, 3, 32]),
    by_base=st.booleans(),
)
events = st.tuples(st.sampled_from(EVENTS), st.integers(0, 2**16))
steps = st.lists(st.tuples(st.lists(events, max_size=6), st.sampled_from(BOUNDS)), min_size=1, max_size=12)


def agrees(model: Model, steps: Steps) -> None:
    """After each step the rounds start what the scan would, nothing startable is left, and the invariant holds."""
    for happenings, bounds in steps:
        for what, number in happenings:
            happen(model, what, number)
        expected = model.exhaustive()
        assert model.rounds(*bounds) == expected
        assert model.exhaustive() == {}
        assert model.stranded() == []


@pytest.mark.system
@settings(QUIET)
@given(models, steps)
def test_decisions_equal_an_exhaustive_scan(model: Model, steps: Steps) -> None:
    """R-ST1, R-ST2, R-ST3: whatever becomes ready, ends, is tried again, cleared, deferred, marked, cancelled or paused, and
    however capacities rise and fall, and pools, executors and queues are closed and opened, in between (R-DQ7).
    """
    agrees(model, steps)


@pytest.mark.slow
@pytest.mark.timeout(900)
@settings(QUIET, max_examples=25_000, derandomize=False)
@given(models, steps)
def test_decisions_equal_an_exhaustive_scan_at_length(model: Model, steps: Steps) -> None:
    """As above, other workloads each time."""
    agrees(model, steps)


@pytest.mark.parametrize("seed", range(80))
def test_decisions_equal_an_exhaustive_scan_for_long(seed: int) -> None:
    """R-ST2, R-ST3: states that only a long history reaches."""
    r = random.Random(seed)
    pools, executors = [r.choice([1, 2, 3, 5, 9]) for _ in range(r.randint(1, 3))], [r.choice([1, 4, 50]), 50]
    model = small_model(pools, executors, heads=r.choice([2, 3]), by_base=seed % 2 == 1)
    agrees(model, [([(r.choice(EVENTS), r.randrange(2**16)) for _ in range(6)], r.choice(BOUNDS)) for _ in range(60)])


POOL, EXECUTOR, SHARED = 1, 2, 3
BETTER, WORSE = (1, 1, 1, (SHARED,)), (0, 1, 1, (SHARED,))  # runs 1 and 0; odd runs come first


@pytest.fixture
def behind() -> Model:
    """Two lanes share a limit that has room: the better is open and waits for its pool, the worse is parked behind it."""
    limit_classes = {1: LimitClass(1, 1, POOL, EXECUTOR, "default", 1), 2: LimitClass(2, 2, 4, EXECUTOR, "default", 1)}
    model = Model(capacity={POOL: 1, EXECUTOR: 9, SHARED: 1, 4: 1}, limit_classes=limit_classes)
    model.add((1, 2, 1, (SHARED,)), 1)
    model.rounds()
    for kind in (BETTER, WORSE):
        model.add(kind, 1)
    model.rounds()
    model.add((1, 1, 0, ()), 1)
    model.rounds()
    model.finish(0)
    model.rounds()
    assert [model.lanes[kind].parked_on for kind in (BETTER, WORSE)] == [WOKEN, SHARED]
    assert model.stranded() == []
    return model


@pytest.mark.parametrize(("what", "number"), [("cancel", 1), ("mark", 0), ("pause", 1)])
@pytest.mark.parametrize("forgotten", [False, True])
def test_an_open_lane_that_vanishes_passes_its_wake_on(behind: Model, what: str, number: int, forgotten: bool) -> None:
    """R-ST2; and a mutation: the invariant notices when it is forgotten."""
    happen(behind, what, number)
    if forgotten:
        behind.released.clear()
    behind.rounds()
    assert bool(behind.stranded()) == forgotten


@pytest.mark.parametrize("forgotten", ["finish", "capacity"])
def test_a_release_that_opens_nobody_is_noticed(forgotten: str) -> None:
    """A mutation: the oracle or the invariant disagrees when a round is not told of what was released or raised."""
    for seed in range(100):
        r = random.Random(seed)
        model = small_model([2, 3], [50, 50], heads=2)
        for _ in range(100):
            what, before = r.choice(EVENTS), set(model.released)
            happen(model, what, r.randrange(2**16))
            if what == forgotten:
                model.released &= before
            if r.random() < 0.5:
                expected = model.exhaustive()
                if model.rounds() != expected or model.stranded():
                    return
    raise AssertionError("nobody noticed")


def test_a_round_touches_what_starts_and_not_the_backlog() -> None:
    """R-ST5: 2,000 runs at their caps, far above one runnable lane."""
    model = Model(capacity={1: 1000, 2: 10**6}, limit_classes={1: LimitClass(1, 1, 1, 2, "default", 1)})
    for run in range(2000):
        model.capacity[10 + run] = 1
        model.lanes[run, 1, 9, (10 + run,)] = Lane(run, 1, (0, -9, run, run), (10 + run,), 50)
    low = model.lanes[0, 1, 1, ()] = Lane(9999, 1, (0, -1, 0, 9999), (), 100_000)
    model.rounds()
    assert low.ready == 100_000  # 1,000 of the runs have taken the pool
    for _ in range(5):
        model.finish(0)
    decision = model.round(500)
    assert sum(count for _, count in decision.grants) == 5
    assert decision.touched <= 15


@pytest.mark.parametrize("by_base", [False, True])
@pytest.mark.parametrize(("runs", "tasks"), [(10, 10), (40, 40), (160, 10)])
def test_crossing_limits_cost_a_few_lanes_a_start(runs: int, tasks: int, by_base: bool) -> None:
    """R-ST5, the worst case for one witness: every run has a cap, every task has one across the runs and one in each run, so that
    each lane is blocked by several limits at once. Lanes touched and moved per start are bounded by the number of tasks of a DAG;
    how many runs there are does not matter.
    """
    model = Model(heads=ALL, by_base=by_base, capacity={1: runs * tasks, 2: 10**6})
    for task in range(tasks):
        model.capacity[100 + task] = 2
        model.limit_classes[task] = LimitClass(task, 0, 1, 2, "default", 1, 100 + task)
    for run in range(runs):
        model.capacity[1000 + run] = 2
        for task in range(tasks):
            own = 10_000 + run * tasks + task
            model.capacity[own] = 1
            model.add((run, task, task % 3, (own, 1000 + run)), 5)
    for _ in range(2):  # each lane is looked at once, and parks: what became ready pays for that
        model.rounds(ALL)
        model.finish(0)
    r = random.Random(1)
    starts = model.touched = model.moved = worst = 0
    for _ in range(300):
        before = model.touched
        model.finish(r.randrange(2**16))
        starts += sum(model.rounds(ALL).values())
        worst = max(worst, model.touched - before)
    assert starts >= 200
    assert model.touched / starts <= 1 + tasks / 2
    assert model.moved / starts <= 1 + tasks / 2
    assert worst <= 2 * tasks


def test_thousands_of_tasks_with_limits_of_their_own_cost_a_few_lanes_a_start() -> None:
    """R-ST5: whether a task's limit or the pool is full, a round by bases touches what starts and what newly blocks."""
    limit_classes, ahead = 1_000, 8
    model = Model(heads=ahead, by_base=True, capacity={1: limit_classes // 2, 2: 10**6})
    model.limit_classes[0] = LimitClass(0, 0, 1, 2, "default", 1)
    for limit_class in range(1, limit_classes + 1):
        model.capacity[10 + limit_class] = 1
        model.limit_classes[limit_class] = LimitClass(limit_class, 0, 1, 2, "default", 1, 10 + limit_class)
        for run in range(2):
            model.add((run, limit_class, 1, ()), 1)
    model.rounds()
    r = random.Random(1)
    starts = model.touched = 0
    for _ in range(300):
        model.finish(r.randrange(2**16))
        decision = model.round()
        starts += sum(count for _, count in decision.grants)
        assert not decision.again
    assert starts == 300
    assert model.touched <= 2 * starts


def test_a_mapped_backlog_is_one_lane() -> None:
    """R-ST6: what there is of it costs nothing."""
    model = small_model([5], [50, 50], heads=2)
    happen(model, "mapped", 0)
    (lane,) = model.lanes.values()
    assert lane.ready == MAPPED
    started = sum(model.rounds().values())
    assert lane.ready == MAPPED - started
    assert model.touched <= 2


def test_the_witness_is_the_narrowest_full_limit() -> None:
    lane = Lane(1, 1, (0,), (5, 6, 7), 1)
    limit_class = LimitClass(1, 1, 1, 2, "default", 1, 4)
    assert saturated(lane, limit_class, {4: 1, 5: 1, 6: 0, 7: 0}) == 6
    assert saturated(lane, limit_class, {4: 0, 5: 1, 6: 0, 7: 0}) == 4
    assert saturated(lane, limit_class, {4: 1, 5: 1, 6: 1, 7: 1}) is None
