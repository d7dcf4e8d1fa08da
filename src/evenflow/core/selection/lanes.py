"""What a round of selection decides from, and what may keep a lane from starting."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from evenflow.core.selection.order import Order
from evenflow.core.service_states import ALL_OPEN, Closures

# parked_on of a lane that is parked on no limit
OPEN = 0
PAUSED = -1  # its DAG is paused
WOKEN = -2  # open, and others may be parked behind it


@dataclass(frozen=True, slots=True)
class LimitClass:
    """What tells lanes apart beyond their run. ``weight`` is the number of pool slots that one task takes; ``base_id`` is the limit
    class that is the same without ``task_limit``. ``aging_s``: for every so many seconds that a task has waited, it counts as one
    of a run with the next higher priority. ``share_id``: the share of its tenant, where several share its pool or executor fairly.
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
        """Its limits, as a dispatch holds them: the pool first."""
        if self.task_limit is None:
            return (self.pool_limit, self.executor_limit)
        return (self.pool_limit, self.executor_limit, self.task_limit)

    @property
    def share(self) -> tuple[int, ...]:
        """What a dispatch holds of its tenant's share: its id once a slot."""
        return () if self.share_id is None else (self.share_id,) * self.weight


@dataclass(slots=True)
class Lane:
    """Ready tasks that no limit tells apart. ``key`` is the caller's; ``locals`` are the limits of its run, narrowest first;
    ``exempt``: it starts in a closed limit class, too.
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
    """The open lanes of a limit class or a base, or those of them that are woken; in a round, those that are exempt apart."""

    class_id: int  # where the queue is a base's, the limit class that the base is named by
    woken: bool
    exempt: bool = False


@dataclass(slots=True)
class Share:
    """What a tenant has of a scope: the slots that it holds, and when what it was served ends; and the scope's time, as read."""

    share_id: int
    scope_id: int  # the limit of the pool or executor
    weight: int
    held: int
    served: int
    time: int = 0


@dataclass(slots=True)
class Snapshot:
    """What a round decides from.

    ``free`` is capacity minus use for every limit that any lane or limit class here refers to, releases already added. ``open`` has
    the open and woken lanes of each limit class, in any order; ``horizon[queue]`` is the order up to which they are complete,
    absent when they are complete. ``parked[limit, base]`` has lanes parked there, best first, for every limit in ``released`` and
    every limit with room that a woken lane has; ``(limit, base) in parked_more`` says that there are more. ``patience`` has the
    pools that do not backfill, and for how many seconds a task that does not fit lets smaller ones pass there. In limit
    classes that ``closures`` close only exempt lanes start; every one that might start is in ``open``. ``by_base``: the queues are
    those of bases; ``limit_classes`` has the limit class that names each base. ``shares`` has those that limit classes name, and
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
        """Where it stands while it is open; not of those that are exempt apart."""
        return Queue(self.limit_classes[lane.class_id].base_id if self.by_base else lane.class_id, lane.parked_on == WOKEN)

    def closed(self, limit_class: LimitClass) -> bool:
        """Whether nothing starts for the first time there, however much room there is."""
        return self.closures.close(limit_class.pool_limit, limit_class.executor_limit, limit_class.queue)


def saturated(lane: Lane, limit_class: LimitClass, free: Mapping[int, int]) -> int | None:
    """The witness: a limit of the task or the run that has no room, or None."""
    if limit_class.task_limit is not None and free[limit_class.task_limit] < 1:
        return limit_class.task_limit
    for limit in lane.locals:
        if free[limit] < 1:
            return limit
    return None


def full(limit_class: LimitClass, free: Mapping[int, int], patience: Mapping[int, float]) -> int | None:
    """The executor or pool for which the whole limit class is out, its lanes unseen, or None. A pool that some slots are left of,
    but too few for this limit class, does not count where somebody may have to keep it.
    """
    if free[limit_class.executor_limit] < 1:
        return limit_class.executor_limit
    if free[limit_class.pool_limit] < (1 if limit_class.pool_limit in patience else limit_class.weight):
        return limit_class.pool_limit
    return None


def line_up(lanes: list[Lane]) -> None:
    """Of open lanes of one base, best first, that share the limit of a run: the first carries the wake of the others, which are
    parked behind it.
    """
    if len(lanes) > 1:
        lanes[0].parked_on = WOKEN
        for lane in lanes[1:]:
            lane.parked_on = lane.locals[-1]


def blocking(limit_class: LimitClass, lane: Lane, free: Mapping[int, int]) -> list[int]:
    """Every limit that has no room for a task of the lane: the witness first, then limits of its run, of the task, of many."""
    task = () if limit_class.task_limit is None else (limit_class.task_limit,)
    found = [limit for limit in (*lane.locals, *task, limit_class.executor_limit) if free[limit] < 1]
    if free[limit_class.pool_limit] < limit_class.weight:
        found.append(limit_class.pool_limit)
    return sorted(found, key=lambda limit: limit != lane.parked_on)


def kept(limit_class: LimitClass, lane: Lane, reserved: Mapping[int, Lane]) -> bool:
    """Whether its pool keeps its room for a better lane."""
    keeper = reserved.get(limit_class.pool_limit)
    return keeper is not None and keeper.order < lane.order
