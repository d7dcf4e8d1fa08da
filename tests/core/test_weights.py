"""Effective weights against a plain search of the graph."""

from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from evenflow.core.limits import INT32_MAX, INT32_MIN
from evenflow.core.weights import WeightRule, effective_weights


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[list[int]], list[int], list[WeightRule]]:
    size = draw(st.integers(1, 12))
    upstream = [sorted(draw(st.sets(st.integers(0, task - 1)))) if task else [] for task in range(size)]
    weights = draw(st.lists(st.one_of(st.integers(-5, 5), st.integers(INT32_MIN, INT32_MAX)), min_size=size, max_size=size))
    return upstream, weights, draw(st.lists(st.sampled_from(WeightRule), min_size=size, max_size=size))


def reachable(edges: list[list[int]], task: int) -> set[int]:
    found: set[int] = set()
    to_visit = list(edges[task])
    while to_visit:
        other = to_visit.pop()
        if other not in found:
            found.add(other)
            to_visit.extend(edges[other])
    return found


@given(graphs())
def test_weights_are_those_of_a_plain_search(graph: tuple[list[list[int]], list[int], list[WeightRule]]) -> None:
    upstream, weights, rules = graph
    size = len(upstream)
    edges = {
        WeightRule.UPSTREAM: upstream,
        WeightRule.DOWNSTREAM: [[other for other in range(size) if task in upstream[other]] for task in range(size)],
        WeightRule.ABSOLUTE: [[] for _ in range(size)],
    }
    expected = [weights[task] + sum(weights[other] for other in reachable(edges[rules[task]], task)) for task in range(size)]
    clamped = [max(INT32_MIN, min(INT32_MAX, weight)) for weight in expected]
    assert effective_weights(upstream, list(range(size)), weights, rules) == clamped


def test_a_diamond_counts_its_end_once() -> None:
    assert effective_weights([[], [0], [0], [1, 2]], [0, 1, 2, 3], [1] * 4, [WeightRule.DOWNSTREAM] * 4) == [4, 2, 2, 1]


def test_no_tasks_have_no_weights() -> None:
    assert effective_weights([], [], [], []) == []


def test_the_largest_dag_is_weighed_quickly() -> None:
    """10,000 tasks in 100 layers of 100, every task waiting for 20 of the layer before: 198,000 edges."""
    size, width = 10_000, 100
    upstream = [[(i // width - 1) * width + (i * 7 + k * 5) % width for k in range(20)] if i >= width else [] for i in range(size)]
    begin = time.process_time()
    weights = effective_weights(upstream, list(range(size)), [1 + i % 1000 for i in range(size)], [WeightRule.DOWNSTREAM] * size)
    assert weights[0] > weights[-1]
    assert time.process_time() - begin < 5.0
