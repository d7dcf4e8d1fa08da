"""The scheduler on PostgreSQL beside a naive model: random DAGs, pools and events, turn by turn."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from evenflow.core.model import DagSpec, TaskSpec
from tests.scheduler.closing import CLOSED, set_state
from tests.scheduler.world import World

Unit = tuple[int, str, int]  # run, task, map index
LaneName = tuple[int, str, int, int, bool, bool]  # run, pool, slots, priority, has a dag-task limit, has a run-task limit

TRIGGERED = 15  # turns of a game in which runs begin


@dataclass
class Naive:
    """Every ready task is looked at in strict order, one by one."""

    room: dict[Any, int]
    specs: dict[int, DagSpec] = field(default_factory=dict)
    order: dict[int, tuple[int, float]] = field(default_factory=dict)  # run: (-priority, run_after)
    left: dict[Unit, TaskSpec] = field(default_factory=dict)  # not started
    running: dict[Unit, TaskSpec] = field(default_factory=dict)
    paused: set[str] = field(default_factory=set)
    strict: set[str] = field(default_factory=set)  # pools
    shut: set[str] = field(default_factory=set)  # pools that are closed
    failed: dict[Unit, TaskSpec] = field(default_factory=dict)  # to be tried again
    tried: set[Unit] = field(default_factory=set)  # once, in vain

    def add_run(self, run: int, spec: DagSpec, priority: int, run_after: float) -> None:
        self.specs[run], self.order[run] = spec, (-priority, run_after)
        if spec.max_active_tasks is not None:
            self.room["run", run] = spec.max_active_tasks
        for task in spec.tasks:
            if task.max_active_tis_per_dagrun is not None:
                self.room["run_task", run, task.task_id] = task.max_active_tis_per_dagrun
            length = 1 if task.mapping is None else (task.mapping.inputs[0].length or 0)
            for i in range(length):
                self.left[run, task.task_id, -1 if task.mapping is None else i] = task

    def holds(self, run: int, task: TaskSpec) -> dict[Any, int]:
        spec = self.specs[run]
        holds: dict[Any, int] = {("pool", task.pool): task.pool_slots}
        if spec.max_active_tasks is not None:
            holds["run", run] = 1
        if task.max_active_tis_per_dag is not None:
            holds["dag_task", spec.dag_id, task.task_id] = 1
        if task.max_active_tis_per_dagrun is not None:
            holds["run_task", run, task.task_id] = 1
        return holds

    def ready(self, run: int, task: TaskSpec) -> bool:
        spec = self.specs[run]
        open_tasks = {t for r, t, _ in [*self.left, *self.running, *self.failed] if r == run}
        return all(spec.tasks[u].task_id not in open_tasks for u in task.upstream)

    def finish(self, unit: Unit, *, fail: bool = False) -> None:
        task = self.running.pop(unit)
        for limit, n in self.holds(unit[0], task).items():
            self.room[limit] += n
        if fail:
            self.failed[unit] = task
            self.tried.add(unit)

    def retry(self) -> None:
        """What failed is ready again."""
        self.left.update(self.failed)
        self.failed.clear()

    def cancel(self, run: int) -> None:
        for units in (self.left, self.failed):
            for unit in [u for u in units if u[0] == run]:
                del units[unit]

    def start(self) -> list[Unit]:
        started = []
        closed: set[str] = set()
        ordered = sorted(self.left, key=lambda u: (*self._rank(u), u[2]))
        ready = [u for u in ordered if self.ready(u[0], self.left[u]) and self.specs[u[0]].dag_id not in self.paused]
        ready = [u for u in ready if self.left[u].pool not in self.shut]
        for unit in ready:
            holds, pool = self.holds(unit[0], self.left[unit]), self.left[unit].pool
            short = [limit for limit, n in holds.items() if self.room[limit] < n]
            if short == [("pool", pool)] and pool in self.strict:
                closed.add(pool)  # nothing of lower order starts there
            if not short and pool not in closed:
                for limit, n in holds.items():
                    self.room[limit] -= n
                self.running[unit] = self.left.pop(unit)
                started.append(unit)
        return started

    def _rank(self, unit: Unit) -> tuple[int, int, float]:
        priority, run_after = self.order[unit[0]]
        return (priority, -self.left[unit].priority_weight, run_after)

    def lane(self, unit: Unit) -> LaneName:
        task = next(t for t in self.specs[unit[0]].tasks if t.task_id == unit[1])
        return (
            unit[0],
            task.pool,
            task.pool_slots,
            task.priority_weight,
            task.max_active_tis_per_dag is not None,
            task.max_active_tis_per_dagrun is not None,
        )


def random_pools(r: random.Random) -> dict[Any, int]:
    """Their room by limit."""
    return {("pool", name): slots for name, slots in {"p1": r.randint(2, 4), "p2": r.randint(2, 6)}.items()}


@dataclass
class Match:
    """The scheduler and the model, side by side. It begins with the pools of the model, none used, and these DAGs."""

    world: World
    naive: Naive
    r: random.Random
    specs: list[DagSpec]
    live: dict[Unit, Any] = field(default_factory=dict)
    cancelled: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        for limit, slots in self.naive.room.items():
            self.world.pool(limit[1], slots)
        for pool in self.naive.strict:
            self.world.conn.execute("update concurrency_limit set patience_s = 0 where name = %s", [pool])
        for spec in self.specs:
            self.world.add_dag(spec)
            for task in spec.tasks:
                if task.max_active_tis_per_dag is not None:
                    self.naive.room["dag_task", spec.dag_id, task.task_id] = task.max_active_tis_per_dag
        self.capacity = dict(self.naive.room)

    def play(self, turns: int, *, trigger: float, pause: float, close: float, resize: float, cancel: float) -> None:
        """Turns in which things happen by these chances; then all that is left is drained."""
        events = ((pause, self.pause), (close, self.close), (resize, self.resize), (cancel, self.cancel))
        for turn in range(turns):
            if turn < TRIGGERED and self.r.random() < trigger:
                self.trigger()
            for chance, happens in events:
                if self.r.random() < chance:
                    happens()
            self.report(0.5)
            self.turn(turn)
        self.pause(none=True)
        self.close(none=True)
        self.restore()
        self.turn("restored")
        while self.live or self.naive.left:
            self.report(1.0)
            self.turn("draining")
            assert self.live or not self.naive.left

    def trigger(self) -> None:
        began = datetime.now(UTC) - timedelta(days=1)
        spec, priority = self.r.choice(self.specs), self.r.choice([0, 0, 1])
        run_after = began + timedelta(seconds=self.r.randint(0, 10**6) / 100)
        if spec.dag_id not in self.naive.paused:
            run = self.world.trigger(spec.dag_id, priority=priority, run_after=run_after)
            self.naive.add_run(run, spec, priority, run_after.timestamp())

    def pause(self, *, none: bool = False) -> None:
        if none:
            self.naive.paused.clear()
            self.world.conn.execute("update dag set is_paused = false")
        else:
            dag_id = self.r.choice(self.specs).dag_id
            self.naive.paused ^= {dag_id}
            self.world.conn.execute("update dag set is_paused = not is_paused where dag_id = %s", [dag_id])

    def close(self, *, none: bool = False) -> None:
        """A pool is closed, or open again."""
        for name in [*self.naive.shut] if none else [self.r.choice(["p1", "p2"])]:
            set_state(self.world, "pool", name, "active" if name in self.naive.shut else self.r.choice(CLOSED))
            self.naive.shut ^= {name}

    def resize(self) -> None:
        """A pool, or a task's limit across runs: raised or lowered, also below its use."""
        limits = [limit for limit in self.capacity if limit[0] in ("pool", "dag_task")]
        limit, capacity = self.r.choice(limits), self.r.randint(0, 6)
        self.world.resize(limit[0], "/".join(limit[1:]), capacity)
        self.naive.room[limit] += capacity - self.capacity[limit]
        self.capacity[limit] = capacity

    def restore(self) -> None:
        """Room for everything that is left."""
        for limit, capacity in self.capacity.items():
            self.world.resize(limit[0], "/".join(limit[1:]), 9)
            self.naive.room[limit] += 9 - capacity
            self.capacity[limit] = 9

    def cancel(self) -> None:
        """Ends a run at once, but what it has running goes on until it is reported."""
        runs = sorted({u[0] for u in self.naive.left} - self.cancelled)
        if runs:
            run = self.r.choice(runs)
            self.world.cancel(run)
            self.naive.cancel(run)
            self.cancelled.add(run)

    def report(self, share: float) -> None:
        for unit in [u for u in sorted(self.live) if self.r.random() < share]:
            task = self.naive.running[unit]
            again = task.retries > 0 and unit not in self.naive.tried and unit[0] not in self.cancelled and self.r.random() < 0.5
            self.naive.finish(unit, fail=again)
            self.world.report([self.live.pop(unit)], "failed" if again else "success")

    def turn(self, what: object) -> None:
        """A turn of the scheduler, another one for the retries that it found; each against a scan."""
        for _ in range(2):
            self.world.advance()
            claimed = {(t.run_key, t.task_id, t.map_index): t for t in self.world.claim()}
            expected = self.naive.start()
            assert Counter(map(self.naive.lane, claimed)) == Counter(map(self.naive.lane, expected)), what
            for unit in set(expected) - set(claimed):  # other tasks of the same lanes: make the model follow
                self.naive.left[unit] = self.naive.running.pop(unit)
            for unit in set(claimed) - set(expected):
                self.naive.running[unit] = self.naive.left.pop(unit)
            self.live.update(claimed)
            self.world.audit()
            self.naive.retry()
