"""What would start next, in which order, and what blocks the rest: a round that is decided and not written."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedTask:
    task_id: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedLane:
    """``count`` tasks of one run that no limit tells apart; ``tasks`` names the first of them."""

    dag_id: str
    run_id: str
    count: int
    tasks: list[PlannedTask]
    pool: str
    pool_slots: int
    queue: str
    run_priority: int
    priority: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitUse:
    """How full a limit is. ``limit`` is its kind, as in :class:`why.FullLimit`."""

    limit: str
    name: str
    capacity: int
    used: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockedTasks:
    """This number of ready tasks waits for one limit. Where ``by`` is null their DAG is paused, something is ``closed`` for them,
    or only a round finds out.
    """

    by: LimitUse | None
    paused: bool
    kept: bool
    tasks: int
    closed: str | None  # the pool, the queue or the system, in words


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingLane:
    """Tasks that do not start, and the limit that blocks them; null where only a round finds out. ``kept``: it is a pool that
    has room, and keeps it for a bigger task.
    """

    lane: PlannedLane
    by: LimitUse | None
    kept: bool
    closed: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Limits are as they are once everything has started that this round starts. ``starts`` are the first of ``starting`` tasks, in
    the order in which they start. ``complete``: one round is enough to start all that can start. ``blocked``: what waits for which
    limit, all of it if ``counted``. ``waiting``: the next tasks as room appears. ``unapplied``: what is applied before a round and
    may change it, by kind.
    """

    starting: int
    starts: list[PlannedLane]
    complete: bool
    blocked: list[BlockedTasks]
    counted: bool
    waiting: list[WaitingLane]
    unapplied: dict[str, int]
    schedulers: int
