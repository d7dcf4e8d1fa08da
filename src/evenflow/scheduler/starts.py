"""Starting task instances: a fresh epoch, a dispatch that holds its limits, and how long each was startable before."""

from __future__ import annotations

from collections import defaultdict

from evenflow.core.selection import Lane, Node
from evenflow.core.states import TaskEvent
from evenflow.scheduler.batch import Batch, Item
from evenflow.store import tasks

FIRST_START = 1  # dispatch class; 0 is a return


class Starts:
    """What one transaction starts, and at what cost. ``used`` is what the starts take of each limit."""

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self.used: dict[int, int] = defaultdict(int)
        self.count = 0
        self.delays: list[tuple[float, int]] = []  # seconds that so many were startable before they started
        self.lanes_touched = 0
        self.rows_read = 0  # by the round

    def add(self, node: Node, lane: Lane, priority: int, items: list[Item], startable_at_s: float) -> None:
        batch, used, count = self.batch, self.used, len(items)
        holds = [*node.limits, *lane.locals]
        used[node.pool_limit] += count * node.weight
        for limit in holds[1:]:
            used[limit] += count
        take, conn, queue, weight = batch.catalog.epochs.take, batch.conn, node.queue, node.weight
        for item in items:
            item.epoch = take(conn)
            item.try_number += 1
            batch.apply(item, TaskEvent.GRANT)
            batch.dispatches.append(
                tasks.Dispatch(
                    item.epoch,
                    item.run_key,
                    item.task_index,
                    item.map_index,
                    item.try_number,
                    FIRST_START,
                    priority,
                    queue,
                    holds,
                    weight,
                    0,
                )
            )
        self.count += count
        self.delays.append((max(0.0, batch.now_s - startable_at_s), count))
