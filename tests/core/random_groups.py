"""Random DAGs with mapped groups and tasks that follow a mapped task, and what is true of the ends of their runs."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from evenflow.core import model
from evenflow.core.graph import Graph
from evenflow.core.model import UNMAPPED, DagSpec, GroupSpec, MapInput, TaskSpec
from evenflow.core.states import FINISHED, TaskState
from evenflow.core.trigger_rules import TriggerRule, UpstreamCounts, Verdict, counted_as, evaluate

EACH = "each"
RULES = [rule for rule in TriggerRule if rule is not TriggerRule.ALL_DONE_SETUP_SUCCESS]  # there are no setups here


def over(length: int | None = None, *, task: int | None = None, kind: str = "product") -> model.Mapping:
    return model.Mapping(inputs=(MapInput(name="x", length=length, task=task),), kind=kind)


def task(task_id: str, *upstream: int, **fields: Any) -> TaskSpec:
    return TaskSpec(task_id=task_id, operator="python", upstream=upstream, **fields)


def random_spec(r: random.Random) -> DagSpec:
    """With one or two mapped groups, mapped tasks and followers, and any trigger rules."""
    groups: list[GroupSpec] = []
    tasks: list[TaskSpec] = []
    open_groups: dict[int, tuple[int, ...]] = {}
    for i in range(r.randint(3, 9)):
        sources = [n for n, t in enumerate(tasks) if t.group is None and t.mapping is None]
        if len(groups) < 2 and r.random() < 0.35:
            over_task = r.choice(sources) if sources and r.random() < 0.6 else None
            length = None if over_task is not None else r.randint(0, 3)
            groups.append(GroupSpec(group_id=f"g{len(groups)}", mapping=over(length, task=over_task)))
            open_groups[len(groups) - 1] = () if over_task is None else (over_task,)
        upstream = {n for n in range(i) if r.random() < 0.35}
        group = r.choice(list(open_groups)) if open_groups and r.random() < 0.6 else None
        mapping = None
        if group is not None and not any(tasks[u].group == group for u in upstream):
            upstream |= set(open_groups[group])
        elif group is None and r.random() < 0.25:
            followed = [n for n, t in enumerate(tasks) if t.mapping is not None]
            if followed and r.random() < 0.7:
                upstream = {r.choice(followed)}
                mapping = over(task=min(upstream), kind=EACH)
            else:
                mapping = over(r.randint(0, 3))
        rule = r.choice([TriggerRule.ALL_SUCCESS, TriggerRule.ALL_SUCCESS, *RULES])
        empty = mapping is None and r.random() < 0.15
        tasks.append(task(f"t{i}", *sorted(upstream), group=group, mapping=mapping, trigger_rule=rule, empty=empty))
    return DagSpec(dag_id="d", tasks=tuple(tasks), groups=tuple(groups), max_active_tasks=r.choice([None, 2]))


def check_ends(spec: DagSpec, ends: Mapping[int, Mapping[int, TaskState]], lengths: Mapping[int, int]) -> None:
    """Every instance has ended as its trigger rule says of the ends of what it waits for. ``lengths`` are of the tasks that were
    expanded.
    """
    graph = Graph.of(spec)
    for index in range(graph.n):
        assert sorted(ends[index]) == (list(range(lengths[index])) if index in lengths else [UNMAPPED])
        for map_index, state in ends[index].items():
            assert state in FINISHED
            whole_group_ended = graph.grouped(index) and map_index == UNMAPPED
            if not whole_group_ended:
                assert state in allowed(graph, index, map_index, ends), f"{index}[{map_index}] in {ends}"


def allowed(graph: Graph, index: int, map_index: int, ends: Mapping[int, Mapping[int, TaskState]]) -> set[TaskState]:
    counted = []
    for source in graph.upstream[index]:
        inside = map_index != UNMAPPED and graph.region_of[source] == graph.region_of[index]
        follows = (
            inside
            and graph.regions[graph.region_of[index]].head is not None
            and source not in graph.regions[graph.region_of[index]].tasks
        )
        assert not follows
        counted += [counted_as(state) for at, state in ends[source].items() if not inside or at == map_index]
    counts = UpstreamCounts(len(counted), *map(sum, zip(*counted, strict=True)))
    can_run = {TaskState.SUCCESS, TaskState.FAILED, TaskState.SKIPPED}
    match evaluate(graph.rules[index], counts):
        case Verdict.READY:
            return can_run
        case Verdict.SKIP:
            found = {TaskState.SKIPPED}
        case Verdict.UPSTREAM_FAIL:
            found = {TaskState.UPSTREAM_FAILED}
        case Verdict.WAIT:
            raise AssertionError("it ended while it had to wait")
    if graph.rules[index] is TriggerRule.ALL_SUCCESS and counts.failed and counts.skipped:
        found |= {TaskState.SKIPPED, TaskState.UPSTREAM_FAILED}  # what ended first decided
    return found
