"""Lengths of mappings, as an expression over the lengths of results."""

from __future__ import annotations

from itertools import product, zip_longest
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.core.graph import Graph
from evenflow.core.mapping import input_length, mapped_tasks, product_length, sources
from evenflow.core.model import DagSpec, GroupSpec, MapInput, Mapping, TaskSpec

LISTS: list[list[int]] = [[], [1], [1, 2], [1, 2, 3, 4]]


def expressions() -> st.SearchStrategy[tuple[MapInput, list[Any]]]:
    """An expression, and a list that has its length."""
    literal = st.integers(0, 3).map(lambda n: (MapInput(length=n), [0] * n))
    result = st.integers(0, len(LISTS) - 1).map(lambda task: (MapInput(task=task), LISTS[task]))

    def combined(parts: list[tuple[MapInput, list[Any]]], combine: str) -> tuple[MapInput, list[Any]]:
        lists = [values for _, values in parts]
        made: dict[str, list[Any]] = {
            "zip": list(zip(*lists, strict=False)),
            "zip_longest": list(zip_longest(*lists)),
            "concat": [value for values in lists for value in values],
        }
        return MapInput(combine=combine, parts=tuple(part for part, _ in parts)), made[combine]

    return st.recursive(
        literal | result,
        lambda inner: st.builds(
            combined, st.lists(inner, min_size=1, max_size=3), st.sampled_from(["zip", "zip_longest", "concat"])
        ),
        max_leaves=8,
    )


@given(st.lists(expressions(), min_size=1, max_size=3))
def test_lengths_are_those_of_the_values(inputs: list[tuple[MapInput, list[Any]]]) -> None:
    results: dict[tuple[int, str], int | None] = {(task, "return_value"): len(values) for task, values in enumerate(LISTS)}
    for item, values in inputs:
        assert input_length(item, results) == len(values)
    assert product_length([item for item, _ in inputs], results) == len(list(product(*(values for _, values in inputs))))


def test_one_result_that_cannot_be_mapped_over_spoils_all() -> None:
    item = MapInput(name="x", combine="concat", parts=(MapInput(length=2), MapInput(task=0, key="k")))
    assert list(sources([item, MapInput(task=1)])) == [(0, "k"), (1, "return_value")]
    assert product_length([item], {(0, "k"): None}) is None
    assert product_length([item, MapInput(length=0)], {}) is None


def test_a_combination_that_is_not_known() -> None:
    with pytest.raises(ValueError, match="unknown combination 'braid'"):
        input_length(MapInput(combine="braid", parts=(MapInput(length=1),)), {})


def test_spans_gates_and_counters() -> None:
    over = Mapping(inputs=(MapInput(name="x", task=0),))
    tasks = (
        TaskSpec(task_id="find", operator="python"),
        TaskSpec(task_id="a", operator="python", upstream=(0,), group=1),
        TaskSpec(task_id="b", operator="python", upstream=(0, 1), group=1),
        TaskSpec(task_id="m", operator="python", upstream=(0,), mapping=over),
        TaskSpec(task_id="f", operator="python", upstream=(3,), mapping=Mapping(inputs=(MapInput(task=3),), kind="each")),
        TaskSpec(task_id="end", operator="python", upstream=(2, 4)),
    )
    groups = (GroupSpec(group_id="g", mapping=over), GroupSpec(group_id="g.inner", parent=0))
    spec = DagSpec(dag_id="d", tasks=tasks, groups=groups)
    assert DagSpec.from_json(spec.to_json()) == spec
    assert mapped_tasks(spec) == (False, True, True, True, True, False)
    graph = Graph.of(spec)
    assert [(region.tasks, region.head, region.gate, region.gated_by) for region in graph.regions] == [
        ((3, 4), 3, None, ()),
        ((1, 2), None, 6, (0,)),
    ]
    assert graph.gates_of == {0: (6,)}
    assert graph.outer == (0, 1, 1, 1, 0, 2)
    assert graph.inner == (0, 0, 1, 0, 1, 0)
    assert graph.counters == ((2, 1), (5, 2))  # of the outside only; the others have one upstream whose state says it all
