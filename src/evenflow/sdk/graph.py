"""Turns the author's connections into edges between tasks: resolves group edges, finds an order, names a cycle."""

from __future__ import annotations

from collections.abc import Sequence

from evenflow.core.trigger_rules import TriggerRule
from evenflow.errors import BadArgument, BadSetting, DagCycle
from evenflow.sdk.nodes import AnyDag, GroupNode, Node, TaskNode, check_edge_count

_BEFORE_A_FAILURE = (TriggerRule.ALL_SUCCESS, TriggerRule.ALL_DONE_SETUP_SUCCESS)


def upstream_indexes(dag: AnyDag) -> list[list[int]]:
    """Returns for each task, by task index, the indexes of its upstream tasks, ascending.

    An edge between groups is resolved after all edges inside them: the roots and leaves of a group depend only on edges between two
    of its tasks, and the closest common group of such an edge is further in.
    """
    upstream = {task_id: set(task.upstream_tasks) for task_id, task in dag.task_dict.items()}
    edges = sum(map(len, upstream.values()))
    ends = _GroupEnds(upstream)
    for first, second in sorted(dag.group_edges, key=lambda edge: -_common_depth(*edge)):
        sources = set(ends.leaves(first))
        for target in ends.roots(second):
            edges += len(sources - upstream[target])
            check_edge_count(dag.dag_id, edges)
            upstream[target] |= sources
    index_of = {task_id: index for index, task_id in enumerate(dag.task_dict)}
    return [sorted(index_of[source] for source in sources) for sources in upstream.values()]


class _GroupEnds:
    """The roots and leaves of groups. Edges from a group exclude its teardowns, and setups for which only a teardown waits."""

    def __init__(self, upstream: dict[str, set[str]]) -> None:
        self.upstream = upstream
        self.found: dict[str, tuple[list[str], list[str]]] = {}

    def roots(self, end: Node) -> list[str]:
        return self._of(end)[0]

    def leaves(self, end: Node) -> list[str]:
        return self._of(end)[1]

    def _of(self, end: Node) -> tuple[list[str], list[str]]:
        if isinstance(end, TaskNode):
            return [end.task_id], [end.task_id]
        assert isinstance(end, GroupNode)
        if end.group_id not in self.found:
            members = {task.task_id: None for task in end.tasks}
            if not members:
                raise BadArgument(
                    f"DAG {end.dag.dag_id!r}: task group {end.group_id!r} is part of a dependency but has no tasks, so the "
                    "dependency would be "
                    "lost. Add a task, e.g. EmptyOperator(task_id='nothing_to_do'), or remove the group."
                )
            tasks = end.dag.task_dict
            work = [member for member in members if not tasks[member].is_teardown]
            waited_for = {source for member in work for source in self.upstream[member]}
            torn_down = {source for member in members for source in self.upstream[member] if member not in work}
            self.found[end.group_id] = (
                [member for member in members if self.upstream[member].isdisjoint(members)],
                [m for m in work if m not in waited_for and not (tasks[m].is_setup and m in torn_down)],
            )
        return self.found[end.group_id]


def _common_depth(first: Node, second: Node) -> int:
    """Returns the depth of the innermost group around both ends; 0 is the DAG itself."""
    around = set(map(id, first.around()))
    return next((group.depth for group in second.around() if id(group) in around), 0)


def topological_order(dag_id: str, task_ids: Sequence[str], upstream: Sequence[Sequence[int]]) -> list[int]:
    """Returns task indexes, each after its upstream tasks. Raises :class:`DagCycle`, which names one cycle, when no order
    exists.
    """
    downstream: list[list[int]] = [[] for _ in upstream]
    missing = [len(sources) for sources in upstream]
    for task, sources in enumerate(upstream):
        for source in sources:
            downstream[source].append(task)
    order = [task for task, count in enumerate(missing) if not count]
    for task in order:  # the list grows while it is read
        for target in downstream[task]:
            missing[target] -= 1
            if not missing[target]:
                order.append(target)
    if len(order) < len(upstream):
        raise DagCycle(dag_id, [task_ids[task] for task in _cycle(upstream, missing)])
    return order


def _cycle(upstream: Sequence[Sequence[int]], missing: Sequence[int]) -> list[int]:
    """Returns a cycle among the tasks that still miss an upstream: each of them has such an upstream, so walking up must return."""
    task = next(task for task, count in enumerate(missing) if count)
    seen: dict[int, int] = {}
    path: list[int] = []
    while task not in seen:
        seen[task] = len(path)
        path.append(task)
        task = next(source for source in upstream[task] if missing[source])
    return path[seen[task] :][::-1]


def check_flow(dag: AnyDag, upstream: Sequence[Sequence[int]]) -> None:
    """Raises :class:`BadSetting` for trigger rules that cannot be combined with what they follow."""
    tasks = list(dag.task_dict.values())
    for task, sources in zip(tasks, upstream, strict=True):
        rule = task.task_settings.trigger_rule
        if task.is_teardown:
            continue
        if dag.header.spec.fail_fast and rule not in _BEFORE_A_FAILURE:
            raise BadSetting(
                f"{task.qualified_name}: with fail_fast=True nothing goes on after a failure, so its trigger_rule must be "
                f"'all_success', not {rule.value!r}. Remove one of the two."
            )
        setups = [tasks[source] for source in sources if tasks[source].is_setup]
        if setups and rule is not TriggerRule.ALL_SUCCESS:
            raise BadSetting(
                f"{task.qualified_name}: a task that follows a setup ({setups[0].task_id!r}) must have the trigger_rule "
                f"'all_success', not {rule.value!r}: it needs what the setup makes. If it is to clean up, mark it as_teardown()."
            )


def check_partials(dag: AnyDag) -> None:
    """Raises :class:`BadArgument` for a ``partial`` that was never expanded: the task that its author means would be missing."""
    for partial in dag.partials:
        if not partial.is_expanded:
            raise BadArgument(
                f"DAG {dag.dag_id!r}: {partial!r} makes no task by itself. Go on with .expand(...) or .expand_kwargs(...), or take "
                "it out."
            )
