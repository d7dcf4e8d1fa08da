"""Fair shares against a naive scan, on workloads that hypothesis makes; what follows from them; a broken one is noticed."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evenflow.core.selection.lanes import LimitClass, Queue, Share
from evenflow.core.selection.order import order_key
from evenflow.core.selection.shares import UNIT, HeadKind, SharedHeads
from tests.core.fair_model import Served, scan, shared_model
from tests.core.selection_model import EXECUTORS, Model, happen
from tests.core.test_selection import BOUNDS, Steps, events

QUIET = settings(max_examples=300, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
POOLS = 3

models = st.builds(
    shared_model,
    st.lists(st.sampled_from([1, 2, 3, 5, 9]), min_size=POOLS, max_size=POOLS),
    st.tuples(st.sampled_from([1, 4, 50]), st.sampled_from([2, 50])).map(list),
    st.lists(st.sampled_from([1, 1, 2, 3, 7]), min_size=2, max_size=4),
    st.lists(st.sampled_from([1, 2, *EXECUTORS]), min_size=1, max_size=3),
    heads=st.sampled_from([2, 3, 32]),
    by_base=st.booleans(),
)
steps = st.lists(st.tuples(st.lists(events, max_size=6), st.sampled_from(BOUNDS)), min_size=1, max_size=12)


def agrees(model: Model, steps: Steps) -> None:
    """After each step the rounds start what the scan would, and nothing startable is left."""
    served = Served()
    for happenings, bounds in steps:
        for what, number in happenings:
            happen(model, "ready" if what == "mapped" else what, number)
        expected = Counter(scan(model, served))
        assert model.rounds(*bounds) == expected
        assert scan(model, served) == []
        assert model.stranded() == []


@settings(QUIET)
@given(models, steps)
def test_shares_equal_a_naive_scan(model: Model, steps: Steps) -> None:
    """R-ST11, R-ST1, R-ST2: through ends, retries, cancels, pauses and deferrals, while capacities rise and fall; in pools and
    executors, beside such that are not shared.
    """
    agrees(model, steps)


@pytest.mark.slow
@pytest.mark.timeout(900)
@settings(QUIET, max_examples=10_000, derandomize=False)
@given(models, steps)
def test_shares_equal_a_naive_scan_at_length(model: Model, steps: Steps) -> None:
    """As above, other workloads each time."""
    agrees(model, steps)


@pytest.mark.parametrize("bounds", BOUNDS)
def test_a_tenant_of_which_nothing_starts_is_in_nobodys_way(bounds: tuple[int, int]) -> None:
    """R-ST11: it is next, but its task is too large for its pool. The other tenant keeps its own place in the order."""
    model = shared_model([1, 1, 1], [1, 2], [1, 1], [12], heads=2, by_base=False)
    agrees(model, [([("ready", 0), ("ready", 1), ("ready", 518), ("ready", 2901), ("capacity", 137)], bounds)])


def served_in_turn(weights: list[int], slots: int, starts: int) -> Counter[int]:
    """How often each tenant started, of such that always have more to do, in a pool whose tasks end in turn, the oldest first."""
    shares = {n: Share(n, 0, weight, 0, 0) for n, weight in enumerate(weights)}
    classes = {n: LimitClass(n, n, 0, -1, "default", 1, share_id=n) for n in shares}
    times, running, count = {0: 0}, list[int](), Counter[int]()
    for _ in range(starts):
        if len(running) == slots:
            shares[running.pop(0)].held -= 1
        heads = SharedHeads(classes, shares, times)
        for n in shares:
            heads.push(order_key(0, 0, n, n), HeadKind.LANE, Queue(n, woken=False))
        head = heads.pop()
        assert head is not None
        tenant = head[2].class_id
        heads.started(classes[tenant])
        running.append(tenant)
        count[tenant] += 1
    return count


@pytest.mark.parametrize("weights", [[1, 1], [3, 1], [1, 2, 5], [1000, 1]])
def test_one_slot_is_shared_in_time_by_weight(weights: list[int]) -> None:
    """R-ST11: nobody has less than its part of the starts, by more than one."""
    rounds = 3
    starts = rounds * sum(weights)
    count = served_in_turn(weights, 1, starts)
    assert all(abs(count[n] - rounds * weight) <= 1 for n, weight in enumerate(weights)), count


def test_many_slots_are_shared_by_weight_and_a_small_tenant_is_never_left_out() -> None:
    """R-ST11: of 40 slots each tenant holds its part; of three, one with a hundred times the weight leaves two others one each."""
    assert served_in_turn([1, 3], 40, 40) == {0: 10, 1: 30}
    assert served_in_turn([100, 1, 1], 3, 3) == {0: 1, 1: 1, 2: 1}


def test_whoever_comes_back_has_saved_up_nothing() -> None:
    """R-ST11: a tenant that was away for a thousand starts takes turns with the one that was not."""
    shares = {0: Share(0, 9, 1, 0, 1_000 * UNIT), 1: Share(1, 9, 1, 0, 0)}
    classes = {n: LimitClass(n, n, 0, -1, "default", 1, share_id=n) for n in shares}
    turns, times = list[int](), {9: 999 * UNIT}
    for _ in range(6):
        heads = SharedHeads(classes, shares, times)
        for k in shares:
            heads.push(order_key(0, 0, k, k), HeadKind.LANE, Queue(k, woken=False))
        head = heads.pop()
        assert head is not None
        turns.append(head[2].class_id)
        heads.started(classes[turns[-1]])
        shares[turns[-1]].held -= 1  # it ends at once
    assert turns == [1, 0, 1, 0, 1, 0]


@pytest.mark.system  # what fails is made small first, which takes seconds
def test_a_share_that_is_not_charged_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def forget(self: SharedHeads, limit_class: LimitClass) -> None:
        if limit_class.share_id is not None:
            self._shares[limit_class.share_id].held += limit_class.weight

    monkeypatch.setattr(SharedHeads, "started", forget)
    with pytest.raises(AssertionError):
        test_shares_equal_a_naive_scan()
    assert served_in_turn([3, 1], 1, 12) != {0: 9, 1: 3}
