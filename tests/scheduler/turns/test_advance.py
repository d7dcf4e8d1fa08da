"""The transaction from reports to starts, on a real database."""

from __future__ import annotations

from typing import Any

import pytest

from evenflow.core.model import DagSpec, MapInput, Mapping, TaskSpec
from evenflow.core.trigger_rules import TriggerRule
from evenflow.scheduler.advance import advance
from evenflow.store.scheduling import leases
from tests.scheduler.world import World


def task(task_id: str, *upstream: int, **kw: Any) -> TaskSpec:
    return TaskSpec(task_id=task_id, operator="python", upstream=upstream, **kw)


def dag(*tasks: TaskSpec, dag_id: str = "d", **kw: Any) -> DagSpec:
    return DagSpec(dag_id=dag_id, tasks=tasks, **kw)


def test_a_chain_runs_in_order(world: World) -> None:
    world.add_dag(dag(task("a"), task("b", 0), task("c", 1)))
    run = world.trigger("d")
    assert world.drain() == ["a", "b", "c"]
    assert world.states(run) == {"a": "success", "b": "success", "c": "success"}
    assert world.run_state(run) == "success"
    world.audit()


def test_fast_follow_releases_and_starts_in_one_commit(world: World) -> None:
    """R-HA16: the transaction that ends a task starts its successor on the slot it frees."""
    world.add_dag(dag(task("a"), task("b", 0), max_active_tasks=1))
    world.trigger("d")
    world.advance()
    world.report(world.claim())
    assert world.advance().starts == 1
    assert [t.task_id for t in world.claim()] == ["b"]
    world.audit()


def test_fan_in_waits_for_all(world: World) -> None:
    world.add_dag(dag(task("a"), task("b"), task("c", 0, 1)))
    run = world.trigger("d")
    world.advance()
    a, b = world.claim()
    world.report([a])
    world.advance()
    assert world.claim() == []
    world.report([b])
    world.advance()
    assert [t.task_id for t in world.claim()] == ["c"]
    assert world.states(run)["c"] == "queued"
    world.audit()


def test_failure_propagates_and_fails_the_run(world: World) -> None:
    world.add_dag(dag(task("a"), task("b", 0), task("c", 1), task("always", 0, trigger_rule=TriggerRule.ALL_DONE)))
    run = world.trigger("d")
    assert world.drain({"a": "failed"}) == ["a", "always"]
    assert world.states(run) == {"a": "failed", "b": "upstream_failed", "c": "upstream_failed", "always": "success"}
    assert world.run_state(run) == "failed"
    world.audit()


def test_started_and_exit_in_one_batch_are_one_move(world: World) -> None:
    """R-CS3: neither report of a pair is lost, in whatever order they come."""
    world.add_dag(dag(*(task(f"t{i}") for i in range(50)), max_active_tasks=None))
    run = world.trigger("d")
    world.advance()
    tries = world.claim()
    world.report(tries[:25])
    world.report(tries, started=True)
    world.report(tries[25:])
    world.advance()
    assert set(world.states(run).values()) == {"success"}
    assert world.run_state(run) == "success"


def test_history_knows_how_long_a_try_ran_whose_start_was_not_told(world: World) -> None:
    """R-SP4: else its run would be taken for a wait for a worker. Where the start was told its event says it."""
    world.add_dag(dag(task("a"), task("b", 0)))
    world.trigger("d")
    world.advance()
    world.report(world.claim())
    world.advance()
    [b] = world.claim()
    world.report([b], started=True)
    world.advance()
    world.report([b])
    world.advance()
    told = world.all(
        "select task_index, event::text, detail ->> 'ran_s' from task_event where event in ('start', 'succeed') order by at"
    )
    assert told == [(0, "succeed", "0.01"), (1, "start", None), (1, "succeed", None)]


def test_running_shows_when_a_worker_reports_it(world: World) -> None:
    """R-CS2."""
    world.add_dag(dag(task("a")))
    run = world.trigger("d")
    world.advance()
    tries = world.claim()
    assert world.states(run) == {"a": "queued"}
    world.report(tries, started=True)
    world.advance()
    assert world.states(run) == {"a": "running"}


def test_more_runs_than_one_transaction_takes_are_not_left_to_the_sweep(world: World) -> None:
    """R-ST11: a transaction that met its limit of runs says that there may be more."""
    world.add_dag(dag(task("a")))
    runs = [world.trigger("d") for _ in range(5)]
    world.advance()
    world.report(world.claim())
    turns = [advance(world.conn, world.catalog, max_runs=2) for _ in range(3)]
    assert [t.again for t in turns] == [True, True, False]
    assert {world.run_state(run) for run in runs} == {"success"}


