"""A cancelled run can be taken up again: what never ran of it runs, and what was decided before stays decided."""

from __future__ import annotations

from typing import Any

import pytest

from evenflow.core.model import DagSpec
from evenflow.core.operations import Only
from evenflow.core.states import TaskEvent
from tests.scheduler.operated.test_operations import CLEAR, DIAMOND, MAPPED, expanded, finished, mapped, operate, task, tries
from tests.scheduler.world import World


def cancelled(world: World, run: int) -> None:
    world.cancel(run)
    world.advance()
    world.audit()
    assert world.run_state(run) == "failed"


def reasons(world: World, run: int) -> dict[str, str | None]:
    rows = world.conn.execute(
        "select task_id, task_instance.reason from task_instance join dag_run r using (run_key)"
        " join task using (version_key, task_index) where run_key = %s",
        [run],
    )
    return dict(rows.fetchall())


def last_event(world: World, run: int) -> tuple[str, str, str, dict[str, Any]]:
    found = world.conn.execute(
        "select event, state::text, actor, detail from run_event where run_key = %s and event = 'clear' order by at desc limit 1",
        [run],
    ).fetchone()
    assert found is not None
    return found


def test_a_run_that_was_cancelled_before_it_began_begins_when_it_is_cleared(world: World) -> None:
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


def test_so_it_does_when_it_is_rerun_and_can_be_cancelled_again(world: World) -> None:
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


def test_only_what_runs_of_it_is_nothing(world: World) -> None:
    world.add_dag(DIAMOND)
    run = world.trigger("d")
    cancelled(world, run)
    operate(world, run, CLEAR, only=Only.RUNNING)
    assert world.run_state(run) == "failed"


def test_a_rerun_of_a_cancelled_run_runs_what_never_ran(world: World) -> None:
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


def test_it_leaves_what_a_branch_or_a_person_skipped(world: World) -> None:
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


def test_it_runs_untouched_instances_of_mapped_tasks(world: World) -> None:
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


def test_a_task_that_a_branch_skips_again_says_so_again(world: World) -> None:
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


def test_history_counts_the_instances_of_a_mapped_task(world: World) -> None:
    spec = DagSpec(dag_id="d", tasks=(task("m", mapping=mapped(7)), task("end", 0)))
    run = finished(world, spec)
    operate(world, run, CLEAR)
    assert last_event(world, run)[3] == {"instances": 8}
    world.drain()
    assert tries(world, run) == {"m": 2, "end": 2}
    run = expanded_anew(world)
    operate(world, run, CLEAR, "m")
    assert last_event(world, run)[3] == {"tasks": ["m"], "instances": 10}


def expanded_anew(world: World) -> int:
    """With two of ten instances running."""
    world.pool("p", 2)
    spec = DagSpec(dag_id="other", tasks=MAPPED.tasks)
    world.add_dag(spec)
    run = world.trigger("other")
    world.advance()
    world.report(world.claim(), result=list(range(10)))
    world.advance()
    world.claim()
    return int(run)


def run_row(world: World, run: int) -> tuple[Any, ...]:
    row = world.conn.execute(
        "select state::text, started_at, ended_at, reason, cancelled_by from dag_run where run_key = %s", [run]
    )
    return tuple(row.fetchone())


def cancelled_while_a_is_queued(world: World, spec: DagSpec = DIAMOND) -> int:
    world.add_dag(spec)
    run = world.trigger(spec.dag_id)
    world.advance()
    cancelled(world, run)
    return int(run)


def test_what_had_not_started_is_skipped(world: World) -> None:
    """R-CS8: waiting, queued, or with a worker that had not begun it; what ran has failed, and each says why."""
    world.add_dag(DagSpec(dag_id="d", tasks=(task("runs"), task("queued"), task("claimed"), task("quick"), task("waits", 0))))
    run = world.trigger("d")
    world.advance()
    ours = {t.task_id: t for t in world.claim()}
    world.report([ours["runs"]], started=True)
    world.conn.execute("update dispatch set worker_id = null, claimed_at = null where task_index = 1")
    world.advance()
    world.cancel(run)
    world.advance()
    world.report([ours["claimed"]], "failed", reason="killed, before it was started", ran_s=None)
    world.report([ours["quick"]], "failed", reason="killed")  # began, and ended before anybody heard of its start
    world.report([ours["runs"]], "failed", reason="killed")
    world.advance()
    world.audit()
    assert world.states(run) == {"runs": "failed", "queued": "skipped", "claimed": "skipped", "quick": "failed", "waits": "skipped"}
    skipped = "The run was cancelled by somebody."
    killed = "The run was cancelled by somebody; killed"
    assert reasons(world, run) == {"runs": killed, "queued": skipped, "claimed": skipped, "quick": killed, "waits": skipped}
    operate(world, run, CLEAR, only=Only.FAILED)
    assert sorted(world.drain()) == ["claimed", "queued", "quick", "runs", "waits"]
    assert world.run_state(run) == "success"


