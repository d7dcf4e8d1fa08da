"""The selection round on the database: load a snapshot, let the core decide, write what starts and what is left over.

Ready tasks of this transaction compete in memory with the stored lanes. Only the holder of the executor's lock comes here, so
nobody else changes lanes or the use of limits meanwhile.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from evenflow.core.limits import MOST_HEADS, MOST_LIMIT_CLASSES
from evenflow.core.model import UNMAPPED
from evenflow.core.selection import OPEN, WOKEN, Decision, Lane, Queue, Selection, Snapshot, saturated
from evenflow.core.service_states import ALL_OPEN
from evenflow.scheduler import candidates as lanes_in_memory
from evenflow.scheduler.candidates import Candidates, LaneKey
from evenflow.scheduler.catalog import TaskPlace
from evenflow.scheduler.facts import Facts
from evenflow.scheduler.ledgers import Ledgers
from evenflow.scheduler.starts import Starts
from evenflow.store.db.rows import Rows
from evenflow.store.scheduling import selection
from evenflow.store.scheduling.selection import OPEN_AHEAD, PARKED_AHEAD, LimitRoom, StoredLane


class Round:
    """One round of one transaction. Making it sends what it reads first; :meth:`run` waits for that."""

    def __init__(self, facts: Facts, ledgers: Ledgers, starts: Starts) -> None:
        self.facts, self.starts = facts, starts
        self.moves, self.holds, self.offers = ledgers.moves, ledgers.holds, ledgers.offers
        self.candidates: dict[LaneKey, Candidates] = lanes_in_memory.group(facts, ledgers.offers, ledgers.mapped)
        self.in_memory = {c.lane.key: c for c in self.candidates.values()}
        self.stored: dict[int, StoredLane] = {}
        self.lanes: dict[int, Lane] = {}  # of what is stored, as the round changes them
        self.snapshot = Snapshot({}, {}, defaultdict(list), closures=facts.closures)
        self.heads: dict[Queue, int] = defaultdict(int)  # lanes read of it
        self.room: dict[int, LimitRoom] = {}
        self.advanced: dict[int, int] = defaultdict(int)  # mapped instances started, by stored lane
        self.joined: list[tuple[int, int, int]] = []
        conn, released = facts.conn, self.holds.released
        self.snapshot.released = {limit for limit in released if limit}
        self._looked_at = set(self.snapshot.released)
        self._limit_classes = self._heads = self._parked = self._kin = self._exempt = None
        if facts.lanes:
            self._limit_classes = selection.count_open_classes(conn)
            self._heads = selection.read_heads(conn, released, facts.closures)
            self._exempt = selection.read_exempt(conn, self._looked_at, facts.closures) if facts.closures is not ALL_OPEN else None
            self._parked = selection.read_parked(conn, self._looked_at) if self._looked_at else None
            # Only a run that existed before can have lanes that these tasks belong to.
            kin = {(c.run.run_key, c.lane.class_id, c.place.priority) for c in self.candidates.values() if _may_join(c)}
            self._kin = selection.find_lanes(conn, kin) if kin else None
        limits = {limit for c in self.candidates.values() for limit in (*c.place.limit_class.limits, *c.lane.locals)}
        self._limits = selection.read_limits(conn, limits) if limits else None

    def run(self) -> bool:
        """Decide and write. Whether another round should follow at once."""
        conn = self.facts.conn
        decision = self._decide() if self._load() else None
        for c in self.candidates.values():
            if (
                c.lane.ready
                and c.lane.parked_on == OPEN
                and (witness := saturated(c.lane, c.place.limit_class, self.snapshot.free))
            ):
                c.lane.parked_on = witness
        if self.joined:
            selection.insert_ready(conn, self.joined)
        if decision:
            self._grant(decision.grants)
        self._write_lanes()
        lanes_in_memory.store(self.facts, self.moves, self.offers, self.candidates.values())
        self.holds.write_use(conn, self.starts.used, self.facts.now_s)
        if decision is None:
            return False
        self.starts.lanes_touched += decision.touched
        if decision.rewake:
            selection.insert_wakes(conn, dict.fromkeys(decision.rewake, 0), {}, self.facts.now_s)
        return decision.again

    def limits(self) -> set[int]:
        """Those that it has looked at."""
        return {*self.room, *self._looked_at}

    # -- what the round decides from -------------------------------------------------------------------------------

    def _load(self) -> bool:
        """Whether anything waits anywhere."""
        snapshot = self.snapshot
        found = [self._adopt(row) for row in self._all(self._heads)]
        if self._limit_classes and self._limit_classes.all()[0][0] > MOST_LIMIT_CLASSES:
            snapshot.by_base = True
            heads = selection.read_heads_of_bases(self.facts.conn, self.holds.released, self.facts.closures)
            found = [self._adopt(row) for row in self._all(heads)]
        self._know(lane.class_id for lane in found)
        self.heads.update(snapshot.add_heads(found, OPEN_AHEAD.of))
        exempt = [self._adopt(row) for row in self._all(self._exempt)]
        snapshot.add_exempt(exempt)
        found += exempt
        self._park(self._parked)
        self._join(self._all(self._kin))
        if not self.lanes and not self.candidates:
            return False
        snapshot.parked.update(lanes_in_memory.line_up_new(self.candidates.values()))
        for c in self.candidates.values():
            self._know([c.lane.class_id])
            if c.lane.parked_on in (OPEN, WOKEN):
                snapshot.open[c.lane.class_id].append(c.lane)
        for room in self._limits.all() if self._limits else ():
            self.room[room.limit_id] = room
        self._learn(found)
        return True

    def _decide(self) -> Decision:
        """Selects, reading more of a queue where the round asks for it."""
        round_ = Selection(self.snapshot)
        while (queue := round_.run()) is not None:
            rows = self._all(selection.read_more(self.facts.conn, queue, by_base=self.snapshot.by_base, seen=self.heads[queue]))
            self.heads[queue] += len(rows)
            lanes = [self._adopt(row) for row in rows]
            self._learn(lanes)
            round_.feed(queue, lanes, lanes[-1].order if len(rows) == MOST_HEADS else None)
        return round_.decision

    def _learn(self, lanes: list[Lane]) -> None:
        """Completes the snapshot for these lanes: what is parked behind woken ones, limit classes, and the room on all limits."""
        snapshot, conn = self.snapshot, self.facts.conn
        self._know(lane.class_id for lane in lanes)
        if behind := snapshot.wakes_behind(lanes) - self._looked_at:
            self._looked_at |= behind
            self._park(selection.read_parked(conn, behind))
        limits = snapshot.limits_of(self.lanes.values())
        if missing := limits - self.room.keys():
            self.room.update((room.limit_id, room) for room in selection.read_limits(conn, missing).all())
        released, fresh = self.holds.released, self.room.keys() - snapshot.free.keys()
        for limit in fresh:
            snapshot.add_room(limit, self.room[limit].free + released.get(limit, 0), self.room[limit].patience_s)
        self.starts.rows_read += len(fresh)

    def _know(self, class_ids: Iterable[int]) -> None:
        """Limit classes, and those that their bases are named by."""
        snapshot, catalog = self.snapshot, self.facts.catalog
        if missing := {*class_ids} - snapshot.limit_classes.keys():
            snapshot.limit_classes.update(catalog.limit_classes(self.facts.conn, missing))
            if bases := {snapshot.limit_classes[class_id].base_id for class_id in missing} - snapshot.limit_classes.keys():
                snapshot.limit_classes.update(catalog.limit_classes(self.facts.conn, bases))

    def _all(self, rows: Rows[StoredLane] | None) -> list[StoredLane]:
        found = rows.all() if rows else []
        self.starts.rows_read += len(found)
        return self.facts.scope.within(found)

    def _adopt(self, row: StoredLane) -> Lane:
        lane = self.lanes.get(row.lane_id)
        if lane is None:
            lane = row.as_lane(self.facts.now_s)
            self.lanes[row.lane_id], self.stored[row.lane_id] = lane, row
        return lane

    def _park(self, rows: Rows[StoredLane] | None) -> None:
        """Adds what is parked on limits; the rows are all that was read of them."""
        lanes = [self._adopt(row) for row in self._all(rows)]
        self._know(lane.class_id for lane in lanes)
        self.snapshot.add_parked(((self.stored[lane.key].parked_on, lane) for lane in lanes), PARKED_AHEAD.of)

    def _join(self, rows: Iterable[StoredLane]) -> None:
        """Candidates that belong to a stored lane wait there; if it is among those loaded, they may start at once with it."""
        for row in rows:
            key = (row.run_key, row.class_id, row.priority, tuple(row.locals), UNMAPPED, row.exempt, None)
            if row.task_index is None and key in self.candidates:
                lane = self._adopt(row)
                joining = self.candidates.pop(key)
                lane.ready += joining.lane.ready
                self.joined += lanes_in_memory.schedule(self.moves, row.lane_id, joining.items)

    # -- what it decided -------------------------------------------------------------------------------------------

    def _grant(self, grants: list[tuple[Lane, int]]) -> None:
        moves = self.moves
        counts: dict[int, int] = defaultdict(int)
        for lane, count in grants:
            if lane.key in self.in_memory:
                c = self.in_memory[lane.key]
                self.starts.add(c.place, lane, c.take(moves, count), c.run.ready_at_s)
                continue
            row = self.stored[lane.key]
            if row.task_index is None:
                counts[lane.key] += count
            else:
                first = row.next_map_index + self.advanced[lane.key]
                self.advanced[lane.key] += count
                items = [moves.new_item(row.run_key, row.task_index, i, row.tries_before) for i in range(first, first + count)]
                self.starts.add(self._place(row), lane, items, self._startable_at(lane))
        if counts:
            taken = selection.take_ready(self.facts.conn, counts).all()
            self.starts.rows_read += len(taken)
            for lane_id, task_index, map_index, state, epoch, try_number in taken:
                row, lane = self.stored[lane_id], self.lanes[lane_id]
                item = moves.item(row.run_key, task_index, map_index, state, epoch, try_number)
                self.starts.add(self._place(row), lane, [item], self._startable_at(lane))

    def _place(self, row: StoredLane) -> TaskPlace:
        return TaskPlace(self.snapshot.limit_classes[row.class_id], row.priority, None, row.exempt)

    def _startable_at(self, lane: Lane) -> float:
        """When the last thing happened that lets the lane start: it became ready, or one of its limits got room."""
        since = self.stored[lane.key].since_s
        for limit in (*self.snapshot.limit_classes[lane.class_id].limits, *lane.locals):
            since = max(since, self.holds.released_at.get(limit, 0.0), self.room[limit].released_at_s)
        return since

    def _write_lanes(self) -> None:
        changed: list[tuple[int, int, int, int]] = []
        emptied: list[int] = []
        for lane_id, lane in self.lanes.items():
            row = self.stored[lane_id]
            if lane.ready == 0:
                emptied.append(lane_id)
            elif lane.ready != row.ready or lane.parked_on != row.parked_on:
                changed.append((lane_id, lane.parked_on, lane.ready, row.next_map_index + self.advanced[lane_id]))
        if changed:
            selection.update_lanes(self.facts.conn, changed)
        if emptied:
            selection.delete_lanes(self.facts.conn, emptied)


def _may_join(c: Candidates) -> bool:
    return c.mapped == UNMAPPED and not c.run.new and not lanes_in_memory.is_of_resumes(c.lane)
