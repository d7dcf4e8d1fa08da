"""The whole path on PostgreSQL against a naive model, turn by turn: who starts, which limits are held, how runs end."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from evenflow.core.model import DagSpec, MapInput, Mapping, TaskSpec

Unit = tuple[int, str, int]  # run, task, map index
LaneName = tuple[int, str, int, int, bool, bool]  # run, pool, slots, priority, has a dag-task limit, has a run-task limit


@dataclass
class Naive:
    """Every ready task is looked at in strict order, one by one."""

    room: dict[Any, int]
    specs: dict[int, DagSpec] = field(default_factory=dict)
    order: dict[int, tuple[int, float]] = field(default_factory=dict)  # run: (-priority, run_after)
    done: dict[int, set[str]] = field(default_factory=lambda: defaultdict(set))
    left: dict[Unit, TaskSpec] = field(default_factory=dict)  # not started
    running: dict[Unit, TaskSpec] = field(default_factory=dict)
    paused: set[str] = field(default_factory=set)

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
        open_tasks = {t for r, t, _ in [*self.left, *self.running] if r == run}
        return all(spec.tasks[u].task_id not in open_tasks for u in task.upstream)

    def finish(self, unit: Unit) -> None:
        for limit, n in self.holds(unit[0], self.running.pop(unit)).items():
            self.room[limit] += n

    def start(self) -> list[Unit]:
        started = []
        ordered = sorted(self.left, key=lambda u: (*self._rank(u), u[2]))
        ready = [u for u in ordered if self.ready(u[0], self.left[u]) and self.specs[u[0]].dag_id not in self.paused]
        for unit in ready:
            holds = self.holds(unit[0], self.left[unit])
            if all(self.room[limit] >= n for limit, n in holds.items()):
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


def random_dag(r: random.Random, number: int) -> DagSpec:
    """Tasks of one DAG have distinct priorities, so that the order is strict even between lanes of one run."""
    tasks = []
    for i in range(r.randint(1, 6)):
        upstream = (r.randrange(i),) if i and r.random() < 0.4 else ()
        if i > 1 and r.random() < 0.2:
            upstream = tuple(sorted(r.sample(range(i), 2)))
        tasks.append(
            TaskSpec(
                task_id=f"t{i}",
                operator="python",
                upstream=upstream,
                pool=r.choice(["p1", "p2"]),
                pool_slots=r.choice([1, 1, 2]),
                priority_weight=i * 10 + r.randint(1, 9),
                max_active_tis_per_dag=r.choice([None, None, 1, 2]),
                max_active_tis_per_dagrun=r.choice([None, None, 1]),
                mapping=Mapping(inputs=(MapInput(name="x", length=r.randint(1, 6)),)) if r.random() < 0.4 else None,
            )
        )
    return DagSpec(dag_id=f"d{number}", tasks=tuple(tasks), max_active_tasks=r.choice([None, 1, 2, 5]), max_active_runs=None)


@pytest.mark.parametrize("seed", range(8))
def test_the_scheduler_agrees_with_a_naive_scan(world: Any, seed: int) -> None:
    """R-ST1, R-ST2, R-ST3: turn by turn the same tasks start, no limit is exceeded, and every counter is what it counts."""
    r = random.Random(seed)
    pools = {"p1": r.randint(2, 4), "p2": r.randint(2, 6)}
    naive = Naive({("pool", name): slots for name, slots in pools.items()})
    for name, slots in pools.items():
        world.set_limit("pool", name, slots)
    specs = [random_dag(r, i) for i in range(3)]
    for spec in specs:
        world.add_dag(spec)
        for task in spec.tasks:
            if task.max_active_tis_per_dag is not None:
                naive.room["dag_task", spec.dag_id, task.task_id] = task.max_active_tis_per_dag
    runs: list[int] = []
    live: dict[Unit, Any] = {}
    began = datetime.now(UTC) - timedelta(days=1)
    for turn in range(40):
        if turn < 15 and r.random() < 0.6:
            spec, priority, run_after = r.choice(specs), r.choice([0, 0, 1]), began + timedelta(seconds=r.randint(0, 10**6) / 100)
            run = world.trigger(spec.dag_id, priority=priority, run_after=run_after)
            if spec.dag_id not in naive.paused:
                naive.add_run(run, spec, priority, run_after.timestamp())
                runs.append(run)
            else:
                world.conn.execute("delete from dag_run where run_key = %s", [run])
        if r.random() < 0.15:
            dag_id = r.choice(specs).dag_id
            naive.paused ^= {dag_id}
            world.conn.execute("update dag set is_paused = not is_paused where dag_id = %s", [dag_id])
        elif turn > 30:
            naive.paused.clear()
            world.conn.execute("update dag set is_paused = false")
        ending = [u for u in sorted(live) if r.random() < 0.5]
        for unit in ending:
            naive.finish(unit)
        if ending:
            world.report([live.pop(u) for u in ending])
        world.advance()
        claimed = {(t.run_key, t.task_id, t.map_index): t for t in world.claim()}
        expected = naive.start()
        assert Counter(map(naive.lane, claimed)) == Counter(map(naive.lane, expected)), f"turn {turn}"
        if set(claimed) != set(expected):  # other tasks of the same lanes: make the model follow
            for unit in expected:
                naive.left[unit] = naive.running.pop(unit)
            for unit in claimed:
                naive.running[unit] = naive.left.pop(unit)
        live.update(claimed)
        world.audit()
    while live or naive.left:
        for unit in list(live):
            naive.finish(unit)
        world.report([live.pop(u) for u in list(live)])
        world.advance()
        live.update({(t.run_key, t.task_id, t.map_index): t for t in world.claim()})
        for unit in naive.start():
            if unit not in live:
                naive.left[unit] = naive.running.pop(unit)
        for unit in live:
            if unit in naive.left:
                naive.running[unit] = naive.left.pop(unit)
        world.audit()
        assert live or not naive.left
    assert {world.run_state(run) for run in runs} <= {"success"}
