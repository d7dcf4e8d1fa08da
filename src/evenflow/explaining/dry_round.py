"""A round that is decided on what the database has at one instant, and not written: the scheduler's statements and its decision."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from evenflow.core.limits import MOST_EXEMPT, MOST_HEADS, MOST_LIMIT_CLASSES
from evenflow.core.selection import OPEN, WOKEN, Decision, Lane, LimitClass, Order, Queue, Selection, Snapshot
from evenflow.core.service_states import ALL_OPEN
from evenflow.store.db.columns import numbers
from evenflow.store.db.instant import Conn, Row, read
from evenflow.store.scheduling.selection import OPEN_AHEAD, PARKED_AHEAD, StoredLane, as_closures, closed, heads, more_of


def as_lane(row: StoredLane, now_s: float) -> Lane:
    """A stored lane as the core sees it."""
    order = (-row.run_priority, -row.priority, row.run_after_us, row.lane_id)
    return Lane(row.lane_id, row.class_id, order, row.locals, row.ready, row.parked_on, now_s - row.since_s, row.exempt)


async def read_limit_classes(conn: Conn, class_ids: Iterable[int]) -> dict[int, LimitClass]:
    rows = await read(conn, "selection/read_limit_classes", {"limit_classes": numbers(class_ids)})
    return {row["class_id"]: LimitClass(**row) for row in rows}


@dataclass(slots=True)
class DryRound:
    """A round on what is stored; what was released and is not folded yet is room. ``snapshot`` is as the decision left it."""

    conn: Conn
    now_s: float
    released: dict[int, int]
    stored: dict[int, StoredLane] = field(default_factory=dict)
    lanes: dict[int, Lane] = field(default_factory=dict)
    snapshot: Snapshot = field(default_factory=lambda: Snapshot({}, {}, defaultdict(list)))
    decision: Decision = field(default_factory=Decision)
    _seen: dict[Queue, int] = field(default_factory=lambda: defaultdict(int))  # lanes read of it
    _looked_at: set[int] = field(default_factory=set)  # limits of which the parked lanes have been read

    @classmethod
    async def decided(cls, conn: Conn) -> DryRound:
        """Within one instant."""
        (clock,) = await read(conn, "plan/read_clock")
        released = {row["limit_id"]: row["released"] for row in await read(conn, "plan/read_wakes")}
        dry = cls(conn, clock["now_s"], released)
        await dry._load()
        await dry._decide()
        return dry

    async def _load(self) -> None:
        closures = as_closures((row["limit_id"], row["queue"]) for row in await read(self.conn, "states/read_closures"))
        self.snapshot.closures = closures
        last: dict[Queue, Order] = {}
        (open_classes,) = await read(self.conn, "selection/count_open_classes", {"most": MOST_LIMIT_CLASSES + 1})
        self.snapshot.by_base = open_classes["count"] > MOST_LIMIT_CLASSES
        if self.snapshot.by_base:
            rows = await read(self.conn, "selection/read_heads_of_bases", heads(self.released, closures))
        else:
            rows = await read(
                self.conn, "selection/read_heads", {**heads(self.released, closures), "limit_classes": MOST_LIMIT_CLASSES}
            )
        found = self._adopt(rows)
        await self._know(lane.class_id for lane in found)
        for lane in found:
            queue = self.snapshot.queue_of(lane)
            self._seen[queue] += 1
            last[queue] = lane.order
            self.snapshot.open[lane.class_id].append(lane)
        ahead = OPEN_AHEAD.of(len(self._seen))
        self.snapshot.horizon.update((queue, last[queue]) for queue, seen in self._seen.items() if seen >= ahead)
        self.snapshot.released = {limit for limit in self.released if limit}
        if closures is not ALL_OPEN:
            found += await self._open_exempt()
        await self._park(self.snapshot.released)
        await self._learn(found)

    async def _open_exempt(self) -> list[Lane]:
        """As in a round: exempt lanes of closed limit classes, wherever they are parked."""
        limits = {"released": numbers(self.snapshot.released), "limit": MOST_EXEMPT, **closed(self.snapshot.closures)}
        lanes = self._adopt(await read(self.conn, "states/read_exempt", limits))
        for lane in lanes:
            if lane.parked_on > OPEN:
                lane.parked_on = OPEN
            self.snapshot.open[lane.class_id].append(lane)
        return lanes

    async def _decide(self) -> None:
        """Selects, reading more of a queue where the round asks for it."""
        round_ = Selection(self.snapshot)
        while (queue := round_.run()) is not None:
            rows = await read(self.conn, *more_of(queue, by_base=self.snapshot.by_base, seen=self._seen[queue]))
            self._seen[queue] += len(rows)
            lanes = self._adopt(rows)
            await self._learn(lanes)
            round_.feed(queue, lanes, lanes[-1].order if len(rows) == MOST_HEADS else None)
        self.decision = round_.decision

    async def _learn(self, lanes: Sequence[Lane]) -> None:
        """Completes the snapshot for these lanes: what is parked behind woken ones, limit classes, and the room on all limits."""
        snapshot = self.snapshot
        await self._know(lane.class_id for lane in lanes)
        woken = [lane for lane in lanes if lane.parked_on == WOKEN]
        behind = {limit for lane in woken for limit in lane.locals}
        behind.update(limit for lane in woken if (limit := snapshot.limit_classes[lane.class_id].task_limit) is not None)
        await self._park(behind)
        limits = {limit for limit_class in snapshot.limit_classes.values() for limit in limit_class.limits}
        limits.update(limit for lane in self.lanes.values() for limit in lane.locals)
        for room in await read(self.conn, "selection/read_limits", {"limits": numbers(limits - snapshot.free.keys())}):
            limit = room["limit_id"]
            snapshot.free[limit] = room["free"] + self.released.get(limit, 0)
            if room["patience_s"] is not None:
                snapshot.patience[limit] = room["patience_s"]

    async def _park(self, limits: Iterable[int]) -> None:
        """Adds what is parked on limits that were not looked at yet."""
        limits = set(limits) - self._looked_at
        if not limits:
            return
        self._looked_at |= limits
        found: dict[tuple[int, int], list[Lane]] = defaultdict(list)
        lanes = self._adopt(await read(self.conn, "selection/read_parked", {"limits": numbers(limits), **PARKED_AHEAD.params}))
        await self._know(lane.class_id for lane in lanes)
        for lane in lanes:
            found[self.stored[lane.key].parked_on, self.snapshot.limit_classes[lane.class_id].base_id].append(lane)
        for key, parked in found.items():  # but for exempt ones that are open by now
            self.snapshot.parked[key] = [lane for lane in parked if lane.parked_on > OPEN]
        ahead = PARKED_AHEAD.of(len(found))
        self.snapshot.parked_more.update(key for key, parked in found.items() if len(parked) >= ahead)

    async def _know(self, class_ids: Iterable[int]) -> None:
        """Limit classes, and those that their bases are named by."""
        limit_classes = self.snapshot.limit_classes
        if missing := {*class_ids} - limit_classes.keys():
            limit_classes.update(await read_limit_classes(self.conn, missing))
            if bases := {limit_classes[class_id].base_id for class_id in missing} - limit_classes.keys():
                limit_classes.update(await read_limit_classes(self.conn, bases))

    def _adopt(self, rows: Iterable[Row]) -> list[Lane]:
        lanes = []
        for row in rows:
            stored = StoredLane(**row)
            self.stored.setdefault(stored.lane_id, stored)
            lanes.append(self.lanes.setdefault(stored.lane_id, as_lane(stored, self.now_s)))
        return lanes
