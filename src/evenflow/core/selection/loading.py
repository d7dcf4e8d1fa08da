"""Reads what a round needs of the stored lanes. A rule asks (:mod:`evenflow.core.asking`), selects, and asks for more of a queue
where the round needs it. This one rule drives the scheduler's round and a dry one, which is not written.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from evenflow.core.asking import Asking, Question
from evenflow.core.limits import LANES_PER_ROUND, LEAST_HEADS, MOST_HEADS, MOST_LIMIT_CLASSES, MOST_PARKED
from evenflow.core.selection.lanes import OPEN, WOKEN, Lane, LimitClass, Queue, Share, Snapshot
from evenflow.core.selection.order import Order, present
from evenflow.core.selection.rules import Decision, Selection
from evenflow.core.service_states import ALL_OPEN, Closures


class Ahead(NamedTuple):
    """How many lanes of each queue are read: fewer when there are many queues."""

    most: int

    def of(self, queues: int) -> int:
        return max(LEAST_HEADS, min(self.most, LANES_PER_ROUND // max(1, queues)))


OPEN_AHEAD, PARKED_AHEAD = Ahead(MOST_HEADS), Ahead(MOST_PARKED)


class CountOpenClasses(Question[int]):
    """How many limit classes have open or woken lanes? Above ``MOST_LIMIT_CLASSES``: too many to look through."""


@dataclass
class FindHeads(Question[Sequence[Lane]]):
    """The best open lanes of each limit class, or base, that can start a task, or whose pool may be kept for one. ``released``, by
    limit, is what was given back and is not counted yet.
    """

    released: Mapping[int, int]
    closures: Closures
    by_base: bool = False


@dataclass
class FindExempt(Question[Sequence[Lane]]):
    """The exempt lanes of closed limit classes, whatever they are parked on, except those whose witness is full."""

    released: Collection[int]
    closures: Closures


@dataclass
class FindParked(Question[Sequence[tuple[int, Lane]]]):
    """The best lanes that are parked on each of these limits, by base, best first: (limit, lane)."""

    limits: Collection[int]


@dataclass
class FindMore(Question[Sequence[Lane]]):
    """The next ``MOST_HEADS`` lanes of a queue, after those ``seen``."""

    queue: Queue
    by_base: bool
    seen: int


@dataclass
class FindLimitClasses(Question[Iterable[LimitClass]]):
    class_ids: Collection[int]


@dataclass
class FindRoom(Question[Iterable[tuple[int, int, "float | None"]]]):
    """How much room do these limits have? (limit, capacity minus use, patience of a pool that does not backfill)"""

    limits: Collection[int]


@dataclass
class FindShares(Question[Iterable[Share]]):
    """What do these tenants hold, and what is the time of the pool or executor that each shares?"""

    share_ids: Collection[int]


class Loading:
    """The knowledge of one round at ``now_s``, seconds since 1970. ``released`` was given back to limits and is not counted in
    their room yet; ``looked_at`` are the limits whose parked lanes are known.
    """

    def __init__(self, released: Mapping[int, int], closures: Closures, now_s: float) -> None:
        self.released, self.now_s = released, now_s
        self.snapshot = Snapshot({}, {}, defaultdict(list), closures=closures)
        self.snapshot.released = {limit for limit in released if limit}
        self.looked_at: set[int] = set()
        self._seen: dict[Queue, int] = defaultdict(int)  # lanes read of each queue
        self._ages = False  # whether any lanes age
        self._aged: set[int] = set()  # keys of lanes that have their present order
        self._shares: set[int] = set()  # of the limit classes that are known
        self._unmeasured: list[Lane] = []  # lanes with limits whose room may be unknown

    def select(self, newcomers: Callable[[], Iterable[Lane]] = tuple, *, stored: bool = True) -> Asking[Decision]:
        """``newcomers``, called when what is stored is known, answers the lanes that are in memory alone. Unless anything is
        ``stored``, nothing is asked before.
        """
        found = (yield from self._find()) if stored else []
        yield from self._compete(list(newcomers()))
        yield from self._learn(found)
        selection = Selection(self.snapshot)
        while (queue := selection.run()) is not None:
            more = FindMore(queue, self.snapshot.by_base, self._seen[queue])
            yield [more]
            self._seen[queue] += len(more.answer)
            yield from self._learn(more.answer)
            selection.feed(queue, more.answer, more.answer[-1].order if len(more.answer) == MOST_HEADS else None)
        return selection.decision

    def _find(self) -> Asking[list[Lane]]:
        """Returns the stored lanes that may start."""
        snapshot, closures = self.snapshot, self.snapshot.closures
        classes, heads = CountOpenClasses(), FindHeads(self.released, closures)
        asked: list[Question[Any]] = [classes, heads]
        exempt, parked = FindExempt(snapshot.released, closures), FindParked(self._unseen(snapshot.released))
        if closures is not ALL_OPEN:
            asked.append(exempt)
        if parked.limits:
            asked.append(parked)
        yield asked
        if classes.answer > MOST_LIMIT_CLASSES:
            snapshot.by_base = True
            heads = FindHeads(self.released, closures, by_base=True)
            yield [heads]
        found = list(heads.answer)
        yield from self._know(found)
        self._add_heads(found)
        if exempt in asked:
            self._add_exempt(exempt.answer)
            found += exempt.answer
        if parked in asked:
            yield from self._add_parked(parked.answer)
        return found

    def _compete(self, lanes: Sequence[Lane]) -> Asking[None]:
        """Adds lanes that exist only in memory; the lanes behind them are known."""
        yield from self._know(lanes)
        self._unmeasured += lanes
        for lane in lanes:
            if lane.parked_on in (OPEN, WOKEN):
                self.snapshot.open[lane.class_id].append(lane)

    def _learn(self, lanes: Sequence[Lane]) -> Asking[None]:
        """Completes the snapshot for these lanes: the lanes behind woken ones, limit classes, and the room of all limits."""
        snapshot = self.snapshot
        yield from self._know(lanes)
        self._unmeasured += lanes
        if behind := self._unseen(self._wakes_behind(lanes)):
            parked = FindParked(behind)
            yield [parked]
            yield from self._add_parked(parked.answer)
        limits = {limit for limit_class in snapshot.limit_classes.values() for limit in limit_class.limits}
        limits.update(limit for lane in self._unmeasured for limit in lane.locals)
        self._unmeasured.clear()
        room, shares = FindRoom(limits - snapshot.free.keys()), FindShares(self._shares - snapshot.shares.keys())
        asked: list[Question[Any]] = [room] if room.limits else []
        if shares.share_ids:
            asked.append(shares)
        if asked:
            yield asked
        for limit, free, patience_s in room.answer if room in asked else ():
            snapshot.free[limit] = free + self.released.get(limit, 0)
            if patience_s is not None:
                snapshot.patience[limit] = patience_s
        for share in shares.answer if shares in asked else ():
            share.held -= self.released.get(share.share_id, 0)
            snapshot.shares[share.share_id] = share
            snapshot.times[share.scope_id] = share.time

    def _know(self, lanes: Collection[Lane]) -> Asking[None]:
        """Reads the limit classes of these lanes, and those that name their bases. Lanes that age get their present order."""
        known = self.snapshot.limit_classes
        missing = {lane.class_id for lane in lanes} - known.keys()
        while missing:
            classes = FindLimitClasses(missing)
            yield [classes]
            for limit_class in classes.answer:
                known[limit_class.class_id] = limit_class
                self._ages |= limit_class.aging_s is not None
                if limit_class.share_id is not None:
                    self._shares.add(limit_class.share_id)
            missing = {limit_class.base_id for limit_class in classes.answer} - known.keys()
        for lane in lanes if self._ages else ():
            if lane.key not in self._aged and (aging_s := known[lane.class_id].aging_s) is not None:
                self._aged.add(lane.key)
                lane.order = present(lane.order, aging_s, self.now_s)

    def _unseen(self, limits: Collection[int]) -> set[int]:
        """Returns the limits whose parked lanes are not read yet, and marks them as read."""
        unseen = set(limits) - self.looked_at
        self.looked_at |= unseen
        return unseen

    def _wakes_behind(self, lanes: Iterable[Lane]) -> set[int]:
        """Returns the limits behind which woken ones of these lanes wake others: the lanes parked there must be known."""
        woken = [lane for lane in lanes if lane.parked_on == WOKEN]
        tasks = (self.snapshot.limit_classes[lane.class_id].task_limit for lane in woken)
        return {limit for lane in woken for limit in lane.locals}.union(limit for limit in tasks if limit is not None)

    def _add_heads(self, lanes: Iterable[Lane]) -> None:
        """Adds the best open lanes of each queue, best first."""
        snapshot, last = self.snapshot, dict[Queue, Order]()
        for lane in lanes:
            queue = snapshot.queue_of(lane)
            self._seen[queue] += 1
            last[queue] = lane.order
            snapshot.open[lane.class_id].append(lane)
        full = OPEN_AHEAD.of(len(last))
        snapshot.horizon.update((queue, order) for queue, order in last.items() if self._seen[queue] >= full)

    def _add_exempt(self, lanes: Iterable[Lane]) -> None:
        """Adds exempt lanes of closed limit classes. Lanes before them there are not exempt and pass no wake on, so each round
        looks at the exempt ones, wherever they are parked.
        """
        for lane in lanes:
            if lane.parked_on > OPEN:
                lane.parked_on = OPEN
            self.snapshot.open[lane.class_id].append(lane)

    def _add_parked(self, lanes: Sequence[tuple[int, Lane]]) -> Asking[None]:
        """Adds the lanes that were read for some limits. Some exempt ones are open by now."""
        yield from self._know([lane for _, lane in lanes])
        self._unmeasured += (lane for _, lane in lanes)
        snapshot = self.snapshot
        found: dict[tuple[int, int], list[Lane]] = defaultdict(list)
        for limit, lane in lanes:
            found[limit, snapshot.limit_classes[lane.class_id].base_id].append(lane)
        for key, parked in found.items():
            snapshot.parked[key] = [lane for lane in parked if lane.parked_on > OPEN]
        full = PARKED_AHEAD.of(len(found))
        snapshot.parked_more.update(key for key, parked in found.items() if len(parked) >= full)
