"""After an operation: all that a run counts, computed anew from the states in it (R-CS8), and what waits judged by that.

Of what waits each transaction judges so many, in order, and asks in the inbox for the rest. Once the counts are right, what has not
been judged yet is like what waits for its upstreams: it keeps the run from ending, and whatever comes in between may decide about
it. Instances that depend on each other index by index are judged in one transaction, one by one. What is counted is the size of the
run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from evenflow.core.graph import Graph, Span
from evenflow.core.limits import SETTLED_PER_TURN
from evenflow.core.model import UNMAPPED
from evenflow.core.states import FINISHED, TaskState
from evenflow.core.trigger_rules import UpstreamCounts, Verdict, contribution, counted_as, evaluate
from evenflow.scheduler.branches import skip, standing_skips
from evenflow.scheduler.facts import Facts, Run
from evenflow.scheduler.indexes import Indexes, Opening
from evenflow.scheduler.ledgers import Ledgers
from evenflow.scheduler.ledgers.mapped_tasks import Expansion, MappedTasks
from evenflow.scheduler.ledgers.moves import Item, Moves
from evenflow.scheduler.readiness import settle
from evenflow.store import operations as store
from evenflow.store.inbox import TakenReport
from evenflow.store.tasks import MappedTask

SETTLE = "settle"  # kind of a report: what waits behind an instance is still to be judged

Standing = dict[int, UpstreamCounts]

_FIRST = (-1, UNMAPPED)


class Counted(NamedTuple):
    run: store.Recount
    standing: Standing
    inside: Inside


def settle_run(facts: Facts, ledgers: Ledgers, run: Run, indexes: Indexes) -> None:
    """Counts, and judges. Groups that are to be opened join ``indexes``."""
    judge(facts, ledgers, run, count(facts, run), indexes)


def count(facts: Facts, run: Run) -> Counted:
    graph, conn = run.graph, facts.conn
    standing, inside = _standing(facts, run), Inside.of(facts, run)
    if graph.counters:
        store.set_counters(conn, run.run_key, [(i, *_counts(graph, i, standing)) for i, _ in graph.counters])
    if graph.spans:
        store.set_indexed(conn, run.run_key, list(inside.counters()))
    counted = store.recount_run(conn, run.run_key, [i for i in range(graph.n) if graph.leaf[i]])
    run.interrupted = counted.interrupted
    return Counted(counted, standing, inside)


def judge(facts: Facts, ledgers: Ledgers, run: Run, counted: Counted, indexes: Indexes) -> None:
    _judge(facts, ledgers, run, indexes, counted.standing, counted.inside)
    ledgers.run_moves.count(run.run_key, 0)  # it may have nothing left to do


def resume(facts: Facts, ledgers: Ledgers, run: Run, indexes: Indexes) -> None:
    """A run that operators had touched after it had finished begins again: what waits is judged."""
    _judge(facts, ledgers, run, indexes, _standing(facts, run), Inside.of(facts, run))
    ledgers.run_moves.count(run.run_key, 0)


def settle_on(facts: Facts, ledgers: Ledgers, run: Run, report: TakenReport, indexes: Indexes) -> None:
    """Judges some more of what waits. Comes before other reports of the same transaction, like what has asked for it."""
    assert report.payload is not None
    task_index, map_index = report.payload["after"]
    _judge(facts, ledgers, run, indexes, _standing(facts, run), Inside.of(facts, run), after=(task_index, map_index))


class Inside:
    """The instances of expanded spans of several tasks: those with a row, and what the others of a task are."""

    def __init__(self, graph: Graph, mapped: dict[int, MappedTask], rows: Iterable[store.Indexed]) -> None:
        self.graph, self.mapped = graph, mapped
        self.states: dict[int, dict[int, TaskState]] = {task_index: {} for task_index in mapped}
        for row in rows:
            if row.task_index in mapped:
                self.states[row.task_index][row.map_index] = TaskState(row.state)

    @classmethod
    def of(cls, facts: Facts, run: Run) -> Inside:
        asked = [i for span in run.graph.spans if _by_index(span) for i in span.tasks]
        if not asked:
            return cls(run.graph, {}, ())
        mapped = {row.task_index: row for row in store.read_mapped(facts.conn, run.run_key, asked)}
        return cls(run.graph, mapped, store.read_indexed(facts.conn, run.run_key, mapped) if mapped else ())

    def counts(self, task_index: int, map_index: int) -> UpstreamCounts:
        """How the upstreams of the same index stand."""
        graph = self.graph
        total, success, failed, skipped = graph.inner[task_index], 0, 0, 0
        for upstream in graph.upstream[task_index]:
            if graph.same_span(upstream, task_index):
                state = self.states[upstream].get(map_index, self._rest(upstream))
                given = contribution(graph.rules[task_index], counted_as(state), setup=graph.setup[upstream])
                total, success, failed, skipped = map(sum, zip((total, success, failed, skipped), given, strict=True))
        return UpstreamCounts(total, success, failed, skipped)

    def counters(self) -> Iterator[tuple[int, int, int, int, int, int]]:
        """Those of one index that there are to be: of tasks of which one upstream does not say it all, where one has ended."""
        graph = self.graph
        for task_index in self.mapped:
            inner = [u for u in graph.upstream[task_index] if graph.same_span(u, task_index)]
            if len(inner) > 1 or (inner and graph.outer[task_index]):
                for map_index in sorted(set().union(*(self._ended(upstream) for upstream in inner))):
                    yield (task_index, map_index, *self.counts(task_index, map_index))

    def _ended(self, task_index: int) -> set[int]:
        states, mapped = self.states[task_index], self.mapped[task_index]
        ended = {map_index for map_index, state in states.items() if state in FINISHED}
        return ended if self._rest(task_index) not in FINISHED else ended | (set(range(mapped.length)) - states.keys())

    def _rest(self, task_index: int) -> TaskState:
        """Of a task that expands anew when its processes have ended, the instances without a row have not ended."""
        rest = TaskState(self.mapped[task_index].rest)
        return TaskState.NONE if rest is TaskState.REMOVED else rest


def _by_index(span: Span) -> bool:
    return span.head is None or len(span.tasks) > 1


def _standing(facts: Facts, run: Run) -> Standing:
    graph = run.graph
    upstreams = {u for upstream in graph.upstream for u in upstream} | graph.gates_of.keys()
    return store.read_standing(facts.conn, run.run_key, upstreams) if upstreams else {}


def _counts(graph: Graph, task_index: int, standing: Standing) -> UpstreamCounts:
    """What the counter of a task or gate says, if it has one."""
    total, success, failed, skipped = 0, 0, 0, 0
    for upstream in graph.outside(task_index):
        row = standing[upstream]
        counted = (row.success, row.failed, row.skipped)
        if task_index < graph.n:
            given = contribution(graph.rules[task_index], counted, setup=graph.setup[upstream])
        else:
            given = UpstreamCounts(0, *counted)
        total += row.total + given.total
        success += given.success
        failed += given.failed
        skipped += given.skipped
    return UpstreamCounts(total, success, failed, skipped)


def _judge(
    facts: Facts,
    ledgers: Ledgers,
    run: Run,
    indexes: Indexes,
    standing: Standing,
    inside: Inside,
    after: tuple[int, int] = _FIRST,
) -> None:
    graph, moves, messages = run.graph, ledgers.moves, ledgers.messages
    skips = standing_skips(facts, run.run_key)
    rows = store.read_waiting(facts.conn, run.run_key, after, limit=None if inside.mapped else SETTLED_PER_TURN)
    if len(rows) == SETTLED_PER_TURN and not inside.mapped:
        last = (rows[-1].task_index, rows[-1].map_index)
        messages.unsettled[run.run_key] = min(last, messages.unsettled.get(run.run_key, last))
    waiting = [moves.item(row.run_key, row.task_index, row.map_index, row.state, row.epoch, row.try_number) for row in rows]
    unopened: set[int] = set()
    for item in [*waiting, *_untouched(moves, ledgers.mapped, run, inside, standing, skips.keys())]:
        if item.state is not TaskState.NONE or item.key in moves.gone:
            continue
        branch = skips.get(item.key[1:], skips.get((item.task_index, UNMAPPED)))
        if branch is not None:
            skip(facts, moves, item, branch)
        elif item.map_index == UNMAPPED and graph.grouped(item.task_index):
            unopened.add(graph.span_of[item.task_index])
        else:
            settle(facts, moves, ledgers.offers, item, _verdict(graph, item.task_index, item.map_index, standing, inside))
    for number in sorted(unopened):
        span = graph.spans[number]
        counts = UpstreamCounts(0) if span.gate is None else _counts(graph, span.gate, standing)
        if counts.done >= counts.total:
            indexes.opening.append(Opening(run.run_key, span, counts))


def _verdict(graph: Graph, task_index: int, map_index: int, standing: Standing, inside: Inside) -> Verdict:
    counts = _counts(graph, task_index, standing)
    if map_index != UNMAPPED and task_index in inside.mapped:
        counts = UpstreamCounts(*map(sum, zip(counts, inside.counts(task_index, map_index), strict=True)))
    elif graph.inner[task_index]:  # it follows a mapped task, and neither has been expanded
        (followed,) = graph.upstream[task_index]
        counts = standing[followed]
    return evaluate(graph.rules[task_index], counts)


def _untouched(
    moves: Moves, mapped_tasks: MappedTasks, run: Run, inside: Inside, standing: Standing, skips: Iterable[tuple[int, int]]
) -> Iterator[Item]:
    """Instances without a row that wait no more. Those of a task become a lane where they are all of it and are ready."""
    skipped = set(skips)
    for task_index, mapped in inside.mapped.items():
        known = mapped_tasks.known.get((run.run_key, task_index))
        if (known.rest if known else mapped.rest) != TaskState.NONE:
            continue
        expansion = known or Expansion(run.run_key, task_index, mapped.length, TaskState.NONE)
        task, graph = run.graph.task(task_index), run.graph
        named = any(index == task_index for index, _ in skipped)
        begun = inside.states[task_index]
        alike = not graph.inner[task_index] and not begun and not named and not (task.empty or task.depends_on_past)
        verdict = _verdict(graph, task_index, 0, standing, inside)
        if alike and verdict is Verdict.READY:
            mapped_tasks.known[run.run_key, task_index] = expansion
            mapped_tasks.settle_rest(expansion, TaskState.SCHEDULED, lane=True)
            continue
        for map_index in range(mapped.length):
            key = (run.run_key, task_index, map_index)
            if map_index in begun or key in moves.items:
                continue
            stands = named and ((task_index, map_index) in skipped or (task_index, UNMAPPED) in skipped)
            if stands or _verdict(graph, task_index, map_index, standing, inside) is not Verdict.WAIT:
                yield moves.new_item(*key)
