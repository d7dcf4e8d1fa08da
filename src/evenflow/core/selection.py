"""Who runs next, and why not the others: the selection round, pure.

Theory of operation
-------------------
A *lane* is a set of ready tasks of one run that no limit tells apart: same limit class,
same priority, same limits of the run. A *limit class* is what tells lanes apart beyond their run: (pool, executor, queue, slots of
one task, the task's own limit across runs if it has one). Limit classes that differ in that last limit alone have the same *base*.

* While a pool or executor is full, or a task's own limit is, the lanes behind it are skipped whole, and no row changes. So a
  burst of a million lanes behind one such limit costs nothing.
* Where very many limit classes have open lanes, nobody looks through the limit classes: the open lanes of a base are one queue, and
  a full limit of a task parks the lane that is looked at, as a limit of its run does.
* A full limit of its run *parks* a lane that is looked at: the limit becomes its witness, and nobody looks at the lane again
  until that limit has room. What waits behind a better lane of its run is parked on the run's limit from the beginning.

So a round touches the lanes that start, the lanes that newly block, and nothing else; the backlog costs nothing.

When a limit has room, only the best lane of each base that is parked there opens. It is *woken*: it carries the wake of those
behind it, and is looked at even while its task's limit is full, in order to pass that wake on.

Invariant, on which work conservation (R-ST2) and strict order (R-ST3) rest: a lane with ready tasks is open, or parked on a
full limit, or parked on a limit with room while a better lane of the same base and limit is woken. Three things keep it:

* a lane that is looked at, whether it starts or parks, wakes the next one on each of its limits that still has room;
* a release of a limit wakes, per base, the best lane parked on it;
* a woken lane that vanishes for any other reason passes its wake on (the store reports its limits as released by 0).

The caller loads only a prefix of each queue. The round must not decide beyond such a prefix, because an unseen lane could come
first: there it asks for more.

A task may want several slots of its pool. Where it does not fit, the pool's *patience* says how long smaller ones may pass it:
for ever (``backfill``), not at all (``strict``), or until it has waited so long (``reserve_after``). Then it keeps the pool, and
nothing of lower order starts there. The best lane of a base that does not fit speaks for the base: one comparison a base.

A pool, queue or executor may be *closed* (:mod:`evenflow.core.service_states`): its limit classes are skipped whole, as if it were
full, except for lanes that are exempt. So closing and opening touch no lane.

One lane of order o precedes another when ``o`` is smaller: run priority and priority descending, then the date, then the lane.
"""

from __future__ import annotations

import heapq
import itertools
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from evenflow.core.limits import LANES_PER_ROUND, STARTS_PER_ROUND
from evenflow.core.service_states import ALL_OPEN, Closures

Order = tuple[int, ...]

# parked_on of a lane that is parked on no limit
OPEN = 0
PAUSED = -1  # its DAG is paused
WOKEN = -2  # open, and others may be parked behind it


@dataclass(frozen=True, slots=True)
class LimitClass:
    """What tells lanes apart beyond their run. ``weight`` is the number of pool slots that one task takes; ``base_id`` is the limit
    class that is the same without ``task_limit``.
    """

    class_id: int
    base_id: int
    pool_limit: int
    executor_limit: int
    queue: str
    weight: int
    task_limit: int | None = None

    @property
    def limits(self) -> tuple[int, ...]:
        """Its limits, as a dispatch holds them: the pool first."""
        if self.task_limit is None:
            return (self.pool_limit, self.executor_limit)
        return (self.pool_limit, self.executor_limit, self.task_limit)


@dataclass(slots=True)
class Lane:
    """Ready tasks that no limit tells apart. ``key`` is the caller's; ``locals`` are the limits of its run, narrowest first;
    ``exempt``: it starts in a closed limit class, too.
    """

    key: int
    class_id: int
    order: Order
    locals: Sequence[int]
    ready: int
    parked_on: int = OPEN
    waited_s: float = 0.0
    exempt: bool = False


class Queue(NamedTuple):
    """The open lanes of a limit class or a base, or those of them that are woken; in a round, those that are exempt apart."""

    class_id: int  # where the queue is a base's, the limit class that the base is named by
    woken: bool
    exempt: bool = False


