"""A round that is decided on what the database has at one instant, and not written: the scheduler's statements and its decision."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from evenflow.core.limits import MOST_EXEMPT, MOST_HEADS, MOST_LIMIT_CLASSES
from evenflow.core.selection import Decision, Lane, LimitClass, Queue, Selection, Snapshot
from evenflow.core.service_states import ALL_OPEN
from evenflow.store.db.columns import numbers
from evenflow.store.db.connect import Conn, Row
from evenflow.store.db.instant import read
from evenflow.store.scheduling.selection import OPEN_AHEAD, PARKED_AHEAD, StoredLane, as_closures, closed, heads, more_of


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
        self._seen.update(self.snapshot.add_heads(found, OPEN_AHEAD.of))
        self.snapshot.released = {limit for limit in self.released if limit}
        if closures is not ALL_OPEN:
            limits = {"released": numbers(self.snapshot.released), "limit": MOST_EXEMPT, **closed(closures)}
            exempt = self._adopt(await read(self.conn, "states/read_exempt", limits))
            self.snapshot.add_exempt(exempt)
            found += exempt
        await self._park(self.snapshot.released)
        await self._learn(found)

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
        await self._park(snapshot.wakes_behind(lanes))
        limits = snapshot.limits_of(self.lanes.values())
        for room in await read(self.conn, "selection/read_limits", {"limits": numbers(limits - snapshot.free.keys())}):
            limit = room["limit_id"]
            snapshot.add_room(limit, room["free"] + self.released.get(limit, 0), room["patience_s"])

    async def _park(self, limits: Iterable[int]) -> None:
        """Adds what is parked on limits that were not looked at yet."""
        limits = set(limits) - self._looked_at
        if not limits:
            return
        self._looked_at |= limits
        lanes = self._adopt(await read(self.conn, "selection/read_parked", {"limits": numbers(limits), **PARKED_AHEAD.params}))
        await self._know(lane.class_id for lane in lanes)
        self.snapshot.add_parked(((self.stored[lane.key].parked_on, lane) for lane in lanes), PARKED_AHEAD.of)

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
            lanes.append(self.lanes.setdefault(stored.lane_id, stored.as_lane(self.now_s)))
        return lanes
