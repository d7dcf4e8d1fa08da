"""What becomes ready when something ends: counters and trigger rules. A finished instance costs as much as it has downstream tasks.

It goes level by level: it counts all that has ended, then decides all tasks that count it; what ends by this is the next level.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from evenflow.core.asking import Asking, Question
from evenflow.core.flow.expansion import expand_ready
from evenflow.core.flow.indexes import count_inside, decide_indexes, open_groups
from evenflow.core.flow.level import Level
from evenflow.core.flow.questions import CountUpstreams, FindCleared, FindHeld, FindInstances
from evenflow.core.flow.state import Flow, FlowInstance, InstanceKey, T, TaskKey
from evenflow.core.model import UNMAPPED
from evenflow.core.states import TaskEvent, TaskState
from evenflow.core.trigger_rules import TriggerRule, UpstreamCounts, Verdict, contribution, counted_as, evaluate

READ_AHEAD = 32  # tasks whose rows are read before their verdict is known: this saves a round trip, and reads rows that only wait


def propagate(flow: Flow[T]) -> Asking[None]:
    """Counts what has finished and expands mapped tasks, level by level, until nothing new finishes."""
    while flow.goes_on:
        yield from _admit(flow)
        level = Level(flow.runs)
        _count_virtual(flow, level)
        yield from expand_ready(flow, level)
        yield from open_groups(flow, level)
        _count_wave(flow, level)
        yield from _decide(flow, level)


def settle(flow: Flow[T], item: T, verdict: Verdict) -> None:
    """Acts on the verdict for a waiting task, unless its run is being ended."""
    run = flow.runs[item.run_key]
    if run.ends_in_parts:
        return
    match verdict:
        case Verdict.WAIT:
            return
        case Verdict.SKIP:
            flow.give_up(item, TaskEvent.SKIP)
        case Verdict.UPSTREAM_FAIL:
            flow.instances.apply(item, TaskEvent.UPSTREAM_FAIL)
        case Verdict.READY:
            if run.graph.task(item.task_index).depends_on_past:
                flow.gated.append(item)
            else:
                flow.begin(item)


def _admit(flow: Flow[T]) -> Asking[None]:
    """Begins the instances that were ready except for the past, if the previous run lets them."""
    if not flow.gated:
        return
    gated, flow.gated = flow.gated, []
    held = FindHeld([item.key for item in gated])
    yield [held]
    for item in gated:
        if item.key not in held.answer:
            flow.begin(item)


def _count_virtual(flow: Flow[T], level: Level) -> None:
    """Counts virtual instances that ended all at once like any other."""
    ended, flow.mapped.ended = flow.mapped.ended, []
    for end in ended:
        graph = flow.runs[end.run_key].graph
        success, failed, skipped = (end.instances * n for n in counted_as(end.state))
        flow.count(end.run_key, end.instances, failed if graph.leaf[end.task_index] else 0)
        for other in graph.downstream[end.task_index]:
            if graph.counted[other] and not graph.same_region(end.task_index, other):
                given = contribution(graph.rules[other], (success, failed, skipped), setup=graph.setup[end.task_index])
                level.add((end.run_key, other), given)
        for gate in graph.gates_of.get(end.task_index, ()):
            level.add((end.run_key, gate), (0, success, failed, skipped))


def _count_wave(flow: Flow[T], level: Level) -> None:
    deltas = level.deltas
    wave, flow.instances.wave = flow.instances.wave, []
    for item in wave:
        run_key = item.run_key
        graph = flow.runs[run_key].graph
        failed = item.state in (TaskState.FAILED, TaskState.UPSTREAM_FAILED)
        flow.count(run_key, 1, int(failed and graph.leaf[item.task_index]))
        if failed and graph.spec.fail_fast:
            _stop_run(flow, item)
        downstream = graph.downstream[item.task_index]
        if not downstream:
            continue
        counted = counted_as(item.state)
        usual = UpstreamCounts(0, *counted)
        for task_index in count_inside(level, graph, item, counted) if graph.regions else downstream:
            rule = graph.rules[task_index]
            given = usual
            if rule is TriggerRule.ALL_DONE_SETUP_SUCCESS:  # the other rules need no call of contribution() for each edge
                given = contribution(rule, counted, setup=graph.setup[item.task_index])
            total, success, fail, skip = given
            if graph.counted[task_index]:
                delta = deltas[run_key, task_index]
                delta[0] += total
                delta[1] += success
                delta[2] += fail
                delta[3] += skip
            else:
                level.single[run_key, task_index] = UpstreamCounts(1 + total, success, fail, skip)


def _stop_run(flow: Flow[T], failed: FlowInstance) -> None:
    """Ends the run of a DAG with ``fail_fast`` because of this failure. Nothing more starts; the flow's driver cancels the run."""
    run = flow.runs[failed.run_key]
    spec = run.graph.task(failed.task_index)
    decisive = not spec.teardown or spec.on_failure_fail_dagrun
    if failed.state is TaskState.FAILED and decisive and not run.cancelled:
        run.cancelled = True
        flow.stops.append((run.run_key, f"fail_fast (task {spec.task_id!r} failed)"))


def _decide(flow: Flow[T], level: Level) -> Asking[None]:
    """Evaluates the downstream tasks that still wait."""
    keys = [key for key in (*level.deltas, *level.single) if not flow.runs[key[0]].graph.grouped(key[1])]
    cleared = [key for key in keys if flow.runs[key[0]].clears and flow.runs[key[0]].graph.mapped[key[1]]]
    unread = [key for key in _unread(flow, keys) if not flow.is_untouched(key[:2])]
    ahead = bool(unread) and len(keys) <= READ_AHEAD
    count, find_cleared = CountUpstreams(level.deltas), FindCleared(cleared)
    questions: list[Question[Any]] = [FindInstances(unread)] if ahead else []
    questions += [count] if level.deltas else []
    questions += [find_cleared] if cleared else []
    if questions:
        yield questions
    counts = {**level.single, **dict(count.answer)} if level.deltas else dict(level.single)
    rules = {key: flow.runs[key[0]].graph.rules[key[1]] for key in keys}
    verdicts = {key: verdict for key in keys if (verdict := evaluate(rules[key], counts[key])) is not Verdict.WAIT}
    if flow.surmise is not None:
        for run_key, task_index, _ in _unread(flow, verdicts):
            if verdicts[run_key, task_index] is Verdict.READY and flow.is_untouched((run_key, task_index)):
                flow.surmise(run_key, task_index)
    asked = set(unread) if ahead else ()
    if unread := [key for key in _unread(flow, verdicts) if key not in asked]:
        yield [FindInstances(unread)]
    for key, verdict in verdicts.items():
        item = flow.waits((*key, UNMAPPED))
        if item is not None:
            settle(flow, item, verdict)
    for instance in find_cleared.answer if cleared else ():
        item = flow.waits(instance)
        if item is not None:
            settle(flow, item, evaluate(rules[instance[:2]], counts[instance[:2]]))
    for item, verdict in (yield from decide_indexes(flow, level, counts)):
        settle(flow, item, verdict)


def _unread(flow: Flow[T], keys: Iterable[TaskKey]) -> list[InstanceKey]:
    return [(*key, UNMAPPED) for key in keys if (*key, UNMAPPED) not in flow.instances.items]
