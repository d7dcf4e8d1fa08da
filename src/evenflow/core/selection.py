"""Who runs next, and why not the others: the selection round, pure.

Theory of operation
-------------------
A *lane* is a set of ready tasks of one run that no limit tells apart: same node, same priority, same local limits. A *node* is
what tells lanes apart beyond their run: (pool, executor, queue, slots of one task, the task's own limit across runs if it has one).

* The limits of a **node** park nothing: while one of them is full its nodes are skipped whole, and no lane moves. So a burst of
  a million lanes behind one such limit costs nothing.
* A limit of a **run** that is full *parks* a lane: it becomes the lane's witness, and nobody looks at the lane again until that
  limit has room. What a round parks is bounded by the lanes of the runs that are running.

So a round touches the lanes that start, the lanes that newly block, and nothing else; the backlog costs nothing.

Invariant, on which work conservation (R-ST2) and strict order (R-ST3) rest: a lane with ready tasks is open, or parked on a
saturated limit, or parked on a limit with room while a better lane of the same node and limit is open. Three things keep it:

* a start on a limit that still has room opens the best lane of that node that is parked there;
* a release of a local limit opens, per node, the best lane parked on it;
* an open lane that vanishes for any other reason than a start passes its wake on (the store reports its limits as released by 0).

The caller loads only a prefix of each queue. The round must not decide beyond such a prefix, because an unseen lane could come
first: it stops there and says so (``Decision.again``), and the caller runs another round at once.

A task may want several slots of its pool. Where it does not fit, the pool's *patience* says how long smaller ones may pass it:
for ever (``backfill``), not at all (``strict``), or until it has waited so long (``reserve_after``). Then it keeps the pool, and
nothing of lower order starts there. The best lane of each node speaks for the node, so this is one comparison a node.

One lane of order o precedes another when ``o`` is smaller: run priority and priority descending, then the date, then the lane.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

Order = tuple[int, ...]

OPEN = 0  # parked_on of a lane that is open
PAUSED = -1  # parked_on of a lane whose DAG is paused

BACKFILL = math.inf  # patience: seconds for which a task that does not fit lets smaller ones pass
STRICT = 0.0


@dataclass(frozen=True, slots=True)
class Node:
    """What tells lanes apart beyond their run. ``weight`` is the number of pool slots that one task takes."""

    node_id: int
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
    """Ready tasks that no limit tells apart. ``key`` is the caller's; ``locals`` are limit ids, narrowest first."""

    key: int
    node_id: int
    order: Order
    locals: Sequence[int]
    ready: int
    parked_on: int = OPEN
    waited_s: float = 0.0


@dataclass(slots=True)
class Snapshot:
    """What a round decides from.

    ``free`` is capacity minus use for every limit that any lane or node here refers to, releases already added. ``open`` has open
    lanes per node, in any order; ``horizon[node]`` is the order up to which they are complete, absent when they are complete.
    ``parked[limit, node]`` has lanes parked there, best first, for every limit with room that was released or that a stored
    open lane has; ``(limit, node) in parked_more`` says that there are more. ``patience`` has the pools that do not backfill.
    """

    free: dict[int, int]
    nodes: Mapping[int, Node]
    open: dict[int, list[Lane]]
    horizon: dict[int, Order] = field(default_factory=dict)
    parked: dict[tuple[int, int], list[Lane]] = field(default_factory=dict)
    parked_more: set[tuple[int, int]] = field(default_factory=set)
    patience: Mapping[int, float] = field(default_factory=dict)


@dataclass(slots=True)
class Decision:
    """``grants`` in the order in which they were made: (lane, how many of its tasks start). ``moved``: lanes by key whose
    ``parked_on`` was changed. ``again``: the round ended on its budget or where its prefix ends; ``rewake``: limits to report
    as released by 0 to the next one. ``reserved``: pools that a task which does not fit keeps for itself, and its lane.
    """

    grants: list[tuple[Lane, int]] = field(default_factory=list)
    moved: dict[int, Lane] = field(default_factory=dict)
    rewake: set[int] = field(default_factory=set)
    again: bool = False
    touched: int = 0
    reserved: dict[int, Lane] = field(default_factory=dict)


def saturated(lane: Lane, free: Mapping[int, int]) -> int | None:
    """The witness: the narrowest local limit that has no room, or None."""
    for limit in lane.locals:
        if free[limit] < 1:
            return limit
    return None


