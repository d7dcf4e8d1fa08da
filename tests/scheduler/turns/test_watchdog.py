"""R-HA11: whenever a startable task exists, something starts within 2 s, or the watchdog says so, counts it and repairs it."""

from __future__ import annotations

from typing import Any

import pytest

from evenflow.core import metrics
from evenflow.core.model import DagSpec, TaskSpec
from evenflow.scheduler.duties.audit import Watchdog
from evenflow.scheduler.turn_metrics import TurnMetrics
from tests.scheduler.world import World


class Watched:
    """A watchdog whose clock is ``now``."""

    def __init__(self, world: World) -> None:
        self.now, self._world, self._metrics = 0.0, world, TurnMetrics()
        self._watchdog = Watchdog(self._metrics.meter, lambda: self.now)

    def look(self, now: float) -> float:
        """The stalls that it has counted so far."""
        self.now = now
        self._watchdog.look(self._world.conn)
        return self._metrics.meter.value(metrics.STALLS)


def task(task_id: str, **kw: Any) -> TaskSpec:
    return TaskSpec(task_id=task_id, operator="python", pool="small", **kw)


@pytest.fixture
def waiting(world: World) -> int:
    """A run of which two tasks wait in an open lane for a pool that is full."""
    world.pool("small", 0)
    world.add_dag(DagSpec(dag_id="d", tasks=(task("a"), task("b"))))
    run = world.trigger("d")
    world.advance()
    assert set(world.states(run).values()) == {"scheduled"}
    return run


def make_room(world: World, slots: int) -> None:
    world.conn.execute("update concurrency_limit set capacity = %s where name = 'small'", [slots])


def test_a_stall_is_told_counted_and_repaired(world: World, waiting: int, caplog: pytest.LogCaptureFixture) -> None:
    watched = Watched(world)
    make_room(world, 2)  # and no scheduler looks
    assert [watched.look(at) for at in (0.0, 0.5, 1.9)] == [0, 0, 0]
    assert watched.look(2.0) == 1
    assert set(world.states(waiting).values()) == {"queued"}
    (line,) = [record.getMessage() for record in caplog.records if "stalled" in record.getMessage()]
    assert "stalled_s=2.0 ready=2 dag_id=d " in line
    assert "pool=small pool_free=2" in line
    assert watched.look(9.0) == 1


def test_a_node_that_starts_something_has_not_stalled(world: World, waiting: int) -> None:
    watched = Watched(world)
    make_room(world, 1)
    watched.look(0.0)
    world.advance()  # starts one of them
    make_room(world, 2)
    assert [watched.look(at) for at in (2.5, 4.0)] == [0, 0]
    assert watched.look(4.5) == 1


def test_without_room_nothing_stalls(world: World, waiting: int) -> None:
    watched = Watched(world)
    assert [watched.look(at) for at in (0.0, 5.0)] == [0, 0]
    make_room(world, 1)
    assert watched.look(6.0) == 0
    make_room(world, 0)
    watched.look(7.0)
    make_room(world, 1)
    assert watched.look(8.0) == 0  # it had no room all the time


def test_a_pool_that_keeps_room_for_a_large_task_has_not_stalled(world: World) -> None:
    world.pool("small", 0)
    world.conn.execute("update concurrency_limit set patience_s = 0 where name = 'small'")
    world.add_dag(DagSpec(dag_id="d", tasks=(task("large", pool_slots=4, priority_weight=9), task("b"))))
    run = world.trigger("d")
    world.advance()
    make_room(world, 3)
    watched = Watched(world)
    assert [watched.look(at) for at in (0.0, 3.0)] == [0, 0]
    make_room(world, 4)
    assert [watched.look(at) for at in (4.0, 6.0)] == [0, 2]
    assert world.states(run) == {"large": "queued", "b": "scheduled"}
