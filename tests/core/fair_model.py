"""Fair shares by a naive scan: of everything that could start now, one task after the other."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from fractions import Fraction

from evenflow.core.selection.lanes import Lane, Share
from tests.core.selection_model import PAUSED, Model, small_model

SHARES_FROM = 10_000


def shared_model(
    pools: list[int], executors: list[int], weights: list[int], fair: list[int], *, heads: int, by_base: bool
) -> Model:
    """The limit classes of a small model, once for each tenant. ``fair`` are the pools and executors that tenants share, a pool
    before its executor; each has a tenant for each of ``weights``.
    """
    model = small_model(pools, executors, heads=heads, by_base=by_base)
    plain, model.limit_classes = list(model.limit_classes.values()), {}
    numbers: dict[tuple[int, int], int] = {}
    for limit_class in plain:
        scope = next((k for k in (limit_class.pool_limit, limit_class.executor_limit) if k in fair), None)
        for tenant, weight in enumerate([1] if scope is None else weights):
            n = numbers[limit_class.class_id, tenant] = 1 + len(model.limit_classes)
            share_id = None
            if scope is not None:
                share_id = SHARES_FROM + scope * 100 + tenant
                model.shares.setdefault(share_id, Share(share_id, scope, weight, 0, 0))
                model.times[scope] = 0
            base_id = numbers[limit_class.base_id, tenant]
            model.limit_classes[n] = replace(limit_class, class_id=n, base_id=base_id, share_id=share_id)
    return model


@dataclass
class Served:
    """What the scan remembers from one to the next, of shares and scopes."""

    ends: Counter[int] = field(default_factory=Counter)
    times: Counter[int] = field(default_factory=Counter)


def scan(model: Model, served: Served) -> list[int]:
    """The lanes of the tasks that start, in turn. The model does not change."""
    room = {k: model.room(k) for k in model.capacity}
    held = {k: Fraction(model.used[k], share.weight) for k, share in model.shares.items()}
    ready = {lane.key: lane.ready for lane in model.lanes.values()}
    kept: set[int] = set()  # pools
    passed: set[int] = set()  # bases that have spoken
    started: list[int] = []

    def waits_for_slots_alone(lane: Lane) -> bool:
        limit_class = model.limit_classes[lane.class_id]
        return 0 < room[limit_class.pool_limit] < limit_class.weight and limit_class.pool_limit in model.patience

    def may_come_up(lane: Lane) -> bool:
        limit_class = model.limit_classes[lane.class_id]
        others = (*limit_class.limits[1:], *lane.locals)
        if not ready[lane.key] or lane.parked_on == PAUSED or (model.in_closed(lane) and not lane.exempt):
            return False
        if limit_class.pool_limit in kept or limit_class.base_id in passed or any(room[k] < 1 for k in others):
            return False
        return room[limit_class.pool_limit] >= limit_class.weight or waits_for_slots_alone(lane)

    def begin(share_id: int) -> int:
        return max(served.ends[share_id], served.times[model.shares[share_id].scope_id])

    while True:
        by_scope: dict[int | None, list[Lane]] = defaultdict(list)
        for lane in model.lanes.values():
            if may_come_up(lane):
                share_id = model.limit_classes[lane.class_id].share_id
                by_scope[None if share_id is None else model.shares[share_id].scope_id].append(lane)
        if not by_scope:
            return started
        first = [min(by_scope.pop(None), key=lambda x: x.order)] if None in by_scope else []
        for lanes in by_scope.values():
            shares = {lane.key: model.limit_classes[lane.class_id].share_id or 0 for lane in lanes}
            first.append(min(lanes, key=lambda x: (held[shares[x.key]], begin(shares[x.key]), x.order)))
        lane = min(first, key=lambda x: x.order)
        limit_class = model.limit_classes[lane.class_id]
        if waits_for_slots_alone(lane):
            passed.add(limit_class.base_id)
            if lane.waited_s >= model.patience[limit_class.pool_limit]:
                kept.add(limit_class.pool_limit)
            continue
        room[limit_class.pool_limit] -= limit_class.weight
        for limit in (*limit_class.limits[1:], *lane.locals):
            room[limit] -= 1
        ready[lane.key] -= 1
        started.append(lane.key)
        if (share_id := limit_class.share_id) is not None:
            share = model.shares[share_id]
            served.times[share.scope_id] = begin(share_id)
            served.ends[share_id] = served.times[share.scope_id] + limit_class.weight * 1_000_000 // share.weight
            held[share_id] += Fraction(limit_class.weight, share.weight)
