"""Readiness index by index: tasks of mapped groups, and tasks that map over a mapped task one to one.

Such tasks form a span (:class:`evenflow.core.graph.Span`). Upstreams outside it are counted once for all instances, at map index
-1; those inside are counted for the instance of the same index. A counter of one index exists only where the state of one upstream
does not say it all, and is made when it is first touched, so an instance that nothing has happened to costs nothing.

A verdict from what is outside alone holds for every instance: those of a root of a group become a lane, all at once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from evenflow.core.graph import NO_SPAN, Graph, Span
from evenflow.core.mapping import product_length
from evenflow.core.model import UNMAPPED
from evenflow.core.states import TaskEvent, TaskState
from evenflow.core.trigger_rules import TriggerRule, UpstreamCounts, Verdict, contribution, counted_as, evaluate
from evenflow.scheduler.expansion import NOTHING, Deltas, read_lengths, unfold, unmappable
from evenflow.scheduler.facts import Facts
from evenflow.scheduler.ledgers.mapped_tasks import Expansion, MappedTasks, Rest
from evenflow.scheduler.ledgers.moves import Item, Moves
from evenflow.store import tasks

Standing = dict[tuple[int, int], UpstreamCounts]  # (run_key, task_index)
Decided = list[tuple[Item, Verdict]]
Inner = dict[tuple[int, int, int], list[int]]  # (run_key, task_index, map_index): [total, success, failed, skipped], to be added

NONE = UpstreamCounts(0)
_SETTLED = {Verdict.READY: TaskState.SCHEDULED, Verdict.SKIP: TaskState.SKIPPED, Verdict.UPSTREAM_FAIL: TaskState.UPSTREAM_FAILED}


@dataclass(slots=True)
class Opening:
    """A mapped group all of whose sources have ended as ``counts`` says."""

    run_key: int
    span: Span
    counts: UpstreamCounts

    def standing_for(self) -> list[tuple[int, int, int]]:
        """The keys of the rows that stand for its tasks."""
        return [(self.run_key, task_index, UNMAPPED) for task_index in self.span.tasks]


class Indexes:
    """What one propagation says about spans, gathered in a level and decided at its end."""

    def __init__(self, facts: Facts, moves: Moves, mapped: MappedTasks) -> None:
        self._facts, self._moves, self._mapped = facts, moves, mapped
        self.opening: list[Opening] = []
        self._inner: Inner = defaultdict(lambda: [0, 0, 0, 0])

    def begin(self, run_key: int, graph: Graph) -> None:
        """A new run: groups that map over literals are open from the start."""
        self.opening += [Opening(run_key, span, NONE) for span in graph.spans if span.head is None and not span.gated_by]

    def take(self, item: Item, counted: tuple[int, int, int], deltas: Deltas, single: Standing) -> Iterator[int]:
        """Notes what a finished instance means inside its span and for gates; answers the tasks downstream that count it as one of
        all.
        """
        run_key, task_index = item.run_key, item.task_index
        graph = self._facts.runs[run_key].graph
        span = graph.span_of[task_index]
        for gate in graph.gates_of.get(task_index, ()):
            if graph.counted[gate]:
                _add(deltas[run_key, gate], counted)
            else:
                single[run_key, gate] = UpstreamCounts(1, *counted)
        for other in graph.downstream[task_index]:
            if span == NO_SPAN or graph.span_of[other] != span:
                yield other
            elif item.map_index != UNMAPPED:
                inner = self._inner[run_key, other, item.map_index]
                for i, n in enumerate(contribution(graph.rules[other], counted, setup=graph.setup[task_index])):
                    inner[i] += n
                if graph.outer[other]:
                    deltas[run_key, other][0] += 0  # to be read
            elif graph.spans[span].head is not None:
                yield other  # it never had instances, so the one that follows it has none either

    def open(self, deltas: Deltas, single: Standing) -> None:
        """Expands groups whose gates have opened, and has their tasks decided with what is known of their upstreams outside."""
        facts, moves, mapped = self._facts, self._moves, self._mapped
        opening = list({(o.run_key, o.span.tasks[0]): o for o in self.opening}.values())
        self.opening.clear()
        if not opening:
            return
        _load(facts, mapped, {(o.run_key, o.span.tasks[0]) for o in opening})
        opening = [o for o in opening if (o.run_key, o.span.tasks[0]) not in mapped.known]
        self._load_whole(opening)
        lengths = read_lengths(facts, ((o.run_key, o.span.mapping.inputs) for o in opening))
        for o in opening:
            graph = facts.runs[o.run_key].graph
            length = product_length(o.span.mapping.inputs, lengths[o.run_key])
            if facts.runs[o.run_key].cancelled:
                self._skip(o)
                continue
            if not length or length > graph.spec.max_map_length or not self._waiting(o):
                self._close(o, graph, length)
                continue
            for task_index in o.span.tasks:
                state = moves.items[o.run_key, task_index, UNMAPPED].state
                unfold(facts, mapped, o.run_key, task_index, length, deltas, ready=False)
                if state is not TaskState.NONE:
                    self._unfold_ended(o.run_key, task_index, length, state)
                elif graph.counted[task_index]:
                    deltas[o.run_key, task_index][0] += 0  # to be read
                elif not graph.inner[task_index] and (o.span.gated_by or not graph.outer[task_index]):
                    single[o.run_key, task_index] = o.counts
                elif graph.rules[task_index] is TriggerRule.ALWAYS:
                    single[o.run_key, task_index] = NONE

    def _load_whole(self, opening: list[Opening]) -> None:
        """The rows that stand for the tasks of these groups until they are expanded."""
        if unread := [key for o in opening for key in o.standing_for() if key not in self._moves.items]:
            for row in tasks.read_instances(self._facts.conn, unread).all():
                self._moves.item(row.run_key, row.task_index, row.map_index, row.state, row.epoch, row.try_number)

    def _waiting(self, opening: Opening) -> list[Item]:
        return [item for key in opening.standing_for() if (item := self._moves.items[key]).state is TaskState.NONE]

    def _skip(self, opening: Opening) -> None:
        """The run is cancelled, so the group will not be expanded."""
        for item in self._waiting(opening):
            self._moves.give_up(item, TaskEvent.SKIP)

    def _unfold_ended(self, run_key: int, task_index: int, length: int, state: TaskState) -> None:
        """A branch has skipped the task, or an operator marked it, before its group was expanded: so all its instances end. One of
        them has been counted.
        """
        facts, mapped = self._facts, self._mapped
        graph = facts.runs[run_key].graph
        mapped.settle_rest(mapped.known[run_key, task_index], state)
        mapped.rests.append(Rest(run_key, task_index, length - 1, state))
        for other in graph.downstream[task_index]:
            if graph.same_span(task_index, other):
                given = contribution(graph.rules[other], counted_as(state), setup=graph.setup[task_index])
                for map_index in range(length):
                    for i, n in enumerate(given):
                        self._inner[run_key, other, map_index][i] += n

    def _close(self, opening: Opening, graph: Graph, length: int | None) -> None:
        """Ends a group that can have no instances, as a whole."""
        facts, moves = self._facts, self._moves
        for item in self._waiting(opening):
            if length == 0:
                moves.apply(item, TaskEvent.SKIP)
                moves.explain(item, NOTHING)
            elif length is None and opening.counts.failed:
                moves.apply(item, TaskEvent.UPSTREAM_FAIL)
            elif length is None and opening.counts.skipped:
                moves.apply(item, TaskEvent.SKIP)
            elif graph.inner[item.task_index]:
                moves.apply(item, TaskEvent.UPSTREAM_FAIL)
            else:
                moves.apply(item, TaskEvent.FAIL)
                moves.explain(item, unmappable(facts, item.run_key, opening.span.mapping.inputs, length))

    def decide(self, standing: Standing) -> Decided:
        """The verdicts over all instances that this level has said something about."""
        inner, self._inner = self._inner, defaultdict(lambda: [0, 0, 0, 0])
        outer: Standing = {}
        for (run_key, task_index), counts in standing.items():
            graph = self._facts.runs[run_key].graph
            if task_index >= graph.n:
                if counts.done >= counts.total:
                    self.opening.append(Opening(run_key, graph.spans[graph.span_of_gate[task_index]], counts))
            elif graph.grouped(task_index):
                outer[run_key, task_index] = counts
        if not inner and not outer:
            return []
        live = {key[:2] for key in inner} | outer.keys()
        live = {key for key in live if self._goes_on(*key)}
        _load(self._facts, self._mapped, live)
        decided = [*self._by_index({k: v for k, v in inner.items() if k[:2] in live}, standing), *self._by_outside(outer)]
        return list({item.key: (item, verdict) for item, verdict in decided}.values())  # both may have decided one

    def _goes_on(self, run_key: int, task_index: int) -> bool:
        """In a cancelled run only what leads to teardowns does."""
        run = self._facts.runs[run_key]
        return not run.cancelled or run.graph.tears_down(run.graph.spans[run.graph.span_of[task_index]])

    def _by_index(self, inner: Inner, standing: Standing) -> Decided:
        """Instances of which an upstream of the same index has ended."""
        if not inner:
            return []
        facts, moves = self._facts, self._moves
        unread = [key for key in inner if key not in moves.items]
        stored = tasks.read_instances(facts.conn, unread) if unread else None
        counters: list[tuple[tasks.Counter, int]] = []
        counts: dict[tuple[int, int, int], UpstreamCounts] = {}
        for key, delta in inner.items():
            graph = facts.runs[key[0]].graph
            within = graph.inner[key[1]]
            if within == 1 and not graph.outer[key[1]]:
                counts[key] = _sum(UpstreamCounts(1), UpstreamCounts(*delta))
            else:
                counters.append((tasks.Counter(*key, *delta), within))
        if counters:
            for row in tasks.count_indexed(facts.conn, counters).all():
                counts[row[:3]] = UpstreamCounts(*row[3:])
        if stored is not None:
            for found in stored.all():
                moves.item(found.run_key, found.task_index, found.map_index, found.state, found.epoch, found.try_number)
        decided: Decided = []
        for key, within_counts in counts.items():
            outside = standing.get(key[:2], NONE) if facts.runs[key[0]].graph.outer[key[1]] else NONE
            verdict = evaluate(facts.runs[key[0]].graph.rules[key[1]], _sum(outside, within_counts))
            if verdict is not Verdict.WAIT and (item := self._undecided(key)) is not None:
                decided.append((item, verdict))
        return decided

    def _by_outside(self, outer: Standing) -> Decided:
        """Whole tasks of which an upstream outside the group has ended, or whose group has just been expanded."""
        decided: Decided = []
        within: dict[tuple[int, int], tuple[Expansion, Verdict]] = {}
        for key, counts in outer.items():
            expansion = self._mapped.known.get(key)
            run = self._facts.runs[key[0]]
            one_by_one = run.clears > 0 or run.cancelled  # some have rows and wait nevertheless
            if expansion is None or (expansion.rest is not TaskState.NONE and not one_by_one) or not self._goes_on(*key):
                continue
            graph = run.graph
            inner = graph.inner[key[1]]
            verdict = evaluate(graph.rules[key[1]], _sum(counts, UpstreamCounts(inner)))
            if expansion.rest is not TaskState.NONE:
                within[key] = (expansion, Verdict.WAIT)
            elif (inner or one_by_one) and (verdict is not Verdict.WAIT or counts.done >= counts.total):
                within[key] = (expansion, verdict)
            elif verdict is Verdict.READY and not graph.task(key[1]).empty and not graph.task(key[1]).depends_on_past:
                self._mapped.settle_rest(expansion, TaskState.SCHEDULED, lane=True)
            elif verdict is not Verdict.WAIT:
                decided += [(self._moves.new_item(*key, i), verdict) for i in range(expansion.length)]
                self._mapped.settle_rest(expansion, _SETTLED[verdict])
        if within:
            decided += self._within(within, outer)
        return decided

    def _within(self, within: dict[tuple[int, int], tuple[Expansion, Verdict]], outer: Standing) -> Decided:
        """Instances of tasks whose verdict has to look at each index that was touched; the others share one, or wait."""
        facts, moves, mapped = self._facts, self._moves, self._mapped
        touched: dict[tuple[int, int, int], UpstreamCounts] = {}
        for row in tasks.read_touched(facts.conn, within).all():
            run_key, task_index, _ = row.key
            touched[row.key] = row.counts or UpstreamCounts(facts.runs[run_key].graph.inner[task_index])
            if row.state is not None:
                moves.item(*row.key, row.state, row.epoch, row.try_number)
        decided: Decided = []
        for key, (expansion, verdict) in within.items():
            graph = facts.runs[key[0]].graph
            if verdict is Verdict.WAIT:
                indexes = [touched_key[2] for touched_key in touched if touched_key[:2] == key]
            else:
                indexes = list(range(expansion.length))
            for map_index in indexes:
                counts = touched.get((*key, map_index), UpstreamCounts(graph.inner[key[1]]))
                found = evaluate(graph.rules[key[1]], _sum(outer[key], counts))
                if found is not Verdict.WAIT and (item := self._undecided((*key, map_index))) is not None:
                    decided.append((item, found))
            if verdict is not Verdict.WAIT:
                mapped.settle_rest(expansion, _SETTLED[verdict])
        return decided

    def _undecided(self, key: tuple[int, int, int]) -> Item | None:
        """The instance, if nothing has been decided about it yet."""
        item = self._moves.items.get(key)
        if item is not None:
            return item if item.state is TaskState.NONE else None
        expansion = self._mapped.known.get(key[:2])
        return self._moves.new_item(*key) if expansion is not None and expansion.rest is TaskState.NONE else None


def _load(facts: Facts, mapped: MappedTasks, keys: set[tuple[int, int]]) -> None:
    """How these tasks (run_key, task_index) are expanded, as far as they are."""
    missing = [key for key in keys if key not in mapped.known]
    for row in tasks.read_mapped(facts.conn, missing).all() if missing else ():
        mapped.known[row.run_key, row.task_index] = Expansion(row.run_key, row.task_index, row.length, TaskState(row.rest))


def _add(delta: list[int], counted: tuple[int, int, int]) -> None:
    for i, n in enumerate(counted, 1):
        delta[i] += n


def _sum(one: UpstreamCounts, other: UpstreamCounts) -> UpstreamCounts:
    return UpstreamCounts(*map(sum, zip(one, other, strict=True)))


def skip_whole(facts: Facts, moves: Moves, mapped: MappedTasks, keys: set[tuple[int, int]]) -> list[Item]:
    """The instances that still wait for a branch outside their group, which skips them, of these tasks of expanded groups."""
    _load(facts, mapped, keys)
    waiting = {key: expansion for key in keys if (expansion := mapped.known.get(key)) and expansion.rest is TaskState.NONE}
    begun = {row.key for row in tasks.read_touched(facts.conn, waiting).all() if row.state is not None} if waiting else set()
    found: list[Item] = []
    for key, expansion in waiting.items():
        found += [
            moves.new_item(*key, i) for i in range(expansion.length) if (*key, i) not in begun and (*key, i) not in moves.items
        ]
        mapped.settle_rest(expansion, TaskState.SKIPPED)
    return found