def full(node: Node, free: Mapping[int, int], patience: Mapping[int, float]) -> int | None:
    """The limit for which the whole node is out, its lanes unseen, or None. A pool that some slots are left of, but too few for
    this node, does not count where somebody may have to keep it.
    """
    if node.task_limit is not None and free[node.task_limit] < 1:
        return node.task_limit
    if free[node.executor_limit] < 1:
        return node.executor_limit
    if free[node.pool_limit] < (1 if node.pool_limit in patience else node.weight):
        return node.pool_limit
    return None


def select(snapshot: Snapshot, *, budget: int) -> Decision:
    """One round; ``budget`` bounds the lanes touched. Mutates the snapshot's ``free`` and its lanes as it decides."""
    return _Round(snapshot, budget).run()


class _Round:
    def __init__(self, snapshot: Snapshot, budget: int) -> None:
        self.snapshot, self.budget = snapshot, budget
        self.free, self.decision = snapshot.free, Decision()
        self.sequence = itertools.count()
        self.heads: list[tuple[Order, int]] = []  # one entry per node: its best lane, or where what is known of it ends
        self.queues: dict[int, list[tuple[Order, int, Lane]]] = {}
        for node_id, lanes in snapshot.open.items():
            queue = self.queues[node_id] = [(lane.order, next(self.sequence), lane) for lane in lanes]
            heapq.heapify(queue)

    def run(self) -> Decision:
        decision, nodes, queues = self.decision, self.snapshot.nodes, self.queues
        for limit, node_id in self.snapshot.parked:
            self._wake(limit, node_id)
        for node_id in queues.keys() | self.snapshot.horizon.keys():
            self._expose(node_id)
        while self.heads:
            order, node_id = heapq.heappop(self.heads)
            node = nodes[node_id]
            if node.pool_limit in decision.reserved or full(node, self.free, self.snapshot.patience) is not None:
                continue  # the whole node is out for this round; none of its lanes moves
            queue = queues.get(node_id)
            if not queue or queue[0][0] != order or decision.touched >= self.budget:
                decision.again = True
                break
            decision.touched += 1
            lane = queue[0][2]
            witness = saturated(lane, self.free)
            if witness is None and self.free[node.pool_limit] < node.weight:
                if lane.waited_s >= self.snapshot.patience[node.pool_limit]:
                    decision.reserved[node.pool_limit] = lane
                continue  # it does not fit, and speaks for its node
            heapq.heappop(queue)
            if witness is None:
                self._start(node, lane)
            else:
                lane.parked_on = witness
                decision.moved[lane.key] = lane
            for limit in lane.locals:
                self._wake(limit, node_id)
            self._expose(node_id)
        return decision

    def _start(self, node: Node, lane: Lane) -> None:
        """Start what there is room for. What is left of the lane is seen again: it parks itself or finds its node full."""
        free = self.free
        ones = (*node.limits[1:], *lane.locals)  # a task takes one of each
        count = min(lane.ready, free[node.pool_limit] // node.weight, *(free[limit] for limit in ones))
        free[node.pool_limit] -= count * node.weight
        for limit in ones:
            free[limit] -= count
        lane.ready -= count
        self.decision.grants.append((lane, count))
        if lane.ready:
            heapq.heappush(self.queues[node.node_id], (lane.order, next(self.sequence), lane))

    def _wake(self, limit: int, node_id: int) -> None:
        """Open the best lane parked on this limit in this node, if the limit has room."""
        lanes = self.snapshot.parked.get((limit, node_id))
        if lanes is None or self.free[limit] < 1:
            return
        if lanes:
            lane = lanes.pop(0)
            lane.parked_on = OPEN
            self.decision.moved[lane.key] = lane
            heapq.heappush(self.queues.setdefault(node_id, []), (lane.order, next(self.sequence), lane))
        elif (limit, node_id) in self.snapshot.parked_more:
            self.decision.rewake.add(limit)
            self.decision.again = True

    def _expose(self, node_id: int) -> None:
        queue, end = self.queues.get(node_id), self.snapshot.horizon.get(node_id)
        if queue and (end is None or queue[0][0] <= end):
            heapq.heappush(self.heads, (queue[0][0], node_id))
        elif end is not None:
            heapq.heappush(self.heads, (end, node_id))
