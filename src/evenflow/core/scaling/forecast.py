"""Which tries come soon: those of tasks that become ready when what runs now has ended.

Theory of operation
-------------------
A try ends, so it is taken, when the median of those tries of its task is over that took longer than it has run so far
(:func:`remaining`). One that has run for longer than any before it is due; from twice as long on nothing is known of it. When the
last try that a task waits for ends, by the graph, by its trigger rule and by what its run has counted already, its own tries come.
A task without code ends at once, and what follows it comes at the same moment. What a limit will hold back is no demand (R-AS1):
of a run as many come as its ``max_active_tasks`` lets in, of a pool as many as fit, with what has ended by then.

An end frees a slot, and what comes needs one: so a chain of tasks needs no second slot, and only what fans out asks for more.
:func:`most_coming` is the largest number of slots beyond those of now, over all moments of the time that is looked ahead.
Ends that are late move that peak, and do not raise it.
"""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from evenflow.core.graph import Graph
from evenflow.core.model import TaskSpec
from evenflow.core.quantities import counted
from evenflow.core.trigger_rules import UpstreamCounts, Verdict, evaluate

OVERDUE = 2.0  # times the longest that a task has ever taken: whoever runs for longer may run for ever
TOLD = 3  # tasks that a reason names


@dataclass(frozen=True, slots=True)
class RunningTask:
    """``tries`` of a task of a run that workers have; the youngest of them has run for ``ran_s`` seconds."""

    run_key: int
    version_key: int
    task_index: int
    tries: int
    ran_s: float


@dataclass(frozen=True, slots=True)
class TaskHabits:
    """Of a task in runs before: seconds that its tries took, ascending, and how many instances it had when it was mapped last."""

    took_s: tuple[float, ...] = ()
    length: int | None = None


@dataclass(frozen=True, slots=True)
class Successor:
    """A task of a run that has not begun. ``counts`` of its upstreams, where its run counts them. ``room``: how many tasks may
    begin in the run beside those that hold its ``max_active_tasks`` now; None: any number.
    """

    run_key: int
    task_index: int
    counts: UpstreamCounts | None = None
    room: int | None = None


@dataclass(frozen=True, slots=True)
class SlotChange:
    """In so many seconds so many tries of a queue come, or end when there are fewer than none; ``after`` is the task that ends."""

    in_s: float
    queue: str
    tries: int
    after: str


@dataclass(frozen=True, slots=True)
class Outlook:
    """Slots that are needed beyond those of now, and in words of what."""

    tries: int = 0
    reason: str = ""


GraphPlace = tuple[int, int]  # (run_key, task_index)
Habits = Mapping[tuple[int, int], TaskHabits]  # by (version_key, task_index)


