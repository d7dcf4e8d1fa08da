"""A task that waits deferred: what it keeps, how it comes back, and what ends it from outside (R-DQ1 to R-DQ6, R-DQ9)."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from evenflow.core.limits import TIMERS_PER_TURN
from evenflow.core.model import DagSpec, MapInput, Mapping, TaskSpec
from evenflow.core.selection.order import DispatchClass
from evenflow.core.why import AwaitsEvent, FullLimit, WhyNot
from evenflow.explaining import why
from evenflow.scheduler.advance import advance
from evenflow.store.db.connect import open_pool
from tests.scheduler.world import Try, World

EVENT = "ZXZlbnQ="  # base64


def dag(*tasks: TaskSpec, **options: Any) -> DagSpec:
    return DagSpec(dag_id="d", tasks=tasks or (TaskSpec(task_id="wait", operator="sensor"),), **options)


def task(task_id: str = "wait", **options: Any) -> TaskSpec:
    return TaskSpec(task_id=task_id, operator="python", **options)


def begin(world: World, spec: DagSpec, **said: Any) -> tuple[int, Try]:
    """A run of which the first task has been deferred."""
    world.add_dag(spec)
    run = world.trigger("d")
    world.advance()
    (t,) = world.claim()
    world.report([t], started=True)
    world.advance()
    world.defer([t], **said)
    world.advance()
    assert world.states(run)[t.task_id] == "deferred"
    world.audit()
    return run, t


def deferral(world: World, run: int) -> dict[str, Any]:
    cursor = world.conn.execute("select * from deferral where run_key = %s", [run])
    (row,) = cursor.fetchall()
    return dict(zip((column.name for column in cursor.description), row, strict=True))


def classes(world: World) -> dict[int, int]:
    return dict(world.conn.execute("select epoch, class from dispatch").fetchall())


def events(world: World, run: int, task_index: int = 0) -> list[str]:
    rows = world.conn.execute("select event from task_event where run_key = %s and task_index = %s order by at", [run, task_index])
    return [event for (event,) in rows]


def detail(world: World, run: int, event: str) -> dict[str, Any]:
    rows = world.conn.execute("select detail from task_event where run_key = %s and event = %s", [run, event]).fetchall()
    return rows[-1][0]


def set_setting(world: World, name: str, value: Any) -> None:
    world.conn.execute("insert into setting (name, value, changed_by) values (%s, %s, 'test')", [name, json.dumps(value)])


# -- the way -------------------------------------------------------------------------------------------------------------


def test_it_resumes_in_the_same_try_under_a_fresh_epoch(world: World) -> None:
    run, t = begin(world, dag(task(), task("then", upstream=(0,))))
    assert world.claim() == [], "nothing of it is for workers"
    world.fire(run, event=EVENT)
    progress = world.advance()
    assert progress.stale == 0
    found = deferral(world, run)
    assert (found["purpose"], bytes(found["event"]), found["triggerer_id"]) == ("event", b"event", None)
    (again,) = world.claim()
    assert (again.try_number, again.epoch > t.epoch) == (1, True)
    assert classes(world) == {again.epoch: DispatchClass.RESUME}
    world.audit()
    world.report([again])
    world.advance()
    assert world.waiting(run) == {}, "its try has ended, and so has its deferral"
    assert world.drain() == ["then"]
    assert world.run_state(run) == "success"
    assert events(world, run) == ["grant", "start", "defer", "resume", "succeed"]
    assert detail(world, run, "defer") == {"trigger": "module.Trigger"}
    assert {**detail(world, run, "resume"), "waited_s": 0} == {"purpose": "event", "trigger": "module.Trigger", "waited_s": 0}
    world.audit()


def test_it_may_be_deferred_again_and_again(world: World) -> None:
    run, t = begin(world, dag())
    first = deferral(world, run)
    for _ in range(3):
        world.fire(run)
        world.advance()
        (t,) = world.claim()
        world.defer([t], trigger="another.Trigger")
        world.advance()
        world.audit()
    last = deferral(world, run)
    assert (last["epoch"], last["trigger"], last["purpose"]) == (t.epoch, "another.Trigger", None)
    assert (last["began_at"], last["ready_at"]) == (first["began_at"], first["ready_at"]), "its try began once"
    world.fire(run)
    world.advance()
    assert world.drain() == ["wait"]
    assert world.run_state(run) == "success"


def test_what_it_pushed_before_it_waited_stays_and_so_does_its_beginning(world: World) -> None:
    """An XCom counts while its epoch is that of its task instance; what a try before has pushed is not brought back."""
    run, t = begin(world, dag())
    for key, epoch in (("early", t.epoch), ("of another try", t.epoch - 1)):
        world.conn.execute(
            "insert into xcom (run_key, task_index, key, value, epoch) values (%s, 0, %s, '1', %s)", [run, key, epoch]
        )
    started = world.conn.execute("select started_at from task_instance").fetchone()
    for _ in range(2):
        world.fire(run)
        world.advance()
        (t,) = world.claim()
        world.report([t], started=True)
        world.advance()
        assert world.conn.execute("select key from xcom x join task_instance using (run_key, epoch)").fetchall() == [("early",)]
        assert world.conn.execute("select started_at from task_instance").fetchone() == started
        world.defer([t])
        world.advance()


def test_a_failure_after_the_resume_is_retried_as_any_other(world: World) -> None:
    run, _ = begin(world, dag(task(retries=1, retry_delay=0.0)))
    world.fire(run)
    world.advance()
    (t,) = world.claim()
    world.report([t], "failed")
    world.advance()
    assert world.waiting(run) == {}
    world.conn.execute("update timer set due_at = now()")
    world.advance()
    (t,) = world.claim()
    assert t.try_number == 2
    assert classes(world) == {t.epoch: DispatchClass.FIRST_START}
    world.report([t])
    world.advance()
    assert world.run_state(run) == "success"
    world.audit()


def test_a_retried_task_has_its_own_priority(world: World) -> None:
    """R-DQ6: what has resumed or failed is not put first by a patched priority."""
    run, first = begin(world, dag(task(retries=1, retry_delay=0.0, priority_weight=7)))
    of_dispatch = "select priority from dispatch"
    world.fire(run)
    world.advance()
    assert world.conn.execute(of_dispatch).fetchall() == [(7,)]
    (t,) = world.claim()
    world.report([t], "failed")
    world.pool("default_pool", 0)
    world.advance()
    world.conn.execute("update timer set due_at = now()")
    world.advance()
    assert world.conn.execute("select run_priority, priority, ready from lane").fetchall() == [(0, 7, 1)]
    world.pool("default_pool", 1)
    world.advance()
    assert world.conn.execute(of_dispatch).fetchall() == [(7,)]
    (t,) = world.claim()
    assert (t.try_number, t.epoch > first.epoch) == (2, True)


def test_a_resume_that_is_lost_stays_a_resume(world: World) -> None:
    run, _ = begin(world, dag())
    world.fire(run, event=EVENT)
    world.advance()
    (t,) = world.claim()
    world.report([t], "lost", reason="its host burnt")
    world.advance()
    (again,) = world.claim()
    assert again.try_number == 1
    assert classes(world) == {again.epoch: DispatchClass.RESUME}
    assert bytes(deferral(world, run)["event"]) == b"event"
    world.audit()
    world.report([again])
    world.advance()
    assert world.run_state(run) == "success"
    world.audit()


def test_an_instance_of_a_mapped_task_resumes(world: World) -> None:
    world.add_dag(dag(task(mapping=Mapping(inputs=(MapInput(length=3),)))))
    run = world.trigger("d")
    world.advance()
    tries = world.claim()
    world.defer(tries)
    world.advance()
    world.audit()
    world.fire(run, 0, 1)
    world.advance()
    (t,) = world.claim()
    assert t.map_index == 1
    world.report([t])
    world.advance()
    assert world.waiting(run).keys() == {(0, 0), (0, 2)}
    for index in (2, 0):
        world.fire(run, 0, index)
    world.advance()
    world.drain()
    assert world.run_state(run) == "success"
    world.audit()


def test_a_paused_dag_finishes_what_is_deferred(world: World) -> None:
    run, _ = begin(world, dag())
    world.conn.execute("update dag set is_paused = true")
    world.advance()
    world.fire(run)
    world.advance()
    assert world.drain() == ["wait"]
    assert world.run_state(run) == "success"


def test_one_selection_pass(world: World) -> None:
    """R-DQ4: of a task that is deferred once, selection decides once."""
    world.add_dag(dag())
    run = world.trigger("d")
    world.advance()
    (t,) = world.claim()
    world.defer([t])
    world.advance()
    world.fire(run)
    world.advance()
    assert [t.task_id for t in world.claim()] == ["wait"]
    assert events(world, run).count("grant") == 1
    assert world.conn.execute("select count(*) from lane").fetchone() == (0,)


# -- timeouts, and triggers that fail ----------------------------------------------------------------------------------------


def let_pass(world: World, kind: str) -> None:
    world.conn.execute("update timer set due_at = now() where kind = %s", [kind])


def test_its_timeout_brings_it_back(world: World) -> None:
    run, _ = begin(world, dag(), timeout_s=60.0)
    let_pass(world, "trigger_timeout")
    world.advance()
    found = deferral(world, run)
    assert (found["purpose"], found["event"]) == ("timeout", None)
    assert "nothing came of its trigger" in found["reason"]
    world.fire(run)
    assert world.advance().stale == 1, "too late"
    (t,) = world.claim()
    world.report([t], "failed")
    world.advance()
    assert world.run_state(run) == "failed"
    world.audit()


def test_the_timeout_of_an_earlier_deferral_is_void(world: World) -> None:
    run, _ = begin(world, dag(), timeout_s=60.0)
    world.fire(run)
    world.advance()
    (t,) = world.claim()
    world.defer([t])
    world.advance()
    let_pass(world, "trigger_timeout")
    world.advance()
    assert world.states(run) == {"wait": "deferred"}
    assert deferral(world, run)["purpose"] is None


def test_a_trigger_that_failed_for_good(world: World) -> None:
    run, _ = begin(world, dag())
    world.fire(run, purpose="failed", error="ValueError: no such host")
    world.advance()
    found = deferral(world, run)
    assert (found["purpose"], found["reason"]) == ("failed", "ValueError: no such host")
    assert [t.task_id for t in world.claim()] == ["wait"], "its try raises it"


def test_execution_timeout_counts_waiting(world: World) -> None:
    run, t = begin(world, dag(task(execution_timeout=60.0, retries=1)))
    (left,) = world.conn.execute(
        "select extract(epoch from due_at - now())::float8 from timer where kind = 'execution_timeout' and epoch = %s", [t.epoch]
    ).fetchone()
    assert 0 < left <= 60
    let_pass(world, "execution_timeout")
    world.advance()
    assert world.states(run) == {"wait": "up_for_retry"}
    assert world.waiting(run) == {}
    (reason,) = world.conn.execute("select reason from task_instance").fetchone()
    assert reason == "its execution_timeout of 0:01:00 was over while it was deferred"
    world.audit()


@pytest.mark.parametrize("together", [False, True])
def test_a_timeout_of_waiting_is_about_nothing_that_waits_for_its_retry(world: World, together: bool) -> None:
    """The retry keeps the epoch of the deferral, and so that deferral's other timer is not void by its epoch."""
    run, _ = begin(world, dag(task(execution_timeout=60.0, retries=2, retry_delay=3600.0)), timeout_s=65.0)
    if not together:
        let_pass(world, "execution_timeout")
        world.advance()
        assert world.states(run) == {"wait": "up_for_retry"}
    world.conn.execute("update timer set due_at = now() - interval '1 s' where kind = 'execution_timeout'")
    let_pass(world, "trigger_timeout")
    world.advance()
    assert world.states(run) == {"wait": "up_for_retry"}, "retry_delay is not over"
    assert world.conn.execute("select kind from timer").fetchall() == [("retry",)]
    assert events(world, run).count("retry") == 1
    world.audit()
    let_pass(world, "retry")
    world.advance()
    (t,) = world.claim()
    assert t.try_number == 2
    world.audit()


