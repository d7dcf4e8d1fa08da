"""The selection round on the database: load a snapshot, let the core decide, write what starts and what is left over.

Ready tasks of this transaction compete in memory with the stored lanes. Only the holder of the executor's lock comes here, so
nobody else changes lanes or the use of limits meanwhile.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from evenflow.core.limits import HEADS_PER_NODE, LANES_PER_ROUND
from evenflow.core.model import UNMAPPED
from evenflow.core.selection import OPEN, Lane, Node, Snapshot, saturated, select
from evenflow.core.states import TaskEvent
from evenflow.scheduler import candidates as lanes_in_memory
from evenflow.scheduler.batch import Batch, Item
from evenflow.scheduler.candidates import Candidates, LaneKey
from evenflow.store import selection, tasks
from evenflow.store.rows import Rows
from evenflow.store.selection import StoredLane

FIRST_START = 1  # dispatch class; 0 is a return


class Round:
    """One round of one transaction."""

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self.candidates: dict[LaneKey, Candidates] = lanes_in_memory.group(batch)
        self.in_memory = {c.lane.key: c for c in self.candidates.values()}
        self.stored: dict[int, StoredLane] = {}
        self.lanes: dict[int, Lane] = {}  # of what is stored, as the round changes them
        self.advanced: dict[int, int] = defaultdict(int)  # mapped instances started, by stored lane
        self.joined: list[tuple[int, int, int]] = []
        self.used: dict[int, int] = defaultdict(int)

    def run(self) -> bool:
        """Decide and write. Whether another round should follow at once."""
        batch = self.batch
        snapshot = self._load()
        decision = select(snapshot, budget=LANES_PER_ROUND) if snapshot else None
        for c in self.candidates.values():
            if c.lane.ready and c.lane.parked_on == OPEN and snapshot and (witness := saturated(c.lane, snapshot.free)):
                c.lane.parked_on = witness
        if self.joined:
            selection.insert_ready(batch.conn, self.joined)
        if decision:
            self._grant(decision.grants)
        self._write_lanes()
        lanes_in_memory.store(batch, self.candidates.values())
        self._use_limits()
        if decision and decision.rewake:
            selection.insert_wakes(batch.conn, dict.fromkeys(decision.rewake, 0))
        return decision is not None and decision.again

    # -- what the round decides from -------------------------------------------------------------------------------

    def _load(self) -> Snapshot | None:
        """The snapshot, or None when nothing waits anywhere."""
        batch, conn = self.batch, self.batch.conn
        heads = selection.read_heads(conn, batch.released, heads=HEADS_PER_NODE)
        woken = [limit for limit in batch.released if limit]
        parked = selection.read_parked(conn, woken, heads=HEADS_PER_NODE) if woken else None
        # Only a run that existed before can have lanes that these tasks belong to.
        plain = [c for c in self.candidates.values() if c.mapped == UNMAPPED and not c.run.new]
        kin = selection.find_lanes(conn, {(c.run.run_key, c.node.node_id, c.priority) for c in plain}) if plain else None

        open_lanes: dict[int, list[Lane]] = defaultdict(list)
        for row in heads.all():
            open_lanes[row.node_id].append(self._adopt(row))
        horizon = {node_id: lanes[-1].order for node_id, lanes in open_lanes.items() if len(lanes) == HEADS_PER_NODE}
        parked_lanes: dict[tuple[int, int], list[Lane]] = defaultdict(list)
        self._park(parked_lanes, parked)
        behind = {limit for lanes in open_lanes.values() for lane in lanes for limit in lane.locals} - set(woken)
        if behind:
            self._park(parked_lanes, selection.read_parked(conn, behind, heads=HEADS_PER_NODE))
        if kin:
            self._join(kin.all())
        if not self.lanes and not self.candidates:
            return None
        for c in self.candidates.values():
            if c.lane.parked_on == OPEN:
                open_lanes[c.node.node_id].append(c.lane)
        nodes = {n: batch.catalog.node_by_id(conn, n) for n in {*open_lanes, *(n for _, n in parked_lanes)}}
        return Snapshot(
            free=self._free(nodes.values()),
            nodes=nodes,
            open=open_lanes,
            horizon=horizon,
            parked=parked_lanes,
            parked_more={key for key, lanes in parked_lanes.items() if len(lanes) == HEADS_PER_NODE},
        )

    def _adopt(self, row: StoredLane) -> Lane:
        lane = self.lanes.get(row.lane_id)
        if lane is None:
            order = (-row.run_priority, -row.priority, row.run_after_us, row.lane_id)
            lane = self.lanes[row.lane_id] = Lane(row.lane_id, row.node_id, order, row.locals, row.ready, row.parked_on)
            self.stored[row.lane_id] = row
        return lane

    def _park(self, parked: dict[tuple[int, int], list[Lane]], rows: Rows[StoredLane] | None) -> None:
        for row in rows.all() if rows else ():
            parked[row.parked_on, row.node_id].append(self._adopt(row))

    def _join(self, rows: Iterable[StoredLane]) -> None:
        """Candidates that belong to a stored lane wait there; if it is among those loaded, they may start at once with it."""
        for row in rows:
            key = (row.run_key, row.node_id, row.priority, tuple(row.locals), UNMAPPED)
            if row.task_index is None and key in self.candidates:
                lane = self._adopt(row)
                joining = self.candidates.pop(key)
                lane.ready += joining.lane.ready
                self.joined += lanes_in_memory.schedule(self.batch, row.lane_id, joining.items)

    def _free(self, nodes: Iterable[Node]) -> dict[int, int]:
        limits = {limit for node in nodes for limit in (node.pool_limit, node.executor_limit)}
        limits.update(limit for lane in self.lanes.values() for limit in lane.locals)
        limits.update(limit for c in self.candidates.values() for limit in c.lane.locals)
        if not limits:
            return {}
        released = self.batch.released
        return {limit: free + released.get(limit, 0) for limit, free in selection.read_limits(self.batch.conn, limits).all()}

    # -- what it decided -------------------------------------------------------------------------------------------

    def _grant(self, grants: list[tuple[Lane, int]]) -> None:
        batch = self.batch
        counts: dict[int, int] = defaultdict(int)
        for lane, count in grants:
            if lane.key < 0:
                c = self.in_memory[lane.key]
                self._start(c.node, lane, c.priority, c.take(batch, count))
                continue
            row = self.stored[lane.key]
            if row.task_index is None:
                counts[lane.key] += count
            else:
                first = row.next_map_index + self.advanced[lane.key]
                self.advanced[lane.key] += count
                items = [batch.new_item(row.run_key, row.task_index, i) for i in range(first, first + count)]
                self._start(batch.catalog.nodes_by_id[row.node_id], lane, row.priority, items)
        if counts:
            for ready in selection.take_ready(batch.conn, counts).all():
                row = self.stored[ready.lane_id]
                item = batch.item(row.run_key, *ready[1:])
                self._start(batch.catalog.nodes_by_id[row.node_id], self.lanes[ready.lane_id], row.priority, [item])

    def _start(self, node: Node, lane: Lane, priority: int, items: list[Item]) -> None:
        batch, used, count = self.batch, self.used, len(items)
        holds = [node.pool_limit, *lane.locals, node.executor_limit]
        used[node.pool_limit] += count * node.weight
        for limit in holds[1:]:
            used[limit] += count
        for item in items:
            item.epoch = batch.catalog.epochs.take(batch.conn)
            item.try_number += 1
            batch.apply(item, TaskEvent.GRANT)
            batch.dispatches.append(
                tasks.Dispatch(item.epoch, *item.key, item.try_number, FIRST_START, priority, node.queue, holds, node.weight, 0)
            )
        batch.starts += count

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
            selection.update_lanes(self.batch.conn, changed)
        if emptied:
            selection.delete_lanes(self.batch.conn, emptied)

    def _use_limits(self) -> None:
        """One update per limit, and none where starts and releases cancel out."""
        released = self.batch.released
        deltas = {k: d for k in self.used.keys() | released.keys() if k and (d := self.used.get(k, 0) - released.get(k, 0))}
        if deltas:
            selection.use_limits(self.batch.conn, deltas)
