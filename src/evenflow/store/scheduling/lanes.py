"""What a round asks for (:mod:`evenflow.core.selection.loading`), as statements, and what their rows mean."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from evenflow.core.asking import Question
from evenflow.core.limits import LANES_PER_ROUND, LEAST_HEADS, MOST_EXEMPT, MOST_HEADS, MOST_LIMIT_CLASSES
from evenflow.core.selection import loading
from evenflow.core.selection.lanes import OPEN, WOKEN, Lane, LimitClass, Share
from evenflow.core.selection.loading import OPEN_AHEAD, PARKED_AHEAD, Ahead
from evenflow.core.selection.order import Order, present
from evenflow.core.service_states import Closures
from evenflow.store.db.columns import numbers, texts


class StoredLane(NamedTuple):
    lane_id: int
    class_id: int
    run_key: int
    run_priority: int
    priority: int
    order_key: Order
    locals: list[int]
    ready: int
    task_index: int | None  # the mapped task whose untouched instances it stands for
    next_map_index: int
    end_map_index: int
    parked_on: int
    since_s: float  # when the first of its tasks became ready, seconds since 1970
    tries_before: int  # of its untouched instances, when their task was cleared and expanded anew
    exempt: bool  # resumes, clean-up and callbacks: they start where first starts may not

    def as_lane(self, now_s: float, aging_s: int | None = None) -> Lane:
        """As the core sees it, ``now_s`` in seconds since 1970; with the ``aging_s`` of its limit class in its present order."""
        waited_s = now_s - self.since_s
        order = self.order_key if aging_s is None else present(self.order_key, aging_s, now_s)
        return Lane(self.lane_id, self.class_id, order, self.locals, self.ready, self.parked_on, waited_s, self.exempt)

    @property
    def resumes(self) -> bool:
        """Returns whether it has running tries."""
        return self.lane_id < 0


class LimitRoom(NamedTuple):
    limit_id: int
    free: int  # capacity minus use
    patience_s: float | None  # of a pool that does not backfill
    released_at_s: float  # when it last had more room than before, seconds since 1970
    run_key: int  # 0 unless it is of a run


class OpenClasses(NamedTuple):
    classes: int


class Statement(NamedTuple):
    """``kind``: what its rows are."""

    name: str
    params: dict[str, Any]
    kind: type[StoredLane | LimitRoom | LimitClass | OpenClasses | Share]


def statement_of(question: Question[Any]) -> Statement:
    match question:
        case loading.CountOpenClasses():
            return Statement("selection/count_open_classes", {"most": MOST_LIMIT_CLASSES + 1}, OpenClasses)
        case loading.FindHeads(released, closures, by_base):
            freed = {"limits": numbers(released), "released": numbers(released.values())}
            params = {**freed, **_ahead(OPEN_AHEAD), **_closed(closures)}
            if by_base:
                return Statement("selection/read_heads_of_bases", params, StoredLane)
            return Statement("selection/read_heads", {**params, "limit_classes": MOST_LIMIT_CLASSES}, StoredLane)
        case loading.FindExempt(released, closures):
            params = {"released": numbers(released), "limit": MOST_EXEMPT, **_closed(closures)}
            return Statement("states/read_exempt", params, StoredLane)
        case loading.FindParked(limits):
            return Statement("selection/read_parked", {"limits": numbers(limits), **_ahead(PARKED_AHEAD)}, StoredLane)
        case loading.FindMore(queue, by_base, seen):
            params = {"parked_on": WOKEN if queue.woken else OPEN, "queue": queue.class_id, "seen": seen, "limit": MOST_HEADS}
            return Statement("selection/read_more_of_base" if by_base else "selection/read_more", params, StoredLane)
        case loading.FindRoom(limits):
            return Statement("selection/read_limits", {"limits": numbers(limits), "of_locked": False}, LimitRoom)
        case loading.FindShares(share_ids):
            return Statement("selection/read_shares", {"shares": numbers(share_ids)}, Share)
        case loading.FindLimitClasses(class_ids):
            return Statement("selection/read_limit_classes", {"limit_classes": numbers(class_ids)}, LimitClass)
        case _:
            raise TypeError(f"No statement answers {question}.")


@dataclass(slots=True)
class Read:
    """What one round has read, by id: ``rows`` as they are stored, ``lanes`` as the round changes them."""

    now_s: float  # seconds since 1970
    rows: dict[int, StoredLane] = field(default_factory=dict)
    lanes: dict[int, Lane] = field(default_factory=dict)
    room: dict[int, LimitRoom] = field(default_factory=dict)

    def adopt(self, row: StoredLane) -> Lane:
        """The lane, which is the same whenever it is read again."""
        lane = self.lanes.get(row.lane_id)
        if lane is None:
            lane = row.as_lane(self.now_s)
            self.lanes[row.lane_id], self.rows[row.lane_id] = lane, row
        return lane

    def answer(self, question: Question[Any], rows: Iterable[Any]) -> None:
        """With the rows of its statement."""
        match question:
            case loading.CountOpenClasses():
                ((question.answer,),) = rows
            case loading.FindParked():
                question.answer = [(row.parked_on, self.adopt(row)) for row in rows]
            case loading.FindRoom():
                self.room.update((row.limit_id, row) for row in rows)
                question.answer = [self.room[limit][:3] for limit in question.limits if limit in self.room]
            case loading.FindLimitClasses() | loading.FindShares():
                question.answer = rows
            case _:
                question.answer = [self.adopt(row) for row in rows]


def _ahead(ahead: Ahead) -> Mapping[str, int]:
    return {"least": LEAST_HEADS, "most": ahead.most, "lanes": LANES_PER_ROUND}


def _closed(closures: Closures) -> dict[str, str]:
    return {"closed": numbers(closures.limits), "closed_queues": texts(closures.queues)}
