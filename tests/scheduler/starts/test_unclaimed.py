"""``queued_timeout``: what becomes of a try that no worker has claimed in time (R-CS6)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from evenflow.core import metrics
from evenflow.core.model import DagSpec, TaskSpec
from evenflow.core.spec.shape import check_shape
from evenflow.errors import DagError
from evenflow.scheduler.advance import advance
from evenflow.scheduler.turn_metrics import TurnMetrics
from evenflow.store.db.rows import Conn, execute
from evenflow.store.serving import executors
from tests.scheduler.world import World
from tests.world import at_once


def task(**options: Any) -> TaskSpec:
    return TaskSpec(**{"task_id": "a", "operator": "python", "queue": "gpu", "queued_timeout": 600.0, **options})


def a_run(world: World, *tasks: TaskSpec) -> int:
    world.add_dag(DagSpec(dag_id="d", tasks=tasks))
    run = world.trigger("d")
    world.advance()
    return run


def let_it_pass(world: World) -> dict[str, int]:
    """Until the time is over, and all that follows; answers what was told of it."""
    world.conn.execute("update timer set due_at = now() where kind = 'queued_timeout'")
    progress = advance(world.conn, world.catalog)
    world.advance()
    return dict(progress.overdue)


def timers(world: World) -> int:
    return int(world.one("select count(*) from timer where kind = 'queued_timeout'"))


def events(world: World, run: int) -> list[tuple[str, str]]:
    rows = world.conn.execute("select event, state::text from task_event where run_key = %s order by at, epoch", [run])
    return list(rows.fetchall())


def test_one_that_is_only_told_waits_on(world: World) -> None:
    """R-CS6: history, metrics and why say so, and whoever comes late may still have it."""
    run = a_run(world, task())
    due = "select extract(epoch from t.due_at - d.created_at)::int from timer t join dispatch d using (epoch)"
    assert world.one(due) == 600
    assert let_it_pass(world) == {"tell": 1}
    assert events(world, run) == [("grant", "queued"), ("overdue", "queued")]
    assert timers(world) == 0
    world.report(world.claim(queues=("gpu",)))
    world.advance()
    assert world.run_state(run) == "success"
    world.audit()


def test_one_that_is_to_fail_has_failed_and_gives_back_what_it_held(world: World) -> None:
    """R-CS6: what its retries allow follows, and the time of each try is its own."""
    run = a_run(world, task(on_queued_timeout="fail", retries=1, retry_delay=0.0))
    assert let_it_pass(world) == {"fail": 1}
    assert world.states(run) == {"a": "queued"}
    assert world.one("select try_number from task_instance") == 2
    assert timers(world) == 1
    let_it_pass(world)
    assert world.states(run) == {"a": "failed"}
    assert world.one("select reason from task_instance") == "no worker has claimed it in the queue gpu within 10 m 00 s"
    assert (world.used("pool"), world.used("executor")) == (0, 0)
    assert world.run_state(run) == "failed"
    world.audit()


def test_one_goes_elsewhere_without_using_up_a_try_and_waits_there_for_as_long_as_it_takes(world: World) -> None:
    """R-CS6, R-EX1: it takes a slot of the other queue's executor, and gives back the one that it had."""
    at_once(executors.set_executor(world.awaited, name="far", kind="native", queues=["gpu"], slots=5, options={}, by="test"))
    run = a_run(world, task(on_queued_timeout="elsewhere", other_queue="burst"))
    assert (world.used("executor", "far"), world.used("executor", "worker")) == (1, 0)
    assert let_it_pass(world) == {"elsewhere": 1}
    assert (world.used("executor", "far"), world.used("executor", "worker")) == (0, 1)
    assert world.claim(queues=("gpu",)) == []
    assert timers(world) == 0
    (begun,) = world.claim(queues=("burst",))
    assert begun.try_number == 1
    assert [event for event, _ in events(world, run)] == ["grant", "elsewhere", "grant"]
    world.report([begun])
    world.advance()
    assert world.run_state(run) == "success"
    world.audit()


def test_elsewhere_too_it_waits_for_a_slot(world: World) -> None:
    """R-CS6, R-ST1: no executor gets more than it has slots, whoever sends."""
    at_once(executors.set_executor(world.awaited, name="far", kind="native", queues=["burst"], slots=1, options={}, by="test"))
    elsewhere = {"on_queued_timeout": "elsewhere", "other_queue": "burst"}
    run = a_run(world, *(task(task_id=f"t{n}", **elsewhere) for n in range(3)))
    assert let_it_pass(world) == {"elsewhere": 3}
    assert sorted(world.states(run).values()) == ["queued", "scheduled", "scheduled"]
    assert world.used("executor", "far") == 1
    world.audit()
    done = 0
    while tries := world.claim(queues=("burst",)):
        assert len(tries) == 1
        done += 1
        world.report(tries)
        world.advance()
    assert (done, world.run_state(run)) == (3, "success")
    world.audit()