def test_a_timeout_of_waiting_and_a_retry_that_are_due_together_start_one_try(world: World) -> None:
    run, _ = begin(world, dag(task(execution_timeout=60.0, retries=2, retry_delay=65.0)), timeout_s=120.0)
    let_pass(world, "execution_timeout")
    world.advance()
    world.conn.execute("update timer set due_at = now()")
    world.advance()
    assert [t.try_number for t in world.claim()] == [2]
    assert events(world, run).count("grant") == 2
    world.audit()


@pytest.mark.parametrize("void", [False, True])
def test_a_burst_of_timeouts_is_taken_in_parts(world: World, void: bool) -> None:
    """The oldest first, and the next turn follows at once, also when none of them means anything any more."""
    rest = 7
    world.add_dag(dag(task(mapping=Mapping(inputs=(MapInput(length=TIMERS_PER_TURN + rest),))), max_active_tasks=None))
    world.pool("default_pool", TIMERS_PER_TURN + rest)
    run = world.trigger("d")
    world.advance()
    world.defer(world.claim(), timeout_s=60.0)
    world.advance()
    world.conn.execute(
        "update timer set due_at = now() - map_index * interval '1 s', epoch = case when %s then 0 else epoch end", [void]
    )
    first = advance(world.conn, world.catalog)
    assert (len(first.direct_resumes), first.again) == (0 if void else TIMERS_PER_TURN, True)
    left = world.conn.execute("select map_index from timer order by 1").fetchall()
    assert left == [(i,) for i in range(rest)], "those that are due last"
    second = advance(world.conn, world.catalog)
    assert (len(second.direct_resumes), second.again) == (0 if void else rest, False)
    assert world.conn.execute("select count(*) from timer").fetchone() == (0,)
    waiting = "select count(*) from task_instance where run_key = %s and state = 'deferred'"
    assert world.conn.execute(waiting, [run]).fetchone() == (TIMERS_PER_TURN + rest if void else 0,)
    world.audit()


