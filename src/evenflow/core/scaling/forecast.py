"""Which tries come soon: those of tasks that become ready when the running tries have ended.

Theory of operation
-------------------
A try is assumed to end at the median of those earlier tries of its task that took longer than it has run so far
(:func:`remaining`). A try that has run longer than any before is due now; from twice as long on its end is unknown. When the last
try that a task waits for ends, by the graph, by its trigger rule and by the counts of its run, its own tries come. A task without
code ends at once, so its downstream tasks come at the same moment. What a limit will hold back is not a need (R-AS1): a run adds as
many tries as its ``max_active_tasks`` lets in, a pool as many as fit, given what has ended by then.

An end frees a slot, and a coming try needs one. So a chain of tasks needs no second slot, and only a fan-out needs more.
:func:`most_coming` is the largest number of slots beyond those of now, over all moments until the forecast's end. Late ends move
that peak, and do not raise it.
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

OVERDUE = 2.0  # times the longest try of a task so far: a try that runs longer may run for ever
TOLD = 3  # tasks that a reason names


@dataclass(frozen=True, slots=True)
class RunningTask:
    """``tries`` tries of one task in a run, on workers; the youngest of them has run for ``ran_s`` seconds."""

    run_key: int
    version_key: int
    task_index: int
    tries: int
    ran_s: float


@dataclass(frozen=True, slots=True)
class TaskHabits:
    """Earlier runs of a task: the seconds that its tries took, ascending, and its number of instances when it was last mapped."""

    took_s: tuple[float, ...] = ()
    length: int | None = None


@dataclass(frozen=True, slots=True)
class Successor:
    """A task of a run that has not begun. ``counts`` are its upstreams', where its run counts them. ``room``: how many tasks may
    begin in the run beside those that hold its ``max_active_tasks`` now; None: any number.
    """

    run_key: int
    task_index: int
    counts: UpstreamCounts | None = None
    room: int | None = None


@dataclass(frozen=True, slots=True)
class SlotChange:
    """A change in ``in_s`` seconds: tries of a queue come, or end if their number is negative. ``after`` is the task that ends."""

    in_s: float
    queue: str
    tries: int
    after: str


@dataclass(frozen=True, slots=True)
class Outlook:
    """The slots that are needed beyond those of now, and the reason in words."""

    tries: int = 0
    reason: str = ""


GraphPlace = tuple[int, int]  # (run_key, task_index)
Habits = Mapping[tuple[int, int], TaskHabits]  # by (version_key, task_index)


def remaining(took_s: Sequence[float], ran_s: float) -> float | None:
    """Returns the seconds until a try ends that has run for ``ran_s``, or None if unknown. ``took_s`` is ascending."""
    longer = took_s[bisect_right(took_s, ran_s) :]
    if longer:
        return longer[len(longer) // 2] - ran_s
    return 0.0 if took_s and ran_s <= OVERDUE * took_s[-1] else None


def ends_within(running: Iterable[RunningTask], habits: Habits, ahead_s: float) -> dict[GraphPlace, tuple[float, RunningTask]]:
    """Returns the tries that will have ended, with the seconds until then."""
    known = TaskHabits()
    found = {}
    for task in running:
        left = remaining(habits.get((task.version_key, task.task_index), known).took_s, task.ran_s)
        if left is not None and left <= ahead_s:
            found[task.run_key, task.task_index] = (left, task)
    return found


def places_behind(ends: Mapping[GraphPlace, tuple[float, RunningTask]], graphs: Mapping[int, Graph]) -> set[GraphPlace]:
    """Returns tasks that these ends may make ready, also behind tasks without code. The caller reads them first."""
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
    """Returns the ends and the coming tries in the order of time. ``pools`` has the free slots of each pool; a pool that is missing
    has room for any number.
    """
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
    """The progress of runs by then. Counts and free room change with each end and each begin."""

    def __init__(
        self, graphs: Mapping[int, Graph], habits: Habits, waiting: Mapping[GraphPlace, Successor], pools: dict[str, int]
    ) -> None:
        self._graphs, self._habits, self._pools = graphs, habits, pools
        self._counts = {place: each.counts or UpstreamCounts(1) for place, each in waiting.items()}
        self._runs = {each.run_key: each.room for each in waiting.values() if each.room is not None}
        self.changes: list[SlotChange] = []

    def ready_after(self, run_key: int, version_key: int, ended: int, tries: int) -> Iterator[tuple[int, int]]:
        """Yields the tasks that wait for nothing more once these tries have ended, with the number of their tries."""
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
        """Returns how many of ``number`` tries limits let begin."""
        fits = self._pools.get(task.pool, number * task.pool_slots) // task.pool_slots
        return min(number, self._runs.get(run_key, number), fits)

    def take(self, change: SlotChange, run_key: int, task: TaskSpec) -> None:
        """Takes room in the run and the pool for tries that come, and gives it back for tries that end."""
        self.changes.append(change)
        if run_key in self._runs:
            self._runs[run_key] -= change.tries
        if task.pool in self._pools:
            self._pools[task.pool] -= change.tries * task.pool_slots


def most_coming(changes: Iterable[SlotChange], queues: Collection[str], ahead_s: float) -> Outlook:
    """Returns the need of these queues at the moment within ``ahead_s`` when it is highest. ``changes`` are in the order of
    time.
    """
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
    """Excludes teardowns, and tasks in mapped groups, whose gates count otherwise."""
    return not graph.teardown[index] and not graph.grouped(index)
