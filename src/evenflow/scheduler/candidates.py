"""Lanes that live in memory: what became ready in this transaction. Only what does not start in the same transaction is stored.

Deferred tasks that resume in the ordinary way have lanes of their own, one for each time at which such a task was first queued.
Their place in the order is that of the DAG's best task, and there before all first starts, of whatever run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from evenflow.core.flow.state import MappedTasks
from evenflow.core.model import UNMAPPED
from evenflow.core.selection.lanes import OPEN, PAUSED, Lane, line_up
from evenflow.core.selection.order import BEFORE_ALL_DATES_US, NEVER, NEWEST_RESUME, aged, order_key, same_priority
from evenflow.core.states import TaskEvent, TaskState
from evenflow.scheduler.catalog import TaskPlace
from evenflow.scheduler.facts import Facts, Run
from evenflow.scheduler.ledgers.moves import Moves, Offers
from evenflow.store.scheduling import selection
from evenflow.store.scheduling.lanes import StoredLane
from evenflow.store.scheduling.tasks import Item

RESUMES_FROM = -(1 << 60)  # ids of stored lanes of resumes count upwards from here

# run, limit class, priority, local limits, mapped task or UNMAPPED, whether exempt, and of resumes their date
LaneKey = tuple[int, int, int, tuple[int, ...], int, bool, int | None]


@dataclass(slots=True)
class Candidates:
    """Ready tasks that no limit tells apart, or the instances ``next_map_index .. end`` of a task that has just been expanded."""

    run: Run
    place: TaskPlace
    lane: Lane
    run_priority: int  # in the order, as is the date
    date_us: int
    resumes: bool  # tries that resume
    items: list[Item] = field(default_factory=list)
    mapped: int = UNMAPPED
    next_map_index: int = 0
    end: int = 0
    tries_before: int = 0  # of instances of a task that was cleared and expanded anew

    def as_old_as(self, row: StoredLane) -> bool:
        """Where lanes age, tasks join those of their own step."""
        return self.place.limit_class.aging_s is None or same_priority(self.lane.order, row.order_key)

    def take(self, moves: Moves, count: int) -> list[Item]:
        """The next ``count`` task instances."""
        if self.mapped == UNMAPPED:
            taken, self.items = self.items[:count], self.items[count:]
            return taken
        first = self.next_map_index
        self.next_map_index += count
        return [moves.new_item(self.run.run_key, self.mapped, i, self.tries_before) for i in range(first, first + count)]


def group(facts: Facts, offers: Offers, mapped: MappedTasks) -> dict[LaneKey, Candidates]:
    """Returns what became ready, as lanes. Lanes of a paused DAG are parked as such, except for resumes."""
    facts.catalog.load_run_limits(facts.conn, {i.run_key for i in offers.ready} | {x.run_key for x in mapped.changed if x.lane})
    out: dict[LaneKey, Candidates] = {}
    for item in offers.ready:
        candidates = _lane_of(
            facts,
            out,
            item.run_key,
            item.task_index,
            UNMAPPED,
            queued_at_s=offers.resuming.get(item.key),
            queue=offers.elsewhere.get(item.key),
        )
        candidates.items.append(item)
        candidates.lane.ready += 1
    for expansion in mapped.changed:
        if not expansion.lane:
            continue
        candidates = _lane_of(facts, out, expansion.run_key, expansion.task_index, expansion.task_index)
        candidates.end = candidates.lane.ready = expansion.length
        candidates.tries_before = expansion.tries_before
    return out


def _lane_of(
    facts: Facts,
    out: dict[LaneKey, Candidates],
    run_key: int,
    task_index: int,
    mapped: int,
    *,
    queued_at_s: float | None = None,
    queue: str | None = None,
) -> Candidates:
    """``queued_at_s``: of what resumes, when it was first queued. ``queue``: another one than the task's own."""
    run = facts.runs[run_key]
    place = facts.catalog.place(facts.conn, run.version, task_index, queue)
    resumed_us = None
    if queued_at_s is not None:
        place = replace(place, priority=run.graph.top_priority, exempt=True)
        resumed_us = round(queued_at_s * 1e6) - BEFORE_ALL_DATES_US
    limits = facts.catalog.run_limits(run_key)
    local: tuple[int, ...] = ()
    if limits:
        names = ("",) if place.run_limit is None else (place.run_limit, "")
        local = tuple(limits[name] for name in names if name in limits)
    key = (run_key, place.limit_class.class_id, place.priority, local, mapped, place.exempt, resumed_us)
    found = out.get(key)
    if found is None:
        last = (NEVER if resumed_us is None else NEWEST_RESUME) + len(out)
        date_us = run.run_after_us if resumed_us is None else resumed_us
        since_s = queued_at_s or run.ready_at_s or facts.now_s
        run_priority = aged(run.priority, place.limit_class.aging_s, since_s)
        order = order_key(run_priority, place.priority, date_us, last)
        parked_on = PAUSED if run.is_paused and not place.exempt else OPEN
        lane = Lane(-1 - len(out), place.limit_class.class_id, order, local, 0, parked_on, exempt=place.exempt)
        found = out[key] = Candidates(run, place, lane, run_priority, date_us, resumed_us is not None, mapped=mapped)
    return found