def test_a_second_try_that_waits_to_start_has_run_before(world: World) -> None:
    """Its first one did: so it has failed, in a lane as well as queued."""
    world.pool("p", 2)
    world.add_dag(DagSpec(dag_id="d", tasks=tuple(task(name, retries=1, retry_delay=0.0, pool="p") for name in ("x", "y"))))
    run = world.trigger("d")
    world.advance()
    world.report(world.claim(), "failed")
    world.pool("p", 1)
    world.advance()
    world.conn.execute("update timer set due_at = now()")
    world.advance()
    assert set(world.states(run).values()) == {"queued", "scheduled"}
    cancelled(world, run)
    assert set(world.states(run).values()) == {"failed"}


def test_a_mark_clears_what_the_cancel_kept_from_starting_below(world: World) -> None:
    """R-CS8"""
    run = cancelled_while_a_is_queued(world)
    assert set(world.states(run).values()) == {"skipped"}
    operate(world, run, TaskEvent.MARK_SUCCESS, "a")
    assert world.drain() == ["b", "c", "e"]
    assert world.run_state(run) == "success"
    world.audit()


def test_a_run_of_which_a_cancel_has_left_something_is_no_success(world: World) -> None:
    """R-CS8: whatever else was marked; and a rerun finds all that never ran, also what was skipped again because of that."""
    run = cancelled_while_a_is_queued(world, DagSpec(dag_id="d", tasks=(task("a"), task("b"), task("c", 0, 1), task("free"))))
    operate(world, run, TaskEvent.MARK_SUCCESS, "a")
    assert world.drain() == []
    assert world.states(run) == {"a": "success", "b": "skipped", "c": "skipped", "free": "skipped"}
    state, *_, reason, _ = run_row(world, run)
    assert (state, "evenflow runs rerun" in reason) == ("failed", True)
    operate(world, run, CLEAR, "b")
    assert world.drain() == ["b"]
    assert (world.run_state(run), world.states(run)["c"]) == ("failed", "skipped")
    operate(world, run, CLEAR, only=Only.FAILED)
    assert world.drain() == ["c", "free"]
    assert world.run_state(run) == "success"
    world.audit()


def test_the_other_instances_of_a_mapped_task_keep_the_run_from_being_a_success(world: World) -> None:
    """R-CS8: with a row and without one."""
    run = expanded(world, 12, 3)
    world.cancel(run)
    world.advance()
    assert world.run_state(run) == "failed"
    operate(world, run, TaskEvent.MARK_SUCCESS, "m", map_indexes=(11,))
    world.drain()
    assert world.run_state(run) == "failed"
    world.audit()
    operate(world, run, CLEAR, only=Only.FAILED)
    assert (done := world.drain()).count("m") == 11
    assert done.count("end") == 1
    assert world.run_state(run) == "success"
    world.audit()


def test_what_a_person_skipped_of_a_mapped_task_stays_skipped(world: World) -> None:
    run = expanded(world, 5, 1)
    operate(world, run, TaskEvent.MARK_SKIPPED, "m")
    world.report(world.claim(), "failed")
    world.advance()
    world.drain()
    world.cancel(run)
    world.advance()
    operate(world, run, CLEAR, only=Only.FAILED)
    assert "m" not in world.drain()


def test_a_mark_after_which_nothing_is_to_do_leaves_the_times_of_the_run(world: World) -> None:
    run = cancelled_while_a_is_queued(world)
    _, started, ended, *_ = run_row(world, run)
    operate(world, run, TaskEvent.MARK_SUCCESS, "e")
    state, *_ = found = run_row(world, run)
    assert (state, *found[1:3]) == ("failed", started, ended)
    operate(world, run, TaskEvent.MARK_SUCCESS)
    assert run_row(world, run) == ("success", started, ended, None, None)
    world.audit()


