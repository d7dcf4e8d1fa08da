"""The round itself: which lanes start, park or open. Pure, as :mod:`evenflow.core.selection` explains."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

from evenflow.core.limits import LANES_PER_ROUND, STARTS_PER_ROUND
from evenflow.core.selection.lanes import WOKEN, Lane, LimitClass, Queue, Snapshot, full, saturated
from evenflow.core.selection.order import Order
from evenflow.core.selection.shares import Head, HeadKind, Heads, OrderedHeads, SharedHeads
from evenflow.core.service_states import ALL_OPEN


@dataclass(slots=True)
class Decision:
    """``grants`` are in the order in which they were made: (lane, how many of its tasks start). ``moved`` has by key the lanes with
    a new ``parked_on``. ``again``: the round ended on a bound, or where its prefix ends; ``rewake``: limits to report as released
    by 0 to the next round. ``reserved`` has the pools that a task which does not fit keeps for itself, with its lane.
    """

    grants: list[tuple[Lane, int]] = field(default_factory=list)
    moved: dict[int, Lane] = field(default_factory=dict)
    rewake: set[int] = field(default_factory=set)
    again: bool = False
    touched: int = 0
    reserved: dict[int, Lane] = field(default_factory=dict)


def select(snapshot: Snapshot, *, budget: int = LANES_PER_ROUND, starts: int = STARTS_PER_ROUND) -> Decision:
    """Runs one round that ends where its prefix ends; bounds as in :class:`Selection`."""
    selection = Selection(snapshot, budget=budget, starts=starts)
    if selection.run() is not None:
        selection.decision.again = True
    return selection.decision


class Selection:
    """One round. ``budget`` bounds the lanes touched, ``starts`` the tasks started. Mutates the snapshot."""

    def __init__(self, snapshot: Snapshot, *, budget: int = LANES_PER_ROUND, starts: int = STARTS_PER_ROUND) -> None:
        self.snapshot, self.budget, self.starts = snapshot, budget, starts
        self.free, self.decision = snapshot.free, Decision()
        self._closes = snapshot.closures is not ALL_OPEN
        self._passed: set[int] = set()  # bases whose best lane does not fit
        self._sequence = itertools.count()
        self._queues: dict[Queue, list[tuple[Order, int, Lane]]] = {}
        # An entry is void if its lane is no longer the best of its queue.
        self._heads: Heads = OrderedHeads()
        if snapshot.shares:
            self._heads = SharedHeads(snapshot.limit_classes, snapshot.shares, snapshot.times, self._is_over)
        self._started: set[int] = set()  # lanes of tenants, which start one task at a time
        for lanes in snapshot.open.values():
            for lane in lanes:
                self._push(lane)
        for queue, end in snapshot.horizon.items():
            self._heads.push(end, HeadKind.END, queue)
        for limit, base_id in snapshot.parked:
            if limit in snapshot.released:
                self._wake(limit, base_id)

    def run(self) -> Queue | None:
        """Decides until the round is over (None), or until it needs more lanes of a queue: :meth:`feed` those, and run again."""
        decision, heads, patience = self.decision, self._heads, self.snapshot.patience
        while (head := heads.pop()) is not None:
            order, kind, queue = head
            limit_class = self.snapshot.limit_classes[queue.class_id]
            if self._is_out(queue, limit_class):
                continue
            if kind is HeadKind.END:
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
            decision.touched += lane.key not in self._started
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
            if lanes and lanes[0][2] is not lane:  # otherwise it has been pushed
                heads.push(lanes[0][0], HeadKind.LANE, queue)
        # A lane that keeps a pool may be blocked by its own run or its executor by now: then it keeps the pool no longer.
        for lane in decision.reserved.values():
            limit_class = self.snapshot.limit_classes[lane.class_id]
            decision.again |= self.free[limit_class.executor_limit] < 1 or saturated(lane, limit_class, self.free) is not None
        return None

    def _is_out(self, queue: Queue, limit_class: LimitClass) -> bool:
        """Returns whether no lane of a queue moves in this round. Woken ones may, even if their task's own limit is full."""
        return (
            limit_class.pool_limit in self.decision.reserved
            or limit_class.base_id in self._passed
            or full(limit_class, self.free, self.snapshot.patience) is not None
            or (self._closes and not queue.exempt and self.snapshot.closed(limit_class))
            or (not queue.woken and limit_class.task_limit is not None and self.free[limit_class.task_limit] < 1)
        )

    def _is_over(self, head: Head) -> bool:
        """Returns whether this head starts no task any more in this round."""
        order, kind, queue = head
        if self._is_out(queue, self.snapshot.limit_classes[queue.class_id]):
            return True
        if kind is HeadKind.END:
            return False
        lanes = self._queues[queue]
        if not lanes or lanes[0][0] != order:
            return True
        lane = lanes[0][2]
        return saturated(lane, self.snapshot.limit_classes[lane.class_id], self.free) is not None

    def feed(self, queue: Queue, lanes: Sequence[Lane], end: Order | None) -> None:
        """Adds the next lanes of a queue, complete up to ``end``, or None when there are no more. The snapshot must know their
        limits and limit classes already.
        """
        for lane in lanes:
            self._push(lane)
        if end is not None:
            self._heads.push(end, HeadKind.END, queue)

    def _push(self, lane: Lane) -> None:
        queue = self.snapshot.queue_of(lane)._replace(exempt=lane.exempt)
        lanes = self._queues.setdefault(queue, [])
        heapq.heappush(lanes, (lane.order, next(self._sequence), lane))
        if lanes[0][2] is lane:
            self._heads.push(lane.order, HeadKind.LANE, queue)

    def _start(self, limit_class: LimitClass, lane: Lane) -> None:
        """Starts as many tasks as there is room for. The rest of the lane comes up again: it parks, or finds its limit
        class full.
        """
        free = self.free
        ones = (*limit_class.limits[1:], *lane.locals)  # a task takes one slot of each of these
        count = 1  # of a tenant: the next task may be another tenant's
        if limit_class.share_id is None:
            count = min(
                self.starts, lane.ready, free[limit_class.pool_limit] // limit_class.weight, *(free[limit] for limit in ones)
            )
        else:
            self._started.add(lane.key)
            self._heads.started(limit_class)
        self.starts -= count
        free[limit_class.pool_limit] -= count * limit_class.weight
        for limit in ones:
            free[limit] -= count
        lane.ready -= count
        self.decision.grants.append((lane, count))
        if lane.ready:
            self._push(lane)

    def _wake(self, limit: int, base_id: int) -> None:
        """Opens the best lane parked on this limit in this base, if the limit has room."""
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
