"""The tasks that a round would start now, the next ones, and how many tasks wait for each cause."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from evenflow.contracts.rest.plan import BlockedTasks, LimitUse, Plan, PlannedLane, PlannedTask, WaitingLane
from evenflow.core.limits import LEASE_S
from evenflow.core.selection.lanes import PAUSED, LimitClass, blocking, full, kept
from evenflow.explaining.dry_round import DryRound, read_limit_classes
from evenflow.store.db.columns import numbers
from evenflow.store.db.connect import AsyncConn, Row
from evenflow.store.db.instant import one_instant, read
from evenflow.store.scheduling.lanes import StoredLane

LANES_COUNTED = 100_000  # waiting lanes that a plan counts; about 50 ms
GROUPS_COUNTED = 10_000  # (limit, limit class) that lanes wait for
NAMES_SHOWN = 5  # tasks of one lane that are named
TASKS_READ = 1_000  # of one lane, for their names
UNAPPLIED_COUNTED = 1_000  # reports, timers, pauses and runs that are not yet applied


class ResizedPool(NamedTuple):
    """A pool with other slots than it has."""

    name: str
    slots: int


async def read_plan(conn: AsyncConn, *, limit: int, scope: str | None = None, resized: ResizedPool | None = None) -> Plan:
    """Returns the first ``limit`` tasks that a round would start now, and what blocks the others; with ``resized`` what would
    follow if that pool, which exists, had these slots. Only DAGs in ``scope`` are included.
    """
    async with one_instant(conn):
        resizing: dict[int, int] = {}
        if resized is not None:
            (pool,) = await read(conn, "plan/find_pool", {"name": resized.name})
            resizing[pool["limit_id"]] = resized.slots - pool["capacity"]
        (unapplied,) = await read(conn, "plan/count_unapplied", {"counted": UNAPPLIED_COUNTED, "lease_s": LEASE_S})
        dry = await DryRound.decided(conn, resizing)
        if scope is not None:
            asked = {"run_keys": numbers({row.run_key for row in dry.stored.values()}), "scope": scope}
            dry.keep({row["run_key"] for row in await read(conn, "plan/find_runs", asked)})
        grants = dry.decision.grants
        groups = await read(conn, "plan/count_waiting", {"lanes": LANES_COUNTED, "groups": GROUPS_COUNTED, "scope": scope})
        best = {"limit": limit + len(grants), "groups": GROUPS_COUNTED, "scope": scope}
        next_ = [StoredLane(**row) for row in await read(conn, "plan/list_next", best)]
        unstarted = await _Unstarted.read(conn, dry, groups, next_, resizing)
        blocked = unstarted.group(groups)
        waiting = unstarted.waiting(next_)[:limit]
        names = _LaneNames(conn, dry, unstarted)
        schedulers = unapplied.pop("schedulers")
        return Plan(
            starting=sum(count for _, count in grants),
            starts=await names.of([(dry.stored[lane.key], count) for lane, count in grants[:limit]]),
            complete=not dry.decision.again,
            blocked=blocked[:limit],
            counted=sum(row["lanes"] for row in groups) < LANES_COUNTED and len(groups) < GROUPS_COUNTED and len(blocked) <= limit,
            waiting=[
                WaitingLane(
                    lane=named, by=None if cause.limit is None else unstarted.use(cause.limit), kept=cause.kept, closed=cause.closed
                )
                for named, (_, _, cause) in zip(
                    await names.of([(row, count) for row, count, _ in waiting], left=True), waiting, strict=True
                )
            ],
            unapplied=unapplied,
            schedulers=schedulers,
        )


class _WaitCause(NamedTuple):
    """Why tasks of a limit class wait: a ``limit``, a pool that is ``kept``, the pause of their DAG, or a ``closed`` object."""

    limit: int | None = None
    paused: bool = False
    kept: bool = False
    closed: str | None = None


@dataclass(slots=True)
class _Unstarted:
    """Tasks that do not start, and why, by the limits after the round."""

    dry: DryRound
    limit_classes: dict[int, LimitClass]
    limits: dict[int, Row]
    free: dict[int, int]

    @classmethod
    async def read(
        cls, conn: AsyncConn, dry: DryRound, groups: Sequence[Row], next_: Sequence[StoredLane], resizing: Mapping[int, int]
    ) -> _Unstarted:
        limit_classes = await read_limit_classes(
            conn, {*dry.snapshot.limit_classes, *(g["class_id"] for g in groups), *(row.class_id for row in next_)}
        )
        wanted = {limit for limit_class in limit_classes.values() for limit in limit_class.limits} | {
            g["parked_on"] for g in groups if g["parked_on"] > 0
        }
        wanted.update(limit for row in next_ for limit in row.locals)
        found = await read(conn, "why/read_limits", {"limits": numbers(wanted | dry.snapshot.free.keys())})
        limits = {row["limit_id"]: {**row, "capacity": row["capacity"] + resizing.get(row["limit_id"], 0)} for row in found}
        free = {limit: row["capacity"] - row["used"] for limit, row in limits.items()}
        return cls(dry, limit_classes, limits, {**free, **dry.snapshot.free})

    def use(self, limit: int) -> LimitUse:
        row = self.limits[limit]
        return LimitUse(limit=row["limit"], name=row["name"], capacity=row["capacity"], used=row["capacity"] - self.free[limit])

    def closed(self, limit_class: LimitClass) -> str | None:
        """Returns the object in this limit class that is closed for first starts, in words."""
        closures = self.dry.snapshot.closures
        if limit_class.executor_limit in closures.limits:
            return "the whole system"
        if limit_class.pool_limit in closures.limits:
            return f"pool {self.limits[limit_class.pool_limit]['name']}"
        return f"queue {limit_class.queue}" if limit_class.queue in closures.queues else None

    def group(self, groups: Sequence[Row]) -> list[BlockedTasks]:
        """Returns how many tasks wait for each limit, the largest number first."""
        dry = self.dry
        left: dict[tuple[int, int], int] = defaultdict(int, {(g["parked_on"], g["class_id"]): g["tasks"] for g in groups})
        for key, lane in dry.lanes.items():
            left[dry.stored[key].parked_on, lane.class_id] -= dry.stored[key].ready
            left[lane.parked_on, lane.class_id] += lane.ready
        tasks: dict[_WaitCause, int] = defaultdict(int)
        for (parked_on, class_id), count in left.items():
            tasks[self._cause(parked_on, self.limit_classes[class_id])] += max(0, count)
        ordered = sorted(((n, cause) for cause, n in tasks.items() if n), key=lambda item: -item[0])
        return [
            BlockedTasks(
                by=None if cause.limit is None else self.use(cause.limit),
                paused=cause.paused,
                kept=cause.kept,
                tasks=n,
                closed=cause.closed,
            )
            for n, cause in ordered
        ]

    def _cause(self, parked_on: int, limit_class: LimitClass) -> _WaitCause:
        if parked_on == PAUSED:
            return _WaitCause(paused=True)
        if (closed := self.closed(limit_class)) is not None:
            return _WaitCause(closed=closed)
        if parked_on > 0 and self.free[parked_on] < 1:
            return _WaitCause(parked_on)
        if limit_class.task_limit is not None and self.free[limit_class.task_limit] < 1:
            return _WaitCause(limit_class.task_limit)
        limit = full(limit_class, self.free, self.dry.snapshot.patience)
        if limit is None and self.free[limit_class.pool_limit] < limit_class.weight:
            limit = limit_class.pool_limit
        if limit is None and limit_class.pool_limit in self.dry.decision.reserved:
            return _WaitCause(limit_class.pool_limit, kept=True)
        return _WaitCause(limit)

    def waiting(self, next_: Sequence[StoredLane]) -> list[tuple[StoredLane, int, _WaitCause]]:
        """Returns lanes with the number of their tasks that are left, and what blocks them."""
        out: list[tuple[StoredLane, int, _WaitCause]] = []
        for row in next_:
            limit_class = self.limit_classes[row.class_id]
            lane = self.dry.lanes.get(row.lane_id) or row.as_lane(self.dry.now_s, limit_class.aging_s)
            if not lane.ready:
                continue
            limits = blocking(limit_class, lane, self.free)
            is_kept = not limits and kept(limit_class, lane, self.dry.decision.reserved)
            limit = limits[0] if limits else limit_class.pool_limit if is_kept else None
            closed = None if lane.exempt else self.closed(limit_class)
            out.append((row, lane.ready, _WaitCause(limit, kept=is_kept, closed=closed)))
        return out


@dataclass(slots=True)
class _LaneNames:
    conn: AsyncConn
    dry: DryRound
    unstarted: _Unstarted

    async def of(self, lanes: Sequence[tuple[StoredLane, int]], *, left: bool = False) -> list[PlannedLane]:
        """Returns this many tasks of each lane, with names: from its first on, or with ``left`` from the tasks that are
        left of it.
        """
        taken: dict[int, int] = defaultdict(int)
        skips: list[int] = []
        for row, count in lanes:
            skips.append(row.ready - count if left else taken[row.lane_id])
            taken[row.lane_id] += count
        params: dict[str, Any] = {
            "lanes": numbers(row.lane_id for row, _ in lanes),
            "counts": numbers(count for _, count in lanes),
            "skips": numbers(skips),
            "read": TASKS_READ,
            "named": NAMES_SHOWN,
            "scope": None,  # these lanes are in it
        }
        named: dict[int, list[Row]] = defaultdict(list)
        for found in await read(self.conn, "plan/name_lanes", params):
            named[found["place"]].append(found)
        return [self._lane(row, count, named[place]) for place, (row, count) in enumerate(lanes, 1)]

    def _lane(self, row: StoredLane, count: int, tasks: list[Row]) -> PlannedLane:
        limit_class = self.unstarted.limit_classes[row.class_id]
        return PlannedLane(
            dag_id=tasks[0]["dag_id"],
            run_id=tasks[0]["run_id"],
            count=count,
            tasks=[PlannedTask(task_id=task["task_id"], count=task["count"]) for task in tasks],
            pool=self.unstarted.limits[limit_class.pool_limit]["name"],
            pool_slots=limit_class.weight,
            queue=limit_class.queue,
            run_priority=row.run_priority,
            priority=row.priority,
        )