def test_execution_timeout_with_something_to_stop(world: World) -> None:
    run, _ = begin(world, dag(task(execution_timeout=60.0, retries=1, cleans_up=True)))
    let_pass(world, "execution_timeout")
    world.advance()
    found = deferral(world, run)
    assert found["purpose"] == "clean_up"
    (t,) = world.claim()
    world.report([t], "failed", reason=found["reason"])
    world.advance()
    assert world.states(run) == {"wait": "up_for_retry"}, "its own retries decide"
    assert world.waiting(run) == {}
    world.audit()


def test_execution_timeout_that_does_not_count_waiting(world: World) -> None:
    begin(world, dag(task(execution_timeout=60.0, execution_timeout_counts_waiting=False)))
    assert world.conn.execute("select kind from timer where kind = 'execution_timeout'").fetchall() == []


# -- ends from outside -------------------------------------------------------------------------------------------------------


def operate(world: World, run: int, event: str, *tasks: str, **options: Any) -> None:
    payload = {"event": event, "actor": "ann", **({"tasks": tasks} if tasks else {}), **options}
    world.conn.execute(
        "insert into report (run_key, kind, epoch, payload) values (%s, 'operate', 0, %s)", [run, json.dumps(payload)]
    )


def test_a_cancelled_run_ends_what_is_deferred(world: World) -> None:
    run, _ = begin(world, dag(task(), task("then", upstream=(0,))))
    world.cancel(run)
    world.advance()
    assert world.states(run) == {"wait": "failed", "then": "skipped"}
    assert world.run_state(run) == "failed"
    assert world.waiting(run) == {}
    assert world.used("pool") == 0
    world.audit()


