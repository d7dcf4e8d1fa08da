"""What a try leaves running outside when it is over is ended, by a call of ``on_kill`` (R-SP6): when there is one, and of what."""

from __future__ import annotations

from typing import Any

import pytest

from evenflow.core.model import DagSpec, TaskSpec
from evenflow.core.operations import Operation
from evenflow.core.states import TaskEvent
from evenflow.scheduler.duties import call_clean_ups
from evenflow.store.db.rows import execute
from evenflow.store.scheduling.operations import request
from tests.scheduler.world import Try, World

NAME = "a session"


def begun(world: World, **fields: Any) -> tuple[int, Try]:
    """A run, whose try has begun something outside."""
    world.add_dag(DagSpec(dag_id="d", tasks=(TaskSpec(task_id="t", operator="spark", cleans_up=True, **fields),)))
    run_key = world.trigger("d")
    world.advance()
    (tried,) = world.claim()
    world.report([tried], started=True)
    world.advance()
    begin_outside(world, tried)
    return run_key, tried


def begin_outside(world: World, tried: Try) -> None:
    execute(world.conn, "once/ask", {"epoch": tried.epoch, "name": NAME, "limit": 10})
    kept = {"value": f'"of epoch {tried.epoch}"', "sealed": None, "replaces": False, "outside": True}
    execute(world.conn, "once/set", {"epoch": tried.epoch, "name": NAME, **kept})


def end(world: World, tried: Try, outcome: str, **payload: Any) -> None:
    world.report([tried], outcome, **payload)
    world.advance()


def calls(world: World) -> list[tuple[Any, ...]]:
    """What there is to be called, with what the call finds stored."""
    call_clean_ups(world.conn)
    return world.all(
        "select c.event, t.task_id, c.state, o.value #>> '{}', o.outside from callback c join dag_run r on r.run_key = c.of_run"
        " join task t on t.version_key = r.version_key and t.task_index = c.task_index join once_value o on o.run_key = c.run_key"
        " order by c.run_key"
    )


def left(tried: Try, state: str) -> tuple[Any, ...]:
    return "clean_up", "t", state, f"of epoch {tried.epoch}", False


def test_what_a_try_that_failed_for_good_has_left_is_ended_once(world: World) -> None:
    run_key, tried = begun(world)
    assert calls(world) == []
    end(world, tried, "failed", reason="killed by signal 9")
    assert world.run_state(run_key) == "failed"
    assert calls(world) == [left(tried, "failed")]
    assert calls(world) == [left(tried, "failed")]
    world.advance()
    (call,) = world.claim()
    assert call.task_id == "callback"
    assert world.one("select params from dag_run where run_key = %s", call.run_key) == {
        "dag_id": "d",
        "run_id": world.one("select run_id from dag_run where run_key = %s", run_key),
        "task_id": "t",
        "state": "failed",
        "try_number": 1,
        "reason": f"A try left {NAME} behind.",
    }
    end(world, call, "success")
    world.audit()


def test_who_has_forgotten_it_has_ended_it(world: World) -> None:
    _, tried = begun(world)
    execute(world.conn, "once/forget", {"epoch": tried.epoch, "name": NAME})
    end(world, tried, "failed")
    assert calls(world) == []


def test_the_next_try_ends_it_itself_where_it_comes_at_once(world: World) -> None:
    _, tried = begun(world)
    world.report([tried], "lost")
    world.advance()
    assert calls(world) == []


def test_a_try_that_comes_later_is_not_waited_for(world: World) -> None:
    _, tried = begun(world, retries=1, retry_delay=3600.0)
    end(world, tried, "failed", reason="killed by signal 9")
    assert calls(world) == [left(tried, "up_for_retry")]


def test_a_run_that_is_cancelled_before_the_next_try_leaves_nothing(world: World) -> None:
    run_key, tried = begun(world)
    world.report([tried], "lost")
    world.advance()
    world.cancel(run_key)
    world.advance()
    assert [call[2:4] for call in calls(world)] == [(world.states(run_key)["t"], f"of epoch {tried.epoch}")]


@pytest.mark.parametrize("called_first", [True, False])
def test_a_try_after_a_clear_finds_it_and_what_that_begins_is_not_ended(world: World, called_first: bool) -> None:
    """R-SP6: at most one at a time, also where the call comes late."""
    run_key, tried = begun(world)
    end(world, tried, "failed")
    assert not called_first or calls(world) == [left(tried, "failed")]
    request(world.conn, [run_key], Operation(event=TaskEvent.CLEAR, actor="ann", tasks=("t",)))
    world.advance()
    again = next(t for t in world.claim() if t.task_id == "t")
    world.report([again], started=True)
    world.advance()
    (_, value, _) = execute(world.conn, "once/ask", {"epoch": again.epoch, "name": NAME, "limit": 10}).fetchone()
    assert value == f'"of epoch {tried.epoch}"'
    execute(world.conn, "once/forget", {"epoch": again.epoch, "name": NAME})
    begin_outside(world, again)
    assert calls(world) == ([left(tried, "failed")] if called_first else [])