def test_a_report_of_a_past_epoch_changes_nothing(world: World) -> None:
    """R-CS3."""
    world.add_dag(dag(task("a")))
    run = world.trigger("d")
    world.advance()
    tries = world.claim()
    world.report(tries, "cannot_start", reason="no such module")
    world.advance()
    again = world.conn.execute("select epoch from dispatch").fetchall()
    assert again != [(tries[0].epoch,)]
    world.report(tries, "failed")
    assert world.advance().stale == 1
    assert world.states(run) == {"a": "queued"}
    world.audit()


def test_retry_waits_for_its_timer(world: World) -> None:
    world.add_dag(dag(task("a", retries=1, retry_delay=3600)))
    run = world.trigger("d")
    world.advance()
    world.report(world.claim(), "failed", reason="ValueError: no")
    world.advance()
    assert world.states(run) == {"a": "up_for_retry"}
    assert world.claim() == []
    world.conn.execute("update timer set due_at = now()")
    world.advance()
    (again,) = world.claim()
    assert again.try_number == 2
    world.report([again], "failed")
    world.advance()
    assert world.run_state(run) == "failed"
    world.audit()


def test_a_try_that_says_when_the_next_is_due_is_heard(world: World) -> None:
    """R-AF1: as a retry policy of Airflow's decides in the task, whatever the delay of the task is."""
    world.add_dag(dag(task("a", retries=1, retry_delay=3600)))
    run = world.trigger("d")
    world.advance()
    world.report(world.claim(), "failed", reason="ValueError: no", delay_s=60.0)
    world.advance()
    assert world.states(run) == {"a": "up_for_retry"}
    due = world.conn.execute("select extract(epoch from due_at - now())::float8 from timer where kind = 'retry'").fetchone()
    assert due is not None
    assert 0 < due[0] <= 60.0


def test_cannot_start_goes_elsewhere_without_using_up_the_try_until_it_is_hopeless(world: World) -> None:
    """R-CS5."""
    world.add_dag(dag(task("a")))
    run = world.trigger("d")
    world.advance()
    for _ in range(3):
        (t,) = world.claim()
        assert t.try_number == 1
        world.report([t], "cannot_start", reason="No module named 'foo'")
        world.advance()
        assert world.claim() == []  # not at once on the worker that could not
        world.conn.execute("update dispatch set created_at = now() - interval '1 minute'")
    world.report(world.claim(), "cannot_start", reason="No module named 'foo'")
    world.advance()
    assert world.states(run) == {"a": "failed"}
    reason = "lost 4 times, and infrastructure_retries is 3; the last time: No module named 'foo'"
    assert world.conn.execute("select reason from task_instance").fetchone() == (reason,)
    world.audit()


@pytest.mark.parametrize("length", [0, 1, 7])
def test_mapping_over_a_literal(world: World, length: int) -> None:
    mapped = task("m", 0, mapping=Mapping(inputs=(MapInput(name="x", length=length),)))
    world.add_dag(dag(task("a"), mapped, task("z", 1, trigger_rule=TriggerRule.ALL_DONE), max_active_tasks=3))
    run = world.trigger("d")
    order = world.drain()
    assert order == ["a", *["m"] * length, "z"]
    assert world.run_state(run) == "success"
    states = world.states(run)
    assert [k for k in states if k.startswith("m")] == ([f"m[{i}]" for i in range(length)] or ["m"])
    world.audit()


def test_mapping_over_a_result_and_over_a_mapped_result(world: World) -> None:
    world.add_dag(
        dag(
            task("a"),
            task("m", 0, mapping=Mapping(inputs=(MapInput(name="x", task=0), MapInput(name="y", length=2)))),
            task("n", 1, mapping=Mapping(inputs=(MapInput(name="x", task=1),))),
            task("z", 2),
        )
    )
    run = world.trigger("d")
    world.advance()
    world.report(world.claim(), result=[1, 2, 3])
    world.advance()
    tries = world.claim()
    assert [t.map_index for t in tries] == list(range(6))
    for t in tries:
        world.report([t], **({"result": "x"} if t.map_index % 2 else {}))
    world.advance()
    tries = world.claim()
    assert [(t.task_id, t.map_index) for t in tries] == [("n", 0), ("n", 1), ("n", 2)]
    world.report(tries)
    assert world.drain() == ["z"]
    assert world.run_state(run) == "success"
    world.audit()


