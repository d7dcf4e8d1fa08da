"""What operators ask for in bulk delays nobody else (R-HA19)."""

from __future__ import annotations

import random
import threading
from dataclasses import replace
from typing import Any

import pytest

from evenflow.core.limits import CHANGED_PER_TURN, CHANGES_PER_TURN, REPORTS_PER_TURN, REPORTS_SEEN, TIMERS_PER_TURN
from evenflow.core.model import DagSpec, MapInput, Mapping, TaskSpec
from evenflow.core.operations import Only, Operation
from evenflow.core.states import TaskEvent
from evenflow.core.trigger_rules import TriggerRule
from evenflow.scheduler.advance import advance
from evenflow.scheduler.catalog import Catalog
from evenflow.store.db.connect import connect
from evenflow.store.scheduling.inbox import EXECUTOR_LOCK
from evenflow.store.scheduling.operations import request
from tests.scheduler.workloads import random_dag
from tests.scheduler.world import World
from tests.waiting import wait_until

OTHER = DagSpec(
    dag_id="other", tasks=(TaskSpec(task_id="a", operator="python"), TaskSpec(task_id="b", operator="python", upstream=(0,)))
)


def flat(dag_id: str, n: int) -> DagSpec:
    return DagSpec(dag_id=dag_id, tasks=tuple(TaskSpec(task_id=f"t{i}", operator="empty", empty=True) for i in range(n)))


def begun(world: World) -> Any:
    """A try of another DAG that has a successor."""
    world.add_dag(OTHER)
    world.trigger("other")
    world.advance()
    (attempt,) = world.claim()
    return attempt


def queue_and_cancel(world: World, runs: int) -> None:
    world.add_dag(flat("bulk", 1))
    world.conn.execute(
        "with made as (insert into dag_run (dag_id, run_id, version_key, run_type, run_after)"
        " select 'bulk', n::text, version_key, 'manual', now() + interval '1 day' from dag, generate_series(1, %s) n"
        " where dag_id = 'bulk' returning run_key)"
        " insert into report (run_key, kind, epoch, payload) select run_key, 'cancel', 0, '{\"actor\": \"ann\"}' from made",
        [runs],
    )


def test_exits_are_seen_past_any_number_of_cancels(world: World) -> None:
    """R-HA19: more cancels than a turn looks at wait before it, and the first turn applies the exit and starts the successor."""
    attempt = begun(world)
    queue_and_cancel(world, 2 * REPORTS_SEEN)
    world.report([attempt])
    advance(world.conn, world.catalog)
    assert [t.task_id for t in world.claim()] == ["b"]
    cancelled = world.conn.execute("select count(*) from dag_run where dag_id = 'bulk' and state = 'failed'").fetchone()[0]
    assert 0 < cancelled < CHANGED_PER_TURN


def test_who_may_not_change_finds_exits_past_cancels(world: World, database_url: str) -> None:
    """R-HA19: without the executor's lock, too."""
    attempt = begun(world)
    queue_and_cancel(world, 2 * REPORTS_SEEN)
    world.report([attempt])
    with connect(database_url, name="leader") as leader, leader.transaction():
        leader.execute("select pg_advisory_xact_lock(%s)", [EXECUTOR_LOCK])
        progress = advance(world.conn, Catalog())
    assert (progress.led, progress.reports) == (False, 1)
    assert [t.task_id for t in world.claim()] == ["b"]


def test_old_changes_call_nobody_who_may_not_apply_them(world: World, database_url: str) -> None:
    """R-HA19: a scheduler without the executor's lock does not come to help because of what it may not touch."""
    queue_and_cancel(world, 2 * REPORTS_PER_TURN)
    world.conn.execute("update report set at = now() - interval '1 hour'")
    with connect(database_url, name="leader") as leader, leader.transaction():
        leader.execute("select pg_advisory_xact_lock(%s)", [EXECUTOR_LOCK])
        progress = advance(world.conn, Catalog(), helps_after_s=1.0)
    assert progress.picks == 0