@dataclass(slots=True)
class Snapshot:
    """What a round decides from.

    ``free`` is capacity minus use for every limit that any lane or limit class here refers to, releases already added. ``open`` has
    the open and woken lanes of each limit class, in any order; ``horizon[queue]`` is the order up to which they are complete,
    absent when they are complete. ``parked[limit, base]`` has lanes parked there, best first, for every limit in ``released`` and
    every limit with room that a woken lane has; ``(limit, base) in parked_more`` says that there are more. ``patience`` has the
    pools that do not backfill, and for how many seconds a task that does not fit lets smaller ones pass there. In limit
    classes that ``closures`` close only exempt lanes start; every one that might start is in ``open``. ``by_base``: the queues are
    those of bases; ``limit_classes`` has the limit class that names each base.
    """

    free: dict[int, int]
    limit_classes: dict[int, LimitClass]
    open: dict[int, list[Lane]]
    horizon: dict[Queue, Order] = field(default_factory=dict)
    parked: dict[tuple[int, int], list[Lane]] = field(default_factory=dict)
    parked_more: set[tuple[int, int]] = field(default_factory=set)
    released: Collection[int] = ()
    patience: dict[int, float] = field(default_factory=dict)
    closures: Closures = ALL_OPEN
    by_base: bool = False

    def queue_of(self, lane: Lane) -> Queue:
        """Where it stands while it is open; not of those that are exempt apart."""
        return Queue(self.limit_classes[lane.class_id].base_id if self.by_base else lane.class_id, lane.parked_on == WOKEN)

    def add_heads(self, lanes: Iterable[Lane], ahead: Callable[[int], int]) -> dict[Queue, int]:
        """The best open lanes of each queue, best first; answers how many of each. ``ahead`` says by the number of queues how many
        were read of a queue that may have more.
        """
        read: dict[Queue, int] = defaultdict(int)
        last: dict[Queue, Order] = {}
        for lane in lanes:
            queue = self.queue_of(lane)
            read[queue] += 1
            last[queue] = lane.order
            self.open[lane.class_id].append(lane)
        full = ahead(len(read))
        self.horizon.update((queue, last[queue]) for queue, count in read.items() if count >= full)
        return read

    def add_exempt(self, lanes: Iterable[Lane]) -> None:
        """Exempt lanes of closed limit classes. Lanes that are not exempt stand before them there and pass no wake on, so these are
        looked at in each round, wherever they are parked.
        """
        for lane in lanes:
            if lane.parked_on > OPEN:
                lane.parked_on = OPEN
            self.open[lane.class_id].append(lane)

    def add_parked(self, lanes: Iterable[tuple[int, Lane]], ahead: Callable[[int], int]) -> None:
        """All that was read of what is parked on some limits: (limit, lane), best first. Some exempt ones are open by now."""
        found: dict[tuple[int, int], list[Lane]] = defaultdict(list)
        for limit, lane in lanes:
            found[limit, self.limit_classes[lane.class_id].base_id].append(lane)
        for key, parked in found.items():
            self.parked[key] = [lane for lane in parked if lane.parked_on > OPEN]
        full = ahead(len(found))
        self.parked_more.update(key for key, parked in found.items() if len(parked) >= full)

    def wakes_behind(self, lanes: Iterable[Lane]) -> set[int]:
        """The limits behind which the woken ones of these lanes wake others: what is parked there has to be known."""
        woken = [lane for lane in lanes if lane.parked_on == WOKEN]
        tasks = (self.limit_classes[lane.class_id].task_limit for lane in woken)
        return {limit for lane in woken for limit in lane.locals}.union(limit for limit in tasks if limit is not None)

    def limits_of(self, lanes: Iterable[Lane]) -> set[int]:
        """All whose room has to be known."""
        known = {limit for limit_class in self.limit_classes.values() for limit in limit_class.limits}
        return known.union(limit for lane in lanes for limit in lane.locals)

    def add_room(self, limit: int, free: int, patience_s: float | None) -> None:
        self.free[limit] = free
        if patience_s is not None:
            self.patience[limit] = patience_s

    def closed(self, limit_class: LimitClass) -> bool:
        """Whether nothing starts for the first time there, however much room there is."""
        return self.closures.close(limit_class.pool_limit, limit_class.executor_limit, limit_class.queue)


