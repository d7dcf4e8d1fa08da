"""Lanes and limits as the database keeps them, what a round loads of them, what may happen to them, and the oracle: a scan of every
ready task in strict order.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace

from evenflow.core.selection.lanes import OPEN, PAUSED, WOKEN, Lane, LimitClass, Queue, Share, Snapshot, line_up
from evenflow.core.selection.order import order_key
from evenflow.core.selection.rules import Decision, select
from evenflow.core.service_states import ALL_OPEN, Closures

Kind = tuple[int, int, int, tuple[int, ...]]  # run, limit class, priority, local limits: what makes tasks interchangeable

ALL = 10**9  # lanes of a prefix that is the whole queue
EXECUTORS = (11, 12)
RUNS, TASKS, DAGS = 4, 4, 2
EXEMPT_PRIORITY = 2  # tasks of this priority go on where others may not start
QUEUES = ("default", "other")
CAPACITIES = (0, 1, 2, 4, 9)
MAPPED = 5_000


@dataclass(slots=True)
class Try:
    lane: Lane
    holds: list[tuple[int, int]]
    given_back: list[tuple[int, int]] = field(default_factory=list)  # while it is deferred


@dataclass(slots=True)
class Model:
    """``heads``: how many lanes of a queue a round loads. ``by_base``: whether the queues are those of bases.

    ``patience``: of pools that do not backfill.
    """

    heads: int = 3
    by_base: bool = False
    capacity: dict[int, int] = field(default_factory=dict)
    patience: dict[int, float] = field(default_factory=dict)
    limit_classes: dict[int, LimitClass] = field(default_factory=dict)
    used: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    lanes: dict[Kind, Lane] = field(default_factory=dict)  # with ready tasks
    kinds: dict[int, Kind] = field(default_factory=dict)  # by the key of a lane
    seen: list[Kind] = field(default_factory=list)  # that ever had some
    fresh: set[int] = field(default_factory=set)  # keys of lanes that became ready since the last round: in memory, always loaded
    paused: set[int] = field(default_factory=set)  # DAGs
    closed: set[int] = field(default_factory=set)  # pools and executors
    closed_queues: set[str] = field(default_factory=set)
    released: set[int] = field(default_factory=set)
    shares: dict[int, Share] = field(default_factory=dict)
    times: dict[int, int] = field(default_factory=dict)
    tries: list[Try] = field(default_factory=list)
    made: int = 0
    touched: int = 0
    moved: int = 0

    # -- limits --------------------------------------------------------------------------------------------------------

    def room(self, limit: int) -> int:
        return self.capacity[limit] - self.used[limit]

    def holds(self, lane: Lane) -> list[tuple[int, int]]:
        limit_class = self.limit_classes[lane.class_id]
        ones = (*limit_class.limits[1:], *lane.locals, *limit_class.share)
        return [(limit_class.pool_limit, limit_class.weight), *((k, 1) for k in ones)]

    def witnesses(self, lane: Lane) -> list[int]:
        """The limits that it can be parked on."""
        task_limit = self.limit_classes[lane.class_id].task_limit
        return [*lane.locals] if task_limit is None else [task_limit, *lane.locals]

    def take(self, holds: list[tuple[int, int]]) -> None:
        for limit, n in holds:
            self.used[limit] += n

    def give(self, holds: list[tuple[int, int]]) -> None:
        for limit, n in holds:
            self.used[limit] -= n
            self.released.add(limit)

    def set_capacity(self, limit: int, capacity: int) -> None:
        if capacity > self.capacity[limit]:
            self.released.add(limit)  # a raised one is a release; a lowered one tells nobody
        self.capacity[limit] = capacity

    # -- what happens --------------------------------------------------------------------------------------------------

    def add(self, kind: Kind, ready: int) -> None:
        """Tasks become ready: they join their lane, wherever it stands, or open a new one."""
        lane = self.lanes.get(kind)
        if lane is not None:
            lane.ready += ready
            return
        run, limit_class, priority, locals_ = kind
        self.made += 1
        order = order_key(run % 2, priority, run, self.made)
        exempt = priority == EXEMPT_PRIORITY
        parked_on = PAUSED if run % DAGS in self.paused and not exempt else OPEN
        lane = Lane(self.made, limit_class, order, locals_, ready, parked_on, exempt=exempt)
        self.lanes[kind] = lane
        self.kinds[lane.key] = kind
        self.seen.append(kind)
        self.fresh.add(lane.key)

    def remove(self, kind: Kind, count: int) -> None:
        """Tasks vanish without a start. A lane that empties so passes its wake on."""
        lane = self.lanes[kind]
        lane.ready -= min(count, lane.ready)
        if not lane.ready:
            del self.lanes[kind]
            self.released.update(self.witnesses(lane))

    def cancel(self, run: int) -> None:
        for kind in [k for k in self.lanes if k[0] == run]:
            self.remove(kind, self.lanes[kind].ready)

    def pause(self, dag: int) -> None:
        self.paused ^= {dag}
        for kind, lane in self.lanes.items():
            if kind[0] % DAGS == dag and not lane.exempt:
                lane.parked_on = PAUSED if dag in self.paused else OPEN
                self.released.update(self.witnesses(lane))

    def close(self, number: int) -> None:
        """A pool, an executor or a queue is closed, or open again. No lane changes."""
        limits = [*{limit_class.pool_limit for limit_class in self.limit_classes.values()}, *EXECUTORS]
        number, which = divmod(number, len(limits) + len(QUEUES))
        if which < len(limits):
            self.closed ^= {limits[which]}
        else:
            self.closed_queues ^= {QUEUES[which - len(limits)]}

    def in_closed(self, lane: Lane) -> bool:
        limit_class = self.limit_classes[lane.class_id]
        return (
            not self.closed.isdisjoint((limit_class.pool_limit, limit_class.executor_limit))
            or limit_class.queue in self.closed_queues
        )

    def finish(self, number: int, *, retry: bool = False) -> None:
        ended = self.tries.pop(number % len(self.tries))
        self.give(ended.holds)
        if retry:
            self.add(self.kind_of(ended.lane), 1)

    def defer(self, number: int) -> None:
        """A try that waits gives all but its pool slots back, and takes them again when it resumes: no limit refuses that."""
        one = self.tries[number % len(self.tries)]
        if one.given_back:
            self.take(one.given_back)
            one.holds, one.given_back = one.holds + one.given_back, []
        else:
            one.holds, one.given_back = one.holds[:1], one.holds[1:]
            self.give(one.given_back)

    def kind_of(self, lane: Lane) -> Kind:
        return self.kinds[lane.key]

    # -- rounds --------------------------------------------------------------------------------------------------------

    def parked(self) -> dict[tuple[int, int], list[Lane]]:
        """Stored lanes by the limit that they are parked on and their base, best first."""
        found: dict[tuple[int, int], list[Lane]] = defaultdict(list)
        for lane in self.stored():
            if lane.parked_on > 0:
                found[lane.parked_on, self.limit_classes[lane.class_id].base_id].append(lane)
        return found

    def stored(self) -> list[Lane]:
        return sorted((x for x in self.lanes.values() if x.key not in self.fresh), key=lambda x: x.order)

    def snapshot(self) -> Snapshot:
        heads, queues = self.heads, defaultdict(list)
        exempt = self._open_exempt()
        for lane in self.stored():
            if lane.parked_on in (OPEN, WOKEN) and not self.in_closed(lane):
                limit_class = self.limit_classes[lane.class_id]
                queues[Queue(limit_class.base_id if self.by_base else limit_class.class_id, lane.parked_on == WOKEN)].append(lane)
        loaded = [lane for lanes in queues.values() for lane in lanes[:heads]] + exempt
        woken = self.released | {k for lane in loaded if lane.parked_on == WOKEN for k in self.witnesses(lane)}
        parked = {key: lanes for key, lanes in self.parked().items() if key[0] in woken}
        released, self.released = self.released, set()
        opened: dict[int, list[Lane]] = defaultdict(list)
        for lane in [*loaded, *(x for x in self.lanes.values() if x.key in self.fresh and x.parked_on == OPEN)]:
            opened[lane.class_id].append(lane)
        return Snapshot(
            free={k: self.room(k) for k in self.capacity},
            limit_classes=self.limit_classes,
            open=opened,
            horizon={queue: lanes[heads - 1].order for queue, lanes in queues.items() if len(lanes) >= heads},
            parked={key: lanes[:heads] for key, lanes in parked.items()},
            parked_more={key for key, lanes in parked.items() if len(lanes) >= heads},
            released=released,
            patience=self.patience,
            closures=Closures(frozenset(self.closed), frozenset(self.closed_queues))
            if self.closed or self.closed_queues
            else ALL_OPEN,
            by_base=self.by_base,
            shares={k: replace(share, held=self.used[k]) for k, share in self.shares.items()},
            times=self.times,
        )

    def _open_exempt(self) -> list[Lane]:
        """Exempt lanes of closed limit classes, wherever they are parked, but for those whose witness is full."""
        found = []
        for lane in self.stored():
            if lane.exempt and self.in_closed(lane) and (lane.parked_on <= OPEN or self.room(lane.parked_on) > 0):
                lane.parked_on = min(lane.parked_on, OPEN)
                found.append(lane)
        return found

    def round(self, budget: int = 500, starts: int = ALL) -> Decision:
        """One round, written back. No first start may exceed a limit (R-ST1)."""
        snapshot = self.snapshot()
        decision = select(snapshot, budget=budget, starts=starts)
        for lane, count in decision.grants:
            holds = self.holds(lane)
            self.take([(limit, n * count) for limit, n in holds])
            assert all(self.room(limit) >= 0 for limit, _ in holds if limit in self.capacity), "a first start above a limit"
            self.tries += [Try(lane, list(holds)) for _ in range(count)]
        assert {k: share.held for k, share in snapshot.shares.items()} == {k: self.used[k] for k in self.shares}
        self.shares = snapshot.shares
        for kind, lane in list(self.lanes.items()):
            if lane.ready == 0:
                del self.lanes[kind]
        self.store_fresh(snapshot.free)
        self.fresh.clear()
        self.released |= decision.rewake
        self.touched += decision.touched
        self.moved += len(decision.moved)
        return decision

    def store_fresh(self, free: dict[int, int]) -> None:
        """What is born blocked is stored parked, what waits behind a better lane of its run and base behind that."""
        lines: dict[tuple[int, int], list[Lane]] = defaultdict(list)
        for lane in sorted(self.lanes.values(), key=lambda x: x.order):
            if lane.key in self.fresh and lane.parked_on == OPEN:
                limit_class = self.limit_classes[lane.class_id]
                if witness := next((k for k in lane.locals if free[k] < 1), None):
                    lane.parked_on = witness
                elif lane.locals:
                    lines[lane.locals[-1], limit_class.base_id].append(lane)
        for line in lines.values():
            line_up(line)

    def rounds(self, budget: int = 500, starts: int = ALL) -> dict[int, int]:
        """Rounds until one has nothing left to do; answers how many tasks of each lane started."""
        started: dict[int, int] = defaultdict(int)
        for _ in range(10_000):
            decision = self.round(budget, starts)
            for lane, count in decision.grants:
                started[lane.key] += count
            if not decision.again:
                return dict(started)
        raise AssertionError("rounds do not come to rest")

    # -- what must be so -----------------------------------------------------------------------------------------------

    def exhaustive(self) -> dict[int, int]:
        """What a scan of every ready task in strict order would start.

        A task that only its pool's slots keep back, while some are left, speaks for its base if it is the first such. If it has
        waited for the pool's patience, the scan is over for that pool.
        """
        room = {k: self.room(k) for k in self.capacity}
        out: dict[int, int] = defaultdict(int)
        closed: set[int] = set()
        spoken: set[int] = set()
        for lane in sorted(self.lanes.values(), key=lambda x: x.order):
            limit_class = self.limit_classes[lane.class_id]
            pool, others = limit_class.pool_limit, (*limit_class.limits[1:], *lane.locals)
            stands_still = lane.parked_on == PAUSED or (self.in_closed(lane) and not lane.exempt)
            for _ in range(0 if stands_still else lane.ready):
                if pool in closed or any(room[k] < 1 for k in others):
                    break
                if room[pool] < limit_class.weight:
                    if room[pool] > 0 and limit_class.base_id not in spoken and pool in self.patience:
                        spoken.add(limit_class.base_id)
                        if lane.waited_s >= self.patience[pool]:
                            closed.add(pool)
                    break
                for limit, n in self.holds(lane):
                    room[limit] -= n
                out[lane.key] += 1
        return dict(out)

    def stranded(self) -> list[Lane]:
        """Lanes that break the invariant of :mod:`evenflow.core.selection`."""
        woken = [lane for lane in self.lanes.values() if lane.parked_on == WOKEN]
        return [
            lane
            for (limit, base), lanes in self.parked().items()
            if self.room(limit) > 0
            for lane in lanes
            if not any(
                x.order < lane.order and limit in self.witnesses(x) and self.limit_classes[x.class_id].base_id == base
                for x in woken
            )
        ]


def small_model(pools: list[int], executors: list[int], *, heads: int, by_base: bool = False) -> Model:
    """Limit classes of every pool, executor and weight of 1 to 3; of each pool two with task limits of their own."""
    model = Model(heads, by_base)
    model.capacity.update(dict(enumerate(pools, 1)) | dict(zip(EXECUTORS, executors, strict=True)))
    for pool in range(1, len(pools) + 1):
        for executor in EXECUTORS:
            for weight in (1, 2, 3):
                n = len(model.limit_classes) + 1
                model.limit_classes[n] = LimitClass(n, n, pool, executor, QUEUES[weight == 3], weight)
                for own in (100, 200) if weight == 1 and executor == EXECUTORS[0] else ():
                    model.capacity[own + pool] = pool
                    model.limit_classes[len(model.limit_classes) + 1] = LimitClass(
                        len(model.limit_classes) + 1, n, pool, executor, "default", 1, own + pool
                    )
    return model


def happen(model: Model, what: str, number: int) -> None:
    """Something happens to the model; ``number`` chooses to whom."""
    match what:
        case "ready" | "mapped":
            number, run = divmod(number, RUNS)
            number, task = divmod(number, TASKS)
            number, limit_class = divmod(number, len(model.limit_classes))
            number, priority = divmod(number, 3)
            locals_ = _local_limits(model, run, task)
            model.add((run, limit_class + 1, priority, locals_), MAPPED if what == "mapped" else number % 4 + 1)
        case "clear" if model.seen:
            model.add(model.seen[number % len(model.seen)], number % 3 + 1)
        case "finish" | "retry" if model.tries:
            model.finish(number, retry=what == "retry")
        case "defer" if model.tries:
            model.defer(number)
        case "capacity":
            number, which = divmod(number, len(model.capacity))
            model.set_capacity(list(model.capacity)[which], CAPACITIES[number % len(CAPACITIES)])
        case "mark" if model.lanes:
            model.remove(list(model.lanes)[number % len(model.lanes)], number % 3 + 1)
        case "cancel":
            model.cancel(number % RUNS)
        case "pause":
            model.pause(number % DAGS)
        case "close":
            model.close(number)


def _local_limits(model: Model, run: int, task: int) -> tuple[int, ...]:
    """Narrowest first: of the task in the run, of the task across runs, of the run."""
    wanted = []
    if task % 2 == 0:
        wanted.append(1000 + run * 10 + task)
    if task % 3 == 0:
        wanted.append(2000 + task)
    if task < 3:
        wanted.append(3000 + run)
    for limit in wanted:
        model.capacity.setdefault(limit, 1 + limit % 3)
    return tuple(wanted)
