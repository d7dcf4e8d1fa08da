"""The round against an exhaustive greedy scan, on random workloads with queues that are loaded a few lanes at a time."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

import pytest

from evenflow.core.selection import OPEN, PAUSED, Lane, Node, Snapshot, saturated, select

HEADS = 3  # far fewer than lanes, so that prefixes end all the time


@dataclass
class Store:
    """Lanes and limits as the database keeps them, with what a round has to load."""

    capacity: dict[int, int] = field(default_factory=dict)
    used: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    nodes: dict[int, Node] = field(default_factory=dict)
    lanes: dict[int, Lane] = field(default_factory=dict)
    released: set[int] = field(default_factory=set)

    def room(self, limit: int) -> int:
        return self.capacity[limit] - self.used[limit]

    def room_of(self, lane: Lane) -> int:
        """How many of the lane's tasks the limits let start."""
        node = self.nodes[lane.node_id]
        return min(self.room(node.pool_limit) // node.weight, self.room(node.executor_limit), *(self.room(k) for k in lane.locals))

    def holds(self, lane: Lane) -> list[tuple[int, int]]:
        node = self.nodes[lane.node_id]
        return [(node.pool_limit, node.weight), (node.executor_limit, 1), *((k, 1) for k in lane.locals)]

    def use(self, lane: Lane, count: int) -> None:
        for limit, weight in self.holds(lane):
            self.used[limit] += weight * count

    def release(self, lane: Lane) -> None:
        self.use(lane, -1)
        self.released.update(lane.locals)

    def close(self, lane: Lane) -> None:
        """An operator takes the lane away: its wake passes on."""
        del self.lanes[lane.key]
        self.released.update(lane.locals)

    def queue(self, node_id: int, parked_on: int) -> list[Lane]:
        return sorted(
            (x for x in self.lanes.values() if x.node_id == node_id and x.parked_on == parked_on and x.ready),
            key=lambda x: x.order,
        )

    def snapshot(self) -> Snapshot:
        opened = {n: self.queue(n, OPEN) for n in self.nodes}
        woken = self.released | {k for ls in opened.values() for x in ls[:HEADS] for k in x.locals}
        parked = {(k, n): ls for k in woken for n in self.nodes if (ls := self.queue(n, k))}
        self.released.clear()
        return Snapshot(
            free={k: self.room(k) for k in self.capacity},
            nodes=self.nodes,
            open={n: ls[:HEADS] for n, ls in opened.items()},
            horizon={n: ls[HEADS - 1].order for n, ls in opened.items() if len(ls) >= HEADS},
            parked={key: ls[:HEADS] for key, ls in parked.items()},
            parked_more={key for key, ls in parked.items() if len(ls) >= HEADS},
        )

    def rounds(self, budget: int) -> dict[int, int]:
        """Rounds until one has nothing left to do; answers how many tasks of each lane started."""
        started: dict[int, int] = defaultdict(int)
        for _ in range(10_000):
            decision = select(self.snapshot(), budget=budget)
            for lane, count in decision.grants:
                started[lane.key] += count
                self.use(lane, count)
            self.released |= decision.rewake
            if not decision.again:
                return dict(started)
        raise AssertionError("rounds do not come to rest")

    def exhaustive(self, lanes: Iterable[Lane] | None = None) -> dict[int, int]:
        """What a scan of every ready task in strict order would start."""
        room = {k: self.room(k) for k in self.capacity}
        out: dict[int, int] = defaultdict(int)
        for lane in sorted(self.lanes.values() if lanes is None else lanes, key=lambda x: x.order):
            if lane.parked_on == PAUSED:
                continue
            for _ in range(lane.ready):
                if all(room[limit] >= weight for limit, weight in self.holds(lane)):
                    for limit, weight in self.holds(lane):
                        room[limit] -= weight
                    out[lane.key] += 1
        return dict(out)

    def check_invariant(self) -> None:
        """Every lane with ready tasks is open, paused, parked on a full limit, or behind a better open lane of its node and
        limit.
        """
        for lane in self.lanes.values():
            if lane.ready and lane.parked_on not in (OPEN, PAUSED) and self.room(lane.parked_on) > 0:
                assert any(x.order < lane.order and lane.parked_on in x.locals for x in self.queue(lane.node_id, OPEN)), (
                    f"lane {lane.key} is stranded on limit {lane.parked_on}"
                )


def random_store(r: random.Random) -> Store:
    store = Store()
    pools, executors = range(1, r.randint(2, 5)), (11, 12)
    for pool in pools:
        store.capacity[pool] = r.choice([1, 2, 3, 5, 9])
    for executor in executors:
        store.capacity[executor] = r.choice([1, 4, 50])
    for pool in pools:
        for executor in executors:
            for weight in (1, 2, 3):
                n = len(store.nodes) + 1
                store.nodes[n] = Node(n, pool, executor, "default", weight)
    return store


def add_lane(store: Store, r: random.Random, key: int, step: int) -> None:
    dag, run, task = r.randint(0, 2), r.randint(0, 3), r.randint(0, 4)
    local = []
    if task % 2 == 0:
        local.append(1000 + dag * 100 + run * 10 + task)
    if task % 3 == 0:
        local.append(2000 + dag * 10 + task)
    local.append(3000 + dag * 10 + run)
    for limit in local:
        store.capacity.setdefault(limit, r.randint(1, 3))
    order = (-r.randint(0, 1), -r.randint(1, 3), run, key)
    store.lanes[key] = Lane(key, r.choice(list(store.nodes)), order, tuple(local), r.randint(1, 4))


@pytest.mark.parametrize("seed", range(150))
def test_decisions_equal_an_exhaustive_scan(seed: int) -> None:
    """R-ST2, R-ST3: after every round the starts are those of a scan of every ready task in strict order, and nothing more
    could start.

    Tasks end, lanes appear, vanish and pause, capacities rise and fall between the rounds; some limits are overdrawn then.
    """
    r = random.Random(seed)
    store = random_store(r)
    running: list[Lane] = []
    key = 0
    for step in range(50):
        for _ in range(r.randint(0, 4)):
            key += 1
            add_lane(store, r, key, step)
        for _ in range(r.randint(0, 4)):
            if running:
                store.release(running.pop(r.randrange(len(running))))
        lanes = [x for x in store.lanes.values() if x.ready]
        if lanes and r.random() < 0.3:
            store.close(r.choice(lanes))
        if lanes and r.random() < 0.2:
            lane = r.choice(lanes)
            if lane.key in store.lanes:
                lane.parked_on = OPEN if lane.parked_on == PAUSED else PAUSED
                store.released.update(lane.locals)
        if r.random() < 0.3:
            limit = r.choice(list(store.capacity))
            store.capacity[limit] = r.choice([0, 1, 2, 4])
            store.released.add(limit)
        expected = store.exhaustive()
        started = store.rounds(budget=r.choice([1, 2, 500]))
        assert started == expected
        assert store.exhaustive() == {}
        store.check_invariant()
        for lane_key, count in started.items():
            running += [store.lanes[lane_key]] * count


def test_a_round_touches_what_starts_and_not_the_backlog() -> None:
    """R-ST5: 2,000 runs at their caps, far above one runnable lane."""
    store = Store(capacity={1: 1000, 2: 10**6}, nodes={1: Node(1, 1, 2, "default", 1)})
    for run in range(2000):
        store.capacity[10 + run] = 1
        store.lanes[run] = Lane(run, 1, (0, -9, run, run), (10 + run,), 50)
    low = store.lanes[9999] = Lane(9999, 1, (0, -1, 0, 9999), (), 100_000)
    store.rounds(budget=500)
    assert low.ready == 100_000  # 1,000 of the runs have taken the pool
    for run in range(5):
        store.release(store.lanes[run])
    decision = select(store.snapshot(), budget=500)
    assert sum(count for _, count in decision.grants) == 5
    assert decision.touched <= 15


def test_the_witness_is_the_narrowest_full_limit() -> None:
    lane = Lane(1, 1, (0,), (5, 6, 7), 1)
    assert saturated(lane, {5: 1, 6: 0, 7: 0}) == 6
    assert saturated(lane, {5: 1, 6: 1, 7: 1}) is None
