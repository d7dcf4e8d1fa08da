"""``dagrun_timeout`` and ``max_consecutive_failed_dag_runs``."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from evenflow.core.model import DagSpec, TaskSpec
from evenflow.store.db.connect import connect
from evenflow.store.scheduling import runs as store
from tests.scheduler.world import World
from tests.waiting import BLOCKED, wait_until


def task(task_id: str, *upstream: int) -> TaskSpec:
    return TaskSpec(task_id=task_id, operator="python", upstream=upstream)


def test_a_run_that_takes_too_long_fails(world: World) -> None:
    """R-CS6, R-CS8: what runs is killed, what waits is skipped, and the run says why."""
    world.add_dag(DagSpec(dag_id="d", tasks=(task("a"), task("b", 0)), dagrun_timeout=7200.0))
    run = world.trigger("d")
    world.advance()
    (a,) = world.claim()
    world.report([a], started=True)
    world.advance()
    due = "select extract(epoch from t.due_at - r.started_at)::int from timer t join dag_run r using (run_key)"
    assert world.conn.execute(due).fetchone() == (7200,)
    world.conn.execute("update timer set due_at = now()")
    world.advance()
    assert world.conn.execute("select count(*) from dispatch where kill").fetchone() == (1,)
    assert world.states(run)["b"] == "skipped"
    world.report([a], "failed", reason="killed")
    world.advance()
    assert world.run_state(run) == "failed"
    reason = world.conn.execute("select reason from dag_run where run_key = %s", [run]).fetchone()
    assert reason == ("cancelled by its dagrun_timeout of 2:00:00",)
    assert world.conn.execute("select count(*) from timer").fetchone() == (0,)
    world.audit()


def test_a_timeout_of_an_earlier_start_is_void(world: World) -> None:
    world.add_dag(DagSpec(dag_id="d", tasks=(task("a"),), dagrun_timeout=7200.0))
    run = world.trigger("d")
    world.advance()
    world.conn.execute("update dag_run set started_at = started_at + interval '1 second'")
    world.conn.execute("update timer set due_at = now()")
    world.advance()
    assert world.run_state(run) == "running"
    assert world.conn.execute("select count(*) from timer").fetchone() == (0,)
    world.drain()
    assert world.run_state(run) == "success"


def test_so_many_failures_in_a_row_pause_the_dag(world: World) -> None:
    world.add_dag(DagSpec(dag_id="d", tasks=(task("a"),), max_consecutive_failed_dag_runs=2))
    paused = "select is_paused, paused_reason from dag where dag_id = 'd'"
    for outcome in ("failed", "success", "failed"):
        world.trigger("d")
        world.drain({"a": outcome})
        assert world.conn.execute(paused).fetchone() == (False, None)
    world.trigger("d")
    world.drain({"a": "failed"})
    assert world.conn.execute(paused).fetchone() == (True, "its last 2 runs failed (max_consecutive_failed_dag_runs)")
    waiting = world.trigger("d")
    world.advance()
    assert world.run_state(waiting) == "queued"
    world.audit()


def test_failures_at_the_same_time_in_two_schedulers_are_counted_together(world: World, database_url: str) -> None:
    world.add_dag(DagSpec(dag_id="d", tasks=(task("a"),)))
    runs = [world.trigger("d") for _ in range(2)]
    fail = "update dag_run set state = 'failed' where run_key = %s"
    with connect(database_url, name="other") as other, connect(database_url, name="eye") as eye, ThreadPoolExecutor(1) as pool:
        with world.conn.transaction():
            world.conn.execute(fail, [runs[0]])
            store.pause_failing(world.conn, [("d", 2)])

            def second() -> None:
                with other.transaction():
                    other.execute(fail, [runs[1]])
                    store.pause_failing(other, [("d", 2)])

            done = pool.submit(second)
            wait_until(lambda: done.done() or eye.execute(BLOCKED).fetchone() != (0,), within_s=20)
            assert not done.done()
        done.result()
    assert world.conn.execute("select is_paused from dag where dag_id = 'd'").fetchone() == (True,)
