"""What one task, one DAG or one row says cannot stop the scheduler for all others."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from evenflow.core.model import DagSpec, Schedule, TaskSpec
from evenflow.core.operations import Operation
from evenflow.core.states import TaskEvent
from evenflow.core.trigger_rules import TriggerRule
from evenflow.scheduler.assets import create_asset_runs
from evenflow.scheduler.duties import Orphans
from evenflow.scheduler.duties.schedules import create_scheduled
from evenflow.store.scheduling.operations import request
from tests.scheduler.world import World

FIRST = datetime(2026, 3, 1, tzinfo=UTC)


def task(task_id: str, *upstream: int, **kw: Any) -> TaskSpec:
    return TaskSpec(task_id=task_id, operator="python", upstream=upstream, **kw)


def test_a_branch_that_names_what_cannot_be_a_task(world: World) -> None:
    world.add_dag(DagSpec(dag_id="d", tasks=(task("a"), task("b", 0), task("c", 0))))
    run = world.trigger("d")
    world.advance()
    world.report(world.claim(), skip=[2**40, -5, 99, 1])
    world.advance()
    assert world.states(run) == {"a": "success", "b": "skipped", "c": "queued"}
    assert world.conn.execute("select skipped from branch_decision").fetchone() == ([1],)


def test_reports_of_runs_that_are_gone_go_too(world: World) -> None:
    world.add_dag(DagSpec(dag_id="d", tasks=(task("a"),)))
    run = world.trigger("d")
    world.conn.execute("insert into report (run_key, kind, epoch) select n, 'exit', n from generate_series(1, 5000) n")
    world.conn.execute("insert into report (run_key, kind, epoch, payload) values (%s, 'cancel', 0, '{}')", [run])
    orphans = Orphans()
    orphans.delete(world.conn)
    orphans.delete(world.conn)
    assert world.conn.execute("select count(*) from report").fetchone() == (1,)
    world.advance()
    assert world.run_state(run) == "failed"


def test_a_branch_skips_what_an_operator_has_just_let_begin(world: World) -> None:
    spec = DagSpec(dag_id="d", tasks=(task("a"), task("b"), task("x", 0, 1, trigger_rule=TriggerRule.ONE_SUCCESS)))
    world.add_dag(spec)
    run = world.trigger("d")
    world.advance()
    a, b = sorted(world.claim(), key=lambda t: t.task_id)
    world.report([a])
    world.advance()
    world.report(world.claim())
    world.advance()
    request(world.conn, [run], Operation(event=TaskEvent.CLEAR, actor="ann", tasks=("x",)))
    world.report([b], skip=[2])
    world.advance()
    assert world.states(run) == {"a": "success", "b": "success", "x": "queued"}
    world.audit()


def test_a_branch_skips_what_the_run_before_has_just_let_begin(world: World) -> None:
    late = task("x", 0, 1, trigger_rule=TriggerRule.ONE_SUCCESS, depends_on_past=True)
    world.add_dag(DagSpec(dag_id="d", tasks=(task("a"), task("b"), late)))
    first, second = (world.trigger("d", logical_date=FIRST + timedelta(days=n)) for n in range(2))
    world.conn.execute("update dag_run set run_type = 'scheduled'")
    world.advance()
    tries = {(t.run_key, t.task_id): t for t in world.claim()}
    world.report([tries[first, "a"], tries[first, "b"], tries[second, "a"]])
    world.advance()
    world.report(world.claim())
    world.conn.execute("insert into report (run_key, kind, epoch, payload) values (%s, 'past', 0, '{\"task\": 2}')", [second])
    world.report([tries[second, "b"]], skip=[2])
    world.advance()
    assert world.states(second)["x"] == "skipped"
    world.drain()
    assert world.run_state(second) == "success"
    world.audit()


def test_an_operation_and_word_of_the_past_let_one_task_begin(world: World) -> None:
    held = TaskSpec(task_id="x", operator="empty", empty=True, depends_on_past=True)
    world.add_dag(DagSpec(dag_id="d", tasks=(held, task("y"))))
    second = world.trigger("d")
    world.advance()
    world.conn.execute("update task_instance set state = 'none', ended_at = null where run_key = %s and task_index = 0", [second])
    world.conn.execute("update dag_run set unfinished = 2 where run_key = %s", [second])
    world.conn.execute("insert into past_gate values (%s, 0, 1)", [second])
    world.conn.execute("insert into past_hold values (%s, 0, -1)", [second])
    (y,) = (t for t in world.claim() if t.run_key == second)
    world.report([y], "failed")
    world.advance()
    request(world.conn, [second], Operation(event=TaskEvent.CLEAR, actor="ann", tasks=("y",)))
    world.conn.execute("insert into report (run_key, kind, epoch, payload) values (%s, 'past', 0, '{\"task\": 0}')", [second])
    world.advance()
    assert world.states(second) == {"x": "success", "y": "queued"}
    world.audit()


def unreadable(world: World, dag_id: str) -> None:
    """A newer Evenflow has stored this version, and was taken back."""
    world.conn.execute(
        "update dag_version set spec = jsonb_set(spec, '{surprise}', '1') where dag_id = %s and version_number = 1", [dag_id]
    )


def test_a_dag_that_cannot_be_read_holds_up_no_schedule(world: World) -> None:
    for dag_id in ("a", "b"):
        world.add_dag(DagSpec(dag_id=dag_id, tasks=(task("t"),), schedule=Schedule(kind="cron", cron="@hourly")))
    world.conn.execute("update dag set next_run_at = now() - interval '1 minute' where dag_id in ('a', 'b')")
    unreadable(world, "a")
    create_scheduled(world.conn)
    assert world.conn.execute("select dag_id from dag_run").fetchall() == [("b",)]


def test_a_dag_that_cannot_be_read_holds_up_no_run_for_assets(world: World) -> None:
    for dag_id in ("a", "b"):
        world.add_dag(DagSpec(dag_id=dag_id, tasks=(task("t"),), schedule=Schedule(kind="assets", assets="x")))
        world.conn.execute("insert into asset_queue values (%s, 'x', false, 1)", [dag_id])
    unreadable(world, "a")
    create_asset_runs(world.conn)
    assert world.conn.execute("select dag_id from dag_run").fetchall() == [("b",)]
