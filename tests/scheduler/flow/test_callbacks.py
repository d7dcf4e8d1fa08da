"""Callbacks are work for workers (R-CS4), deadlines are timers (R-CS6): what the scheduler makes, and when."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from evenflow.core.callbacks import CALLBACK_DAG, CALLBACK_POOL
from evenflow.core.model import DagSpec, DeadlineSpec, TaskSpec
from evenflow.core.trigger_rules import TriggerRule
from evenflow.store.scheduling.schedules import ScheduledRun, insert_runs
from evenflow.store.serving.callbacks import restore_dag
from tests.scheduler.world import World

CALLS = (
    "select c.event, t.task_id, c.map_index, c.try_number, c.position, c.state, c.reason from callback c"
    " join dag_run r on r.run_key = c.of_run left join task t on t.version_key = r.version_key and t.task_index = c.task_index"
    " where c.of_run = %s order by c.run_key, c.position"
)


def calls(world: World, run_key: int) -> list[tuple[Any, ...]]:
    return world.conn.execute(CALLS, [run_key]).fetchall()


def a_task(task_id: str, *callbacks: str, **fields: Any) -> TaskSpec:
    return TaskSpec(task_id=task_id, operator="python", callbacks=callbacks, **fields)


def run_of(world: World, *tasks: TaskSpec, **fields: Any) -> int:
    world.add_dag(DagSpec(dag_id="d", tasks=tasks, **fields))
    run_key = world.trigger("d")
    world.advance()
    return run_key


def finish(world: World, outcome: str, **payload: Any) -> None:
    """Ends every try of the DAG itself; its callbacks stay where they are."""
    mine = [t for t in world.claim() if t.task_id != "callback"]
    world.report(mine, outcome, **payload)
    world.advance()


def test_one_call_for_each_function_of_an_event(world: World) -> None:
    every = ("on_success_callback", "on_failure_callback", "on_failure_callback", "on_retry_callback", "on_skipped_callback")
    run_key = run_of(world, a_task("t", *every, retries=1, retry_delay=0.0))
    finish(world, "failed", reason="ValueError: no")
    assert calls(world, run_key) == [("on_retry_callback", "t", -1, 1, 0, "up_for_retry", "ValueError: no")]
    world.advance()
    world.report([t for t in world.claim() if t.task_id == "t"], "failed", reason="ValueError: again")
    world.advance()
    assert calls(world, run_key)[1:] == [
        ("on_failure_callback", "t", -1, 2, position, "failed", "ValueError: again") for position in (0, 1)
    ]
    assert world.run_state(run_key) == "failed"
    world.audit()


@pytest.mark.parametrize(("outcome", "event"), [("success", "on_success_callback"), ("skipped", "on_skipped_callback")])
def test_how_it_ended_says_which(world: World, outcome: str, event: str) -> None:
    run_key = run_of(world, a_task("t", "on_success_callback", "on_failure_callback", "on_skipped_callback"))
    finish(world, outcome)
    assert [call[0] for call in calls(world, run_key)] == [event]


def test_what_never_ran_because_of_others_calls_nothing(world: World) -> None:
    below = a_task("below", "on_failure_callback", "on_skipped_callback", upstream=(0,))
    never = a_task("never", "on_skipped_callback", upstream=(0,), trigger_rule=TriggerRule.ONE_SUCCESS)
    run_key = run_of(world, a_task("t"), below, never)
    finish(world, "failed")
    assert world.states(run_key)["below"] == "upstream_failed"
    assert calls(world, run_key) == []


@pytest.mark.parametrize(("outcome", "state", "reason"), [("success", "success", "success"), ("failed", "failed", "task_failure")])
def test_the_end_of_a_run_calls_its_dag(world: World, outcome: str, state: str, reason: str) -> None:
    run_key = run_of(world, a_task("t"), callbacks=("on_success_callback", "on_failure_callback"))
    finish(world, outcome)
    event = "on_success_callback" if outcome == "success" else "on_failure_callback"
    assert calls(world, run_key) == [(event, None, -1, 0, 0, state, reason)]


def test_a_cancelled_run_has_failed(world: World) -> None:
    unbegun = a_task("unbegun", "on_failure_callback", "on_skipped_callback", upstream=(0,))
    run_key = run_of(world, a_task("t", "on_failure_callback"), unbegun, callbacks=("on_failure_callback",))
    tries = world.claim()
    world.report(tries, started=True)
    world.cancel(run_key)
    world.advance()
    world.report(tries, "failed")
    world.advance()
    assert [call[:2] for call in calls(world, run_key)] == [("on_failure_callback", "t"), ("on_failure_callback", None)]


def test_a_callback_is_a_run_in_a_pool_of_its_own(world: World) -> None:
    """R-CS4. It has tries like any other; the run that it is about ends without it, and that DAG may be paused."""
    run_key = run_of(world, a_task("t", "on_success_callback"))
    tries = world.claim()
    world.conn.execute("update dag set is_paused = true where dag_id = 'd'")
    world.report(tries)
    world.advance()
    assert world.run_state(run_key) == "success"
    (callback,) = world.claim()
    pool, used, state = world.conn.execute(
        "select l.name, l.used, r.state::text from dispatch d join concurrency_limit l on l.limit_id = d.holds[1]"
        " join dag_run r on r.run_key = d.run_key where epoch = %s",
        [callback.epoch],
    ).fetchone()
    assert (pool, used, state) == (CALLBACK_POOL, 1, "running")
    world.report([callback], "failed", reason="SMTP down")
    world.advance()
    assert world.states(callback.run_key) == {"callback": "up_for_retry"}
    world.audit()


def test_callbacks_are_of_the_version_that_came_with_the_schema(world: World) -> None:
    """R-SE2. Whatever is written into that DAG, each callback is called; and the next scheduler that starts repairs it."""
    forged = DagSpec(dag_id=CALLBACK_DAG, tasks=(TaskSpec(task_id="callback", operator="empty", empty=True, queue="mine"),))
    (version,) = world.conn.execute(
        "insert into dag_version (dag_id, version_number, spec, spec_hash, code_hash, file) values (%s, 2, %s, 'x', '', 'mine.py')"
        " returning version_key",
        [CALLBACK_DAG, forged.to_json()],
    ).fetchone()
    world.conn.execute(
        "update dag set version_key = %s, bundle = 'b', file = 'mine.py', is_active = false where dag_id = %s",
        [version, CALLBACK_DAG],
    )
    run_key = run_of(world, a_task("t", "on_success_callback"))
    finish(world, "success")
    assert [call[0] for call in calls(world, run_key)] == ["on_success_callback"]
    (callback,) = world.claim()
    (queue,) = world.conn.execute("select queue from dispatch where epoch = %s", [callback.epoch]).fetchone()
    assert queue == "default"
    assert restore_dag(world.conn) is True
    assert restore_dag(world.conn) is False
    now = "select version_number, d.bundle, d.file, is_active from dag d join dag_version v using (version_key) where d.dag_id = %s"
    assert world.conn.execute(now, [CALLBACK_DAG]).fetchone() == (1, "evenflow", "", True)


def test_a_blocked_callback_delays_no_decision(world: World) -> None:
    """R-CS4: as many as the pool holds hang on workers and never report; the runs of their DAG go on meanwhile, all of them."""
    (capacity,) = world.conn.execute("select capacity from concurrency_limit where name = %s", [CALLBACK_POOL]).fetchone()
    world.add_dag(DagSpec(dag_id="d", tasks=(a_task("a", "on_success_callback"), a_task("b", upstream=(0,)))))
    for _ in range(capacity + 3):
        run_key = world.trigger("d")
        world.advance()
        for task_id in ("a", "b"):
            (mine,) = [t for t in world.claim() if t.task_id == task_id]
            world.report([mine])
            world.advance()
        assert world.run_state(run_key) == "success"
    hanging, waiting = world.conn.execute(
        "select count(*) filter (where i.state = 'queued'), count(*) filter (where i.state = 'scheduled')"
        " from task_instance i join dag_run r using (run_key) where r.dag_id = %s",
        [CALLBACK_DAG],
    ).fetchone()
    assert (hanging, waiting) == (capacity, 3)
    world.audit()


def test_nothing_is_made_without_callbacks(world: World) -> None:
    run_key = run_of(world, a_task("t"))
    finish(world, "success")
    assert world.run_state(run_key) == "success"
    assert world.conn.execute("select (select count(*) from callback), (select count(*) from timer)").fetchone() == (0, 0)


DUE = [
    (DeadlineSpec(name="x", reference="queued_at", interval=90.0), "created_at + interval '90 s'"),
    (DeadlineSpec(name="x", reference="logical_date", interval=60.0), "logical_date + interval '1 min'"),
    (DeadlineSpec(name="x", reference="fixed_datetime", at="2031-01-01T00:00:00+01:00"), "timestamptz '2030-12-31 23:00+00'"),
    (DeadlineSpec(name="x", reference="time_of_day", at="07:00:00", timezone="Europe/Berlin"), "timestamptz '2030-07-02 05:00+00'"),
    (DeadlineSpec(name="x", reference="time_of_day", at="23:30:00", interval=60.0), "timestamptz '2030-07-01 23:31+00'"),
]


@pytest.mark.parametrize(("deadline", "due"), DUE)
def test_when_a_deadline_is_due(world: World, deadline: DeadlineSpec, due: str) -> None:
    version = world.add_dag(DagSpec(dag_id="d", tasks=(a_task("t"),), deadlines=(deadline,)))
    hours = [datetime(2030, 7, 1, hour, tzinfo=UTC) for hour in (11, 12)]
    insert_runs(world.conn, [ScheduledRun("d", "r", version, "{}", hours[0], *hours, hours[1])])
    (right,) = world.conn.execute(
        f"select due_at = {due} from timer join dag_run using (run_key) where kind = 'deadline'"
    ).fetchone()
    assert right


def test_a_deadline_by_the_average_runtime(world: World) -> None:
    """R-AF1: of the last runs that succeeded, if there are enough."""
    average = DeadlineSpec(name="x", reference="average_runtime", runs=3, least=2, interval=60.0)
    version = world.add_dag(DagSpec(dag_id="d", tasks=(a_task("t"),), deadlines=(average,)))
    ends = (
        "update dag_run set state = %s::run_state, started_at = now(), ended_at = now() + make_interval(secs => %s)"
        " where run_key = %s"
    )
    for state, seconds in [
        ("success", 1000),
        ("failed", 5000),
        ("success", 100),
        ("success", 200),
        ("success", 300),
        ("failed", 1),
    ]:
        world.conn.execute(ends, [state, seconds, world.run(version)])
    after = "select extract(epoch from due_at - created_at)::float from timer join dag_run using (run_key) order by run_key"
    assert [seconds for (seconds,) in world.conn.execute(after)] == pytest.approx([550 + 60, 1300 / 3 + 60, 200 + 60])


def test_a_run_without_a_logical_date_has_no_deadline_by_it(world: World) -> None:
    world.add_dag(DagSpec(dag_id="d", tasks=(a_task("t"),), deadlines=(DeadlineSpec(name="x", reference="logical_date"),)))
    world.trigger("d")
    assert world.conn.execute("select from timer").fetchall() == []


def test_a_missed_deadline_shows_and_calls(world: World) -> None:
    """R-CS6. Each deadline by itself; the run goes on, and each is missed once."""
    first = DeadlineSpec(name="soon", reference="queued_at", callbacks=1)
    second = DeadlineSpec(name="too soon", reference="queued_at", interval=-60.0, callbacks=2)
    run_key = run_of(world, a_task("t"), deadlines=(first, second))
    world.advance()
    missed = world.conn.execute("select detail ->> 'deadline' from run_event where event = 'deadline_missed' order by 1").fetchall()
    assert missed == [("soon",), ("too soon",)]
    called = sorted(calls(world, run_key), key=lambda call: call[4])
    assert [(call[0], call[4]) for call in called] == [("deadline_callback", position) for position in range(3)]
    assert "'soon'" in called[0][6]
    assert world.run_state(run_key) == "running"
    world.audit()


def test_a_deadline_is_void_when_the_run_has_ended(world: World) -> None:
    deadline = DeadlineSpec(name="later", reference="queued_at", interval=3600.0, callbacks=1)
    run_key = run_of(world, a_task("t"), deadlines=(deadline,))
    finish(world, "success")
    world.conn.execute("update timer set due_at = now()")
    world.advance()
    assert calls(world, run_key) == []
    assert world.conn.execute("select from timer").fetchall() == []


def test_a_queued_run_can_miss_its_deadline(world: World) -> None:
    world.add_dag(DagSpec(dag_id="d", tasks=(a_task("t"),), deadlines=(DeadlineSpec(name="x", reference="queued_at"),)))
    world.conn.execute("update dag set is_paused = true where dag_id = 'd'")
    run_key = world.trigger("d")
    world.advance()
    assert world.conn.execute("select event from run_event where run_key = %s", [run_key]).fetchall() == [("deadline_missed",)]


def test_the_dag_of_callbacks_is_what_the_model_reads(world: World) -> None:
    spec = DagSpec.from_json(
        world.conn.execute("select spec::text from dag_version where dag_id = %s", [CALLBACK_DAG]).fetchone()[0]
    )
    assert (spec.dag_id, spec.max_active_runs, spec.tasks[0].pool) == (CALLBACK_DAG, None, CALLBACK_POOL)
