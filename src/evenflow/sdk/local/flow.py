"""What is decided in a run in memory, as the scheduler decides it: when something ends, not when all has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from evenflow.core.graph import NO_SPAN, Graph
from evenflow.core.model import UNMAPPED, DagSpec
from evenflow.core.states import RunState, TaskState
from evenflow.core.trigger_rules import UpstreamCounts, Verdict, contribution, counted_as, evaluate
from evenflow.sdk.local.expansion import NOTHING, Expansions, Whole

Key = tuple[int, int]  # task index, map index: -1 of a task that is not mapped, or has no instances
Decided = tuple[TaskState, str | None]  # how something ends that does not run, and why

_ENDS = {Verdict.SKIP: TaskState.SKIPPED, Verdict.UPSTREAM_FAIL: TaskState.UPSTREAM_FAILED}
_BAD_ENDS = frozenset({TaskState.FAILED, TaskState.UPSTREAM_FAILED})


@dataclass(frozen=True, slots=True)
class FlowInstance:
    index: int
    map_index: int
    map_length: int | None


class Flow:
    """Told with :meth:`add` what has ended; ``ready`` grows by what may run, to be taken from it."""

    def __init__(self, spec: DagSpec, xcoms: Mapping[tuple[str, str, int], bytes]) -> None:
        self.graph = Graph.of(spec)
        self.ready: list[FlowInstance] = []
        self.stopped = False  # a failure has ended the run; teardowns follow
        self.ends: dict[Key, TaskState] = {}
        self._spec = spec
        self._expansions = Expansions(spec, self.graph.mapped, xcoms)
        self._tallies = [[0, 0, 0] for _ in spec.tasks]  # ends in success, in failure, skipped
        self._ended: Counter[int] = Counter()
        self._expected: dict[int, int] = {}  # instances of tasks that are expanded
        self._decided: set[Key] = set()  # ready or ended
        self._begun = set(self.graph.roots)  # ready as a whole, and so out of reach of branches
        self._opened: set[int] = set()  # spans

    def at_once(self) -> dict[Key, Decided]:
        """What ends with the start of the run."""
        decided: dict[Key, Decided] = {}
        for index in self.graph.roots:
            decided |= self._begin(index)
        for number, span in enumerate(self.graph.spans):
            if span.head is None and span.gate is None:
                decided |= self._open(number)
        return decided

    def add(self, key: Key, state: TaskState) -> None:
        self.ends[key] = state
        self._decided.add(key)
        self._ended[key[0]] += 1
        for position, count in enumerate(counted_as(state)):
            self._tallies[key[0]][position] += count

    def skipped_by(self, key: Key, skipped: Iterable[int]) -> list[Key]:
        """Of the tasks that a branch skips, what can still be skipped."""
        found: list[Key] = []
        for index in skipped:
            if self.graph.same_span(key[0], index):
                found += [(index, key[1])] if (index, key[1]) not in self._decided else []
            else:
                found += self._undecided(index)
        return found

    def decided_by(self, keys: Iterable[Key]) -> dict[Key, Decided]:
        """What ends without having run now that these have ended; what may run comes into ``ready``."""
        decided: dict[Key, Decided] = {}
        whole: dict[int, None] = {}
        for index, map_index in keys:
            for gate in self.graph.gates_of.get(index, ()):
                number = self.graph.span_of_gate[gate]
                if number not in self._opened and all(map(self._has_ended, self.graph.spans[number].gated_by)):
                    decided |= self._open(number)
            for other in self.graph.downstream[index]:
                if not (self.graph.grouped(other) or self._follows(other)):
                    whole[other] = None
                elif self.graph.same_span(index, other) and map_index != UNMAPPED:
                    decided |= self._decide_instance(other, map_index)
                elif other in self._expected:
                    for each in range(self._expected[other]):
                        decided |= self._decide_instance(other, each)
                elif self._follows(other):
                    decided |= self._decide_follower(other)
        for other in whole:
            decided |= self._decide_whole(other)
        return decided

    def stops_at(self, index: int, state: TaskState) -> bool:
        """Whether this end is the failure that ends a run with ``fail_fast``."""
        task = self._spec.tasks[index]
        decisive = not task.teardown or task.on_failure_fail_dagrun
        return self._spec.fail_fast and state is TaskState.FAILED and decisive and not self.stopped

    def stop(self, live: set[int]) -> list[Key]:
        """The run is to end: what is skipped of what waits. What stands between a live task and a teardown goes on waiting."""
        self.stopped = True
        spared = self.graph.in_scopes(live)
        going = [i for i in range(self.graph.n) if not self.graph.teardown[i] and i not in spared]
        return [key for i in going for key in self._undecided(i)]

    def state(self) -> RunState:
        """Of the run, at its end."""
        bad = any(self.graph.leaf[index] and state in _BAD_ENDS for (index, _), state in self.ends.items())
        return RunState.FAILED if bad or self.stopped else RunState.SUCCESS

    def _begin(self, index: int) -> dict[Key, Decided]:
        """A task outside mapped groups that is ready."""
        self._begun.add(index)
        if self._spec.tasks[index].mapping is None:
            return self._start(index, UNMAPPED, None)
        return self._open(self.graph.span_of[index])

    def _open(self, number: int) -> dict[Key, Decided]:
        """A mapped group whose gate is open, or a mapped task that is ready, with those that follow it index by index."""
        span = self.graph.spans[number]
        self._opened.add(number)
        sources = self._spec.tasks[span.head].upstream if span.head is not None else span.gated_by
        ended = [state for (index, _), state in self.ends.items() if index in sources]
        length = self._expansions.of(span, ended)
        tasks = [i for i in span.tasks if (i, UNMAPPED) not in self.ends]
        if isinstance(length, Whole):
            if span.head is not None:
                return {(span.head, UNMAPPED): (length.state, length.reason)}
            return {(i, UNMAPPED): self._closed(i, length) for i in tasks}
        self._expected.update(dict.fromkeys(tasks, length))
        decided: dict[Key, Decided] = {}
        for each in range(length):
            for i in tasks:
                decided |= self._start(i, each, length) if i == span.head else self._decide_instance(i, each)
        return decided

    def _closed(self, index: int, length: Whole) -> Decided:
        failed_within = length.state is TaskState.FAILED and bool(self.graph.inner[index])
        return (TaskState.UPSTREAM_FAILED, None) if failed_within else (length.state, length.reason)

    def _start(self, index: int, map_index: int, length: int | None) -> dict[Key, Decided]:
        self._decided.add((index, map_index))
        if self._spec.tasks[index].empty:
            return {(index, map_index): (TaskState.SUCCESS, None)}
        self.ready.append(FlowInstance(index, map_index, length))
        return {}

    def _decide_whole(self, index: int) -> dict[Key, Decided]:
        if index in self._begun or (index, UNMAPPED) in self._decided:
            return {}
        verdict = self._verdict(index, self._counts(index, UNMAPPED))
        return self._begin(index) if verdict is Verdict.READY else self._end_of(index, UNMAPPED, verdict)

    def _decide_instance(self, index: int, map_index: int) -> dict[Key, Decided]:
        if index not in self._expected or (index, map_index) in self._decided:
            return {}
        verdict = self._verdict(index, self._counts(index, map_index))
        if verdict is Verdict.READY:
            return self._start(index, map_index, self._expected[index])
        return self._end_of(index, map_index, verdict)

    def _decide_follower(self, index: int) -> dict[Key, Decided]:
        """Of a mapped task that ended without instances."""
        if (index, UNMAPPED) in self._decided:
            return {}
        verdict = self._verdict(index, self._counts(index, UNMAPPED))
        if verdict is Verdict.READY:
            return {(index, UNMAPPED): (NOTHING.state, NOTHING.reason)}
        return self._end_of(index, UNMAPPED, verdict)

    def _end_of(self, index: int, map_index: int, verdict: Verdict) -> dict[Key, Decided]:
        return {(index, map_index): (_ENDS[verdict], None)} if verdict in _ENDS else {}

    def _verdict(self, index: int, counts: UpstreamCounts) -> Verdict:
        verdict = evaluate(self._spec.tasks[index].trigger_rule, counts)
        return Verdict.SKIP if verdict is Verdict.READY and self.stopped and not self.graph.teardown[index] else verdict

    def _counts(self, index: int, map_index: int) -> UpstreamCounts:
        rule, total, given = self._spec.tasks[index].trigger_rule, 0, []
        for source in self._spec.tasks[index].upstream:
            if map_index != UNMAPPED and self.graph.same_span(index, source):
                total += 1
                state = self.ends.get((source, map_index)) or self.ends.get((source, UNMAPPED))
                counted = (0, 0, 0) if state is None else counted_as(state)
            else:
                total += self._instances(source)
                success, failed, skipped = self._tallies[source]
                counted = (success, failed, skipped)
            given.append(contribution(rule, counted, setup=self.graph.setup[source]))
        return UpstreamCounts(*map(sum, zip(UpstreamCounts(total), *given, strict=True)))

    def _instances(self, index: int) -> int:
        """How many ends a task will have, as far as is known."""
        return self._expected.get(index, 1)

    def _has_ended(self, index: int) -> bool:
        return self._ended[index] >= self._instances(index)

    def _undecided(self, index: int) -> list[Key]:
        if index in self._expected:
            return [(index, each) for each in range(self._expected[index]) if (index, each) not in self._decided]
        return [] if index in self._begun or (index, UNMAPPED) in self._decided else [(index, UNMAPPED)]

    def _follows(self, index: int) -> bool:
        """Whether it has the instances of another task, index by index."""
        number = self.graph.span_of[index]
        return number != NO_SPAN and self.graph.spans[number].head != index
