"""Where a ready task waits: the limits that are full for it, their holders, its place in line, and closed objects."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from evenflow.core.callbacks import CALLBACK_DAG
from evenflow.core.selection.lanes import LimitClass, blocking, kept
from evenflow.core.service_states import ObjectKind, ServiceState
from evenflow.core.why import HOLDERS_NAMED, LINE_COUNTED, Ages, FullLimit, Holder, KeptPool, OutOfService, SharedSlots, WhyNot
from evenflow.explaining.dry_round import DryRound, read_limit_classes
from evenflow.store.db.columns import numbers
from evenflow.store.db.connect import AsyncConn, Row
from evenflow.store.db.instant import read
from evenflow.store.scheduling.lanes import StoredLane
from evenflow.store.serving.states import list_closing


async def explain_limits(conn: AsyncConn, run_key: int, task_index: int, map_index: int, scope: str | None) -> list[WhyNot]:
    """Returns what keeps a ready task instance in its lane. Empty if the next round starts it."""
    place = {"run_key": run_key, "task_index": task_index, "map_index": map_index, "counted": LINE_COUNTED}
    found = await read(conn, "why/find_lane", place)
    if not found:
        return []
    before = found[0].pop("ahead")
    row = StoredLane(**found[0])
    dry = await DryRound.decided(conn)  # only this shows which pools are kept
    limit_class = (await read_limit_classes(conn, [row.class_id]))[row.class_id]
    lane = row.as_lane(dry.now_s, limit_class.aging_s)
    limits = {
        x["limit_id"]: x for x in await read(conn, "why/read_limits", {"limits": numbers([*limit_class.limits, *row.locals])})
    }
    line = _PlaceInLine(conn, row, limit_class, limits, before, dry, scope)
    full = blocking(limit_class, lane, {limit: x["capacity"] - x["used"] for limit, x in limits.items()})
    reasons = [] if row.exempt else await holding_starts(conn, limits[limit_class.pool_limit]["name"], limit_class.queue)
    reasons += await line.full(full)
    if limit_class.pool_limit not in full and kept(limit_class, lane, dry.decision.reserved):
        reasons.append(await line.kept())
    if reasons:
        reasons += await line.beside_the_order()
    return reasons


@dataclass(slots=True)
class _PlaceInLine:
    conn: AsyncConn
    row: StoredLane
    limit_class: LimitClass
    limits: dict[int, Row]
    before: int  # tasks of its lane that start before it
    dry: DryRound
    scope: str | None  # only holders in it are named

    async def full(self, full: Sequence[int]) -> list[WhyNot]:
        held = await self._holders(full)
        out: list[WhyNot] = []
        for limit in full:
            facts = self.limits[limit]
            out.append(
                FullLimit(
                    limit=facts["limit"],
                    name=facts["name"],
                    capacity=facts["capacity"],
                    used=facts["used"],
                    wanted=self.limit_class.weight if limit == self.limit_class.pool_limit else 1,
                    **await self._place(limit),
                    **held[limit],
                )
            )
        return out

    async def kept(self) -> WhyNot:
        pool, dry = self.limit_class.pool_limit, self.dry
        keeper = dry.stored[dry.decision.reserved[pool].key]
        facts = self.limits[pool]
        named = {"lanes": numbers([keeper.lane_id]), "counts": numbers([1]), "skips": numbers([0]), "read": 1, "named": 1}
        found = await read(self.conn, "plan/name_lanes", {**named, "scope": self.scope})
        name = found[0] if found else dict.fromkeys(("dag_id", "run_id", "task_id"), "...")  # outside this scope
        held = await self._holders([pool])
        return KeptPool(
            name=facts["name"],
            capacity=facts["capacity"],
            used=facts["used"],
            patience_s=facts["patience_s"],
            dag_id=name["dag_id"],
            run_id=name["run_id"],
            task_id=name["task_id"],
            wanted=dry.snapshot.limit_classes[keeper.class_id].weight,
            waited_s=dry.now_s - keeper.since_s,
            **await self._place(pool),
            **held[pool],
        )

    async def beside_the_order(self) -> list[WhyNot]:
        """Returns the reasons beside the order that decide when it is next."""
        found: list[WhyNot] = []
        if self.limit_class.share_id is not None:
            rows = await read(self.conn, "why/read_share", {"share_id": self.limit_class.share_id})
            found += [SharedSlots(limit=row.pop("kind"), **row) for row in rows]
        if self.limit_class.aging_s is not None:
            found.append(Ages(waited_s=self.dry.now_s - self.row.since_s, aging_s=self.limit_class.aging_s))
        return found

    async def _place(self, limit: int) -> dict[str, Any]:
        row = self.row
        params = {
            "order_key": row.order_key,
            "limit_id": limit,
            "counted": LINE_COUNTED,
            "kept": numbers(self.dry.decision.reserved),
        }
        if limit in row.locals:
            (found,) = await read(self.conn, "why/count_ahead_in_run", {**params, "run_key": row.run_key})
        else:
            (found,) = await read(self.conn, "why/count_ahead", params)
        ahead = found["ahead"] + self.before
        return {"ahead": min(ahead, LINE_COUNTED), "counted": ahead < LINE_COUNTED}

    async def _holders(self, limits: Sequence[int]) -> defaultdict[int, dict[str, Any]]:
        """Returns by limit: ``held_by``, how many of them are ``unclaimed``, and the first ``holders``."""
        held: defaultdict[int, dict[str, Any]] = defaultdict(lambda: {"held_by": 0, "unclaimed": 0, "holders": []})
        for row in await read(
            self.conn, "why/list_holders", {"limits": numbers(limits), "named": HOLDERS_NAMED, "scope": self.scope}
        ):
            entry = held[row.pop("limit_id")]
            entry |= {name: row.pop(name) for name in ("held_by", "unclaimed")}
            entry["holders"].append(Holder(**row))
        return held


async def holding_runs(conn: AsyncConn, dag_id: str, *, is_paused: bool) -> list[WhyNot]:
    """Returns why no run of the DAG begins, except for its pause."""
    if dag_id == CALLBACK_DAG:
        return []
    found = await _found(conn, dag_id, None, lambda _, state: not state.begins_runs())
    return [reason for reason in found if not (is_paused and reason.what == ObjectKind.DAG)]


async def holding_starts(conn: AsyncConn, pool: str, queue: str) -> list[WhyNot]:
    """Returns why no task starts for the first time in this pool and on this queue."""
    return [*await _found(conn, None, (pool, queue), lambda kind, state: not state.starts_tasks(kind))]


async def holding_tries(conn: AsyncConn, dag_id: str, pool: str, queue: str) -> list[WhyNot]:
    """Returns why no worker gets tries, including resumes."""
    return [*await _found(conn, dag_id, (pool, queue), lambda _, state: not state.resumes())]


async def _found(
    conn: AsyncConn, dag_id: str | None, place: tuple[str, str] | None, holds: Callable[[ObjectKind, ServiceState], bool]
) -> list[OutOfService]:
    objects = [(ObjectKind.DAG, dag_id)] if dag_id is not None else []
    if place is not None:
        objects += [(ObjectKind.POOL, place[0]), (ObjectKind.QUEUE, place[1])]
    return [
        OutOfService(what=row["kind"], name=row["name"], state=row["state"], since=row["since"], actor=row["actor"])
        for row in await list_closing(conn, objects)
        if holds(ObjectKind(row["kind"]), ServiceState(row["state"]))
    ]