def test_a_run_that_was_marked_failed_is_a_success_again(world: World) -> None:
    """R-CS8: nothing but the run changes, whatever of it was skipped; and so often as somebody wants."""
    run = finished(world, DIAMOND, c="skipped")
    before, (_, *times, _, _) = world.states(run), run_row(world, run)
    assert set(before.values()) == {"success", "skipped"}
    for _ in range(2):
        operate(world, run, TaskEvent.MARK_FAILED)
        assert run_row(world, run) == ("failed", *times, "marked failed by ann", None)
        operate(world, run, TaskEvent.MARK_SUCCESS)
        assert run_row(world, run) == ("success", *times, None, None)
    assert world.states(run) == before
    events = world.conn.execute("select event from run_event where run_key = %s and actor = 'ann' order by at", [run]).fetchall()
    assert [event for (event,) in events] == ["mark_failed", "mark_success"] * 2
    operate(world, run, TaskEvent.MARK_FAILED)
    operate(world, run, TaskEvent.MARK_FAILED, "e")
    operate(world, run, TaskEvent.MARK_SUCCESS)  # now a task has failed, too, and is marked with the run
    assert (world.run_state(run), set(world.states(run).values())) == ("success", {"success"})


def test_a_run_that_never_began_is_not_marked_as_a_success(world: World) -> None:
    world.add_dag(DIAMOND)
    run = world.trigger("d")
    cancelled(world, run)
    operate(world, run, TaskEvent.MARK_SUCCESS)
    assert world.run_state(run) == "failed"


@pytest.mark.parametrize("outcome", ["skipped", "failed"])
@pytest.mark.parametrize("said", ["The run was cancelled by the customer", "marked failed by the customer"])
def test_what_a_task_says_of_its_end_is_not_taken_for_a_cancel_or_a_mark(world: World, outcome: str, said: str) -> None:
    """R-CS8: word for word as Evenflow says it, and still a reason for people alone."""
    world.add_dag(DagSpec(dag_id="d", tasks=(task("asks"), task("other"), task("end", 0, 1, trigger_rule="all_done"))))
    run = world.trigger("d")
    world.advance()
    tries = {t.task_id: t for t in world.claim()}
    world.report([tries["asks"]], outcome, reason=said)
    world.report([tries["other"]])
    world.drain()
    assert (world.run_state(run), reasons(world, run)["asks"]) == ("success", said)
    operate(world, run, CLEAR, "other")
    assert world.drain() == ["other"]
    state, *_, reason, _ = run_row(world, run)
    assert (state, reason, world.states(run)["asks"]) == ("success", None, outcome)
    world.audit()


def test_what_a_task_says_on_an_earlier_try_is_not_taken_for_a_cancel(world: World) -> None:
    """R-CS8: it stands as the reason until another is given."""
    world.add_dag(DagSpec(dag_id="d", tasks=(task("asks", retries=1, retry_delay=0.0), task("other"))))
    run = world.trigger("d")
    world.advance()
    tries = {t.task_id: t for t in world.claim()}
    world.report([tries["asks"]], "failed", reason="The run was cancelled by the customer")
    world.report([tries["other"]])
    world.advance()
    world.conn.execute("update timer set due_at = now()")
    world.advance()
    world.report(world.claim(), "skipped")
    world.drain()
    operate(world, run, CLEAR, "other")
    assert (world.drain(), world.run_state(run)) == (["other"], "success")


def test_a_rerun_leaves_what_a_task_skipped_with_the_words_of_a_cancel(world: World) -> None:
    """R-CS8: of a run that was cancelled, too."""
    world.add_dag(DagSpec(dag_id="d", tasks=(task("asks"), task("other"), task("end", 0, 1))))
    run = world.trigger("d")
    world.advance()
    tries = {t.task_id: t for t in world.claim()}
    world.report([tries["asks"]], "skipped", reason="The run was cancelled by the customer")
    world.advance()
    world.cancel(run)
    world.advance()
    world.report([tries["other"]], "failed", reason="killed")
    world.advance()
    operate(world, run, CLEAR, only=Only.FAILED)
    assert world.drain() == ["other"]
    assert world.states(run)["asks"] == "skipped"


def test_why_a_run_failed_is_for_people_alone(world: World) -> None:
    """R-CS8: only of one that somebody has marked is the mark taken back."""
    run = finished(world, DIAMOND, c="failed")
    world.conn.execute("update dag_run set reason = 'marked failed by a task'")
    operate(world, run, TaskEvent.MARK_SUCCESS)
    assert set(world.states(run).values()) == {"success"}