def test_a_cancelled_run_waits_for_the_clean_up(world: World) -> None:
    """R-DQ9: a deferred task is killed and its external job must be cleaned up; teardowns wait for that."""
    down = task("down", upstream=(0,), teardown=True, trigger_rule="all_done")
    run, _ = begin(world, dag(task(cleans_up=True), task("between", upstream=(0,)), down))
    world.cancel(run)
    world.advance()
    assert world.states(run) == {"wait": "queued", "between": "skipped", "down": "none"}
    assert deferral(world, run)["purpose"] == "clean_up"
    world.audit()
    (t,) = world.claim()
    world.cancel(run)
    world.advance()
    assert world.conn.execute("select kill from dispatch").fetchall() == [(False,)], "nobody ends the clean-up"
    world.report([t], "failed", reason="it was cleaned up")
    world.advance()
    assert world.states(run)["wait"] == "failed"
    assert world.drain() == ["down"]
    assert world.run_state(run) == "failed"
    world.audit()


def test_a_clean_up_that_is_lost_is_sent_again(world: World) -> None:
    run, _ = begin(world, dag(task(cleans_up=True)))
    world.cancel(run)
    world.advance()
    for _ in range(2):
        (t,) = world.claim()
        world.report([t], "lost", reason="its host burnt")
        world.advance()
        assert classes(world).keys() != {t.epoch}
        world.audit()
    (t,) = world.claim()
    assert deferral(world, run)["purpose"] == "clean_up"
    world.report([t], "failed")
    world.advance()
    assert world.run_state(run) == "failed"
    assert world.waiting(run) == {}


