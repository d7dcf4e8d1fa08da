"""Modules that import each other in a circle, and how deep the imports of a module go.

Tarjan's algorithm (Depth-First Search and Linear Graph Algorithms, 1972) without recursion: import chains are longer than
Python's stack likes. It yields a component after all that the component leads to, which is the order that depths are summed
in.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from census import tables

Graph = Mapping[str, list[str]]


def find_cycles(lake: Path) -> dict[str, Any]:
    """Writes ``gold/depths`` and ``gold/cycles``, of imports that run on import alone: a lazy one is how people break a circle."""
    modules = sorted(row["module"] for row in tables.read(lake, "silver/modules", ["module"]))
    graph: dict[str, list[str]] = {module: [] for module in modules}
    for edge in tables.read(lake, "silver/edges"):
        if edge["on_import"]:
            graph[edge["source"]].append(edge["target"])
    for targets in graph.values():
        targets.sort()  # so that the examples are the same each time
    found = list(components(graph))
    depth = depths(graph, found)
    size = {module: len(component) for component in found for module in component}
    tables.write(lake, "gold/depths", [{"module": m, "depth": depth[m], "circle": size[m]} for m in modules])
    circles = sorted((component for component in found if len(component) > 1), key=lambda c: (-len(c), min(c)))
    rows = [{"modules": len(circle), "first": min(circle), "example": shortest_circle(graph, set(circle))} for circle in circles]
    tables.write(lake, "gold/cycles", rows or [{"modules": 0, "first": "", "example": [""]}])
    return {"circles": len(circles), "largest": len(circles[0]) if circles else 0, "deepest": max(depth.values(), default=0)}


def components(graph: Graph) -> Iterator[list[str]]:
    """The strongly connected components, each after all others that it leads to."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    path: list[str] = []
    on_path: set[str] = set()
    for root in graph:
        if root in index:
            continue
        calls: list[tuple[str, Iterator[str]]] = [(root, iter(graph[root]))]
        index[root] = low[root] = len(index)
        path.append(root)
        on_path.add(root)
        while calls:
            node, targets = calls[-1]
            for target in targets:
                if target not in index:
                    index[target] = low[target] = len(index)
                    path.append(target)
                    on_path.add(target)
                    calls.append((target, iter(graph[target])))
                    break
                if target in on_path:
                    low[node] = min(low[node], index[target])
            else:
                calls.pop()
                if calls:
                    low[calls[-1][0]] = min(low[calls[-1][0]], low[node])
                if low[node] == index[node]:
                    component = [path.pop()]
                    while component[-1] != node:
                        component.append(path.pop())
                    on_path.difference_update(component)
                    yield component


def depths(graph: Graph, found: Iterable[list[str]]) -> dict[str, int]:
    """Of each module, the longest chain of imports that starts at it; a circle counts as one step."""
    depth: dict[str, int] = {}
    for component in found:
        inside = set(component)
        below = [depth[target] for node in component for target in graph[node] if target not in inside]
        for node in component:
            depth[node] = max(below) + 1 if below else 0
    return depth


def shortest_circle(graph: Graph, component: set[str]) -> list[str]:
    """A shortest way from the component's first module, by name, back to it."""
    start = min(component)
    came_from: dict[str, str] = {}
    queue = deque([start])
    while queue:
        node = queue.popleft()
        for target in graph[node]:
            if target == start:
                way = [start]
                while node != start:
                    way.append(node)
                    node = came_from[node]
                return [start, *reversed(way[1:]), start]
            if target in component and target not in came_from:
                came_from[target] = node
                queue.append(target)
    raise AssertionError(f"{start} is in no circle")