def test_a_turn_changes_as_many_instances_as_it_may(world: World) -> None:
    """R-HA19: clears of runs that are large are applied by ones and twos, those of small runs by dozens."""
    taken = {}
    for dag_id, tasks, runs in (("small", 1, 60), ("large", CHANGED_PER_TURN // 2, 4)):
        world.add_dag(flat(dag_id, tasks))
        keys = [world.trigger(dag_id) for _ in range(runs)]
        world.advance()
        request(world.conn, keys, Operation(event=TaskEvent.CLEAR, actor="ann"))
        taken[dag_id] = advance(world.conn, world.catalog).reports
        world.advance()
        world.audit()
        assert world.conn.execute("select count(*) from dag_run where dag_id = %s and clears = 1", [dag_id]).fetchone() == (runs,)
    assert taken == {"small": CHANGES_PER_TURN, "large": 2}


def test_a_run_with_a_great_many_reports_costs_what_is_taken_of_it(world: World) -> None:
    """R-HA19: a turn takes its share by an index, run by run, instead of sorting all that the runs have said."""
    attempt = begun(world)
    world.conn.execute(
        "insert into report (run_key, kind, epoch) select %s, 'started', n from generate_series(1000000, 1000000 + %s) n",
        [attempt.run_key, 3 * REPORTS_PER_TURN],
    )
    world.report([attempt])
    assert advance(world.conn, world.catalog).reports == REPORTS_PER_TURN
    world.advance()
    assert world.conn.execute("select count(*) from report").fetchone() == (0,)
    assert [t.task_id for t in world.claim()] == ["b"]


def chain(dag_id: str, n: int) -> DagSpec:
    return DagSpec(
        dag_id=dag_id, tasks=tuple(TaskSpec(task_id=f"t{i}", operator="python", upstream=(i - 1,) if i else ()) for i in range(n))
    )


@pytest.mark.parametrize("make", [chain, flat], ids=["chain", "flat"])
def test_a_large_run_is_cancelled_part_by_part(world: World, make: Any) -> None:
    """R-HA19: no transaction ends more than its part, the books are right after each, and whoever goes on remembers nothing."""
    attempt = begun(world)
    spec = make("bulk", 2 * CHANGED_PER_TURN + 500)
    world.add_dag(
        DagSpec(dag_id="bulk", tasks=tuple(TaskSpec(task_id=t.task_id, operator="python", upstream=t.upstream) for t in spec.tasks))
    )
    run = world.trigger("bulk")
    world.advance()
    running = world.claim(3)
    world.report(running, started=True)
    world.advance()
    world.cancel(run)
    world.report([attempt])
    world.report(running[:1])
    moved = advance(world.conn, Catalog())
    assert moved.moves <= CHANGED_PER_TURN + len(running) + 2
    assert [t.task_id for t in world.claim() if t.run_key == attempt.run_key] == ["b"]
    assert world.conn.execute(
        "select count(*) from dispatch where run_key = %s and not kill and worker_id is not null", [run]
    ).fetchone() == (0,)
    parts = 1
    while (progress := advance(world.conn, Catalog())).again:
        parts += 1
        assert progress.moves <= CHANGED_PER_TURN
        world.audit()
    assert parts >= 3
    world.report(running[1:], "failed")
    world.advance()
    world.audit()
    assert world.run_state(run) == "failed"
    left = world.conn.execute(
        "select count(*) from task_instance where run_key = %s and state not in ('success', 'failed', 'skipped')", [run]
    ).fetchone()
    assert left == (0,)


@pytest.mark.parametrize("seed", range(12))
def test_whatever_happens_between_the_parts_of_a_cancel(world: World, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """R-HA19: exits, retries that are due and more cancels come between the parts of two instances each; all runs end, and no
    counter is wrong after any transaction.
    """
    monkeypatch.setattr("evenflow.scheduler.cancel.CHANGED_PER_TURN", 2)
    r = random.Random(seed)
    for pool in ("p1", "p2"):
        world.pool(pool, 4)
    runs = []
    for number in range(3):
        world.add_dag(random_dag(r, number))
        runs.append(world.trigger(f"d{number}"))
    world.advance()
    running = []
    for _ in range(60):
        running += world.claim(r.randint(0, 3))
        if running and r.random() < 0.7:
            attempt = running.pop(r.randrange(len(running)))
            world.report([attempt], r.choice(["success", "failed"]))
        if r.random() < 0.15:
            world.cancel(r.choice(runs))
        advance(world.conn, Catalog())
        world.audit()
    for run in runs:
        world.cancel(run)
    world.report(running, "failed")
    world.advance()
    while tries := world.claim():
        world.report(tries, "failed")
        world.advance()
    world.audit()
    assert {world.run_state(run) for run in runs} <= {"success", "failed"}
    assert world.conn.execute("select count(*) from dispatch").fetchone() == (0,)


def test_a_run_with_a_great_many_timers_keeps_no_retry_waiting(world: World) -> None:
    """R-HA19: a hundred thousand equal timeouts of a run would take two hundred turns; a retry of another comes with the first."""
    world.add_dag(DagSpec(dag_id="bulk", tasks=(TaskSpec(task_id="a", operator="python"),)))
    bulk = world.trigger("bulk")
    world.add_dag(DagSpec(dag_id="other", tasks=(TaskSpec(task_id="a", operator="python", retries=1, retry_delay=3600.0),)))
    world.trigger("other")
    world.advance()
    attempt = next(t for t in world.claim() if t.run_key != bulk)
    world.report([attempt], "failed")
    world.advance()
    world.conn.execute(
        "insert into timer (due_at, kind, run_key, task_index, map_index, epoch)"
        " select now() - n %% 100 * interval '1 s', 'trigger_timeout', %s, 0, n, 7 from generate_series(1, %s) n",
        [bulk, 20 * TIMERS_PER_TURN],
    )
    world.conn.execute("update timer set due_at = now() where kind = 'retry'")
    advance(world.conn, world.catalog)
    assert [t.run_key for t in world.claim()] == [attempt.run_key]
    assert world.conn.execute("select count(*) from timer").fetchone()[0] >= 19 * TIMERS_PER_TURN
    world.advance()
    assert world.conn.execute("select count(*) from timer").fetchone() == (0,)


def test_two_that_leave_something_and_end_failed_runs_do_not_wait_for_each_other(world: World, database_url: str) -> None:
    """R-HA20: a DAG that may be paused here is locked for that before it is looked at, never shared and then asked for more."""
    tasks = (
        TaskSpec(task_id="a", operator="python"),
        TaskSpec(task_id="b", operator="python", upstream=(0,), trigger_rule=TriggerRule.ALL_DONE),
    )
    world.add_dag(DagSpec(dag_id="d", tasks=tasks, max_consecutive_failed_dag_runs=1))
    world.add_dag(DagSpec(dag_id="older", tasks=tasks))
    older = [world.trigger("older"), world.trigger("older")]
    ending, going = world.trigger("d"), world.trigger("d")
    world.advance()
    first_tries = {t.run_key: t for t in world.claim()}
    world.report([first_tries[ending]])
    world.advance()
    (last,) = world.claim()
    world.report([first_tries[run] for run in older])  # a helper takes the newer half of what waits
    world.report([last], "failed")
    world.report([first_tries[going]])
    world.conn.execute("insert into setting (name, value, changed_by) values ('fast_follow', 'false', 'ann')")
    with connect(database_url, name="other") as other, connect(database_url, name="first") as first:
        with other.transaction():
            other.execute("select pg_advisory_xact_lock(%s)", [EXECUTOR_LOCK])
            other.execute("select from dag where dag_id = 'd' for share")  # as another one that leaves something
            thread = threading.Thread(target=advance, args=(first, Catalog()))
            thread.start()
            blocked = "select count(*) from pg_locks where not granted and pid = %s"
            wait_until(lambda: world.conn.execute(blocked, [first.info.backend_pid]).fetchone() == (1,), within_s=30)
            other.execute("select from dag where dag_id = 'd' for no key update")  # and that ends a failed run
        thread.join()
    assert world.run_state(ending) == "failed"
    assert world.conn.execute("select is_paused from dag where dag_id = 'd'").fetchone() == (True,)
    assert world.conn.execute("select count(*) from lane where run_key = %s", [going]).fetchone() == (1,)


def test_what_a_clear_made_wait_is_judged_in_slices(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-HA19: after a clear no transaction begins more than its slice, others come in between, and whoever goes on remembers
    nothing.
    """
    monkeypatch.setattr("evenflow.scheduler.recount.SETTLED_PER_TURN", 4)
    attempt = begun(world)
    world.pool("default_pool", 100)
    mapped = TaskSpec(task_id="m", operator="python", mapping=Mapping(inputs=(MapInput(name="x", length=10),)))
    world.add_dag(DagSpec(dag_id="bulk", tasks=(mapped, TaskSpec(task_id="last", operator="python", upstream=(0,)))))
    run = world.trigger("bulk")
    world.advance()
    world.report(world.claim(20), "failed")
    world.advance()
    assert world.run_state(run) == "failed"
    request(world.conn, [run], Operation(event=TaskEvent.CLEAR, actor="ann", tasks=("m",), only=Only.FAILED, downstream=True))
    tries = []
    progress = advance(world.conn, Catalog())
    world.report([attempt])
    while progress.again:
        progress = advance(world.conn, Catalog())
        tries.append([t.task_id for t in world.claim(20)])
        world.audit()
    assert sorted(tries[0]) == ["b", "m", "m", "m", "m"]
    assert tries[1:] == [["m"] * 4, ["m"] * 2]


def ends(r: random.Random, world: World, run: int, seed: int) -> tuple[Any, ...]:
    """Has a run worked through, some of it between any two transactions; answers how all has ended. How a try ends is always the
    same.
    """
    again = True
    while again:
        again = advance(world.conn, Catalog()).again
        world.audit()
        for t in world.claim(r.randint(0, 2) if again else 10):
            world.report([t], random.Random(f"{seed} {t.task_id} {t.map_index} {t.try_number}").choice(["success", "failed"]))
            again = True
    states = sorted(world.states(run).items())
    untouched = world.conn.execute(
        "select task_index, length, virtual_state from mapped_task where run_key = %s order by 1", [run]
    ).fetchall()
    return world.run_state(run), states, untouched


@pytest.mark.parametrize("seed", range(15))
def test_a_clear_in_slices_ends_as_one_in_one_transaction(world: World, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """R-HA19, R-CS8: of what is cleared one instance is judged in each transaction, and tries end in between; of a run that is
    like it, all at once. All ends alike, and nothing is counted wrong in between.
    """
    for pool in ("p1", "p2"):
        world.pool(pool, 4)
    spec = random_dag(random.Random(seed), 0)
    found = []
    for dag_id, at_once in (("slices", 1), ("whole", 1_000)):
        monkeypatch.setattr("evenflow.scheduler.recount.SETTLED_PER_TURN", at_once)
        r = random.Random(seed)
        world.add_dag(replace(spec, dag_id=dag_id))
        run = world.trigger(dag_id)
        seen = [ends(random.Random(seed), world, run, seed)]
        for _ in range(3):
            tasks = None if r.random() < 0.5 else (f"t{r.randrange(len(spec.tasks))}",)
            only = Only.FAILED if r.random() < 0.4 else None
            request(world.conn, [run], Operation(event=TaskEvent.CLEAR, actor="ann", tasks=tasks, only=only, downstream=True))
            seen.append(ends(random.Random(r.random()), world, run, seed))
        found.append(seen)
    assert found[0] == found[1]


def torn_down(r: random.Random, dag_id: str) -> DagSpec:
    """A random DAG between a setup and its teardown; what fails is tried again much later."""
    spec = random_dag(r, 0)
    first, *others = (replace(t, retries=1, retry_delay=3600.0, max_active_tis_per_dag=None) for t in spec.tasks)
    setup = replace(first, setup=True, mapping=None)
    between = [replace(t, upstream=t.upstream or (0,)) for t in others]
    teardown = TaskSpec(
        task_id="last",
        operator="python",
        upstream=tuple(range(len(spec.tasks))),
        trigger_rule=TriggerRule.ALL_DONE_SETUP_SUCCESS,
        teardown=True,
    )
    return replace(spec, dag_id=dag_id, tasks=(setup, *between, teardown))


def dispatched(world: World, run: int) -> list[Any]:
    """The last epochs of all but teardowns."""
    rows = world.conn.execute(
        "select task_index, map_index, epoch"
        " from task_instance join dag_run using (run_key) join task using (version_key, task_index)"
        " where run_key = %s and epoch > 0 and task_id <> 'last' order by 1, 2",
        [run],
    )
    return rows.fetchall()


@pytest.mark.parametrize("seed", range(15))
def test_a_run_with_a_teardown_is_cancelled_part_by_part(world: World, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """R-HA19: parts of one instance each, with ends of tries and due retries in between, end a run as one transaction does, but
    that what waited may have learnt first that an upstream has failed; only the teardown is started after the cancel, and no
    counter is wrong after any transaction.
    """
    for pool in ("p1", "p2", "default_pool"):
        world.pool(pool, 4)
    found = []
    for dag_id, at_once in (("parts", 1), ("whole", 1_000)):
        monkeypatch.setattr("evenflow.scheduler.cancel.CHANGED_PER_TURN", at_once)
        r = random.Random(seed)
        world.add_dag(torn_down(r, dag_id))
        run = world.trigger(dag_id)
        world.advance()
        world.report(world.claim(10))
        world.advance()
        running = []
        for _ in range(r.randint(0, 4)):
            running += world.claim(r.randint(1, 4))
            while len(running) > 1:
                world.report([running.pop(0)], r.choice(["success", "failed", "failed"]))
            world.advance()
        world.cancel(run)
        sent, again = dispatched(world, run), True
        while again:
            again = advance(world.conn, Catalog()).again
            world.audit()
            world.conn.execute("update timer set due_at = now() where kind = 'retry'")
            ended = [running.pop()] if running else world.claim(10)
            world.report(ended, "success")
            again |= bool(ended)
        assert dispatched(world, run) == sent
        states = {task: {"upstream_failed": "skipped"}.get(state, state) for task, state in world.states(run).items()}
        found.append((world.run_state(run), states))
        assert world.run_state(run) in ("success", "failed")
        assert world.conn.execute("select count(*) from dispatch").fetchone() == (0,)
    assert found[0] == found[1]
