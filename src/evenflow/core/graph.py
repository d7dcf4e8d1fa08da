"""A DAG version for the scheduler: columns by task index, computed once per version and never changed."""

from __future__ import annotations

import zlib
from collections import defaultdict
from dataclasses import dataclass

from evenflow.core.callbacks import Callback
from evenflow.core.callbacks import counted as counted_calls
from evenflow.core.limits import CREATION_LINES
from evenflow.core.mapping import mapped_group, mapped_tasks, sources
from evenflow.core.model import DagSpec, Mapping, TaskSpec
from evenflow.core.trigger_rules import TriggerRule

NO_REGION = -1


@dataclass(frozen=True, slots=True)
class MappedRegion:
    """Tasks that are expanded together and depend on each other index by index, in the order of the DAG.

    The tasks of a mapped group wait for its ``gate``: everything that the group maps over. A gate is counted like a task, under an
    index behind those of the tasks; it is None when the group maps over literals. A mapped task, the ``head``, and the tasks that
    map over it one to one, are expanded when the head is ready.
    """

    tasks: tuple[int, ...]
    mapping: Mapping
    name: str
    head: int | None = None
    gate: int | None = None
    gated_by: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Graph:
    """Columns of ``n`` tasks.

    ``counted[i]`` says that task i has an upstream counter. A task with exactly one unmapped upstream has none, because the state
    of that upstream is the count. This saves chains and trees one row and one update per task. ``region_of[i]`` is the region of
    task i, ``inner[i]`` the number of its upstreams in the same region, ``outer[i]`` the number of the others; only these are in
    its counter.
    """

    spec: DagSpec
    n: int
    rules: tuple[TriggerRule, ...]
    upstream: tuple[tuple[int, ...], ...]
    downstream: tuple[tuple[int, ...], ...]
    counted: tuple[bool, ...]  # for tasks, then for gates
    counters: tuple[tuple[int, int], ...]  # the counters of a new run: task or gate, and the number of its upstreams
    roots: tuple[int, ...]  # ready from the start; only those outside mapped groups
    leaf: tuple[bool, ...]  # whether its end decides how the run ends
    setup: tuple[bool, ...]
    teardown: tuple[bool, ...]
    mapped: tuple[bool, ...]
    regions: tuple[MappedRegion, ...]
    region_of: tuple[int, ...]
    inner: tuple[int, ...]
    outer: tuple[int, ...]
    gates_of: dict[int, tuple[int, ...]]  # by task over which a mapped group maps
    region_of_gate: dict[int, int]
    calls: dict[int, dict[Callback, int]]  # how many functions the events of a task call; a task without any is not in it
    past: tuple[int, ...]  # tasks that depend on the previous run
    top_priority: int  # the highest of all tasks
    has_teardowns: bool

    @classmethod
    def of(cls, spec: DagSpec) -> Graph:
        tasks = spec.tasks
        downstream: list[list[int]] = [[] for _ in tasks]
        for i, task in enumerate(tasks):
            for u in task.upstream:
                downstream[u].append(i)
        mapped = mapped_tasks(spec)
        regions = _regions(spec)
        region_of = [NO_REGION] * len(tasks)
        gates_of: dict[int, tuple[int, ...]] = defaultdict(tuple)
        for number, region in enumerate(regions):
            for i in region.tasks:
                region_of[i] = number
            for source in region.gated_by:
                gates_of[source] += (region.gate,) if region.gate is not None else ()
        outer = tuple(
            sum(region_of[i] == NO_REGION or region_of[u] != region_of[i] for u in t.upstream) if regions else len(t.upstream)
            for i, t in enumerate(tasks)
        )
        gates = [region for region in regions if region.gate is not None]
        totals = (*outer, *(len(region.gated_by) for region in gates))
        counted = (
            *(_counted(t.upstream, mapped) and outer[i] > 0 for i, t in enumerate(tasks)),
            *(_counted(region.gated_by, mapped) for region in gates),
        )
        return cls(
            spec=spec,
            n=len(tasks),
            rules=tuple(t.trigger_rule for t in tasks),
            upstream=tuple(t.upstream for t in tasks),
            downstream=tuple(tuple(d) for d in downstream),
            counted=counted,
            counters=tuple((i, total) for i, total in enumerate(totals) if counted[i]),
            roots=tuple(i for i, t in enumerate(tasks) if _waits_for_nothing(t) and not _grouped(regions, region_of[i])),
            leaf=_decisive(spec, downstream),
            setup=tuple(t.setup for t in tasks),
            teardown=tuple(t.teardown for t in tasks),
            mapped=mapped,
            regions=regions,
            region_of=tuple(region_of),
            inner=tuple(len(t.upstream) - outer[i] for i, t in enumerate(tasks)),
            outer=outer,
            gates_of=dict(gates_of),
            region_of_gate={region.gate: number for number, region in enumerate(regions) if region.gate is not None},
            calls={i: counted_calls(t.callbacks) for i, t in enumerate(tasks) if t.callbacks},
            past=tuple(i for i, t in enumerate(tasks) if t.depends_on_past),
            top_priority=max((t.priority_weight for t in tasks), default=1),
            has_teardowns=any(t.teardown for t in tasks),
        )

    def task(self, index: int) -> TaskSpec:
        return self.spec.tasks[index]

    def same_region(self, one: int, other: int) -> bool:
        """Returns whether two tasks depend on each other index by index."""
        return self.region_of[one] != NO_REGION and self.region_of[one] == self.region_of[other]

    def outside(self, index: int) -> list[int]:
        """Returns the upstreams that are counted once for all instances of a task; for a gate, what its group maps over."""
        if index >= self.n:
            return list(self.regions[self.region_of_gate[index]].gated_by)
        return [upstream for upstream in self.upstream[index] if not self.same_region(upstream, index)]

    def tears_down(self, region: MappedRegion) -> bool:
        """Returns whether the region has teardowns."""
        return any(self.teardown[index] for index in region.tasks)

    def in_scopes(self, live: set[int]) -> set[int]:
        """Returns the tasks between these tasks and teardowns: they follow one of these, and a teardown waits for them."""
        teardowns = {i for i, teardown in enumerate(self.teardown) if teardown}
        return _reached(live, self.downstream) & _reached(teardowns, self.upstream) - teardowns if teardowns else set()

    def grouped(self, index: int) -> bool:
        """Returns whether a task is in a mapped group, or an index is the gate of one."""
        return index >= self.n or _grouped(self.regions, self.region_of[index])


