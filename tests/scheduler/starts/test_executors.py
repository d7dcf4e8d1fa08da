"""Executors by queue: slots of each, changed while it runs, and queues that go to another one (R-EX1, R-ST1)."""

from __future__ import annotations

from typing import Any

from evenflow.core.model import DagSpec, TaskSpec
from evenflow.store.serving import executors
from tests.scheduler.world import World
from tests.world import at_once


def set_executor(world: World, name: str = "far", **given: Any) -> None:
    told = {"kind": "native", "queues": ["etl"], "slots": 10, "options": {}, "by": "test", **given}
    assert at_once(executors.set_executor(world.awaited, name=name, **told))


def a_run(world: World, tasks: int = 4, queue: str = "etl") -> int:
    spec = DagSpec(dag_id="d", tasks=tuple(TaskSpec(task_id=f"t{n}", operator="python", queue=queue) for n in range(tasks)))
    world.add_dag(spec)
    return world.trigger("d")


def test_a_queue_takes_the_slots_of_its_executor(world: World) -> None:
    """R-ST1: configured, and the others are not touched."""
    set_executor(world, slots=3)
    a_run(world)
    world.advance()
    assert len(world.claim(queues=("etl",))) == 3
    assert (world.used("executor", "far"), world.used("executor", "worker")) == (3, 0)
    world.audit()


def test_more_slots_count_at_once_and_fewer_end_nothing(world: World) -> None:
    """R-ST1, R-ST4: a limit that changes while it runs."""
    set_executor(world, slots=1)
    a_run(world)
    world.advance()
    set_executor(world, slots=3)
    world.advance()
    tries = world.claim(queues=("etl",))
    assert len(tries) == 3
    set_executor(world, slots=1)
    world.report(tries[:2])
    world.advance()
    assert world.claim(queues=("etl",)) == []
    assert world.used("executor", "far") == 1
    world.report(tries[2:])
    world.advance()
    assert len(world.claim(queues=("etl",))) == 1
    world.audit()


def test_a_queue_that_goes_to_another_executor_takes_what_waits_with_it(world: World) -> None:
    """R-EX1: what runs keeps the slot that it holds, what is ready waits for those of the new one."""
    set_executor(world, slots=1)
    a_run(world)
    world.advance()
    (began,) = world.claim(queues=("etl",))
    set_executor(world, "far", queues=("other",), slots=1)
    set_executor(world, "near", slots=2)
    world.advance()
    assert len(world.claim(queues=("etl",))) == 2
    assert (world.used("executor", "far"), world.used("executor", "near")) == (1, 2)
    world.audit()
    world.report([began])
    world.advance()
    assert (world.used("executor", "far"), world.used("executor", "near")) == (0, 2)


def test_the_queues_of_a_deleted_executor_are_the_default_ones(world: World) -> None:
    """R-EX1: and one that is made under its name again begins with the slots that it is given."""
    set_executor(world, slots=0)
    a_run(world)
    world.advance()
    assert world.claim(queues=("etl",)) == []
    at_once(executors.delete_executor(world.awaited, "far"))
    world.advance()
    assert len(world.claim(queues=("etl",))) == 4
    assert world.used("executor", "worker") == 4
    set_executor(world, slots=7)
    (row,) = at_once(executors.list_executors(world.awaited, "far"))
    assert (row["slots"], row["used"]) == (7, 0)
    world.audit()


def test_what_was_sent_and_not_claimed_is_there_for_all_when_its_queue_is_native(world: World) -> None:
    """R-EX2: the message may still come; the claim decides."""
    set_executor(world, kind="celery")
    a_run(world, tasks=1)
    world.advance()
    world.conn.execute("update dispatch set sent_at = now(), sends = 1")
    assert world.claim(queues=("etl",)) == []
    at_once(executors.delete_executor(world.awaited, "far"))
    assert len(world.claim(queues=("etl",))) == 1
