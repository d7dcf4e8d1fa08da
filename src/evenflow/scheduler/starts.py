"""Starting task instances: a fresh epoch, a dispatch that holds its limits, and how long each was startable before.

A transaction without the executor's lock starts, by :func:`swap`, what became ready in the room that it has made itself. Such a
start raises the use of no limit, so it needs no limit row, and any number of schedulers can do it at the same time (R-ST7). It is
right as long as no other task waits for that room: then the order has only one choice. Limits that other tasks wait for are left to
the holder of the lock, like everything that does not fit. A lane that another transaction stores at this very moment is not seen
here: of two rounds at the same time neither knows what the other made ready (R-ST3).
"""

from __future__ import annotations

from collections import defaultdict

from evenflow.core.selection.lanes import OPEN, PAUSED, Lane, Snapshot
from evenflow.core.selection.order import DispatchClass
from evenflow.core.selection.rules import select
from evenflow.core.states import TaskEvent
from evenflow.scheduler import candidates as lanes_in_memory
from evenflow.scheduler.candidates import Candidates
from evenflow.scheduler.catalog import TaskPlace
from evenflow.scheduler.facts import Facts
from evenflow.scheduler.foresight import remember
from evenflow.scheduler.ledgers.dispatches import Dispatches
from evenflow.scheduler.ledgers.holds import Holds
from evenflow.scheduler.ledgers.moves import Moves, RunMoves
from evenflow.scheduler.timeouts import failing
from evenflow.store.scheduling import runs, selection
from evenflow.store.scheduling.tasks import Item


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
        """``resumes``: these tries resume."""
        used, limit_class, count = self.used, place.limit_class, len(items)
        holds = [*limit_class.limits, *lane.locals, *limit_class.share]
        used[limit_class.pool_limit] += count * limit_class.weight
        for limit in holds[1:]:
            used[limit] += count
        dispatch_class = DispatchClass.RESUME if resumes else DispatchClass.FIRST_START
        for item in items:
            item.try_number += not resumes
            self.dispatches.send(item, TaskEvent.GRANT, place, holds, run_priority=run_priority, dispatch_class=dispatch_class)
        self.count += count
        self.delays.append((max(0.0, self.facts.now_s - startable_at_s), count))


def swap(facts: Facts, moves: Moves, holds: Holds, starts: Starts, found: list[Candidates]) -> None:
    """Starts what it may; leaves the others."""
    if any(released > 0 for released in holds.released.values()):
        _start(facts, moves, holds, starts, [c for c in found if c.lane.parked_on == OPEN])


def leave(facts: Facts, moves: Moves, run_moves: RunMoves, starts: Starts, found: list[Candidates]) -> None:
    """Ready tasks that do not start become stored lanes, and released room that is not used becomes wakes, for the next round."""
    if left_over := [c for c in found if c.lane.ready]:
        dag_ids = {c.run.dag_id for c in left_over}
        # What is to be locked for a change is so at once: two that had shared it would wait for each other.
        if failed := failing(facts, run_moves):
            runs.lock_dags(facts.conn, dag_ids.union(dag_id for dag_id, _ in failed))
        paused = {dag_id for (dag_id,) in selection.keep_pauses(facts.conn, dag_ids).all()}
        for c in left_over:
            c.lane.parked_on = PAUSED if c.run.dag_id in paused and not c.lane.exempt else OPEN
        lanes_in_memory.store(facts, moves, left_over)
        run_moves.holds.wake([0])
    run_moves.holds.write_wakes(facts.conn, starts.used, facts.now_s)


def _start(facts: Facts, moves: Moves, holds: Holds, starts: Starts, candidates: list[Candidates]) -> None:
    own = {limit: room for limit, room in holds.released.items() if room > 0}
    candidates = [c for c in candidates if all(limit in own for limit in (*c.place.limit_class.limits, *c.lane.locals))]
    candidates = [c for c in candidates if c.place.limit_class.share_id is None]  # a round decides whose turn it is
    candidates = [c for c in candidates if c.lane.exempt or not facts.closes(c.place.limit_class)]
    if not candidates:
        return
    wanted = {limit for c in candidates for limit in (*c.place.limit_class.limits, *c.lane.locals)}
    waiting = facts.foresight.waited_for(facts.conn, wanted)
    remember(facts.catalog, {limit for c in candidates for limit in c.place.limit_class.limits})
    lanes: dict[int, list[Lane]] = defaultdict(list)
    for c in candidates:
        if waiting.isdisjoint((*c.place.limit_class.limits, *c.lane.locals)):
            lanes[c.lane.class_id].append(c.lane)
    limit_classes = {c.lane.class_id: c.place.limit_class for c in candidates}
    by_key = {c.lane.key: c for c in candidates}
    for lane, count in select(Snapshot(own, limit_classes, lanes)).grants:
        c = by_key[lane.key]
        starts.add_new(c, moves, count)
