"""What becomes ready when something ends: counters, trigger rules, expansion. A finished task costs its out-degree."""

from __future__ import annotations

from collections import defaultdict

from evenflow.core.graph import Source, product_length
from evenflow.core.limits import MAX_MAP_LENGTH
from evenflow.core.model import UNMAPPED, MapInput
from evenflow.core.states import TaskEvent, TaskState
from evenflow.core.trigger_rules import UpstreamCounts, Verdict, counted_as, evaluate
from evenflow.scheduler.batch import Batch, Expansion, Item
from evenflow.store import tasks

Deltas = dict[tuple[int, int], list[int]]  # (run_key, task_index): [total, success, failed, skipped]


def propagate(batch: Batch, expansions: list[Item] | None = None) -> None:
    """Counts what has finished and expands what is to be mapped, level by level, until nothing new finishes."""
    expansions = expansions or []
    while batch.wave or expansions:
        deltas: Deltas = defaultdict(lambda: [0, 0, 0, 0])
        single: dict[tuple[int, int], UpstreamCounts] = {}
        _expand(batch, expansions, deltas)
        wave, batch.wave = batch.wave, []
        for item in wave:
            run_key = item.run_key
            graph = batch.runs[run_key].graph
            failed = item.state in (TaskState.FAILED, TaskState.UPSTREAM_FAILED)
            batch.count(run_key, 1, int(failed and graph.leaf[item.task_index]))
            downstream = graph.downstream[item.task_index]
            if not downstream:
                continue
            success, fail, skip = counted_as(item.state)
            for task_index in downstream:
                if graph.counted[task_index]:
                    delta = deltas[run_key, task_index]
                    delta[1] += success
                    delta[2] += fail
                    delta[3] += skip
                else:
                    single[run_key, task_index] = UpstreamCounts(1, success, fail, skip)
        expansions = _decide(batch, deltas, single)


def _decide(batch: Batch, deltas: Deltas, single: dict[tuple[int, int], UpstreamCounts]) -> list[Item]:
    """Evaluates the tasks downstream that are still waiting; answers the mapped ones that are to be expanded."""
    keys = [*deltas, *single]
    unread = [key for key in keys if (*key, UNMAPPED) not in batch.items]
    stored = tasks.read_instances(batch.conn, unread) if unread else None
    standing = dict(single)
    if deltas:
        counters = tasks.count_upstreams(batch.conn, (tasks.Counter(*key, UNMAPPED, *delta) for key, delta in deltas.items()))
        for row in counters.all():
            standing[row.run_key, row.task_index] = UpstreamCounts(row.total, row.success, row.failed, row.skipped)
    if stored is not None:
        for found in stored.all():
            batch.item(found.run_key, found.task_index, found.map_index, found.state, found.epoch, found.try_number)
    expansions: list[Item] = []
    for run_key, task_index in keys:
        item = batch.items.get((run_key, task_index, UNMAPPED))
        if item is not None and item.state is TaskState.NONE and item.key not in batch.gone:
            rule = batch.runs[run_key].graph.rules[task_index]
            settle(batch, item, evaluate(rule, standing[run_key, task_index]), expansions)
    return expansions


def settle(batch: Batch, item: Item, verdict: Verdict, expansions: list[Item]) -> None:
    """Act on the verdict for a task that is waiting."""
    match verdict:
        case Verdict.WAIT:
            return
        case Verdict.SKIP:
            batch.apply(item, TaskEvent.SKIP)
        case Verdict.UPSTREAM_FAIL:
            batch.apply(item, TaskEvent.UPSTREAM_FAIL)
        case Verdict.READY:
            run = batch.runs[item.run_key]
            spec = run.graph.task(item.task_index)
            if run.cancelled:
                batch.apply(item, TaskEvent.CANCEL)
            elif spec.mapping is not None:
                expansions.append(item)
            elif spec.empty:
                batch.apply(item, TaskEvent.SUCCEED)
            else:
                batch.ready.append(item)


def _expand(batch: Batch, items: list[Item], deltas: Deltas) -> None:
    """Turns mapped tasks whose upstreams are done into instances, or ends them when there can be none."""
    if not items:
        return
    wanted: set[tuple[int, int, str, bool]] = set()
    for item in items:
        graph = batch.runs[item.run_key].graph
        for source in _inputs(batch, item):
            if source.task is not None:
                wanted.add((item.run_key, source.task, source.key, graph.mapped[source.task]))
    lengths: dict[int, dict[Source, int | None]] = defaultdict(dict)
    if wanted:
        for row in tasks.result_lengths(batch.conn, wanted).all():
            lengths[row.run_key][row.task_index, row.key] = row.length
    for item in items:
        run_key = item.run_key
        inputs = _inputs(batch, item)
        length = product_length(inputs, lengths[run_key])
        if length is None or length > MAX_MAP_LENGTH:
            batch.apply(item, TaskEvent.FAIL)
            batch.explain(item, _unmappable(batch, item, length))
        elif length == 0:
            batch.apply(item, TaskEvent.SKIP)
            batch.explain(item, "There was nothing to map over.")
        else:
            batch.gone.add(item.key)  # the row that stood for it
            batch.expanded.append(Expansion(run_key, item.task_index, length))
            batch.count(run_key, 1 - length)
            for task_index in batch.runs[run_key].graph.downstream[item.task_index]:
                deltas[run_key, task_index][0] += length - 1


def _inputs(batch: Batch, item: Item) -> tuple[MapInput, ...]:
    mapping = batch.runs[item.run_key].graph.task(item.task_index).mapping
    assert mapping is not None
    return mapping.inputs


def _unmappable(batch: Batch, item: Item, length: int | None) -> str:
    if length is not None:
        return f"It would have {length:,} instances, above the limit of {MAX_MAP_LENGTH:,}. Map over fewer, larger parts."
    graph = batch.runs[item.run_key].graph
    sources = ", ".join(graph.task(i.task).task_id for i in _inputs(batch, item) if i.task is not None)
    return f"It cannot be mapped: {sources} returned no list or dict. Return one, an empty one for nothing to do."
