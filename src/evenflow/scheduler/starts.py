"""Starting task instances: a fresh epoch, a dispatch that holds its limits, and how long each was startable before."""

from __future__ import annotations

from collections import defaultdict

from evenflow.core.selection.lanes import Lane
from evenflow.core.states import TaskEvent
from evenflow.scheduler.candidates import Candidates
from evenflow.scheduler.catalog import TaskPlace
from evenflow.scheduler.facts import Facts
from evenflow.scheduler.ledgers.dispatches import Dispatches
from evenflow.scheduler.ledgers.moves import Moves
from evenflow.store.scheduling.tasks import Item
from evenflow.store.serving.dispatch import FIRST_START, RESUME


class Starts:
    """What one transaction starts, and at what cost. ``used`` is what the starts take of each limit."""

    def __init__(self, facts: Facts, dispatches: Dispatches) -> None:
        self.facts, self.dispatches = facts, dispatches
        self.used: dict[int, int] = defaultdict(int)
        self.count = 0
        self.delays: list[tuple[float, int]] = []  # (seconds that tasks were startable before they started, how many)
        self.lanes_touched = 0
        self.rows_read = 0  # by the round

    def add_new(self, c: Candidates, moves: Moves, count: int) -> None:
        """The next of a lane in memory."""
        items, since_s = c.take(moves, count), c.run.ready_at_s
        self.add(c.place, c.lane, items, since_s, run_priority=c.run.priority, resumes=c.resumes)

    def add(
        self, place: TaskPlace, lane: Lane, items: list[Item], startable_at_s: float, *, run_priority: int, resumes: bool
    ) -> None:
        """``resumes``: these are tries that go on."""
        used, limit_class, count = self.used, place.limit_class, len(items)
        holds = [*limit_class.limits, *lane.locals, *limit_class.share]
        used[limit_class.pool_limit] += count * limit_class.weight
        for limit in holds[1:]:
            used[limit] += count
        dispatch_class = RESUME if resumes else FIRST_START
        for item in items:
            item.try_number += not resumes
            self.dispatches.send(item, TaskEvent.GRANT, place, holds, run_priority=run_priority, dispatch_class=dispatch_class)
        self.count += count
        self.delays.append((max(0.0, self.facts.now_s - startable_at_s), count))