def store(facts: Facts, moves: Moves, lanes: Iterable[Candidates]) -> None:
    """Writes lanes that have tasks left."""
    lanes = [c for c in lanes if c.lane.ready]
    _line_up(lanes)
    rows: list[StoredLane] = []
    bases: list[int] = []
    ready: list[tuple[int, int, int]] = []
    for c in lanes:
        lane_id, since_s = facts.catalog.lane_ids.take(facts.conn), c.run.ready_at_s
        if c.resumes:
            lane_id += RESUMES_FROM
            since_s = min(moves.offers.resuming[item.key] for item in c.items)
        rows.append(
            StoredLane(
                lane_id,
                c.place.limit_class.class_id,
                c.run.run_key,
                c.run.priority,
                c.place.priority,
                order_key(c.run_priority, c.place.priority, c.date_us, lane_id),
                list(c.lane.locals),
                c.lane.ready,
                None if c.mapped == UNMAPPED else c.mapped,
                c.next_map_index,
                c.end,
                c.lane.parked_on,
                since_s,
                c.tries_before,
                c.lane.exempt,
            )
        )
        bases.append(c.place.limit_class.base_id)
        ready += schedule(moves, lane_id, c.items)
    if rows:
        selection.insert_lanes(facts.conn, rows, bases)
    if ready:
        selection.insert_ready(facts.conn, ready)


def line_up_new(candidates: Iterable[Candidates]) -> dict[tuple[int, int], list[Lane]]:
    """What of new runs waits behind a better lane of its run from the beginning, by (limit, base), best first. Of an older run,
    stored lanes may come between.
    """
    return {key: lanes[1:] for key, lanes in _line_up(c for c in candidates if c.run.new).items()}


def _line_up(candidates: Iterable[Candidates]) -> dict[tuple[int, int], list[Lane]]:
    """Where several open lanes of a run share a limit, all but the best wait behind it. All, by (limit, base), best first."""
    lines: dict[tuple[int, int], list[Lane]] = defaultdict(list)
    for c in candidates:
        if c.lane.parked_on == OPEN and c.lane.locals:
            lines[c.lane.locals[-1], c.place.limit_class.base_id].append(c.lane)
    for lanes in lines.values():
        lanes.sort(key=lambda lane: lane.order)
        line_up(lanes)
    return lines


def schedule(moves: Moves, lane_id: int, items: list[Item]) -> list[tuple[int, int, int]]:
    """The rows of ``ready_task`` for task instances that wait in a stored lane."""
    for item in items:
        if item.state is not TaskState.SCHEDULED:  # it is scheduled already when only its lane was deleted
            moves.apply(item, TaskEvent.READY)
    return [(lane_id, item.task_index, item.map_index) for item in items]