def _decisive(spec: DagSpec, downstream: list[list[int]]) -> tuple[bool, ...]:
    """Marks the leaves of the DAG without teardowns whose failure fails no run; of a DAG with only such teardowns, all leaves."""
    ignored = [t.teardown and not t.on_failure_fail_dagrun for t in spec.tasks]
    decisive = tuple(not ignored[i] and all(ignored[d] for d in downstream[i]) for i in range(len(spec.tasks)))
    return decisive if any(decisive) else tuple(not d for d in downstream)


def _reached(starts: set[int], edges: tuple[tuple[int, ...], ...]) -> set[int]:
    reached: set[int] = set()
    waiting = list(starts)
    while waiting:
        new = set(edges[waiting.pop()]) - reached
        reached |= new
        waiting += new
    return reached


def _waits_for_nothing(task: TaskSpec) -> bool:
    """Returns whether a task is ready at once. Even with the rule ``always``, what it maps over must exist first."""
    if not task.upstream:
        return True
    return task.trigger_rule is TriggerRule.ALWAYS and (task.mapping is None or not any(sources(task.mapping.inputs)))


def _counted(upstream: tuple[int, ...], mapped: tuple[bool, ...]) -> bool:
    return len(upstream) > 1 or (len(upstream) == 1 and mapped[upstream[0]])


def _grouped(regions: tuple[MappedRegion, ...], region: int) -> bool:
    return region != NO_REGION and regions[region].head is None


def _regions(spec: DagSpec) -> tuple[MappedRegion, ...]:
    heads: dict[int, list[int]] = {}
    head_of: dict[int, int] = {}
    groups: dict[int, list[int]] = defaultdict(list)
    mapped_groups = any(group.mapping is not None for group in spec.groups)
    for i, task in enumerate(spec.tasks):
        if mapped_groups and (group := mapped_group(spec, task)) is not None:
            groups[group].append(i)
        elif task.mapping is not None and task.mapping.kind != "each":
            heads[i], head_of[i] = [i], i
    followers = {i: t.upstream[0] for i, t in enumerate(spec.tasks) if t.mapping is not None and t.mapping.kind == "each"}
    for i in followers:
        path = [i]
        while path[-1] not in head_of:
            path.append(followers[path[-1]])
        head_of.update(dict.fromkeys(path, head_of[path[-1]]))
        heads[head_of[i]].append(i)
    found: list[MappedRegion] = []
    for head, tasks in heads.items():
        mapping = spec.tasks[head].mapping
        assert mapping is not None
        found.append(MappedRegion(tuple(sorted(tasks)), mapping, spec.tasks[head].task_id, head=head))
    gate = len(spec.tasks)
    for group, tasks in groups.items():
        mapping = spec.groups[group].mapping
        assert mapping is not None
        gated_by = tuple(sorted({task for task, _ in sources(mapping.inputs)}))
        found.append(
            MappedRegion(tuple(tasks), mapping, spec.groups[group].group_id, gate=gate if gated_by else None, gated_by=gated_by)
        )
        gate += bool(gated_by)
    return tuple(found)


def creation_line(spec: DagSpec) -> int:
    """Returns the line in which a DAG's runs wait to be created: a number below :data:`CREATION_LINES`, equal for all DAGs whose
    first tasks go to the same pools and queues. Lines take turns, so a backlog for one pool delays no run for another.
    """
    places = sorted({(task.pool, task.queue) for task in spec.tasks if not task.upstream})
    return zlib.crc32(repr(places).encode()) % CREATION_LINES
