"""Checks in one pass whether the scheduler can follow a spec.

Each check relies only on what was checked before it: parents come before their children, upstreams exist and have no cycle, and
only then a graph is made. So the time is linear, whatever a spec claims.
"""

from __future__ import annotations

from collections.abc import Iterable
from graphlib import CycleError, TopologicalSorter

from evenflow.core.limits import MAX_GROUP_DEPTH, MAX_MAP_DEPTH, MAX_MAP_LENGTH, MAX_MAP_PARTS
from evenflow.core.mapping import COMBINATIONS, sources
from evenflow.core.model import DagSpec, MapInput, TaskSpec, Unclaimed
from evenflow.errors import DagCycle, DagError

KINDS = ("product", "each")


def check_shape(spec: DagSpec) -> None:
    """Raises :class:`DagError` for a spec whose parts do not fit together. Its sizes are checked already."""
    if len({task.task_id for task in spec.tasks}) != len(spec.tasks):
        raise DagError(f"DAG {spec.dag_id!r} has two tasks with one task_id.")
    mapped_around = _check_groups(spec)
    _check_upstreams(spec)
    _check_queued_timeouts(spec)
    _check_mappings(spec, mapped_around)
    try:
        TopologicalSorter({index: task.upstream for index, task in enumerate(spec.tasks)}).prepare()
    except CycleError as error:
        raise DagCycle(spec.dag_id, [spec.tasks[index].task_id for index in error.args[1][:-1]]) from None
    _check_mapped_groups(spec, mapped_around)


def _check_groups(spec: DagSpec) -> list[int | None]:
    """Returns for each group the mapped group that it is or is in."""
    around: list[int | None] = []
    depths: list[int] = []
    for position, group in enumerate(spec.groups):
        parent = group.parent
        if parent is not None and not 0 <= parent < position:
            raise DagError(f"DAG {spec.dag_id!r}: group {group.group_id!r} is inside a group that does not come before it.")
        outer = None if parent is None else around[parent]
        if group.mapping is not None and outer is not None:
            raise DagError(f"DAG {spec.dag_id!r}: mapped group {group.group_id!r} is inside another one.")
        depths.append(1 if parent is None else depths[parent] + 1)
        if depths[-1] > MAX_GROUP_DEPTH:
            raise DagError(f"DAG {spec.dag_id!r}: group {group.group_id!r} is more than {MAX_GROUP_DEPTH} groups deep.")
        around.append(outer if group.mapping is None else position)
    for task in spec.tasks:
        if task.group is not None and not 0 <= task.group < len(spec.groups):
            raise DagError(f"DAG {spec.dag_id!r}: task {task.task_id!r} is in a group that does not exist.")
    return around


def _check_upstreams(spec: DagSpec) -> None:
    for task in spec.tasks:
        if task.upstream and not 0 <= min(task.upstream) <= max(task.upstream) < len(spec.tasks):
            raise DagError(f"DAG {spec.dag_id!r}: task {task.task_id!r} depends on a task that does not exist.")
        if any(one >= other for one, other in zip(task.upstream, task.upstream[1:], strict=False)):
            raise DagError(f"DAG {spec.dag_id!r}: the upstreams of task {task.task_id!r} are not in ascending order.")


def _check_queued_timeouts(spec: DagSpec) -> None:
    """Raises when options of a queued timeout are incomplete, or could never apply."""
    for task in spec.tasks:
        what = f"DAG {spec.dag_id!r}: task {task.task_id!r} has"
        goes = task.on_queued_timeout == Unclaimed.ELSEWHERE
        if task.queued_timeout is None and (task.on_queued_timeout != Unclaimed.TELL or task.other_queue):
            said = "other_queue" if task.other_queue else f"on_queued_timeout={str(task.on_queued_timeout)!r}"
            raise DagError(f"{what} {said}, and no queued_timeout: say after how long that is.")
        if goes and task.other_queue is None:
            raise DagError(f"{what} on_queued_timeout='elsewhere', and no other_queue: say which queue takes it then.")
        if task.other_queue is not None and not goes:
            raise DagError(
                f"{what} an other_queue, and on_queued_timeout={str(task.on_queued_timeout)!r}: it goes with 'elsewhere'."
            )
        if task.other_queue == task.queue:
            raise DagError(f"{what} {task.queue!r} as its queue and as its other_queue: nothing would change.")


