"""Fair shares: which of several tenants is next in the pool or executor that they share.

The tenant with the fewest slots for its weight is next. Of several equal tenants, as when three compete for a single slot, it is
the one that was served least for its weight; then the order decides. So a tenant that holds nothing goes before all that hold
something, however small its weight, and other tenants that hold nothing are served a bounded number of times before it.

Each tenant has a served time, as in start-time fair queueing: a start begins when the tenant's last one ended, or at the scope's
time if that is later, and takes its slots divided by the weight. The scope's time is the begin of its last start. So a tenant that
returns after a pause begins with the others, and has saved up nothing.

Within a tenant the usual order decides. It also decides between scopes and lanes outside any scope: a scope takes part with its
next lane.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Any, Protocol

from evenflow.core.selection.lanes import LimitClass, Queue, Share
from evenflow.core.selection.order import Order

UNIT = 1_000_000  # of served time, for one slot of a tenant of weight 1


class HeadKind(IntEnum):
    LANE = 0
    END = 1  # the known part of the queue ends here
    SCOPE = 2  # the next lane of a scope


Head = tuple[Order, HeadKind, Queue]


class Heads(Protocol):
    """Keeps for each queue its best lane, and where its known part ends; the next one to look at comes first."""

    def push(self, order: Order, kind: HeadKind, queue: Queue) -> None: ...

    def pop(self) -> Head | None: ...

    def started(self, limit_class: LimitClass) -> None:
        """Notes that a task of the limit class starts."""


class OrderedHeads:
    """Only the order decides."""

    def __init__(self) -> None:
        self._heads: list[Head] = []

    def push(self, order: Order, kind: HeadKind, queue: Queue) -> None:
        heapq.heappush(self._heads, (order, kind, queue))

    def pop(self) -> Head | None:
        return heapq.heappop(self._heads) if self._heads else None

    def started(self, limit_class: LimitClass) -> None:
        pass


class SharedHeads:
    """Some limit classes have a share. Outdated entries of heaps have an old version, and are dropped when they come up. ``times``
    are those of the scopes. Mutates shares and times.

    The next tenant of a scope stands for it at its place in the order. A tenant that starts nothing more in this round
    (``is_over``), or of which that is not known yet, would block the other tenants there: so it is looked at first.
    """

    def __init__(
        self,
        limit_classes: Mapping[int, LimitClass],
        shares: Mapping[int, Share],
        times: dict[int, int],
        is_over: Callable[[Head], bool] = lambda head: False,
    ) -> None:
        self._classes, self._shares, self._times, self._is_over = limit_classes, shares, times, is_over
        self._leads: dict[int, int] = {}  # the next share, by scope
        self._heads: list[tuple[Order, HeadKind, Any]] = []
        self._of_share: dict[int, list[Head]] = defaultdict(list)
        self._of_scope: dict[int, list[tuple[float, int, Order, int, int]]] = defaultdict(list)
        self._versions: dict[int, int] = defaultdict(int)  # of shares
        self._scope_versions: dict[int, int] = defaultdict(int)

    def push(self, order: Order, kind: HeadKind, queue: Queue) -> None:
        share_id = self._classes[queue.class_id].share_id
        if share_id is None:
            heapq.heappush(self._heads, (order, kind, queue))
        else:
            heapq.heappush(self._of_share[share_id], (order, kind, queue))
            self._place(self._shares[share_id])

    def pop(self) -> Head | None:
        for scope_id, share_id in self._leads.items():
            head = self._of_share[share_id][0]
            if self._is_over(head) or (head[1] is HeadKind.END and len(self._of_scope[scope_id]) > 1):
                return self._pop_of(share_id)
        while self._heads:
            order, kind, at = heapq.heappop(self._heads)
            if kind is not HeadKind.SCOPE:
                return order, kind, at
            scope_id, version, share_id = at
            if version == self._scope_versions[scope_id]:
                return self._pop_of(share_id)
        return None

    def _pop_of(self, share_id: int) -> Head:
        head = heapq.heappop(self._of_share[share_id])
        self._place(self._shares[share_id])
        return head

    def started(self, limit_class: LimitClass) -> None:
        if limit_class.share_id is not None:
            share = self._shares[limit_class.share_id]
            begin = self._begin(share)
            share.held += limit_class.weight
            share.served = begin + limit_class.weight * UNIT // share.weight
            self._times[share.scope_id] = begin
            self._place(share)

    def _begin(self, share: Share) -> int:
        return max(share.served, self._times.get(share.scope_id, 0))

    def _place(self, share: Share) -> None:
        """Places a share in its scope anew."""
        self._versions[share.share_id] += 1
        if heads := self._of_share[share.share_id]:
            # Weights are small, so the floats differ, and compare, as the exact fractions do.
            place = (share.held / share.weight, self._begin(share), heads[0][0], self._versions[share.share_id], share.share_id)
            heapq.heappush(self._of_scope[share.scope_id], place)
        self._lead(share.scope_id)

    def _lead(self, scope_id: int) -> None:
        """Has the next share of a scope stand for it among the others. Begins only become later: outdated ones are
        corrected first.
        """
        line = self._of_scope[scope_id]
        self._scope_versions[scope_id] += 1
        self._leads.pop(scope_id, None)
        while line:
            held, begin, order, version, share_id = line[0]
            if version != self._versions[share_id]:
                heapq.heappop(line)
            elif begin < (now := self._begin(self._shares[share_id])):
                heapq.heapreplace(line, (held, now, order, version, share_id))
            else:
                heapq.heappush(self._heads, (order, HeadKind.SCOPE, (scope_id, self._scope_versions[scope_id], share_id)))
                self._leads[scope_id] = share_id
                return