@pytest.mark.parametrize(("event", "state"), [("mark_success", "success"), ("mark_failed", "failed"), ("mark_skipped", "skipped")])
def test_a_mark_ends_what_is_deferred(world: World, event: str, state: str) -> None:
    run, _ = begin(world, dag())
    epoch = world.waiting(run)[0, -1]
    operate(world, run, event, "wait")
    world.advance()
    assert world.states(run) == {"wait": state}
    assert world.waiting(run) == {}
    world.fire(run, epoch=epoch)
    assert world.advance().stale == 1
    assert world.states(run) == {"wait": state}
    world.audit()


def test_a_mark_waits_for_the_clean_up(world: World) -> None:
    """R-CS8: on a live task instance an operator records an intent."""
    run, _ = begin(world, dag(task(cleans_up=True), task("then", upstream=(0,))))
    operate(world, run, "mark_success", "wait")
    world.advance()
    assert world.states(run)["wait"] == "queued"
    world.audit()
    (t,) = world.claim()
    assert world.conn.execute("select intent from dispatch").fetchone() == ({"event": "mark_success", "actor": "ann"},)
    world.report([t], "failed", reason="it was cleaned up")
    world.advance()
    assert world.states(run)["wait"] == "success"
    assert world.waiting(run) == {}
    assert world.drain() == ["then"]
    assert world.run_state(run) == "success"
    world.audit()


def test_a_clear_begins_anew(world: World) -> None:
    run, _ = begin(world, dag())
    epoch = world.waiting(run)[0, -1]
    operate(world, run, "clear", "wait")
    world.advance()
    world.fire(run, epoch=epoch)
    assert world.advance().stale == 1, "what it waited for before means nothing to it now"
    (t,) = world.claim()
    assert classes(world) == {t.epoch: DispatchClass.FIRST_START}
    world.report([t])
    world.advance()
    assert world.run_state(run) == "success"
    world.audit()


def test_a_clear_after_the_clean_up(world: World) -> None:
    run, _ = begin(world, dag(task(cleans_up=True)))
    operate(world, run, "clear", "wait")
    world.advance()
    (t,) = world.claim()
    world.report([t], "lost", reason="its host burnt")
    world.advance()
    (t,) = world.claim()
    assert classes(world) == {t.epoch: DispatchClass.RESUME}, "it is cleaned up all the same"
    world.report([t], "failed")
    world.advance()
    (t,) = world.claim()
    assert classes(world) == {t.epoch: DispatchClass.FIRST_START}
    world.report([t])
    world.advance()
    assert world.run_state(run) == "success"
    world.audit()


