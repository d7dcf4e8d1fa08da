"""``depends_on_past``: a run tells the next one, and nobody asks."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from evenflow.core.model import DagSpec, MapInput, Mapping, TaskSpec
from evenflow.core.operations import Operation
from evenflow.core.states import TaskEvent
from evenflow.core.trigger_rules import TriggerRule
from evenflow.scheduler.advance import advance
from evenflow.scheduler.catalog import Catalog
from evenflow.store.db.connect import connect
from evenflow.store.scheduling import past as store
from evenflow.store.scheduling.operations import request
from tests.scheduler.world import World

FIRST = datetime(2026, 3, 1, tzinfo=UTC)


def task(task_id: str, *upstream: int, **kw: Any) -> TaskSpec:
    return TaskSpec(task_id=task_id, operator="python", upstream=upstream, **kw)


def past(task_id: str, *upstream: int, **kw: Any) -> TaskSpec:
    return task(task_id, *upstream, depends_on_past=True, **kw)


def day(world: World, number: int, run_type: str = "scheduled") -> int:
    run = world.trigger("d", logical_date=FIRST + timedelta(days=number))
    world.conn.execute("update dag_run set run_type = %s where run_key = %s", [run_type, run])
    return run


def claimed(world: World, run: int) -> list[Any]:
    return [t for t in world.claim() if t.run_key == run]


def gates(world: World) -> int:
    query = "select (select count(*) from past_gate) + (select count(*) from past_hold) + (select count(*) from past_watch)"
    return world.conn.execute(query).fetchone()[0]


def test_the_first_run_waits_for_nothing_and_the_next_one_for_it(world: World) -> None:
    world.add_dag(DagSpec(dag_id="d", tasks=(task("a"), past("b", 0))))
    first, second = day(world, 0), day(world, 1)
    world.advance()
    one, two = world.claim()
    world.report([one, two])
    world.advance()
    (b1,) = world.claim()
    assert (b1.run_key, b1.task_id) == (first, "b")
    assert world.states(second)["b"] == "none"
    world.report([b1])
    world.advance()
    (b2,) = world.claim()
    assert (b2.run_key, b2.task_id) == (second, "b")
    world.report([b2])
    world.advance()
    assert world.run_state(second) == "success"
    assert gates(world) == 0
    world.audit()


def test_what_has_ended_well_already_is_not_waited_for(world: World) -> None:
    world.add_dag(DagSpec(dag_id="d", tasks=(past("a"),)))
    day(world, 0)
    world.drain()
    second = day(world, 1)
    world.advance()
    assert gates(world) == 0
    assert [t.run_key for t in world.claim()] == [second]


def test_a_failed_one_keeps_the_next_waiting_until_it_succeeds(world: World) -> None:
    world.add_dag(DagSpec(dag_id="d", tasks=(past("a", retries=1, retry_delay=3600.0),)))
    first, second = day(world, 0), day(world, 1)
    world.advance()
    world.report(claimed(world, first), "failed")
    world.advance()
    assert world.claim() == []
    world.conn.execute("update timer set due_at = now()")
    world.advance()
    world.report(claimed(world, first), "failed")
    world.advance()
    assert world.run_state(first) == "failed"
    assert world.claim() == []
    assert world.states(second) == {"a": "none"}
    assert world.run_state(second) == "running"
    # An operator marks it: its run is locked, and looks again.
    world.conn.execute("update task_instance set state = 'success' where run_key = %s", [first])
    world.conn.execute("insert into report (run_key, kind, epoch, payload) values (%s, 'follow', 0, '{\"tasks\": [0]}')", [first])
    world.advance()
    assert [t.run_key for t in world.claim()] == [second]


def test_a_skipped_one_lets_the_next_go(world: World) -> None:
    world.add_dag(DagSpec(dag_id="d", tasks=(past("a"),)))
    first, second = day(world, 0), day(world, 1)
    world.advance()
    world.report(claimed(world, first), "skipped")
    world.advance()
    assert [t.run_key for t in world.claim()] == [second]


def test_the_run_before_is_the_one_of_the_logical_date_before(world: World) -> None:
    """Runs of hand do not count, backfills do; the order of creation does not matter."""
    world.add_dag(DagSpec(dag_id="d", tasks=(past("a"),)))
    third = day(world, 2)
    world.advance()
    assert [t.run_key for t in world.claim()] == [third]  # it was the first that there was
    day(world, 0, "backfill")
    manual = world.trigger("d")
    second = day(world, 1, "backfill")
    world.advance()
    assert [t.run_key for t in world.claim()] != []
    assert world.states(manual) == {"a": "queued"}
    assert world.states(second) == {"a": "none"}


def test_mapped_tasks_wait_for_all_instances(world: World) -> None:
    mapped = past("m", mapping=Mapping(inputs=(MapInput(name="x", length=3),)))
    world.add_dag(DagSpec(dag_id="d", tasks=(mapped,), max_active_tasks=2))
    first, second = day(world, 0), day(world, 1)
    world.advance()
    for _ in range(2):
        tries = world.claim()
        assert {t.run_key for t in tries} == {first}
        world.report(tries)
        world.advance()
    assert world.run_state(first) == "success"
    tries = world.claim()
    assert [(t.run_key, t.map_index) for t in tries] == [(second, 0), (second, 1)]
    world.report(tries)
    world.drain()
    assert world.run_state(second) == "success"
    world.audit()


def test_wait_for_downstream(world: World) -> None:
    world.add_dag(DagSpec(dag_id="d", tasks=(past("a", wait_for_downstream=True), task("b", 0))))
    first, second = day(world, 0), day(world, 1)
    world.advance()
    world.report(claimed(world, first))
    world.advance()
    (b,) = world.claim()
    assert (b.run_key, b.task_id) == (first, "b")
    world.report([b])
    world.advance()
    assert [(t.run_key, t.task_id) for t in world.claim()] == [(second, "a")]


@pytest.mark.parametrize("rule", [TriggerRule.ONE_FAILED, TriggerRule.ALL_DONE])
def test_trigger_rules_decide_first(world: World, rule: TriggerRule) -> None:
    world.add_dag(DagSpec(dag_id="d", tasks=(task("a"), task("z"), past("b", 0, 1, trigger_rule=rule))))
    first, second = day(world, 0), day(world, 1)
    world.advance()
    tries = world.claim()
    world.report([t for t in tries if t.task_id == "a"], "failed")
    world.report([t for t in tries if t.task_id == "z"])
    world.advance()
    b = world.claim()
    assert [(t.run_key, t.task_id) for t in b] == [(first, "b")]
    world.report(b)
    world.advance()
    assert [(t.run_key, t.task_id) for t in world.claim()] == [(second, "b")]


def test_an_upstream_that_failed_fails_it_whatever_the_past_says(world: World) -> None:
    world.add_dag(DagSpec(dag_id="d", tasks=(task("a"), past("b", 0))))
    first, second = day(world, 0), day(world, 1)
    world.advance()
    tries = world.claim()
    world.report([t for t in tries if t.run_key == second], "failed")
    world.advance()
    assert world.states(second)["b"] == "upstream_failed"
    world.report([t for t in tries if t.run_key == first])
    world.drain()
    assert world.run_state(first) == "success"
    world.audit()


def test_the_word_to_a_run_that_has_ended_changes_nothing(world: World) -> None:
    world.add_dag(DagSpec(dag_id="d", tasks=(past("a"),)))
    first, second = day(world, 0), day(world, 1)
    world.advance()
    world.cancel(second)
    world.advance()
    assert world.run_state(second) == "failed"
    world.report(claimed(world, first))
    world.advance()
    assert world.states(second) == {"a": "skipped"}
    assert gates(world) == 0


def test_a_run_that_is_still_queued_tells_when_it_has_run(world: World) -> None:
    world.add_dag(DagSpec(dag_id="d", tasks=(past("a"),), max_active_runs=1))
    second = day(world, 1)
    first = day(world, 0)
    world.conn.execute("update dag_run set run_after = now() - interval '1 hour' where run_key = %s", [second])
    world.advance()
    assert world.run_state(first) == "queued"
    assert world.states(second) == {"a": "none"}
    world.resize("dag_runs", "d", 2)
    world.advance()
    world.report(claimed(world, first))
    world.advance()
    assert [t.run_key for t in world.claim()] == [second]


def test_an_older_version_without_it_tells_too(world: World) -> None:
    world.add_dag(DagSpec(dag_id="d", tasks=(task("new"), past("a"))))
    world.add_dag(DagSpec(dag_id="old", tasks=(task("a"),)))
    first = day(world, 0)
    query = "update dag_run set version_key = (select version_key from dag where dag_id = 'old') where run_key = %s"
    world.conn.execute(query, [first])
    world.advance()
    second = day(world, 1)
    world.advance()
    tries = world.claim()
    assert sorted((t.run_key, t.task_id) for t in tries) == [(first, "a"), (second, "new")]
    world.report(tries)
    world.advance()
    assert [(t.run_key, t.task_id) for t in world.claim()] == [(second, "a")]


def test_a_task_that_ends_while_another_connection_begins_to_watch_it(
    world: World, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither transaction sees the other: who creates the run finds the task running, who ends the task finds no watch."""
    world.add_dag(DagSpec(dag_id="d", tasks=(past("a"),)))
    day(world, 0)
    world.advance()
    (first,) = world.claim()
    second = day(world, 1)
    watching, ended = threading.Event(), threading.Event()
    await_runs = store.await_runs

    def await_slowly(conn: Any, needs: Any) -> None:
        await_runs(conn, needs)
        conn.execute("select 1").fetchone()  # what went before has been executed
        watching.set()
        assert ended.wait(10)

    monkeypatch.setattr(store, "await_runs", await_slowly)
    with connect(database_url, name="creating") as creating, ThreadPoolExecutor(1) as threads:
        done = threads.submit(advance, creating, Catalog())
        assert watching.wait(10)
        world.report([first])
        assert not advance(world.conn, world.catalog).selected  # the other one has the executor's lock
        assert gates(world) == 0  # nor is its watch there yet
        ended.set()
        done.result(10)
    assert gates(world) > 0
    world.advance()
    assert [t.run_key for t in world.claim()] == [second]
    assert gates(world) == 0
    world.audit()


def test_a_clear_that_changes_nothing_leaves_what_waits(world: World) -> None:
    world.add_dag(DagSpec(dag_id="d", tasks=(past("a"),)))
    day(world, 0)
    second = day(world, 1)
    world.advance()
    request(world.conn, [second], Operation(event=TaskEvent.CLEAR, actor="ann", tasks=("a",)))
    world.advance()
    world.report(world.claim())
    world.advance()
    assert [t.run_key for t in world.claim()] == [second]
