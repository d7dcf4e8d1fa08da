"""R-DQ8: pods that have done their work keep the storage of their nodes until their tasks resume, while tasks of a higher priority
hold every slot and wait for that storage. On the real store, with a simulated cluster and clock.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest

from evenflow.core.model import DagSpec, TaskSpec
from tests.scheduler.world import World

STORAGE = 8  # units of all nodes; a pod has one from its start until it is deleted
SLOTS, RESUME_SLOTS = 4, 1
LOW, HIGH = 8, 40  # tasks
LOW_WORKS, HIGH_WORKS = 5, 3  # ticks of a pod
IDLE_KILLED = 30  # ticks that a pod may do nothing
LONG = 200  # ticks in which nothing happens any more: a deadlock
OVER = ("success", "failed")


@dataclass
class Pod:
    """``over``: when its work is done."""

    over: int
    deleted: bool = False
    killed: bool = False


@dataclass
class Cluster:
    """Where pods run. ``killer``: those that do nothing for long are killed, with the results that they keep."""

    killer: bool
    now: int = 0
    pods: dict[Any, Pod] = field(default_factory=dict)

    def free(self) -> int:
        return STORAGE - sum(not pod.deleted for pod in self.pods.values())

    def start(self, owner: Any, works: int) -> bool:
        """Whether there was storage for it."""
        if self.free() == 0:
            return False
        self.pods[owner] = Pod(self.now + works)
        return True

    def is_over(self, owner: Any) -> bool:
        return self.pods[owner].over <= self.now

    def collect(self, owner: Any) -> bool:
        """Reads the result and deletes the pod. Whether there was one to read."""
        pod = self.pods[owner]
        pod.deleted = True
        return not pod.killed

    def tick(self) -> None:
        self.now += 1
        for pod in self.pods.values():
            if self.killer and not pod.deleted and self.now - pod.over > IDLE_KILLED:
                pod.deleted = pod.killed = True


class Site:
    """A worker with all its slots, a triggerer, and the pods that tasks make. A low task makes a pod and is deferred until that has
    done its work; a high one waits for its pod on its slot.
    """

    def __init__(self, world: World, *, killer: bool) -> None:
        self.world, self.cluster = world, Cluster(killer)
        world.resize("executor", "worker", SLOTS)
        world.pool("low", LOW)
        world.pool("high", HIGH)
        for name, count, weight in (("low", LOW, 1), ("high", HIGH, 100)):
            tasks = tuple(
                TaskSpec(task_id=f"{name}{i}", operator="python", pool=name, priority_weight=weight) for i in range(count)
            )
            world.add_dag(DagSpec(dag_id=name, tasks=tasks, max_active_tasks=None))
        self.busy: list[Any] = []  # tries of high tasks
        self.waits: dict[str, Any] = {}  # low tasks that are deferred, with the try that did it
        self.fired: dict[str, int] = {}
        self.resumed: dict[str, int] = {}  # ticks from the event to the worker
        self.lost: list[str] = []
        self.done: list[str] = []
        self.overdrawn = 0

    def play(self, *, most: int) -> bool:
        """Whether all tasks ended before nothing did for ``most`` ticks."""
        still = 0
        while len(self.done) < len(self.runs_of_tasks()):
            before = len(self.done), len(self.cluster.pods), len(self.waits)
            self.step()
            still = 0 if (len(self.done), len(self.cluster.pods), len(self.waits)) != before else still + 1
            if still > most:
                return False
        self.world.advance()
        return True

    def runs_of_tasks(self) -> list[str]:
        return [task for run in self.runs for task in self.world.states(run)]

    def begin(self) -> None:
        """All low tasks have their pods and are deferred; then the high ones come."""
        self.runs = [self.world.trigger("low")]
        while len(self.waits) < LOW:
            self.world.advance()
            self._take()
        self.runs.append(self.world.trigger("high"))

    def step(self) -> None:
        self.world.advance()
        self._take()
        self._fire()
        self._finish()
        self.cluster.tick()
        self.overdrawn = max(self.overdrawn, self.world.used("executor") - SLOTS)

    def _take(self) -> None:
        """The worker asks for what it has room for, and resumes also get in where it has none."""
        room = SLOTS - len(self.busy)
        for t in self.world.claim(room, resumes=room + RESUME_SLOTS):
            self.world.report([t], started=True)
            if t.task_id.startswith("high"):
                self.busy.append(t)
            elif t.task_id not in self.cluster.pods:
                assert self.cluster.start(t.task_id, LOW_WORKS)
                self.waits[t.task_id] = t
                self.world.defer([t])
            else:
                self.resumed[t.task_id] = self.cluster.now - self.fired[t.task_id]
                is_there = self.cluster.collect(t.task_id)
                self._end(t, "success" if is_there else "failed_for_good")
                if not is_there:
                    self.lost.append(t.task_id)

    def _fire(self) -> None:
        for task_id in [task_id for task_id in self.waits if self.cluster.is_over(task_id)]:
            self.fired[task_id] = self.cluster.now
            t = self.waits.pop(task_id)
            self.world.fire(t.run_key, int(task_id.removeprefix("low")))

    def _finish(self) -> None:
        for t in list(self.busy):
            if t.task_id not in self.cluster.pods:
                self.cluster.start(t.task_id, HIGH_WORKS)
            elif self.cluster.is_over(t.task_id):
                assert self.cluster.collect(t.task_id)
                self.busy.remove(t)
                self._end(t, "success")

    def _end(self, t: Any, outcome: str) -> None:
        self.world.report([t], outcome)
        self.done.append(t.task_id)


@pytest.mark.parametrize("killer", [False, True])
def test_the_system_drains(world: World, killer: bool) -> None:
    """Every pod is collected as soon as its work is done, although the slots are full: no result is lost, nobody waits for long."""
    site = Site(world, killer=killer)
    site.begin()
    assert site.cluster.free() == 0
    assert site.play(most=LONG)
    assert site.lost == []
    assert states(world, site.runs) == {"success"}
    assert len(site.resumed) == LOW
    assert max(site.resumed.values()) <= LOW / RESUME_SLOTS
    assert 0 < site.overdrawn <= LOW  # R-ST1
    world.audit()


def test_without_direct_resume_nothing_moves(world: World) -> None:
    site = without_direct_resume(world, killer=False)
    assert not site.play(most=LONG)
    assert site.done == []
    assert len(site.busy) == SLOTS  # each waits for storage
    assert site.cluster.free() == 0  # which pods keep that have nothing to do
    assert len(site.fired) == LOW
    assert set(world.states(site.runs[0]).values()) == {"scheduled"}
    world.audit()


def test_without_direct_resume_who_kills_idle_pods_loses_their_results(world: World) -> None:
    site = without_direct_resume(world, killer=True)
    assert site.play(most=LONG)
    assert len(site.lost) == LOW


def without_direct_resume(world: World, *, killer: bool) -> Site:
    world.conn.execute("insert into setting (name, value, changed_by) values ('direct_resume', 'false', 'test')")
    site = Site(world, killer=killer)
    site.begin()
    return site


def states(world: World, runs: Iterable[int]) -> set[str]:
    return {state for run in runs for state in world.states(run).values()}
