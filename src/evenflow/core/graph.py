"""A DAG version as the scheduler sees it: columns by task index, computed once per version and never changed."""

from __future__ import annotations

from dataclasses import dataclass

from evenflow.core.model import DagSpec, MapInput, TaskSpec
from evenflow.core.trigger_rules import TriggerRule


@dataclass(frozen=True, slots=True)
class Graph:
    """Columns of ``n`` tasks.

    ``counted[i]`` says that task i has an upstream counter. A task with exactly one unmapped upstream has none: the state of that
    upstream is the counter, which saves chains and trees one row and one update per task.
    """

    spec: DagSpec
    n: int
    rules: tuple[TriggerRule, ...]
    upstream: tuple[tuple[int, ...], ...]
    downstream: tuple[tuple[int, ...], ...]
    counted: tuple[bool, ...]
    roots: tuple[int, ...]
    leaf: tuple[bool, ...]
    mapped: tuple[bool, ...]

    @classmethod
    def of(cls, spec: DagSpec) -> Graph:
        tasks = spec.tasks
        downstream: list[list[int]] = [[] for _ in tasks]
        for i, task in enumerate(tasks):
            for u in task.upstream:
                downstream[u].append(i)
        mapped = tuple(t.mapping is not None for t in tasks)
        return cls(
            spec=spec,
            n=len(tasks),
            rules=tuple(t.trigger_rule for t in tasks),
            upstream=tuple(t.upstream for t in tasks),
            downstream=tuple(tuple(d) for d in downstream),
            counted=tuple(len(t.upstream) > 1 or (len(t.upstream) == 1 and mapped[t.upstream[0]]) for t in tasks),
            roots=tuple(i for i, t in enumerate(tasks) if not t.upstream),
            leaf=tuple(not d for d in downstream),
            mapped=mapped,
        )

    def task(self, index: int) -> TaskSpec:
        return self.spec.tasks[index]


Source = tuple[int, str]  # (task index, XCom key) of an upstream result that a mapping reads


def product_length(inputs: tuple[MapInput, ...], result_lengths: dict[Source, int | None]) -> int | None:
    """How many instances a product mapping has; ``result_lengths`` gives the length of each upstream result, ``None`` where it
    has none.

    ``None`` when an upstream's result cannot be mapped over.
    """
    length = 1
    for item in inputs:
        part = item.length if item.task is None else result_lengths.get((item.task, item.key))
        if part is None:
            return None
        length *= part
    return length
