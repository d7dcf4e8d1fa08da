"""The data of a selection round, and what may keep a lane from starting."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from evenflow.core.selection.order import Order
from evenflow.core.service_states import ALL_OPEN, Closures

# parked_on of a lane that is not parked on a limit
OPEN = 0
PAUSED = -1  # its DAG is paused
WOKEN = -2  # open, and others may be parked behind it


@dataclass(frozen=True, slots=True)
class LimitClass:
    """What distinguishes lanes beyond their run. ``weight`` is the number of pool slots of one task; ``base_id`` is the equal limit
    class without ``task_limit``. A task that has waited for ``aging_s`` seconds counts as one of a run with the next higher
    priority, once for each such time. ``share_id`` is the share of its tenant, where several share its pool or executor fairly.
    """

    class_id: int
    base_id: int
    pool_limit: int
    executor_limit: int
    queue: str
    weight: int
    task_limit: int | None = None
    aging_s: int | None = None
    share_id: int | None = None

    @property
    def limits(self) -> tuple[int, ...]:
        """The limits as a dispatch holds them: the pool first."""
        if self.task_limit is None:
            return (self.pool_limit, self.executor_limit)
        return (self.pool_limit, self.executor_limit, self.task_limit)

    @property
    def share(self) -> tuple[int, ...]:
        """What a dispatch holds of its tenant's share: its id, once for each slot."""
        return () if self.share_id is None else (self.share_id,) * self.weight


@dataclass(slots=True)
class Lane:
    """Ready tasks that no limit distinguishes. ``key`` is the caller's; ``locals`` are the limits of its run, narrowest first;
    ``exempt``: it also starts in a closed limit class.
    """

    key: int
    class_id: int
    order: Order
    locals: Sequence[int]
    ready: int
    parked_on: int = OPEN
    waited_s: float = 0.0
    exempt: bool = False


class Queue(NamedTuple):
    """The open lanes of a limit class or a base, or the woken ones among them; in a round, exempt lanes are a separate queue."""

    class_id: int  # if the queue is a base's, the limit class that names the base
    woken: bool
    exempt: bool = False


@dataclass(slots=True)
class Share:
    """A tenant's share of a scope: the slots that it holds, the end of its served time, and the scope's time, as read."""

    share_id: int
    scope_id: int  # the limit of the pool or executor
    weight: int
    held: int
    served: int
    time: int = 0


@dataclass(slots=True)
class Snapshot:
    """The data by which a round decides.

    ``free`` is capacity minus use for every limit of the lanes and limit classes here, with releases already added. ``open`` has
    the open and woken lanes of each limit class, in any order; ``horizon[queue]`` is the order up to which they are complete,
    absent when they are all there. ``parked[limit, base]`` has lanes parked there, best first, for every limit in ``released`` and
    every limit with room that a woken lane has; ``(limit, base) in parked_more`` says that there are more. ``patience`` has the
    pools that do not backfill, with the seconds for which a task that does not fit lets smaller ones pass there. In limit classes
    that ``closures`` close only exempt lanes start; every one that might start is in ``open``. ``by_base``: the queues are those of
    bases; ``limit_classes`` has the limit class that names each base. ``shares`` has the shares that limit classes name, and
    ``times`` the time of each of their scopes (:mod:`evenflow.core.selection.shares`).
    """

    free: dict[int, int]
    limit_classes: dict[int, LimitClass]
    open: dict[int, list[Lane]]
    horizon: dict[Queue, Order] = field(default_factory=dict)
    parked: dict[tuple[int, int], list[Lane]] = field(default_factory=dict)
    parked_more: set[tuple[int, int]] = field(default_factory=set)
    released: Collection[int] = ()
    patience: dict[int, float] = field(default_factory=dict)
    closures: Closures = ALL_OPEN
    shares: dict[int, Share] = field(default_factory=dict)
    times: dict[int, int] = field(default_factory=dict)
    by_base: bool = False

    def queue_of(self, lane: Lane) -> Queue:
        """Returns the queue of an open lane, apart from the separate queue of exempt lanes."""
        return Queue(self.limit_classes[lane.class_id].base_id if self.by_base else lane.class_id, lane.parked_on == WOKEN)

    def closed(self, limit_class: LimitClass) -> bool:
        """Returns whether no task starts for the first time in this limit class, however much room it has."""
        return self.closures.close(limit_class.pool_limit, limit_class.executor_limit, limit_class.queue)


def saturated(lane: Lane, limit_class: LimitClass, free: Mapping[int, int]) -> int | None:
    """Returns the witness: a limit of the task or the run without room, or None."""
    if limit_class.task_limit is not None and free[limit_class.task_limit] < 1:
        return limit_class.task_limit
    for limit in lane.locals:
        if free[limit] < 1:
            return limit
    return None


def full(limit_class: LimitClass, free: Mapping[int, int], patience: Mapping[int, float]) -> int | None:
    """Returns the full executor or pool that excludes the whole limit class, whatever its lanes, or None. A pool with some slots
    left, but too few for this limit class, does not count where a task may have to keep it.
    """
    if free[limit_class.executor_limit] < 1:
        return limit_class.executor_limit
    if free[limit_class.pool_limit] < (1 if limit_class.pool_limit in patience else limit_class.weight):
        return limit_class.pool_limit
    return None


def line_up(lanes: list[Lane]) -> None:
    """Lines up open lanes of one base, best first, that share the limit of a run: the first carries the wake of the others, which
    are parked behind it.
    """
    if len(lanes) > 1:
        lanes[0].parked_on = WOKEN
        for lane in lanes[1:]:
            lane.parked_on = lane.locals[-1]


def blocking(limit_class: LimitClass, lane: Lane, free: Mapping[int, int]) -> list[int]:
    """Returns every limit without room for a task of the lane: the witness first, then limits of its run, of the task, of many."""
    task = () if limit_class.task_limit is None else (limit_class.task_limit,)
    found = [limit for limit in (*lane.locals, *task, limit_class.executor_limit) if free[limit] < 1]
    if free[limit_class.pool_limit] < limit_class.weight:
        found.append(limit_class.pool_limit)
    return sorted(found, key=lambda limit: limit != lane.parked_on)


def kept(limit_class: LimitClass, lane: Lane, reserved: Mapping[int, Lane]) -> bool:
    """Returns whether the lane's pool keeps its room for a better lane."""
    keeper = reserved.get(limit_class.pool_limit)
    return keeper is not None and keeper.order < lane.order
