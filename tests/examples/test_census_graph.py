"""Circles and depths of the census, on graphs small enough to see and on random ones against a plain definition."""

from __future__ import annotations

import itertools

from census import cycles
from hypothesis import given
from hypothesis import strategies as st

NODES = "abcdefg"
graphs = st.fixed_dictionaries({node: st.lists(st.sampled_from(NODES), unique=True, max_size=4) for node in NODES})


def reachable(graph: cycles.Graph, start: str) -> set[str]:
    seen: set[str] = set()
    to_see = [start]
    while to_see:
        for target in graph[to_see.pop()]:
            if target not in seen:
                seen.add(target)
                to_see.append(target)
    return seen


@given(graphs)
def test_components_are_what_reaches_each_other(graph: cycles.Graph) -> None:
    found = list(cycles.components(graph))
    assert sorted(node for component in found for node in component) == sorted(graph)
    reach = {node: reachable(graph, node) for node in graph}
    for component in found:
        for node in component:
            assert {other for other in graph if other in reach[node] and node in reach[other]} | {node} == set(component)


@given(graphs)
def test_a_component_comes_after_all_that_it_leads_to(graph: cycles.Graph) -> None:
    done: set[str] = set()
    for component in cycles.components(graph):
        done.update(component)
        assert all(target in done for node in component for target in graph[node])


@given(graphs)
def test_depths_grow_along_imports(graph: cycles.Graph) -> None:
    found = list(cycles.components(graph))
    depth = cycles.depths(graph, found)
    home = {node: place for place, component in enumerate(found) for node in component}
    for node, targets in graph.items():
        outside = [depth[target] for target in targets if home[target] != home[node]]
        assert all(depth[node] > below for below in outside)


@given(graphs)
def test_a_shortest_circle_is_a_way_along_imports(graph: cycles.Graph) -> None:
    for component in cycles.components(graph):
        if len(component) > 1:
            way = cycles.shortest_circle(graph, set(component))
            assert way[0] == way[-1] == min(component)
            assert all(target in graph[source] for source, target in itertools.pairwise(way))


def test_depth_of_a_chain_longer_than_pythons_stack() -> None:
    chain = {str(n): [str(n + 1)] for n in range(50_000)} | {"50000": []}
    assert cycles.depths(chain, cycles.components(chain))["0"] == 50_000