@dataclass(slots=True)
class Decision:
    """``grants`` in the order in which they were made: (lane, how many of its tasks start). ``moved``: lanes by key whose
    ``parked_on`` was changed. ``again``: the round ended on a bound, or where its prefix ends; ``rewake``: limits to report
    as released by 0 to the next one. ``reserved``: pools that a task which does not fit keeps for itself, and its lane.
    """

    grants: list[tuple[Lane, int]] = field(default_factory=list)
    moved: dict[int, Lane] = field(default_factory=dict)
    rewake: set[int] = field(default_factory=set)
    again: bool = False
    touched: int = 0
    reserved: dict[int, Lane] = field(default_factory=dict)


def saturated(lane: Lane, limit_class: LimitClass, free: Mapping[int, int]) -> int | None:
    """The witness: a limit of the task or the run that has no room, or None."""
    if limit_class.task_limit is not None and free[limit_class.task_limit] < 1:
        return limit_class.task_limit
    for limit in lane.locals:
        if free[limit] < 1:
            return limit
    return None


def full(limit_class: LimitClass, free: Mapping[int, int], patience: Mapping[int, float]) -> int | None:
    """The executor or pool for which the whole limit class is out, its lanes unseen, or None. A pool that some slots are left of,
    but too few for this limit class, does not count where somebody may have to keep it.
    """
    if free[limit_class.executor_limit] < 1:
        return limit_class.executor_limit
    if free[limit_class.pool_limit] < (1 if limit_class.pool_limit in patience else limit_class.weight):
        return limit_class.pool_limit
    return None


def line_up(lanes: list[Lane]) -> None:
    """Of open lanes of one base, best first, that share the limit of a run: the first carries the wake of the others, which are
    parked behind it.
    """
    if len(lanes) > 1:
        lanes[0].parked_on = WOKEN
        for lane in lanes[1:]:
            lane.parked_on = lane.locals[-1]


def select(snapshot: Snapshot, *, budget: int = LANES_PER_ROUND, starts: int = STARTS_PER_ROUND) -> Decision:
    """One round that ends where its prefix ends; bounds as in :class:`Selection`."""
    selection = Selection(snapshot, budget=budget, starts=starts)
    if selection.run() is not None:
        selection.decision.again = True
    return selection.decision


class _Kind(IntEnum):
    LANE = 0
    END = 1  # what is known of the queue ends here


