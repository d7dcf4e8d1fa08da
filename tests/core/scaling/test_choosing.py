"""Who goes first, and what a policy may say."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.core.limits import INT32_MAX
from evenflow.core.scaling.choosing import Candidate, choose, cost_of, is_protected, labels_of, ranks, weight_of
from evenflow.core.scaling.policy import ScalingPolicy
from evenflow.errors import BadValue

MINUTE = 60.0


def test_one_long_task_outweighs_many_short_ones() -> None:
    """R-AS5: the sum over running tasks of elapsed time squared, times the weight."""
    assert cost_of([(60 * MINUTE, 1)]) > cost_of([(5 * MINUTE, 1)] * 16)
    assert cost_of([(120 * MINUTE, 1)]) > cost_of([(60 * MINUTE, 1)] * 2)
    assert cost_of([(60 * MINUTE, 0.25)]) < cost_of([(60 * MINUTE, 1)] * 2)
    assert cost_of([]) == 0


def test_those_that_are_not_ready_go_first_then_those_out_of_service_then_the_cheapest_and_of_them_the_youngest() -> None:
    """R-AS4"""
    workers = [
        Candidate("long", True, 1.0, 1, 9e6),
        Candidate("old and idle", True, 1.0),
        Candidate("idle", True, 2.0),
        Candidate("starting", False, 9.0),
        Candidate("out_of_service", True, 1.0, 1, 50.0, out_of_service=True),
        Candidate("protected", True, 1.0, 1, None),
    ]
    choice = choose(workers, 3)
    assert choice.chosen == ("starting", "out_of_service", "idle")
    assert choice.passed_over == ("old and idle", "long")
    assert choice.protected == ("protected",)


def test_what_is_protected_is_never_chosen_however_many_are_to_go() -> None:
    """R-AS5"""
    workers = [Candidate(str(n), False, 0.0, 1, None if n % 2 else 0.0, out_of_service=True) for n in range(10)]
    assert choose(workers, 10).chosen == ("0", "2", "4", "6", "8")


def test_labels_are_names_and_tags() -> None:
    """R-AS5: a DAG or task label protects its worker."""
    labels = labels_of("etl", "load", ["night", "billing"])
    assert is_protected(labels, ScalingPolicy(protect=("tag:billing",)))
    assert is_protected(labels, ScalingPolicy(protect=("etl.lo*",)))
    assert not is_protected(labels, ScalingPolicy(protect=("load", "billing", "etl.")))
    assert weight_of(labels, ScalingPolicy(weights={"etl": 3.0, "tag:*": 2.0, "x": 9.0})) == 3.0
    assert weight_of(labels, ScalingPolicy(weights={"x": 9.0})) == 1.0


@given(st.lists(st.one_of(st.none(), st.floats(0, 1e15)), max_size=50))
def test_ranks_keep_the_order_of_costs(costs: list[float | None]) -> None:
    """R-AS5: written as an int32; what is protected has the largest, and nothing else has it."""
    given = ranks([Candidate(str(n), True, 0.0, 0, cost) for n, cost in enumerate(costs)])
    for a, of_a in enumerate(costs):
        assert 0 <= given[str(a)] <= INT32_MAX
        assert (given[str(a)] == INT32_MAX) == (of_a is None)
        for b, of_b in enumerate(costs):
            if of_a is not None and of_b is not None:
                assert (of_a < of_b) == (given[str(a)] < given[str(b)])


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"max": 10_001}, "The max of a fleet is a number from 0 to 10,000, not 10001."),
        ({"min": 9}, "A fleet cannot have 9 workers at least and 8 at most."),
        ({"down_load": 0.8}, "or it swings; here they are 0.8, 0.8 and 0.95."),
        ({"mix": 1}, "A fleet has no option 'mix'; it has: min, max,"),
        ({"algorithm": "memory"}, "cannot be 'memory'. It is one of: target-load, latency."),
        ({"slots": "many"}, "The slots of a fleet cannot be 'many'."),
        ({"max": float("inf")}, "The max of a fleet cannot be inf. It is a whole number, such as 4."),
        ({"min": 2.9}, "The min of a fleet cannot be 2.9. It is a whole number, such as 4."),
        ({"slots": True}, "The slots of a fleet cannot be True. It is a whole number, such as 4."),
        ({"weights": {"x": -1}}, "The weight of a label is a number from 0 to 1,000; that of 'x' is not."),
        ({"protect": "all"}, "The protect of a fleet cannot be 'all'."),
        ({"up_load": float("nan")}, "The up_load of a fleet is a number"),
    ],
)
def test_a_policy_that_cannot_be_says_why(told: dict[str, object], message: str) -> None:
    with pytest.raises(BadValue) as refused:
        ScalingPolicy.of(told)
    assert message in str(refused.value)


def test_a_policy_comes_back_from_what_it_tells() -> None:
    policy = ScalingPolicy.of({"min": "1", "max": 4, "algorithm": "latency", "protect": ["tag:x"], "weights": {"a": 2}})
    assert ScalingPolicy.of(policy.told()) == policy
    assert ScalingPolicy().told() == {}
