"""A cancelled run can be taken up again: what never ran of it runs, and what was decided before stays decided."""

from __future__ import annotations

from typing import Any

from evenflow.core.model import DagSpec
from evenflow.core.operations import Only
from evenflow.core.states import TaskEvent
from tests.scheduler.test_operations import CLEAR, DIAMOND, MAPPED, expanded, finished, mapped, operate, task, tries


def cancelled(world: Any, run: int) -> None:
    world.cancel(run)
    world.advance()
    world.audit()
    assert world.run_state(run) == "failed"


def reasons(world: Any, run: int) -> dict[str, str | None]:
    rows = world.conn.execute(
        "select task_id, task_instance.reason from task_instance join dag_run r using (run_key)"
        " join task using (version_key, task_index) where run_key = %s",
        [run],
    )
    return dict(rows.fetchall())


def last_event(world: Any, run: int) -> tuple[str, str, str, dict[str, Any]]:
    found = world.conn.execute(
        "select event, state::text, actor, detail from run_event where run_key = %s and event = 'clear' order by at desc limit 1",
        [run],
    ).fetchone()
    assert found is not None
    return found


def test_a_run_that_was_cancelled_before_it_began_begins_when_it_is_cleared(world: Any) -> None:
    """R-CS8"""
    world.add_dag(DIAMOND)
    run = world.trigger("d")
    cancelled(world, run)
    assert world.states(run) == {}
    operate(world, run, CLEAR)
    assert last_event(world, run) == ("clear", "queued", "ann", {"instances": 4})
    assert world.drain() == ["a", "b", "c", "e"]
    assert world.run_state(run) == "success"
    assert world.conn.execute("select cancelled_by, reason from dag_run").fetchone() == (None, None)
    world.audit()


def test_so_it_does_when_it_is_rerun_and_can_be_cancelled_again(world: Any) -> None:
    world.add_dag(DIAMOND)
    run = world.trigger("d")
    world.conn.execute("update dag set is_paused = true")
    for _ in range(2):
        cancelled(world, run)
        operate(world, run, CLEAR, "b", only=Only.FAILED)
        assert world.run_state(run) == "queued"
    world.conn.execute("update dag set is_paused = false")
    assert world.drain() == ["a", "b", "c", "e"]
    world.audit()


def test_only_what_runs_of_it_is_nothing(world: Any) -> None:
    world.add_dag(DIAMOND)
    run = world.trigger("d")
    cancelled(world, run)
    operate(world, run, CLEAR, only=Only.RUNNING)
    assert world.run_state(run) == "failed"


def test_a_rerun_of_a_cancelled_run_runs_what_never_ran(world: Any) -> None:
    """R-CS8"""
    world.add_dag(DIAMOND)
    run = world.trigger("d")
    world.advance()
    world.report(world.claim())
    world.advance()
    (b, c) = world.claim()
    world.report([b])
    world.advance()
    world.cancel(run)
    world.advance()
    world.report([c], "failed")
    world.advance()
    assert world.states(run) == {"a": "success", "b": "success", "c": "failed", "e": "skipped"}
    operate(world, run, CLEAR, only=Only.FAILED)
    assert world.drain() == ["c", "e"]
    assert world.run_state(run) == "success"
    world.audit()


def test_it_leaves_what_a_branch_or_a_person_skipped(world: Any) -> None:
    spec = DagSpec(dag_id="d", tasks=(task("branch"), task("x", 0), task("y", 0), task("after_x", 1), task("z", 0), task("free")))
    world.add_dag(spec)
    run = world.trigger("d")
    world.advance()
    live = world.claim()
    world.report([t for t in live if t.task_id == "branch"], skip=[1])
    world.advance()
    operate(world, run, TaskEvent.MARK_SKIPPED, "z")
    world.cancel(run)
    world.advance()
    world.report([t for t in live if t.task_id == "free"], "failed")
    world.advance()
    operate(world, run, CLEAR, only=Only.FAILED)
    done = world.drain()
    assert sorted(done) == ["free", "y"]
    assert {name for name, state in world.states(run).items() if state == "skipped"} == {"x", "after_x", "z"}
    world.audit()


def test_it_runs_untouched_instances_of_mapped_tasks(world: Any) -> None:
    run = expanded(world, 5, 2)
    (first, second) = world.claim()
    world.report([first])
    world.advance()
    world.cancel(run)
    world.advance()
    for t in [second, *world.claim()]:
        world.report([t], "failed")
    world.advance()
    world.audit()
    assert world.run_state(run) == "failed"
    operate(world, run, CLEAR, only=Only.FAILED)
    done = world.drain()
    assert (done.count("m"), done.count("end")) == (4, 1)
    assert world.run_state(run) == "success"
    world.audit()


def test_a_task_that_a_branch_skips_again_says_so_again(world: Any) -> None:
    spec = DagSpec(dag_id="d", tasks=(task("branch"), task("x", 0), task("y", 0)))
    world.add_dag(spec)
    run = world.trigger("d")
    world.advance()
    world.report(world.claim(), skip=[1])
    world.drain()
    assert reasons(world, run)["x"] == "Skipped by the decision of task 'branch'."
    operate(world, run, CLEAR, "x")
    assert world.states(run)["x"] == "skipped"
    assert reasons(world, run)["x"] == "Skipped by the decision of task 'branch'."


def test_history_counts_the_instances_of_a_mapped_task(world: Any) -> None:
    spec = DagSpec(dag_id="d", tasks=(task("m", mapping=mapped(7)), task("end", 0)))
    run = finished(world, spec)
    operate(world, run, CLEAR)
    assert last_event(world, run)[3] == {"instances": 8}
    world.drain()
    assert tries(world, run) == {"m": 2, "end": 2}
    run = expanded_anew(world)
    operate(world, run, CLEAR, "m")
    assert last_event(world, run)[3] == {"tasks": ["m"], "instances": 10}


def expanded_anew(world: Any) -> int:
    """With two of ten instances running."""
    world.set_limit("pool", "p", 2)
    spec = DagSpec(dag_id="other", tasks=MAPPED.tasks)
    world.add_dag(spec)
    run = world.trigger("other")
    world.advance()
    world.report(world.claim(), result=list(range(10)))
    world.advance()
    world.claim()
    return int(run)