def test_mapping_over_nothing_mappable_fails_with_a_reason(world: World) -> None:
    world.add_dag(dag(task("a"), task("m", 0, mapping=Mapping(inputs=(MapInput(name="x", task=0),)))))
    run = world.trigger("d")
    world.drain()
    assert world.states(run) == {"a": "success", "m": "failed"}
    assert "returned no list" in world.conn.execute("select reason from task_instance where task_index = 1").fetchone()[0]
    assert world.run_state(run) == "failed"
    world.audit()


def test_a_mapped_task_has_no_rows_for_pending_instances(world: World) -> None:
    """R-ST6: 100,000 instances are a counter and a cursor."""
    world.add_dag(dag(task("m", mapping=Mapping(inputs=(MapInput(name="x", length=100_000),))), max_active_tasks=4))
    world.trigger("d")
    world.advance()
    assert world.conn.execute("select count(*) from task_instance").fetchone() == (4,)
    world.report(world.claim())
    world.advance()
    assert [t.map_index for t in world.claim()] == [4, 5, 6, 7]
    world.audit()


def test_empty_tasks_need_no_worker(world: World) -> None:
    world.add_dag(dag(task("start", empty=True), task("a", 0), task("join", 1, empty=True), task("end", 2, empty=True)))
    run = world.trigger("d")
    assert world.drain() == ["a"]
    assert set(world.states(run).values()) == {"success"}
    assert world.run_state(run) == "success"
    world.audit()


def test_a_dag_without_tasks_succeeds(world: World) -> None:
    world.add_dag(dag())
    run = world.trigger("d")
    world.advance()
    assert world.run_state(run) == "success"


def test_cancel_before_the_run_starts(world: World) -> None:
    world.add_dag(dag(task("a")))
    run = world.trigger("d")
    world.conn.execute("""insert into report (run_key, kind, epoch, payload) values (%s, 'cancel', 0, '{"actor": "ann"}')""", [run])
    world.advance()
    assert world.run_state(run) == "failed"
    assert world.claim() == []


def test_cancel_skips_what_waits_and_kills_what_runs(world: World) -> None:
    """R-CS8: the holds of a live try stay until its process has ended."""
    world.pool("one", 1)
    mapped = task("m", mapping=Mapping(inputs=(MapInput(name="x", length=50),)), pool="one")
    world.add_dag(dag(task("a"), mapped, task("z", 0, 1), task("b", max_active_tis_per_dag=1), max_active_tasks=2))
    run = world.trigger("d")
    other = world.trigger("d")
    world.advance()
    first = [t for t in world.claim(2) if t.run_key == run]
    assert first
    world.report(first, started=True)
    world.conn.execute("""insert into report (run_key, kind, epoch, payload) values (%s, 'cancel', 0, '{"actor": "ann"}')""", [run])
    world.advance()
    world.audit()
    assert world.run_state(run) == "running"
    assert world.conn.execute("select count(*) from dispatch where kill").fetchone() == (len(first),)
    world.report(first, "failed", reason="killed")
    world.advance()
    assert world.run_state(run) == "failed"
    (reason,) = world.conn.execute("select reason from task_instance where epoch = %s", [first[0].epoch]).fetchone()
    assert reason == "The run was cancelled by ann; killed"
    assert world.conn.execute("select reason from dag_run where run_key = %s", [run]).fetchone() == ("cancelled by ann",)
    world.audit()
    world.drain()
    assert world.run_state(other) == "success"
    world.audit()


def test_a_lost_worker_loses_no_try(world: World) -> None:
    """R-CS7: its tries are sent again under fresh epochs, and use up no try."""
    world.add_dag(dag(task("a"), task("b")))
    run = world.trigger("d")
    world.advance()
    tries = world.claim()
    world.report(tries[:1], started=True)
    world.advance()
    world.lose_worker()
    assert leases.report_lost_tries(world.conn) == 2
    assert leases.report_lost_tries(world.conn) == 0
    world.advance()
    world.conn.execute("update service set state = 'active'")
    again = world.claim()
    assert {t.try_number for t in again} == {1}
    assert not {t.epoch for t in again} & {t.epoch for t in tries}
    world.report(tries)  # the worker comes back late
    world.advance()
    assert set(world.states(run).values()) == {"queued"}
    world.report(again)
    world.advance()
    assert world.run_state(run) == "success"
    world.audit()