def remaining(took_s: Sequence[float], ran_s: float) -> float | None:
    """Seconds until a try ends that has run for ``ran_s``; ``took_s`` ascending. None: nobody knows."""
    longer = took_s[bisect_right(took_s, ran_s) :]
    if longer:
        return longer[len(longer) // 2] - ran_s
    return 0.0 if took_s and ran_s <= OVERDUE * took_s[-1] else None


def ends_within(running: Iterable[RunningTask], habits: Habits, ahead_s: float) -> dict[GraphPlace, tuple[float, RunningTask]]:
    """What will have ended, with the seconds until then."""
    known = TaskHabits()
    found = {}
    for task in running:
        left = remaining(habits.get((task.version_key, task.task_index), known).took_s, task.ran_s)
        if left is not None and left <= ahead_s:
            found[task.run_key, task.task_index] = (left, task)
    return found


def places_behind(ends: Mapping[GraphPlace, tuple[float, RunningTask]], graphs: Mapping[int, Graph]) -> set[GraphPlace]:
    """Tasks that may become ready by these ends: what is to be known of them first. Behind tasks without code, too."""
    found: set[GraphPlace] = set()
    for _, task in ends.values():
        graph = graphs.get(task.version_key)
        waiting = [task.task_index] if graph else []
        while graph and waiting:
            at = waiting.pop()
            for index in graph.downstream[at]:
                place = (task.run_key, index)
                if place in found or graph.same_region(at, index) or not _is_foreseen(graph, index):
                    continue
                found.add(place)
                if graph.task(index).empty:
                    waiting.append(index)
    return found


def foresee(
    ends: Mapping[GraphPlace, tuple[float, RunningTask]],
    graphs: Mapping[int, Graph],
    habits: Habits,
    successors: Iterable[Successor],
    pools: Mapping[str, int],
) -> list[SlotChange]:
    """What ends and comes, in the order of time. ``pools`` says how many slots of each are free; of one that is not in it any."""
    foresight = _RunProgress(graphs, habits, {(each.run_key, each.task_index): each for each in successors}, dict(pools))
    coming = [(left, task.run_key, task.task_index, task.tries, task.version_key, "") for left, task in ends.values()]
    heapq.heapify(coming)
    while coming:
        in_s, run_key, ended, tries, version_key, after = heapq.heappop(coming)
        if (graph := graphs.get(version_key)) is None:
            continue
        task = graph.task(ended)
        if not task.empty:
            after = f"{graph.spec.dag_id}.{task.task_id}"
            foresight.take(SlotChange(in_s, task.queue, -tries, after), run_key, task)
        for index, number in foresight.ready_after(run_key, version_key, ended, tries):
            if graph.task(index).empty:
                heapq.heappush(coming, (in_s, run_key, index, number, version_key, after))
            elif (fits := foresight.lets_in(run_key, graph.task(index), number)) > 0:
                foresight.take(SlotChange(in_s, graph.task(index).queue, fits, after), run_key, graph.task(index))
    return foresight.changes


class _RunProgress:
    """How far runs have come by then. Counts and free room change with each end and each begin."""

    def __init__(
        self, graphs: Mapping[int, Graph], habits: Habits, waiting: Mapping[GraphPlace, Successor], pools: dict[str, int]
    ) -> None:
        self._graphs, self._habits, self._pools = graphs, habits, pools
        self._counts = {place: each.counts or UpstreamCounts(1) for place, each in waiting.items()}
        self._runs = {each.run_key: each.room for each in waiting.values() if each.room is not None}
        self.changes: list[SlotChange] = []

    def ready_after(self, run_key: int, version_key: int, ended: int, tries: int) -> Iterator[tuple[int, int]]:
        """The tasks that wait for nothing more once these tries have ended, and how many tries each has."""
        graph = self._graphs[version_key]
        for index in graph.downstream[ended]:
            place = (run_key, index)
            if graph.same_region(ended, index):
                yield index, tries  # index by index
            elif (before := self._counts.get(place)) is not None:
                self._counts[place] = now = before._replace(success=before.success + tries)
                rule = graph.task(index).trigger_rule
                if evaluate(rule, before) is Verdict.WAIT and evaluate(rule, now) is Verdict.READY:
                    length = self._habits.get((version_key, index), TaskHabits()).length if graph.mapped[index] else None
                    yield index, length or 1

    def lets_in(self, run_key: int, task: TaskSpec, number: int) -> int:
        """How many of so many tries limits let begin."""
        fits = self._pools.get(task.pool, number * task.pool_slots) // task.pool_slots
        return min(number, self._runs.get(run_key, number), fits)

    def take(self, change: SlotChange, run_key: int, task: TaskSpec) -> None:
        """What comes takes room in its run and its pool, what ends gives it back."""
        self.changes.append(change)
        if run_key in self._runs:
            self._runs[run_key] -= change.tries
        if task.pool in self._pools:
            self._pools[task.pool] -= change.tries * task.pool_slots


def most_coming(changes: Iterable[SlotChange], queues: Collection[str], ahead_s: float) -> Outlook:
    """Of these queues, at the moment within ``ahead_s`` at which most is needed. ``changes`` in the order of time."""
    mine = [change for change in changes if change.queue in queues and change.in_s <= ahead_s]
    needed, most, by_task, told = 0, 0, Counter[str](), Counter[str]()
    for _, at_once in groupby(mine, key=lambda change: change.in_s):
        for change in at_once:
            needed += change.tries
            if change.tries > 0:
                by_task[change.after] += change.tries
        if needed > most:
            most, told = needed, by_task.copy()
    if not most:
        return Outlook()
    first = [f"{number:,} after {task}" for task, number in told.most_common(TOLD)]
    more = ", and others" if len(told) > TOLD else ""
    return Outlook(most, f"{counted(most, 'more slot')} needed within {ahead_s:g} s: {', '.join(first)}{more}")


def _is_foreseen(graph: Graph, index: int) -> bool:
    """Not what clears up, and not what is in a mapped group, whose gate counts otherwise."""
    return not graph.teardown[index] and not graph.grouped(index)
