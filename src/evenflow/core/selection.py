"""Who runs next, and why not the others: the selection round, pure.

Theory of operation
-------------------
A *lane* is a set of ready tasks of one run that no limit tells apart: same node, same priority, same local limits. A *node* is
what the global limits can tell apart: (pool, executor, queue, slots). A lane that cannot start because a **local** limit is
full is *parked* on that one limit, its witness; nobody looks at it again until the limit has room. **Global** limits park
nothing: while a pool or an executor is full, its nodes are skipped whole. So a round touches the lanes that start, the lanes
that newly block, and nothing else; the backlog costs nothing.

Invariant, on which work conservation (R-ST2) and strict order (R-ST3) rest: a lane with ready tasks is open, or parked on a
saturated limit, or parked on a limit with room while a better lane of the same node and limit is open. Three things keep it:

* a start on a limit that still has room opens the best lane of that node that is parked there;
* a release of a local limit opens, per node, the best lane parked on it;
* an open lane that vanishes for any other reason than a start passes its wake on (the store reports its limits as released by 0).

The caller loads only a prefix of each queue. The round must not decide beyond such a prefix, because an unseen lane could come
first: it stops there and says so (``Decision.again``), and the caller runs another round at once.

One lane of order o precedes another when ``o`` is smaller: run priority and priority descending, then the date, then the lane.
"""

from __future__ import annotations

import heapq
import itertools
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

Order = tuple[int, ...]

OPEN = 0  # parked_on of a lane that is open
PAUSED = -1  # parked_on of a lane whose DAG is paused


@dataclass(frozen=True, slots=True)
class Node:
    """What global limits tell apart. ``weight`` is the number of pool slots that one task takes."""

    node_id: int
    pool_limit: int
    executor_limit: int
    queue: str
    weight: int


@dataclass(slots=True)
class Lane:
    """Ready tasks that no limit tells apart. ``key`` is the caller's; ``locals`` are limit ids, narrowest first."""

    key: int
    node_id: int
    order: Order
    locals: Sequence[int]
    ready: int
    parked_on: int = OPEN


@dataclass(slots=True)
class Snapshot:
    """What a round decides from.

    ``free`` is capacity minus use for every limit that any lane or node here refers to, releases already added. ``open`` has open
    lanes per node, in any order; ``horizon[node]`` is the order up to which they are complete, absent when they are complete.
    ``parked[limit, node]`` has lanes parked there, best first, for every limit with room that was released or that a stored
    open lane has; ``(limit, node) in parked_more`` says that there are more.
    """

    free: dict[int, int]
    nodes: Mapping[int, Node]
    open: dict[int, list[Lane]]
    horizon: dict[int, Order] = field(default_factory=dict)
    parked: dict[tuple[int, int], list[Lane]] = field(default_factory=dict)
    parked_more: set[tuple[int, int]] = field(default_factory=set)


@dataclass(slots=True)
class Decision:
    """``grants`` in the order in which they were made: (lane, how many of its tasks start). ``moved``: lanes by key whose
    ``parked_on`` was changed. ``again``: the round ended on its budget or where its prefix ends; ``rewake``: limits to report
    as released by 0 to the
    next one."""

    grants: list[tuple[Lane, int]] = field(default_factory=list)
    moved: dict[int, Lane] = field(default_factory=dict)
    rewake: set[int] = field(default_factory=set)
    again: bool = False
    touched: int = 0


def saturated(lane: Lane, free: Mapping[int, int]) -> int | None:
    """The witness: the narrowest local limit that has no room, or None."""
    for limit in lane.locals:
        if free[limit] < 1:
            return limit
    return None


def node_blocked(node: Node, free: Mapping[int, int]) -> bool:
    return free[node.pool_limit] < node.weight or free[node.executor_limit] < 1


def select(snapshot: Snapshot, *, budget: int) -> Decision:
    """One round; ``budget`` bounds the lanes touched. Mutates the snapshot's ``free`` and its lanes as it decides."""
    free, nodes, horizon, parked = snapshot.free, snapshot.nodes, snapshot.horizon, snapshot.parked
    decision = Decision()
    sequence = itertools.count()
    queues: dict[int, list[tuple[Order, int, Lane]]] = {}
    for node_id, lanes in snapshot.open.items():
        queues[node_id] = [(lane.order, next(sequence), lane) for lane in lanes]
        heapq.heapify(queues[node_id])

    def wake(limit: int, node_id: int) -> None:
        """Open the best lane parked on this limit in this node, if the limit has room."""
        if (limit, node_id) not in parked or free[limit] < 1:
            return
        lanes = parked[limit, node_id]
        if lanes:
            lane = lanes.pop(0)
            lane.parked_on = OPEN
            decision.moved[lane.key] = lane
            heapq.heappush(queues.setdefault(node_id, []), (lane.order, next(sequence), lane))
        elif (limit, node_id) in snapshot.parked_more:
            decision.rewake.add(limit)
            decision.again = True

    heads: list[tuple[Order, int]] = []  # one entry per node: its best lane, or where what is known of it ends

    def expose(node_id: int) -> None:
        queue, end = queues.get(node_id), horizon.get(node_id)
        if queue and (end is None or queue[0][0] <= end):
            heapq.heappush(heads, (queue[0][0], node_id))
        elif end is not None:
            heapq.heappush(heads, (end, node_id))

    for limit, node_id in parked:
        wake(limit, node_id)
    for node_id in queues.keys() | horizon.keys():
        expose(node_id)

    while heads:
        order, node_id = heapq.heappop(heads)
        node = nodes[node_id]
        if node_blocked(node, free):
            continue  # the whole node is out for this round; none of its lanes moves
        queue = queues.get(node_id)
        if not queue or queue[0][0] != order or decision.touched >= budget:
            decision.again = True
            break
        decision.touched += 1
        lane = heapq.heappop(queue)[2]
        witness = saturated(lane, free)
        if witness is None:
            count = _startable(lane, node, free)
            for limit in lane.locals:
                free[limit] -= count
            free[node.pool_limit] -= count * node.weight
            free[node.executor_limit] -= count
            lane.ready -= count
            decision.grants.append((lane, count))
            if lane.ready:
                heapq.heappush(queue, (lane.order, next(sequence), lane))  # seen again: it parks itself, or its node is out
        else:
            lane.parked_on = witness
            decision.moved[lane.key] = lane
        for limit in lane.locals:
            wake(limit, node_id)
        expose(node_id)
    return decision


def _startable(lane: Lane, node: Node, free: Mapping[int, int]) -> int:
    count = min(lane.ready, free[node.pool_limit] // node.weight, free[node.executor_limit])
    for limit in lane.locals:
        count = min(count, free[limit])
    return count


def releases(holds: Iterable[tuple[Sequence[int], int]]) -> dict[int, int]:
    """What deleting dispatches gives back, by limit: each is (limits, the pool first; pool slots)."""
    out: dict[int, int] = defaultdict(int)
    for limits, slots in holds:
        out[limits[0]] += slots
        for limit in limits[1:]:
            out[limit] += 1
    return out
