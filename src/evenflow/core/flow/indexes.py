"""Readiness index by index: tasks of mapped groups, and tasks that map over a mapped task one to one.

Such tasks form a region (:class:`evenflow.core.graph.MappedRegion`). Upstreams outside it are counted once for all instances, at
map index -1. Upstreams inside it are counted for the instance of the same index. A counter of one index exists only where the state
of a single upstream is not enough, and is made when it is first needed. So an instance to which nothing has happened costs nothing.

A verdict from the upstreams outside holds for every instance. Instances of a root of a group become one lane, all at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from evenflow.core.asking import Asking, Question
from evenflow.core.flow.expansion import NOTHING, measure, unmappable
from evenflow.core.flow.level import NOTHING_YET, Counts, Level, summed
from evenflow.core.flow.questions import CountIndexed, FindInstances, FindMapped, FindTouched
from evenflow.core.flow.state import Flow, FlowInstance, InstanceKey, MappedTask, Opening, T, TaskKey, VirtualEnd
from evenflow.core.graph import NO_REGION, Graph
from evenflow.core.mapping import product_length
from evenflow.core.model import UNMAPPED
from evenflow.core.states import Ender, TaskEvent, TaskState
from evenflow.core.trigger_rules import TriggerRule, UpstreamCounts, Verdict, contribution, counted_as, evaluate

Decided = list[tuple[T, Verdict]]

_EVENTS = {Verdict.READY: TaskEvent.READY, Verdict.SKIP: TaskEvent.SKIP, Verdict.UPSTREAM_FAIL: TaskEvent.UPSTREAM_FAIL}


def begin_groups(flow: Flow[T], run_key: int) -> None:
    """Begins a new run: groups that map over literals open at once."""
    regions = flow.runs[run_key].graph.regions
    flow.opening += [Opening(run_key, region, NOTHING_YET) for region in regions if region.head is None and not region.gated_by]


def count_inside(level: Level, graph: Graph, item: FlowInstance, counted: tuple[int, int, int]) -> Iterator[int]:
    """Counts a finished instance inside its region and for gates. Yields the tasks that count it as one of all instances."""
    run_key, task_index = item.run_key, item.task_index
    region = graph.region_of[task_index]
    for gate in graph.gates_of.get(task_index, ()):
        if graph.counted[gate]:
            level.add((run_key, gate), (0, *counted))
        else:
            level.single[run_key, gate] = UpstreamCounts(1, *counted)
    for other in graph.downstream[task_index]:
        if region == NO_REGION or graph.region_of[other] != region:
            yield other
        elif item.map_index != UNMAPPED:
            level.add_inside(
                (run_key, other, item.map_index), contribution(graph.rules[other], counted, setup=graph.setup[task_index])
            )
            if graph.outer[other]:
                level.ask((run_key, other))
        elif graph.regions[region].head is not None:
            yield other  # it never had instances, so the task that follows it has none either


# -- groups open ---------------------------------------------------------------------------------------------------------


def open_groups(flow: Flow[T], level: Level) -> Asking[None]:
    """Expands groups whose gates have opened, and has their tasks decided by what is known of their upstreams outside."""
    opening = list({o.first: o for o in flow.opening}.values())
    flow.opening.clear()
    if not opening:
        return
    yield from know_mapped(flow, [o.first for o in opening])
    opening = [o for o in opening if o.first not in flow.mapped.known]
    if unread := [key for o in opening for key in o.stand_ins if key not in flow.instances.items]:
        yield [FindInstances(unread)]
    lengths = yield from measure(flow, ((o.run_key, o.region.mapping.inputs) for o in opening))
    for o in opening:
        run = flow.runs[o.run_key]
        length = product_length(o.region.mapping.inputs, lengths.get(o.run_key, {}))
        waiting = [item for key in o.stand_ins if (item := flow.waits(key)) is not None]
        if run.cancelled:
            for item in waiting:
                flow.give_up(item, TaskEvent.SKIP)
        elif not length or length > run.graph.spec.max_map_length or not waiting:
            _close(flow, o, waiting, length)
        else:
            for task_index in o.region.tasks:
                _unfold(flow, level, o, task_index, length)


def _unfold(flow: Flow[T], level: Level, o: Opening, task_index: int, length: int) -> None:
    graph, key = flow.runs[o.run_key].graph, (o.run_key, task_index)
    mapped = flow.expand(*key, length)
    level.lengthen(*key, length)
    if mapped.virtual_state is not TaskState.NONE:
        _count_ended(flow, level, mapped)
    elif graph.counted[task_index]:
        level.ask(key)
    elif not graph.inner[task_index] and (o.region.gated_by or not graph.outer[task_index]):
        level.single[key] = o.counts
    elif graph.rules[task_index] is TriggerRule.ALWAYS:
        level.single[key] = NOTHING_YET


def _count_ended(flow: Flow[T], level: Level, mapped: MappedTask) -> None:
    """Counts the instances of a task that was skipped by a branch, or marked by a person, before its group was expanded: they have
    all ended. One of them was counted already.
    """
    run_key, task_index, state = mapped.run_key, mapped.task_index, mapped.virtual_state
    graph = flow.runs[run_key].graph
    flow.mapped.ended.append(VirtualEnd(run_key, task_index, mapped.length - 1, state))
    for other in graph.downstream[task_index]:
        if graph.same_region(task_index, other):
            given = contribution(graph.rules[other], counted_as(state), setup=graph.setup[task_index])
            for map_index in range(mapped.length):
                level.add_inside((run_key, other, map_index), given)


def _close(flow: Flow[T], o: Opening, waiting: Iterable[T], length: int | None) -> None:
    """Ends as a whole a group that can have no instances."""
    graph, instances = flow.runs[o.run_key].graph, flow.instances
    for item in waiting:
        if length == 0:
            instances.apply(item, TaskEvent.SKIP)
            instances.explain(item, NOTHING, Ender.NOTHING)
        elif length is None and o.counts.failed:
            instances.apply(item, TaskEvent.UPSTREAM_FAIL)
        elif length is None and o.counts.skipped:
            instances.apply(item, TaskEvent.SKIP)
        elif graph.inner[item.task_index]:
            instances.apply(item, TaskEvent.UPSTREAM_FAIL)
        else:
            instances.apply(item, TaskEvent.FAIL)
            instances.explain(item, unmappable(graph, o.region.mapping.inputs, length))


# -- decisions about waiting instances -------------------------------------------------------------------------------------


def decide_indexes(flow: Flow[T], level: Level, counts_of: Counts) -> Asking[Decided[T]]:
    """Returns the verdicts over all instances that this level affects."""
    outer: Counts = {}
    for (run_key, task_index), counts in counts_of.items():
        graph = flow.runs[run_key].graph
        if task_index >= graph.n:
            if counts.done >= counts.total:
                flow.opening.append(Opening(run_key, graph.regions[graph.region_of_gate[task_index]], counts))
        elif graph.grouped(task_index):
            outer[run_key, task_index] = counts
    if not level.inner and not outer:
        return []
    live = {key for key in {key[:2] for key in level.inner} | outer.keys() if _goes_on(flow, key)}
    yield from know_mapped(flow, live)
    inner = {key: delta for key, delta in level.inner.items() if key[:2] in live}
    by_index = yield from _decide_by_index(flow, inner, counts_of)
    by_outside = yield from _decide_by_outside(flow, {key: counts for key, counts in outer.items() if key in live})
    return list({item.key: (item, verdict) for item, verdict in (*by_index, *by_outside)}.values())  # both may have decided it


def know_mapped(flow: Flow[T], keys: Iterable[TaskKey]) -> Asking[None]:
    """Reads how these tasks are expanded, as far as they are."""
    if missing := [key for key in keys if key not in flow.mapped.known]:
        found = FindMapped(missing)
        yield [found]
        flow.mapped.known.update(((mapped.run_key, mapped.task_index), mapped) for mapped in found.answer)


def _goes_on(flow: Flow[T], key: TaskKey) -> bool:
    """Returns whether a task continues. In a cancelled run, only regions with teardowns do."""
    run = flow.runs[key[0]]
    return not run.cancelled or run.graph.tears_down(run.graph.regions[run.graph.region_of[key[1]]])


def _decide_by_index(flow: Flow[T], inner: dict[InstanceKey, list[int]], counts_of: Counts) -> Asking[Decided[T]]:
    """Decides about instances with an ended upstream of the same index."""
    counts: dict[InstanceKey, UpstreamCounts] = {}
    counted: list[tuple[InstanceKey, int, list[int]]] = []
    for key, delta in inner.items():
        graph = flow.runs[key[0]].graph
        within = graph.inner[key[1]]
        if within == 1 and not graph.outer[key[1]]:
            counts[key] = summed(UpstreamCounts(1), delta)
        else:
            counted.append((key, within, delta))
    unread, count = [key for key in inner if key not in flow.instances.items], CountIndexed(counted)
    questions: list[Question[Any]] = [FindInstances(unread)] if unread else []
    questions += [count] if counted else []
    if questions:
        yield questions
    counts.update(count.answer if counted else ())
    decided: Decided[T] = []
    for key, within_counts in counts.items():
        graph = flow.runs[key[0]].graph
        outside = counts_of.get(key[:2], NOTHING_YET) if graph.outer[key[1]] else NOTHING_YET
        verdict = evaluate(graph.rules[key[1]], summed(outside, within_counts))
        if verdict is not Verdict.WAIT and (item := _undecided(flow, key)) is not None:
            decided.append((item, verdict))
    return decided


def _decide_by_outside(flow: Flow[T], outer: Counts) -> Asking[Decided[T]]:
    """Decides about whole tasks that have an ended upstream outside the group, or whose group has just been expanded."""
    decided: Decided[T] = []
    within: dict[TaskKey, tuple[MappedTask, Verdict]] = {}
    for key, counts in outer.items():
        mapped = flow.mapped.known.get(key)
        run = flow.runs[key[0]]
        one_by_one = run.clears > 0 or run.cancelled  # some have rows and still wait
        if mapped is None or (mapped.virtual_state is not TaskState.NONE and not one_by_one):
            continue
        graph, spec = run.graph, run.graph.task(key[1])
        inner = graph.inner[key[1]]
        verdict = evaluate(graph.rules[key[1]], summed(counts, UpstreamCounts(inner)))
        if mapped.virtual_state is not TaskState.NONE:
            within[key] = (mapped, Verdict.WAIT)
        elif (inner or one_by_one) and (verdict is not Verdict.WAIT or counts.done >= counts.total):
            within[key] = (mapped, verdict)
        elif verdict is Verdict.READY and not spec.empty and not spec.depends_on_past:
            flow.mapped.move(mapped, TaskEvent.READY, lane=True)
        elif verdict is not Verdict.WAIT:
            decided += [(flow.instances.new_item(*key, i), verdict) for i in range(mapped.length)]
            flow.mapped.move(mapped, _EVENTS[verdict])
    if within:
        decided += yield from _decide_within(flow, within, outer)
    return decided


def _decide_within(flow: Flow[T], within: dict[TaskKey, tuple[MappedTask, Verdict]], outer: Counts) -> Asking[Decided[T]]:
    """Decides about instances of tasks whose verdict depends on the index. Touched instances are decided one by one; the others
    share a verdict, or wait.
    """
    found = FindTouched(within)
    yield [found]
    touched = {row.key: row.counts or UpstreamCounts(flow.runs[row.key[0]].graph.inner[row.key[1]]) for row in found.answer}
    of_task: dict[TaskKey, list[InstanceKey]] = {key: [] for key in within}
    for instance in touched:
        of_task[instance[:2]].append(instance)
    decided: Decided[T] = []
    for key, (mapped, shared) in within.items():
        graph = flow.runs[key[0]].graph
        untouched = UpstreamCounts(graph.inner[key[1]])
        keys = of_task[key]
        if shared is not Verdict.WAIT:
            keys = [(*key, map_index) for map_index in range(mapped.length)]
        for instance in keys:
            verdict = evaluate(graph.rules[key[1]], summed(outer[key], touched.get(instance, untouched)))
            if verdict is not Verdict.WAIT and (item := _undecided(flow, instance)) is not None:
                decided.append((item, verdict))
        if shared is not Verdict.WAIT:
            flow.mapped.move(mapped, _EVENTS[shared])
    return decided


def _undecided(flow: Flow[T], key: InstanceKey) -> T | None:
    """Returns the instance, if nothing has been decided about it yet."""
    if key in flow.instances.items:
        return flow.waits(key)
    return flow.instances.new_item(*key) if flow.mapped.waiting(key[:2]) else None


def skip_virtual(flow: Flow[T], tasks: Iterable[TaskKey]) -> Asking[list[T]]:
    """Skips the waiting virtual instances of these tasks for a branch outside their group. Returns the instances."""
    yield from know_mapped(flow, tasks)
    waiting = [mapped for key in tasks if (mapped := flow.mapped.waiting(key)) is not None]
    found: list[T] = []
    for mapped, keys in (yield from virtual_instances(waiting)):
        found += [flow.instances.new_item(*key) for key in keys if key not in flow.instances.items]
        flow.mapped.move(mapped, TaskEvent.SKIP)
    return found


def virtual_instances(tasks: Sequence[MappedTask]) -> Asking[list[tuple[MappedTask, list[InstanceKey]]]]:
    """Returns the virtual instances of these tasks."""
    if not tasks:
        return []
    touched = FindTouched([(mapped.run_key, mapped.task_index) for mapped in tasks])
    yield [touched]
    begun = {row.key for row in touched.answer if row.state is not None}
    keys = [[(mapped.run_key, mapped.task_index, map_index) for map_index in range(mapped.length)] for mapped in tasks]
    return [(mapped, [key for key in each if key not in begun]) for mapped, each in zip(tasks, keys, strict=True)]