def _check_mappings(spec: DagSpec, mapped_around: list[int | None]) -> None:
    named = [(f"task {task.task_id!r}", task.mapping) for task in spec.tasks]
    named += [(f"group {group.group_id!r}", group.mapping) for group in spec.groups]
    _check_inputs(spec, ((what, mapping.inputs) for what, mapping in named if mapping is not None))
    for group in spec.groups:
        if group.mapping is not None and group.mapping.kind != "product":
            raise DagError(f"DAG {spec.dag_id!r}: group {group.group_id!r} is mapped as {group.mapping.kind!r:.80}.")
    for task in spec.tasks:
        if task.mapping is None:
            continue
        if task.group is not None and mapped_around[task.group] is not None:
            name = spec.groups[mapped_around[task.group] or 0].group_id
            raise DagError(f"DAG {spec.dag_id!r}: mapped task {task.task_id!r} is inside mapped group {name!r}.")
        if not {source for source, _ in sources(task.mapping.inputs)} <= set(task.upstream):
            raise DagError(f"DAG {spec.dag_id!r}: task {task.task_id!r} maps over a task that is not upstream of it.")
        if task.mapping.kind not in KINDS:
            raise DagError(f"DAG {spec.dag_id!r}: task {task.task_id!r} is mapped as {task.mapping.kind!r:.80}, not {KINDS}.")
        if task.mapping.kind == "each" and not _follows_one(spec, task):
            raise DagError(f"DAG {spec.dag_id!r}: task {task.task_id!r} does not map over the one mapped task that it waits for.")


def _follows_one(spec: DagSpec, task: TaskSpec) -> bool:
    assert task.mapping is not None
    followed = [item.task for item in task.mapping.inputs]
    return len(task.upstream) == 1 and followed == list(task.upstream) and spec.tasks[task.upstream[0]].mapping is not None


def _check_inputs(spec: DagSpec, mapped: Iterable[tuple[str, tuple[MapInput, ...]]]) -> None:
    parts = 0
    for what, inputs in mapped:
        level = list(inputs)
        depth = 0
        while level:
            parts += len(level)
            depth += 1
            if parts > MAX_MAP_PARTS or depth > MAX_MAP_DEPTH:
                most = f"{MAX_MAP_PARTS:,} lists in a DAG, {MAX_MAP_DEPTH} levels deep"
                raise DagError(f"DAG {spec.dag_id!r}: {what} maps over too much. At most: {most}.")
            for item in level:
                _check_input(spec, what, item)
            level = [part for item in level for part in item.parts]


def _check_input(spec: DagSpec, what: str, item: MapInput) -> None:
    if (item.length is not None) + (item.task is not None) + bool(item.combine) != 1 or bool(item.combine) != bool(item.parts):
        raise DagError(f"DAG {spec.dag_id!r}: {what} maps over what is no list, no result and no combination of them.")
    if item.combine and item.combine not in COMBINATIONS:
        raise DagError(f"DAG {spec.dag_id!r}: {what} maps over a {item.combine!r:.80} of lists, not one of {COMBINATIONS}.")
    if item.task is not None and not 0 <= item.task < len(spec.tasks):
        raise DagError(f"DAG {spec.dag_id!r}: {what} maps over a task that does not exist.")
    if item.length is not None and not 0 <= item.length <= MAX_MAP_LENGTH:
        raise DagError(f"DAG {spec.dag_id!r}: {what} maps over {item.length:,} values (limit {MAX_MAP_LENGTH:,}).")


def _check_mapped_groups(spec: DagSpec, mapped_around: list[int | None]) -> None:
    """A group's sources must be upstream of each of its roots: then no task in it ends before the group is expanded."""
    group_of = [None if task.group is None else mapped_around[task.group] for task in spec.tasks]
    gates: dict[int, set[int]] = {}
    for position, group in enumerate(spec.groups):
        if group.mapping is not None:
            gates[position] = {source for source, _ in sources(group.mapping.inputs)}
    for task, around in zip(spec.tasks, group_of, strict=True):
        if around is None or any(group_of[index] == around for index in task.upstream):
            continue
        if not gates[around] <= set(task.upstream):
            name = spec.groups[around].group_id
            raise DagError(f"DAG {spec.dag_id!r}: task {task.task_id!r} does not wait for what its group {name!r} maps over.")