def test_an_operator_who_comes_before_the_resume_is_claimed(world: World) -> None:
    run, _ = begin(world, dag(task(cleans_up=True)))
    world.fire(run, event=EVENT)
    world.advance()
    operate(world, run, "mark_failed", "wait")
    world.advance()
    assert deferral(world, run)["purpose"] == "clean_up"
    world.audit()
    (t,) = world.claim()
    world.report([t], "failed")
    world.advance()
    assert world.states(run) == {"wait": "failed"}
    assert world.run_state(run) == "failed"
    world.audit()


def test_dagrun_timeout_ends_it_too(world: World) -> None:
    run, _ = begin(world, dag(task(cleans_up=True), dagrun_timeout=60.0))
    let_pass(world, "run_timeout")
    world.advance()
    (t,) = world.claim()
    assert deferral(world, run)["purpose"] == "clean_up"
    world.report([t], "failed")
    world.advance()
    assert world.run_state(run) == "failed"
    world.audit()


def test_fail_fast_ends_it_too(world: World) -> None:
    world.add_dag(dag(task(cleans_up=True), task("fails"), fail_fast=True))
    run = world.trigger("d")
    world.advance()
    wait, fails = sorted(world.claim(), key=lambda t: t.task_id, reverse=True)
    world.defer([wait])
    world.advance()
    world.report([fails], "failed")
    world.advance()
    (t,) = world.claim()
    assert (t.task_id, deferral(world, run)["purpose"]) == ("wait", "clean_up")
    world.report([t], "failed")
    world.advance()
    assert world.run_state(run) == "failed"
    world.audit()


# -- what people see -------------------------------------------------------------------------------------------------------


def test_why(world: World, database_url: str) -> None:
    """R-ST10: which trigger, who has it, since when and until when; and who holds the limit that another waits for."""
    world.pool("people", 1)
    run, _ = begin(world, dag(task(pool="people"), task("next", pool="people")), timeout_s=60.0)

    async def ask(task_id: str) -> WhyNot:
        pool = await open_pool(database_url, name="why", min_size=1, max_size=1)
        async with pool, pool.connection() as conn:
            dag_id, run_id = world.conn.execute("select dag_id, run_id from dag_run").fetchone()
            (reason,) = (await why.explain(conn, dag_id=dag_id, run_id=run_id, task_id=task_id)).reasons
            return reason

    world.service("scheduler", "s")
    reason = asyncio.run(ask("wait"))
    assert isinstance(reason, AwaitsEvent)
    assert (reason.trigger, reason.triggerer, reason.failures, reason.again_at) == ("module.Trigger", None, 0, None)
    assert reason.until is not None
    assert 59 < (reason.until - reason.since).total_seconds() <= 60
    world.conn.execute(
        "update deferral set triggerer_id = %s, failures = 2, due_at = now() + interval '8 s'", [world.service("triggerer", "t1")]
    )
    world.conn.execute("update dag set is_paused = true")
    reason = asyncio.run(ask("wait"))
    assert isinstance(reason, AwaitsEvent), "a paused DAG does not hold it back"
    assert (reason.triggerer, reason.host, reason.failures) == ("t1", "h", 2)
    assert reason.again_at is not None
    world.conn.execute("update dag set is_paused = false")
    world.advance()
    full = asyncio.run(ask("next"))
    assert isinstance(full, FullLimit)
    assert [(h.run_id, h.task_id, h.slots, h.deferred) for h in full.holders] == [(full.holders[0].run_id, "wait", 1, True)]
    world.fire(run)
    world.advance()
    full = asyncio.run(ask("next"))
    assert isinstance(full, FullLimit)
    assert [h.deferred for h in full.holders] == [False], "it holds the slot by its dispatch"