def test_one_of_a_mapped_task_that_waited_in_a_stored_lane_has_its_time_too(world: World) -> None:
    """R-CS6: whichever way it started."""
    world.resize("pool", "default_pool", 1)
    run = a_run(world, task(task_id="a"), task(task_id="b", queued_timeout=60.0))
    assert timers(world) == 1
    world.report(world.claim(queues=("gpu",)))
    world.advance()
    assert sorted(world.states(run).values()) == ["queued", "success"]
    epochs = "select count(*) from timer join dispatch using (epoch) where kind = 'queued_timeout'"
    assert world.one(epochs) == 1


def test_the_time_means_nothing_when_a_worker_has_it(world: World) -> None:
    """R-CS6: a claim counts, whether its process has begun or not."""
    run = a_run(world, task(on_queued_timeout="fail"))
    tries = world.claim(queues=("gpu",))
    assert let_it_pass(world) == {}
    assert world.states(run) == {"a": "queued"}
    world.report(tries)
    world.advance()
    assert world.run_state(run) == "success"


def test_a_resume_goes_elsewhere_and_never_fails_by_it(world: World) -> None:
    """R-CS6, R-DQ1: nobody would clean up what it has begun."""
    kinds = {"a": {"on_queued_timeout": "fail"}, "b": {"on_queued_timeout": "elsewhere", "other_queue": "burst"}}
    run = a_run(world, *(task(task_id=name, **options) for name, options in kinds.items()))
    world.defer(world.claim(queues=("gpu",)))
    world.advance()
    for index in range(2):
        world.fire(run, index)
    world.advance()
    assert let_it_pass(world) == {"tell": 1, "elsewhere": 1}
    resumed = [*world.claim(queues=("burst",)), *world.claim(queues=("gpu",))]
    assert [t.task_id for t in resumed] == ["b", "a"]
    world.report(resumed)
    world.advance()
    assert world.run_state(run) == "success"
    world.audit()


def test_one_that_has_deferred_meanwhile_is_not_touched(world: World) -> None:
    """R-DQ9: its epoch is the same until it resumes."""
    run = a_run(world, task(on_queued_timeout="fail"))
    world.defer(world.claim(queues=("gpu",)))
    world.advance()
    assert let_it_pass(world) == {}
    assert world.states(run) == {"a": "deferred"}
    world.audit()


def test_a_cancelled_run_is_left_to_its_cancel(world: World) -> None:
    run = a_run(world, task(on_queued_timeout="elsewhere", other_queue="burst"))
    world.cancel(run)
    let_it_pass(world)
    assert world.run_state(run) == "failed"
    assert world.claim(queues=("burst", "gpu")) == []
    world.audit()


def test_the_metric_tells_what_became_of_them(world: World) -> None:
    """R-CS6."""
    a_run(world, task())
    world.conn.execute("update timer set due_at = now()")
    turn_metrics = TurnMetrics()
    turn_metrics.add(advance(world.conn, world.catalog), 0.01)
    assert turn_metrics.meter.value(metrics.QUEUED_TIMEOUTS, "tell") == 1


def test_without_any_such_task_nothing_is_asked(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-ST5: what nobody uses costs no statement."""
    asked: list[str] = []

    def watched(conn: Conn, name: str, params: Any) -> Any:
        asked.append(name)
        return execute(conn, name, params)

    monkeypatch.setattr("evenflow.store.scheduling.tasks.execute", watched)
    a_run(world, task(queued_timeout=None))
    assert "tasks/insert_queued_timeouts" not in asked
    assert "tasks/insert_dispatches" in asked


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"queued_timeout": None, "on_queued_timeout": "fail"}, "no queued_timeout: say after how long"),
        ({"on_queued_timeout": "elsewhere"}, "no other_queue: say which queue"),
        ({"other_queue": "burst"}, "it goes with 'elsewhere'"),
        ({"on_queued_timeout": "elsewhere", "other_queue": "gpu"}, "nothing would change"),
    ],
)
def test_what_does_not_go_together_is_refused(options: dict[str, Any], told: str) -> None:
    """R-CS10."""
    with pytest.raises(DagError, match=told):
        check_shape(DagSpec(dag_id="d", tasks=(replace(task(), **options),)))
