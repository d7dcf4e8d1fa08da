"""What becomes ready when something ends: counters and trigger rules. A finished task costs its out-degree."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from evenflow.core.model import UNMAPPED
from evenflow.core.states import TaskEvent, TaskState
from evenflow.core.trigger_rules import TriggerRule, UpstreamCounts, Verdict, contribution, counted_as, evaluate
from evenflow.scheduler.batch import Batch, Item
from evenflow.scheduler.cancel import stop_run
from evenflow.scheduler.expansion import Deltas, expand
from evenflow.scheduler.indexes import Indexes, Standing
from evenflow.scheduler.past import admitted
from evenflow.store import tasks
from evenflow.store.operations import read_cleared

READ_AHEAD = 32  # tasks whose rows are read before it is known who is ready: saves a round trip, costs rows that only wait


def propagate(batch: Batch, expansions: list[Item] | None = None, indexes: Indexes | None = None) -> None:
    """Counts what has finished and expands what is to be mapped, level by level, until nothing new finishes."""
    expansions = expansions or []
    indexes = indexes or Indexes(batch)
    while batch.wave or expansions or indexes.opening or batch.rests or batch.gated:
        for item in admitted(batch):
            _begin(batch, item, expansions)
        deltas: Deltas = defaultdict(lambda: [0, 0, 0, 0])
        single: Standing = {}
        _count_rests(batch, deltas)
        expand(batch, expansions, deltas)
        indexes.open(deltas, single)
        wave, batch.wave = batch.wave, []
        for item in wave:
            run_key = item.run_key
            graph = batch.runs[run_key].graph
            failed = item.state in (TaskState.FAILED, TaskState.UPSTREAM_FAILED)
            batch.count(run_key, 1, int(failed and graph.leaf[item.task_index]))
            if failed and graph.spec.fail_fast:
                stop_run(batch, item)
            downstream = graph.downstream[item.task_index]
            if not downstream:
                continue
            counted = counted_as(item.state)
            usual = UpstreamCounts(0, *counted)
            for task_index in indexes.take(item, counted, deltas, single) if graph.spans else downstream:
                rule = graph.rules[task_index]
                given = usual
                if rule is TriggerRule.ALL_DONE_SETUP_SUCCESS:  # what contribution() says of the others needs no call for each edge
                    given = contribution(rule, counted, setup=graph.setup[item.task_index])
                total, success, fail, skip = given
                if graph.counted[task_index]:
                    delta = deltas[run_key, task_index]
                    delta[0] += total
                    delta[1] += success
                    delta[2] += fail
                    delta[3] += skip
                else:
                    single[run_key, task_index] = UpstreamCounts(1 + total, success, fail, skip)
        expansions = _decide(batch, deltas, single, indexes)


def _count_rests(batch: Batch, deltas: Deltas) -> None:
    """Instances without a row that ended all at once count like any other."""
    for rest in batch.rests:
        run_key, task_index = rest.run_key, rest.task_index
        graph = batch.runs[run_key].graph
        success, failed, skipped = (rest.instances * n for n in counted_as(rest.state))
        batch.count(run_key, rest.instances, failed if graph.leaf[task_index] else 0)
        for other in graph.downstream[task_index]:
            if graph.counted[other] and not graph.same_span(task_index, other):
                given = contribution(graph.rules[other], (success, failed, skipped), setup=graph.setup[task_index])
                for i, n in enumerate(given):
                    deltas[run_key, other][i] += n
        for gate in graph.gates_of.get(task_index, ()):
            for i, n in enumerate((success, failed, skipped), 1):
                deltas[run_key, gate][i] += n
    batch.rests.clear()


def _decide(batch: Batch, deltas: Deltas, single: Standing, indexes: Indexes) -> list[Item]:
    """Evaluates the tasks downstream that are still waiting; answers the mapped ones that are to be expanded."""
    keys = [key for key in (*deltas, *single) if not batch.runs[key[0]].graph.grouped(key[1])]
    ahead = tasks.read_instances(batch.conn, unread) if (unread := _unread(batch, keys)) and len(keys) <= READ_AHEAD else None
    standing = dict(single)
    if deltas:
        counters = tasks.count_upstreams(batch.conn, (tasks.Counter(*key, UNMAPPED, *delta) for key, delta in deltas.items()))
        for row in counters.all():
            standing[row.run_key, row.task_index] = UpstreamCounts(row.total, row.success, row.failed, row.skipped)
    rules = {key: batch.runs[key[0]].graph.rules[key[1]] for key in keys}
    verdicts = {key: verdict for key in keys if (verdict := evaluate(rules[key], standing[key])) is not Verdict.WAIT}
    if ahead is None and (unread := _unread(batch, verdicts)):
        ahead = tasks.read_instances(batch.conn, unread)
    for found in ahead.all() if ahead is not None else ():
        batch.item(found.run_key, found.task_index, found.map_index, found.state, found.epoch, found.try_number)
    expansions: list[Item] = []
    for key, verdict in verdicts.items():
        item = batch.items.get((*key, UNMAPPED))
        if item is not None and item.state is TaskState.NONE and item.key not in batch.gone:
            settle(batch, item, verdict, expansions)
    for item in _cleared(batch, keys):
        settle(batch, item, evaluate(batch.runs[item.run_key].graph.rules[item.task_index], standing[item.key[:2]]), expansions)
    for item, verdict in indexes.decide(standing):
        settle(batch, item, verdict, expansions)
    return expansions


def _unread(batch: Batch, keys: Iterable[tuple[int, int]]) -> list[tuple[int, int, int]]:
    return [(*key, UNMAPPED) for key in keys if (*key, UNMAPPED) not in batch.items]


def _cleared(batch: Batch, keys: list[tuple[int, int]]) -> list[Item]:
    """Instances that operators cleared one by one, so that they wait although their task has been expanded."""
    keys = [key for key in keys if batch.runs[key[0]].clears and batch.runs[key[0]].graph.mapped[key[1]]]
    rows = read_cleared(batch.conn, keys) if keys else ()
    items = [batch.item(row.run_key, row.task_index, row.map_index, row.state, row.epoch, row.try_number) for row in rows]
    return [item for item in items if item.state is TaskState.NONE]


def settle(batch: Batch, item: Item, verdict: Verdict, expansions: list[Item]) -> None:
    """Act on the verdict for a task that is waiting, unless its run is being ended."""
    if batch.runs[item.run_key].ends_in_parts:
        return
    match verdict:
        case Verdict.WAIT:
            return
        case Verdict.SKIP:
            batch.give_up(item, TaskEvent.SKIP)
        case Verdict.UPSTREAM_FAIL:
            batch.apply(item, TaskEvent.UPSTREAM_FAIL)
        case Verdict.READY:
            if batch.runs[item.run_key].graph.task(item.task_index).depends_on_past:
                batch.gated.append(item)
            else:
                _begin(batch, item, expansions)


def _begin(batch: Batch, item: Item, expansions: list[Item]) -> None:
    if item.state is not TaskState.NONE:
        return  # while the past held it back, a branch skipped it; or it was let begin twice
    run = batch.runs[item.run_key]
    spec = run.graph.task(item.task_index)
    if run.cancelled and not spec.teardown:
        batch.give_up(item, TaskEvent.WITHDRAW)
    elif spec.empty and (spec.mapping is None or item.map_index != UNMAPPED):
        batch.apply(item, TaskEvent.SUCCEED)
    elif item.key not in batch.offered:  # a rule such as one_success is met by several upstreams of one transaction
        batch.offered.add(item.key)
        (expansions if spec.mapping is not None and item.map_index == UNMAPPED else batch.ready).append(item)