class Selection:
    """One round. ``budget`` bounds the lanes touched, ``starts`` the tasks started. Mutates the snapshot."""

    def __init__(self, snapshot: Snapshot, *, budget: int = LANES_PER_ROUND, starts: int = STARTS_PER_ROUND) -> None:
        self.snapshot, self.budget, self.starts = snapshot, budget, starts
        self.free, self.decision = snapshot.free, Decision()
        self._closes = snapshot.closures is not ALL_OPEN
        self._passed: set[int] = set()  # bases whose best lane does not fit
        self._sequence = itertools.count()
        self._queues: dict[Queue, list[tuple[Order, int, Lane]]] = {}
        # Of each queue its best lane, and where what is known of it ends. An entry whose lane is not the best any more is void.
        self._heads: list[tuple[Order, _Kind, Queue]] = []
        for lanes in snapshot.open.values():
            for lane in lanes:
                self._push(lane)
        for queue, end in snapshot.horizon.items():
            heapq.heappush(self._heads, (end, _Kind.END, queue))
        for limit, base_id in snapshot.parked:
            if limit in snapshot.released:
                self._wake(limit, base_id)

    def run(self) -> Queue | None:
        """Decide until the round is over (None), or until more must be known of a queue: :meth:`feed` that, and run again."""
        decision, heads, patience = self.decision, self._heads, self.snapshot.patience
        while heads:
            order, kind, queue = heapq.heappop(heads)
            limit_class = self.snapshot.limit_classes[queue.class_id]
            if (
                limit_class.pool_limit in decision.reserved
                or limit_class.base_id in self._passed
                or full(limit_class, self.free, patience) is not None
            ):
                continue  # the whole limit class is out for this round; none of its lanes moves
            if self._closes and not queue.exempt and self.snapshot.closed(limit_class):
                continue  # likewise, but for lanes that are exempt
            if not queue.woken and limit_class.task_limit is not None and self.free[limit_class.task_limit] < 1:
                continue  # likewise, but its woken lanes are looked at
            if kind is _Kind.END:
                return queue
            lanes = self._queues[queue]
            if not lanes or lanes[0][0] != order:
                continue
            if decision.touched >= self.budget or not self.starts:
                decision.again = True
                return None
            lane = lanes[0][2]
            limit_class = self.snapshot.limit_classes[lane.class_id]
            witness = saturated(lane, limit_class, self.free)
            if witness is None and self.free[limit_class.pool_limit] < limit_class.weight:
                if lane.waited_s >= patience[limit_class.pool_limit]:
                    decision.reserved[limit_class.pool_limit] = lane
                self._passed.add(limit_class.base_id)
                continue  # it does not fit, and speaks for its base
            decision.touched += 1
            heapq.heappop(lanes)
            if witness is None:
                self._start(limit_class, lane)
            else:
                lane.parked_on = witness
                decision.moved[lane.key] = lane
            if limit_class.task_limit is not None:
                self._wake(limit_class.task_limit, limit_class.base_id)
            for limit in lane.locals:
                self._wake(limit, limit_class.base_id)
            if lanes:
                heapq.heappush(heads, (lanes[0][0], _Kind.LANE, queue))
        # Who keeps a pool may have been blocked by its own run or its executor meanwhile: then the pool is not kept any more.
        for lane in decision.reserved.values():
            limit_class = self.snapshot.limit_classes[lane.class_id]
            decision.again |= self.free[limit_class.executor_limit] < 1 or saturated(lane, limit_class, self.free) is not None
        return None

    def feed(self, queue: Queue, lanes: Sequence[Lane], end: Order | None) -> None:
        """The next lanes of a queue, complete up to ``end``, or None when there are no more. What the snapshot must have of them
        it has by now.
        """
        for lane in lanes:
            self._push(lane)
        if end is not None:
            heapq.heappush(self._heads, (end, _Kind.END, queue))

    def _push(self, lane: Lane) -> None:
        queue = self.snapshot.queue_of(lane)._replace(exempt=lane.exempt)
        lanes = self._queues.setdefault(queue, [])
        heapq.heappush(lanes, (lane.order, next(self._sequence), lane))
        if lanes[0][2] is lane:
            heapq.heappush(self._heads, (lane.order, _Kind.LANE, queue))

    def _start(self, limit_class: LimitClass, lane: Lane) -> None:
        """Start what there is room for. What is left of the lane is seen again: it parks itself or finds its limit class full."""
        free = self.free
        ones = (*limit_class.limits[1:], *lane.locals)  # a task takes one of each
        count = min(self.starts, lane.ready, free[limit_class.pool_limit] // limit_class.weight, *(free[limit] for limit in ones))
        self.starts -= count
        free[limit_class.pool_limit] -= count * limit_class.weight
        for limit in ones:
            free[limit] -= count
        lane.ready -= count
        self.decision.grants.append((lane, count))
        if lane.ready:
            self._push(lane)

    def _wake(self, limit: int, base_id: int) -> None:
        """Open the best lane parked on this limit in this base, if the limit has room."""
        lanes = self.snapshot.parked.get((limit, base_id))
        if lanes is None or self.free[limit] < 1:
            return
        if lanes:
            lane = lanes.pop(0)
            lane.parked_on = WOKEN
            self.decision.moved[lane.key] = lane
            self._push(lane)
        elif (limit, base_id) in self.snapshot.parked_more:
            self.decision.rewake.add(limit)
            self.decision.again = True


def blocking(limit_class: LimitClass, lane: Lane, free: Mapping[int, int]) -> list[int]:
    """Every limit that has no room for a task of the lane: the witness first, then limits of its run, of the task, of many."""
    task = () if limit_class.task_limit is None else (limit_class.task_limit,)
    found = [limit for limit in (*lane.locals, *task, limit_class.executor_limit) if free[limit] < 1]
    if free[limit_class.pool_limit] < limit_class.weight:
        found.append(limit_class.pool_limit)
    return sorted(found, key=lambda limit: limit != lane.parked_on)


def kept(limit_class: LimitClass, lane: Lane, reserved: Mapping[int, Lane]) -> bool:
    """Whether its pool keeps its room for a better lane."""
    keeper = reserved.get(limit_class.pool_limit)
    return keeper is not None and keeper.order < lane.order
