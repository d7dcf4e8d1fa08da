"""The selection round on the database: load a snapshot, let the core decide, write what starts and what is left over.

Ready tasks of this transaction compete in memory with the stored lanes. Only the holder of the executor's lock comes here, so no
other transaction changes lanes or the use of limits meanwhile.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from evenflow.core.asking import AskedTogether, Question, drive
from evenflow.core.flow.state import MappedTasks
from evenflow.core.model import UNMAPPED
from evenflow.core.selection.lanes import OPEN, Lane, saturated
from evenflow.core.selection.loading import CountOpenClasses, FindLimitClasses, FindRoom, FindShares, Loading
from evenflow.scheduler import candidates as lanes_in_memory
from evenflow.scheduler.candidates import Candidates, LaneKey
from evenflow.scheduler.catalog import TaskPlace
from evenflow.scheduler.facts import Facts
from evenflow.scheduler.foresight import remember
from evenflow.scheduler.ledgers.holds import Holds
from evenflow.scheduler.ledgers.moves import Moves
from evenflow.scheduler.starts import Starts
from evenflow.store.db.rows import Rows
from evenflow.store.scheduling import selection
from evenflow.store.scheduling.lanes import Read, StoredLane
from evenflow.store.scheduling.tasks import Item


class Round:
    """One round of one transaction. Its constructor sends the first reads; :meth:`run` waits for them."""

    def __init__(self, facts: Facts, moves: Moves, holds: Holds, mapped: MappedTasks, starts: Starts) -> None:
        self.facts, self.starts = facts, starts
        self.moves, self.holds = moves, holds
        self.candidates: dict[LaneKey, Candidates] = lanes_in_memory.group(facts, moves.offers, mapped)
        self.in_memory = {c.lane.key: c for c in self.candidates.values()}
        self.read = Read(facts.now_s)
        self.loading = Loading(self.holds.released, facts.closures, facts.now_s)
        self.snapshot = self.loading.snapshot
        self.advanced: dict[int, int] = defaultdict(int)  # mapped instances started, by stored lane
        self.joined: list[tuple[int, int, int]] = []
        self._selecting = self.loading.select(self._compete, stored=facts.lanes)
        self._sent = self._send(next(self._selecting)) if facts.lanes else []
        # Only a run that existed before can have lanes that these tasks belong to.
        kin = {(c.run.run_key, c.lane.class_id, c.place.priority) for c in self.candidates.values() if _may_join(c)}
        self._kin = selection.find_lanes(facts.conn, kin) if kin and facts.lanes else None
        limits = {limit for c in self.candidates.values() for limit in (*c.place.limit_class.limits, *c.lane.locals)}
        self._sent_room = self._send([FindRoom(limits)]) if limits else []

    def run(self) -> bool:
        """Decide and write. Whether another round should follow at once."""
        conn = self.facts.conn
        self._receive(self._sent)
        decision = drive(self._selecting, lambda asked: self._receive(self._send(asked)))
        for c in self.candidates.values():
            if (
                c.lane.ready
                and c.lane.parked_on == OPEN
                and (witness := saturated(c.lane, c.place.limit_class, self.snapshot.free))
            ):
                c.lane.parked_on = witness
        if self.joined:
            selection.insert_ready(conn, self.joined)
        self._grant(decision.grants)
        remember(self.facts.catalog, {limit for found in self.snapshot.limit_classes.values() for limit in found.limits})
        if self.snapshot.shares:
            self._charge(lane.class_id for lane, _ in decision.grants)
        self._write_lanes()
        lanes_in_memory.store(self.facts, self.moves, self.candidates.values())
        self.holds.write_use(conn, self.starts.used, self.facts.now_s)
        self.starts.lanes_touched += decision.touched
        if decision.rewake:
            selection.insert_wakes(conn, dict.fromkeys(decision.rewake, 0), {}, self.facts.now_s)
        return decision.again

    def limits(self) -> set[int]:
        """Those that it has looked at."""
        return {*self.read.room, *self.loading.looked_at}

    # -- what the round decides from -------------------------------------------------------------------------------

    def _send(self, asked: AskedTogether) -> list[tuple[Question[Any], Rows[Any] | None]]:
        """What is under way. Limit classes are remembered, and room that has been read is not read again."""
        sent: list[tuple[Question[Any], Rows[Any] | None]] = []
        for question in asked:
            unread: Question[Any] | None = question
            if isinstance(question, FindLimitClasses):
                unread = None
            elif isinstance(question, FindRoom):
                limits = set(question.limits) - self.read.room.keys()
                usual = self.facts.foresight.room
                self.read.room.update((limit, usual[limit]) for limit in limits & usual.keys())
                unread = FindRoom(limits - usual.keys()) if limits - usual.keys() else None
            sent.append((question, selection.ask(self.facts.conn, unread) if unread else None))
        return sent

    def _receive(self, sent: Iterable[tuple[Question[Any], Rows[Any] | None]]) -> None:
        for question, rows in sent:
            match question:
                case FindLimitClasses(class_ids):
                    question.answer = self.facts.catalog.limit_classes(self.facts.conn, class_ids).values()
                case CountOpenClasses():
                    self.read.answer(question, rows.all() if rows else [])
                case FindRoom() | FindShares():
                    self.read.answer(question, self._count(rows))
                case _:
                    self.read.answer(question, self.facts.scope.within(self._count(rows)))

    def _count(self, rows: Rows[Any] | None) -> list[Any]:
        found = rows.all() if rows else []
        self.starts.rows_read += len(found)
        return found

    def _compete(self) -> list[Lane]:
        """Lanes in memory. Candidates that belong to a stored lane wait there; if it is among those loaded, they may start at once
        with it.
        """
        for row in self.facts.scope.within(self._count(self._kin)):
            key = (row.run_key, row.class_id, row.priority, tuple(row.locals), UNMAPPED, row.exempt, None)
            joining = self.candidates.get(key)
            if row.task_index is None and joining and joining.as_old_as(row):
                lane = self.read.adopt(row)
                del self.candidates[key]
                lane.ready += joining.lane.ready
                self.joined += lanes_in_memory.schedule(self.moves, row.lane_id, joining.items)
        self._receive(self._sent_room)
        self.snapshot.parked.update(lanes_in_memory.line_up_new(self.candidates.values()))
        return [c.lane for c in self.candidates.values()]

    # -- decisions ---------------------------------------------------------------------------------------------------------

    def _charge(self, class_ids: Iterable[int]) -> None:
        """What tenants were served."""
        snapshot = self.snapshot
        ids = {snapshot.limit_classes[class_id].share_id for class_id in class_ids}
        if charged := [share for share_id, share in snapshot.shares.items() if share_id in ids]:
            times = {share.scope_id: snapshot.times[share.scope_id] for share in charged}
            selection.charge_shares(self.facts.conn, charged, times)

    def _grant(self, grants: list[tuple[Lane, int]]) -> None:
        moves = self.moves
        counts: dict[int, int] = defaultdict(int)
        for lane, count in grants:
            if lane.key in self.in_memory:
                c = self.in_memory[lane.key]
                self.starts.add_new(c, moves, count)
                continue
            row = self.read.rows[lane.key]
            if row.task_index is None:
                counts[lane.key] += count
            else:
                first = row.next_map_index + self.advanced[lane.key]
                self.advanced[lane.key] += count
                items = [moves.new_item(row.run_key, row.task_index, i, row.tries_before) for i in range(first, first + count)]
                self._start(row, lane, items)
        if counts:
            taken = selection.take_ready(self.facts.conn, counts).all()
            self.starts.rows_read += len(taken)
            for lane_id, task_index, map_index, state, epoch, try_number in taken:
                row, lane = self.read.rows[lane_id], self.read.lanes[lane_id]
                item = moves.item(row.run_key, task_index, map_index, state, epoch, try_number)
                self._start(row, lane, [item])

    def _start(self, row: StoredLane, lane: Lane, items: list[Item]) -> None:
        place = TaskPlace(self.snapshot.limit_classes[row.class_id], row.priority, None, row.exempt)
        since_s = self._startable_at(lane)
        self.starts.add(place, lane, items, since_s, run_priority=row.run_priority, resumes=row.resumes)

    def _startable_at(self, lane: Lane) -> float:
        """When the last thing happened that lets the lane start: it became ready, or one of its limits got room."""
        since = self.read.rows[lane.key].since_s
        for limit in (*self.snapshot.limit_classes[lane.class_id].limits, *lane.locals):
            since = max(since, self.holds.released_at.get(limit, 0.0), self.read.room[limit].released_at_s)
        return since

    def _write_lanes(self) -> None:
        changed: list[tuple[int, int, int, int]] = []
        emptied: list[int] = []
        for lane_id, lane in self.read.lanes.items():
            row = self.read.rows[lane_id]
            if lane.ready == 0:
                emptied.append(lane_id)
            elif lane.ready != row.ready or lane.parked_on != row.parked_on:
                changed.append((lane_id, lane.parked_on, lane.ready, row.next_map_index + self.advanced[lane_id]))
        if changed:
            selection.update_lanes(self.facts.conn, changed)
        if emptied:
            selection.delete_lanes(self.facts.conn, emptied)


def _may_join(c: Candidates) -> bool:
    return c.mapped == UNMAPPED and not c.run.new and not c.resumes
