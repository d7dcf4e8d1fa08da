"""What becomes ready when something ends: counters and trigger rules. A finished task costs its out-degree."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from evenflow.core.model import UNMAPPED
from evenflow.core.states import TaskEvent, TaskState
from evenflow.core.trigger_rules import TriggerRule, UpstreamCounts, Verdict, contribution, counted_as, evaluate
from evenflow.scheduler.cancel import stop_run
from evenflow.scheduler.expansion import Deltas, expand
from evenflow.scheduler.facts import Facts
from evenflow.scheduler.indexes import Indexes, Standing
from evenflow.scheduler.ledgers import Ledgers
from evenflow.scheduler.ledgers.mapped_tasks import MappedTasks
from evenflow.scheduler.ledgers.moves import Item, Moves, RunMoves
from evenflow.scheduler.ledgers.offers import Offers
from evenflow.scheduler.past import admitted
from evenflow.store import tasks
from evenflow.store.operations import read_cleared

READ_AHEAD = 32  # tasks whose rows are read before it is known who is ready: saves a round trip, costs rows that only wait


def propagate(facts: Facts, ledgers: Ledgers, indexes: Indexes) -> None:
    """Counts what has finished and expands what is to be mapped, level by level, until nothing new finishes."""
    moves, run_moves, mapped, offers = ledgers.moves, ledgers.run_moves, ledgers.mapped, ledgers.offers
    while moves.wave or offers.unexpanded or indexes.opening or mapped.rests or offers.gated:
        for item in admitted(facts, offers):
            _begin(facts, moves, offers, item)
        deltas: Deltas = defaultdict(lambda: [0, 0, 0, 0])
        single: Standing = {}
        _count_rests(facts, run_moves, mapped, deltas)
        unexpanded, offers.unexpanded = offers.unexpanded, []
        expand(facts, moves, mapped, unexpanded, deltas)
        indexes.open(deltas, single)
        wave, moves.wave = moves.wave, []
        for item in wave:
            run_key = item.run_key
            graph = facts.runs[run_key].graph
            failed = item.state in (TaskState.FAILED, TaskState.UPSTREAM_FAILED)
            run_moves.count(run_key, 1, int(failed and graph.leaf[item.task_index]))
            if failed and graph.spec.fail_fast:
                stop_run(facts, ledgers.messages, item)
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
        _decide(facts, moves, offers, deltas, single, indexes)


def _count_rests(facts: Facts, run_moves: RunMoves, mapped: MappedTasks, deltas: Deltas) -> None:
    """Instances without a row that ended all at once count like any other."""
    for rest in mapped.rests:
        run_key, task_index = rest.run_key, rest.task_index
        graph = facts.runs[run_key].graph
        success, failed, skipped = (rest.instances * n for n in counted_as(rest.state))
        run_moves.count(run_key, rest.instances, failed if graph.leaf[task_index] else 0)
        for other in graph.downstream[task_index]:
            if graph.counted[other] and not graph.same_span(task_index, other):
                given = contribution(graph.rules[other], (success, failed, skipped), setup=graph.setup[task_index])
                for i, n in enumerate(given):
                    deltas[run_key, other][i] += n
        for gate in graph.gates_of.get(task_index, ()):
            for i, n in enumerate((success, failed, skipped), 1):
                deltas[run_key, gate][i] += n
    mapped.rests.clear()


def _decide(facts: Facts, moves: Moves, offers: Offers, deltas: Deltas, single: Standing, indexes: Indexes) -> None:
    """Evaluates the tasks downstream that are still waiting."""
    keys = [key for key in (*deltas, *single) if not facts.runs[key[0]].graph.grouped(key[1])]
    ahead = tasks.read_instances(facts.conn, unread) if (unread := _unread(moves, keys)) and len(keys) <= READ_AHEAD else None
    standing = dict(single)
    if deltas:
        counters = tasks.count_upstreams(facts.conn, (tasks.Counter(*key, UNMAPPED, *delta) for key, delta in deltas.items()))
        for row in counters.all():
            standing[row.run_key, row.task_index] = UpstreamCounts(row.total, row.success, row.failed, row.skipped)
    rules = {key: facts.runs[key[0]].graph.rules[key[1]] for key in keys}
    verdicts = {key: verdict for key in keys if (verdict := evaluate(rules[key], standing[key])) is not Verdict.WAIT}
    if ahead is None and (unread := _unread(moves, verdicts)):
        ahead = tasks.read_instances(facts.conn, unread)
    for found in ahead.all() if ahead is not None else ():
        moves.item(found.run_key, found.task_index, found.map_index, found.state, found.epoch, found.try_number)
    for key, verdict in verdicts.items():
        item = moves.items.get((*key, UNMAPPED))
        if item is not None and item.state is TaskState.NONE and item.key not in moves.gone:
            settle(facts, moves, offers, item, verdict)
    for item in _cleared(facts, moves, keys):
        rule = facts.runs[item.run_key].graph.rules[item.task_index]
        settle(facts, moves, offers, item, evaluate(rule, standing[item.key[:2]]))
    for item, verdict in indexes.decide(standing):
        settle(facts, moves, offers, item, verdict)


def _unread(moves: Moves, keys: Iterable[tuple[int, int]]) -> list[tuple[int, int, int]]:
    return [(*key, UNMAPPED) for key in keys if (*key, UNMAPPED) not in moves.items]


def _cleared(facts: Facts, moves: Moves, keys: list[tuple[int, int]]) -> list[Item]:
    """Instances that operators cleared one by one, so that they wait although their task has been expanded."""
    keys = [key for key in keys if facts.runs[key[0]].clears and facts.runs[key[0]].graph.mapped[key[1]]]
    rows = read_cleared(facts.conn, keys) if keys else ()
    items = [moves.item(row.run_key, row.task_index, row.map_index, row.state, row.epoch, row.try_number) for row in rows]
    return [item for item in items if item.state is TaskState.NONE]


def settle(facts: Facts, moves: Moves, offers: Offers, item: Item, verdict: Verdict) -> None:
    """Act on the verdict for a task that is waiting, unless its run is being ended."""
    if facts.runs[item.run_key].ends_in_parts:
        return
    match verdict:
        case Verdict.WAIT:
            return
        case Verdict.SKIP:
            moves.give_up(item, TaskEvent.SKIP)
        case Verdict.UPSTREAM_FAIL:
            moves.apply(item, TaskEvent.UPSTREAM_FAIL)
        case Verdict.READY:
            if facts.runs[item.run_key].graph.task(item.task_index).depends_on_past:
                offers.gated.append(item)
            else:
                _begin(facts, moves, offers, item)


def _begin(facts: Facts, moves: Moves, offers: Offers, item: Item) -> None:
    if item.state is not TaskState.NONE:
        return  # while the past held it back, a branch skipped it; or it was let begin twice
    run = facts.runs[item.run_key]
    spec = run.graph.task(item.task_index)
    if run.cancelled and not spec.teardown:
        moves.give_up(item, TaskEvent.WITHDRAW)
    elif spec.empty and (spec.mapping is None or item.map_index != UNMAPPED):
        moves.apply(item, TaskEvent.SUCCEED)
    else:
        offers.begin(item, expands=spec.mapping is not None and item.map_index == UNMAPPED)