def test_what_a_worker_gives_back_before_it_has_begun_it_counts_for_nothing(world: World) -> None:
    """R-AS8, R-CS5: not as a try, and not as a loss, however often; others come before that worker for a while."""
    world.add_dag(DagSpec(dag_id="d", tasks=(TaskSpec(task_id="a", operator="python", infrastructure_retries=0),)))
    run = world.trigger("d")
    world.advance()
    for _ in range(3):
        world.report(world.claim(), "cannot_start", reason="its worker was told to end", given_back=True)
        world.advance()
        assert world.states(run) == {"a": "queued"}
        assert world.one("select avoid from dispatch") == world.worker
        world.conn.execute("update dispatch set created_at = created_at - interval '10 seconds'")
    assert world.one("select array[try_number, losses]::int[] from task_instance") == [1, 0]
    world.drain()
    assert world.run_state(run) == "success"
    world.audit()


def test_a_task_says_how_often_it_may_be_lost_and_then_its_own_retries_count(world: World) -> None:
    """R-CS7: bounded, and each loss beyond that uses up a try."""
    world.add_dag(dag(task("a", infrastructure_retries=1, retries=1, retry_delay=0.0)))
    run = world.trigger("d")
    world.advance()
    tries = []
    for expected in ("queued", "up_for_retry", "failed"):
        (t,) = world.claim()
        tries.append(t.try_number)
        world.report([t], "lost", reason="worker w on h was lost")
        world.conn.execute("update dispatch set created_at = now() - interval '1 minute'")
        advance(world.conn, world.catalog)
        assert world.states(run) == {"a": expected}
        world.conn.execute("update timer set due_at = now()")
        world.advance()
    assert tries == [1, 1, 2]
    assert world.conn.execute("select reason, losses from task_instance").fetchone() == (
        "lost 3 times, and infrastructure_retries is 1; the last time: worker w on h was lost",
        3,
    )
    world.audit()


def test_max_active_runs(world: World) -> None:
    world.add_dag(dag(task("a"), max_active_runs=2))
    runs = [world.trigger("d") for _ in range(5)]
    world.advance()
    assert [world.run_state(r) for r in runs] == ["running", "running", "queued", "queued", "queued"]
    world.audit()
    world.drain()
    assert {world.run_state(r) for r in runs} == {"success"}
    world.audit()


def test_no_dag_keeps_the_runs_of_others_from_being_created(world: World) -> None:
    """R-ST4: thousands of queued runs of some DAGs stand beside one run of another, whose name comes last."""
    for dag_id in ("a", "b", "c", "z"):
        world.add_dag(dag(task("t"), dag_id=dag_id, max_active_runs=None))
    crowd = [world.trigger(dag_id) for dag_id in ("a", "b", "c") for _ in range(120)]
    one = world.trigger("z")
    turns = 0
    while world.run_state(one) == "queued":
        assert advance(world.conn, world.catalog).again
        turns += 1
    assert turns == 2  # the first created 50 runs of each of two DAGs
    assert any(world.run_state(run) == "queued" for run in crowd)
    world.advance()
    assert {world.run_state(run) for run in crowd} == {"running"}
    world.audit()


def test_a_paused_dag_starts_nothing_new_until_it_is_unpaused(world: World) -> None:
    world.add_dag(dag(task("a"), task("b", 0), max_active_tasks=1))
    run = world.trigger("d")
    world.advance()
    world.conn.execute("update dag set is_paused = true")
    world.report(world.claim())
    world.advance()
    assert world.claim() == []
    assert world.states(run) == {"a": "success", "b": "scheduled"}
    waiting = world.trigger("d")
    world.advance()
    assert world.run_state(waiting) == "queued"
    world.conn.execute("update dag set is_paused = false")
    world.drain()
    assert {world.run_state(run), world.run_state(waiting)} == {"success"}
    world.audit()


def test_a_report_about_an_epoch_of_another_run_is_past(world: World) -> None:
    """R-HA18: a database that has lost commits may give an epoch out twice; no run is moved by another's report."""
    world.add_dag(dag(task("a")))
    first, second = world.trigger("d"), world.trigger("d")
    world.advance()
    of_first = next(t for t in world.claim() if t.run_key == first)
    world.conn.execute(
        "insert into report (run_key, kind, epoch, payload) values (%s, 'exit', %s, jsonb_build_object('outcome', 'failed'))",
        [second, of_first.epoch],
    )
    assert world.advance().stale == 1
    assert (world.states(first), world.states(second)) == ({"a": "queued"}, {"a": "queued"})
    world.audit()
