"""R-HA13: an exception while one run is handled sets that run aside, visibly and with the reason; all others go on."""

from __future__ import annotations

import json
import select
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import psycopg
import pytest

from evenflow.core.metrics import REPAIRS
from evenflow.core.model import DagSpec, Schedule, TaskSpec
from evenflow.core.operations import Operation
from evenflow.core.states import TaskEvent
from evenflow.scheduler import reports
from evenflow.scheduler.assets import create_asset_runs
from evenflow.scheduler.catalog import Catalog
from evenflow.scheduler.duties.agenda import Agenda, Duty
from evenflow.scheduler.duties.audit import Sweep
from evenflow.scheduler.duties.schedules import create_scheduled, make_backfill_runs
from evenflow.scheduler.service import RETRY_S
from evenflow.scheduler.turn_metrics import TurnMetrics
from evenflow.scheduler.turns import take_turn, take_turns
from evenflow.store.db.connect import connect
from evenflow.store.db.rows import Conn
from evenflow.store.db.sql import sql
from evenflow.store.scheduling import schedules, selection
from evenflow.store.scheduling.operations import request
from evenflow.store.scheduling.quarantine import lock_executor, release_runs
from tests.scheduler.world import World

OTHERS = 9
BACKFILL = "dag_id, from_date, to_date, is_reversed, reprocess, max_active_runs, params, priority, created_by"


def task(task_id: str, *upstream: int, **kw: Any) -> TaskSpec:
    return TaskSpec(task_id=task_id, operator="python", upstream=upstream, **kw)


CHAIN = (task("a"), task("b", 0))


@pytest.fixture
def turns(world: World, database_url: str) -> Callable[[], None]:
    """Turns of a scheduler until two have nothing left to do: room for queued runs that is left as a wake is seen by the second."""
    turn_metrics, stop = TurnMetrics(), threading.Event()

    def take() -> None:
        idle = 0
        for _ in range(100):
            progress = take_turn(
                world.conn, Catalog(), turn_metrics, stop, partial(connect, database_url, name="again"), sweep=True
            )
            idle = idle + 1 if progress is not None and not progress.again else 0
            if idle == 2:
                return
        raise AssertionError("it does not come to rest")

    return take


def quarantine(world: World) -> dict[str, str]:
    return dict(world.conn.execute("select kind || ' ' || coalesce(run_key::text, object), reason from quarantine").fetchall())


def release(world: World, run_key: int) -> None:
    with world.conn.transaction():
        lock_executor(world.conn)
        release_runs(world.conn, [run_key], "ann")


def finish(world: World, turns: Callable[[], None]) -> None:
    """All that can run runs to its end."""
    turns()
    while tries := world.claim():
        world.report(tries)
        turns()


def corrupt(world: World, run_key: int) -> None:
    """A timer of the run names a deadline that its DAG does not have."""
    world.conn.execute(
        "insert into timer (due_at, kind, run_key, task_index, map_index, epoch) values (now(), 'deadline', %s, 7, -1, 0)",
        [run_key],
    )


def cure(world: World, run_key: int) -> None:
    world.conn.execute("delete from timer where run_key = %s", [run_key])


@contextmanager
def poison(monkeypatch: pytest.MonkeyPatch, guilty: Callable[[Any], bool]) -> Iterator[None]:
    """Exits for which ``guilty`` holds cannot be applied."""
    original = reports._apply_exit

    def apply(facts: Any, dispatches: Any, deferrals: Any, item: Any, report: Any, event: Any) -> None:
        if guilty(report):
            raise KeyError("a secret value")
        original(facts, dispatches, deferrals, item, report, event)

    with monkeypatch.context() as patch:
        patch.setattr(reports, "_apply_exit", apply)
        yield


def test_a_run_that_cannot_be_handled_is_set_aside_and_all_others_go_on(world: World, turns: Any) -> None:
    world.add_dag(DagSpec(dag_id="d", tasks=CHAIN))
    others = [world.trigger("d") for _ in range(OTHERS)]
    turns()
    poisoned = world.trigger("d")
    turns()
    corrupt(world, poisoned)
    finish(world, turns)
    assert [world.run_state(run) for run in others] == ["success"] * OTHERS
    assert world.run_state(poisoned) == "running"
    ((what, reason),) = quarantine(world).items()
    assert what == f"run {poisoned}"
    assert reason.startswith("IndexError in scheduler/timeouts.py, line ")
    events = world.conn.execute("select event, actor, detail ->> 'reason' from run_event where run_key = %s", [poisoned]).fetchall()
    assert events[-1] == ("quarantine", "scheduler", reason)
    world.audit()
    cure(world, poisoned)
    release(world, poisoned)
    finish(world, turns)
    assert world.run_state(poisoned) == "success"
    assert quarantine(world) == {}
    world.audit()


def test_what_is_said_of_it_waits_in_its_order_and_nobody_looks_at_it_again(world: World, turns: Any) -> None:
    world.add_dag(DagSpec(dag_id="d", tasks=(task("a"), task("b"), task("c", 0, 1))))
    run = world.trigger("d")
    turns()
    tries = world.claim()
    corrupt(world, run)
    turns()
    world.report(tries, started=True)
    world.report(tries)
    turns()
    assert world.states(run) == {"a": "queued", "b": "queued", "c": "none"}
    assert world.conn.execute("select count(*), bool_and(held) from report").fetchone() == (4, True)
    assert world.conn.execute("select min(due_at) from timer where not held").fetchone() == (None,)
    world.audit()
    cure(world, run)
    release(world, run)
    turns()
    assert world.states(run) == {"a": "success", "b": "success", "c": "queued"}
    world.audit()


def test_what_its_ended_tries_held_is_free_for_others(world: World, turns: Any) -> None:
    world.pool("small", 1)
    world.add_dag(DagSpec(dag_id="d", tasks=(task("a", pool="small"), task("b", 0, pool="small"))))
    poisoned = world.trigger("d", priority=1)
    turns()
    tries = world.claim()
    corrupt(world, poisoned)
    turns()
    other = world.trigger("d")
    turns()
    assert world.states(other)["a"] == "scheduled"  # the try of the other still runs
    world.report(tries)
    finish(world, turns)
    assert world.run_state(other) == "success"
    world.audit()
    cure(world, poisoned)
    release(world, poisoned)
    finish(world, turns)
    assert world.run_state(poisoned) == "success"
    world.audit()


@pytest.mark.parametrize("outcome", ["cannot_start", "lost"])
def test_a_try_that_is_sent_again_keeps_what_it_holds(world: World, turns: Any, outcome: str) -> None:
    """R-ST1: its worker says that it is lost, while nobody may decide about its run."""
    world.pool("small", 1)
    world.add_dag(DagSpec(dag_id="d", tasks=(task("a", pool="small"),)))
    poisoned = world.trigger("d", priority=1)
    turns()
    tries = world.claim()
    corrupt(world, poisoned)
    turns()
    other = world.trigger("d")
    world.report(tries, outcome, reason="it was frozen for too long")
    turns()
    assert (world.states(other)["a"], world.used("pool", "small")) == ("scheduled", 1)
    world.audit()
    cure(world, poisoned)
    release(world, poisoned)
    turns()
    assert world.conn.execute("select run_key, pool_slots from dispatch").fetchall() == [(poisoned, 1)]
    assert (world.states(other)["a"], world.used("pool", "small")) == ("scheduled", 1)
    world.audit()


def test_its_ready_tasks_do_not_start_and_keep_nobody_waiting(world: World, turns: Any) -> None:
    world.pool("small", 1)
    world.add_dag(DagSpec(dag_id="d", tasks=tuple(task(f"t{n}", pool="small") for n in range(3)), max_active_tasks=2))
    poisoned = world.trigger("d", priority=1)
    turns()
    (running,) = world.claim()
    corrupt(world, poisoned)
    turns()
    assert world.conn.execute("select distinct parked_on from lane").fetchall() == [(-3,)]
    world.audit()
    world.conn.execute("update dag set is_paused = true")  # and back: such lanes stay where they are
    turns()
    world.conn.execute("update dag set is_paused = false")
    turns()
    other = world.trigger("d")
    world.report([running])
    finish(world, turns)
    assert world.run_state(other) == "success"
    world.audit()
    cure(world, poisoned)
    release(world, poisoned)
    finish(world, turns)
    assert world.run_state(poisoned) == "success"


def test_a_version_that_cannot_be_read_takes_its_runs_with_it_at_once(world: World, turns: Any) -> None:
    version = world.add_dag(DagSpec(dag_id="bad", tasks=CHAIN))
    world.add_dag(DagSpec(dag_id="good", tasks=CHAIN))
    begun = [world.trigger("bad") for _ in range(3)]
    turns()
    tries = world.claim()
    world.conn.execute("update dag_version set spec = jsonb_set(spec, '{surprise}', '1') where version_key = %s", [version])
    world.report(tries[:1])
    queued = world.trigger("bad")
    good = world.trigger("good")
    finish(world, turns)
    assert world.run_state(good) == "success"
    assert world.run_state(queued) == "queued"
    reported = tries[0].run_key
    assert quarantine(world).keys() >= {f"run {reported}", f"run {queued}"}
    world.conn.execute("update dag_version set spec = spec - 'surprise' where version_key = %s", [version])
    for run in [*begun, queued]:
        release(world, run)
    world.report(tries[1:])
    finish(world, turns)
    assert {world.run_state(run) for run in [*begun, queued]} == {"success"}
    world.audit()


def test_a_run_that_cannot_be_created_blocks_no_other(world: World, turns: Any) -> None:
    world.add_dag(DagSpec(dag_id="bad", tasks=(task("a", pool="deleted"),)))
    world.add_dag(DagSpec(dag_id="good", tasks=CHAIN))
    bad, good = world.trigger("bad", priority=1), world.trigger("good")
    finish(world, turns)
    assert (world.run_state(bad), world.run_state(good)) == ("queued", "success")
    assert "There is no pool 'deleted'" in quarantine(world)[f"run {bad}"]
    world.pool("deleted", 1)
    release(world, bad)
    finish(world, turns)
    assert world.run_state(bad) == "success"


def test_a_lane_that_cannot_be_started_blocks_no_other(world: World, turns: Any) -> None:
    """Nothing is said of the run any more; it is the round that meets it."""
    world.pool("small", 0)
    world.add_dag(DagSpec(dag_id="d", tasks=(task("a", pool="small"),)))
    bad, good = world.trigger("d", priority=1), world.trigger("d")
    turns()
    world.conn.execute("update task_instance set state = 'success' where run_key = %s", [bad])
    world.pool("small", 8)
    finish(world, turns)
    assert (world.run_state(bad), world.run_state(good)) == ("running", "success")
    assert quarantine(world)[f"run {bad}"].startswith("IllegalMove")


def test_a_report_that_cannot_be_applied_fails_its_try_and_the_run_goes_on(
    world: World, turns: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.add_dag(DagSpec(dag_id="d", tasks=(task("a", retries=1), task("b"), task("c"))))
    runs = [world.trigger("d") for _ in range(OTHERS)]
    turns()
    tries = world.claim()
    bad = next(t for t in tries if t.run_key == runs[4] and t.task_id == "a")
    world.report(tries, started=True)
    world.report(tries)
    with poison(monkeypatch, lambda report: report.epoch == bad.epoch and report.outcome == "success"):
        turns()
    assert quarantine(world) == {}
    assert world.states(runs[4]) == {"a": "up_for_retry", "b": "success", "c": "success"}
    assert [world.run_state(run) for run in runs if run != runs[4]] == ["success"] * (OTHERS - 1)
    (detail,) = world.conn.execute("select detail from run_event where event = 'set_aside'").fetchone()
    assert (detail["report"], detail["epoch"]) == ("exit", bad.epoch)
    assert detail["reason"].startswith("KeyError in scheduler/reports.py, line ")
    assert json.loads(detail["said"])["outcome"] == "success"
    (reason,) = world.conn.execute("select reason from task_instance where run_key = %s and task_index = 0", [runs[4]]).fetchone()
    assert reason.startswith("what it reported could not be applied: KeyError")
    assert "secret value" not in reason + json.dumps(detail)
    world.audit()


@pytest.mark.parametrize("early", [False, True])
def test_a_report_that_the_database_cannot_read_is_set_aside_too(
    world: World, turns: Any, monkeypatch: pytest.MonkeyPatch, early: bool
) -> None:
    """Also when the error is here before the scheduler has asked for its next answer."""
    if early:
        reserve = selection.reserve

        def answered(conn: Conn, sequence: str) -> Any:
            select.select([conn.fileno()], [], [], 0.1)
            return reserve(conn, sequence)

        monkeypatch.setattr(selection, "reserve", answered)
    world.add_dag(DagSpec(dag_id="d", tasks=(task("a"), task("b"))))
    runs = [world.trigger("d") for _ in range(OTHERS)]
    turns()
    tries = world.claim()
    world.report(tries)
    world.conn.execute('update report set payload = \'{"outcome": "success", "ran_s": "long"}\' where epoch = %s', [tries[5].epoch])
    turns()
    states = [world.run_state(run) for run in runs]
    assert (states.count("success"), states.count("failed")) == (OTHERS - 1, 1)
    (reason,) = world.conn.execute("select detail ->> 'reason' from run_event where event = 'set_aside'").fetchone()
    assert reason.startswith("InvalidTextRepresentation (SQLSTATE 22P02) in ")
    world.audit()


def test_a_request_that_cannot_be_applied_is_dropped(world: World, turns: Any) -> None:
    world.add_dag(DagSpec(dag_id="d", tasks=CHAIN))
    run = world.trigger("d")
    turns()
    world.conn.execute(
        "insert into report (run_key, kind, epoch, payload) values (%s, 'operate', 0, '{\"event\": \"nonsense\"}')", [run]
    )
    request(world.conn, [run], Operation(event=TaskEvent.MARK_SKIPPED, actor="ann", tasks=("b",)))
    finish(world, turns)
    assert world.states(run) == {"a": "success", "b": "skipped"}
    assert world.conn.execute("select detail ->> 'report' from run_event where event = 'set_aside'").fetchall() == [("operate",)]


def test_a_report_that_fails_even_when_it_says_nothing_quarantines_its_run(
    world: World, turns: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.add_dag(DagSpec(dag_id="d", tasks=CHAIN))
    bad, good = world.trigger("d"), world.trigger("d")
    turns()
    world.report(world.claim())
    with poison(monkeypatch, lambda report: report.run_key == bad):
        finish(world, turns)
    assert (world.run_state(bad), world.run_state(good)) == ("running", "success")
    assert quarantine(world).keys() == {f"run {bad}"}
    world.audit()


def test_ending_it_works_when_the_cause_has_gone(world: World, turns: Any) -> None:
    world.add_dag(DagSpec(dag_id="d", tasks=CHAIN))
    run = world.trigger("d")
    turns()
    tries = world.claim()
    corrupt(world, run)
    turns()
    world.report(tries)
    turns()
    cure(world, run)
    world.cancel(run)
    turns()
    assert world.run_state(run) == "failed"
    assert world.states(run) == {"a": "success", "b": "skipped"}
    assert quarantine(world) == {}
    world.audit()


def test_ending_it_works_by_force_and_waits_for_its_processes(world: World, turns: Any) -> None:
    version = world.add_dag(DagSpec(dag_id="d", tasks=(task("a"), task("b"), task("c", 0, 1)), max_active_runs=1))
    run = world.trigger("d")
    turns()
    first, second = world.claim()
    world.report([first])
    world.conn.execute("update dag_version set spec = jsonb_set(spec, '{surprise}', '1') where version_key = %s", [version])
    turns()
    world.conn.execute("insert into report (run_key, kind, epoch, payload) values (%s, 'cancel', 0, '{\"actor\": \"ann\"}')", [run])
    turns()
    assert world.run_state(run) == "running"
    assert world.conn.execute("select epoch, kill from dispatch").fetchall() == [(second.epoch, True)]
    world.report([second], "failed")
    turns()
    assert world.run_state(run) == "failed"
    assert sorted(world.states(run).values()) == ["failed", "failed", "skipped"]
    (reason, by) = world.conn.execute("select reason, cancelled_by from dag_run where run_key = %s", [run]).fetchone()
    assert by == "ann"
    assert reason.startswith("cancelled by ann; the run could not be handled: ")
    assert quarantine(world) == {}
    assert world.conn.execute("select count(*) from report").fetchone() == (0,)
    world.conn.execute("update dag_version set spec = spec - 'surprise' where version_key = %s", [version])
    following = world.trigger("d")
    finish(world, turns)
    assert world.run_state(following) == "success"
    world.audit()


def test_a_run_that_cannot_even_be_ended_by_force_stops_nobody_else(
    world: World, turns: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = world.add_dag(DagSpec(dag_id="bad", tasks=CHAIN))
    world.add_dag(DagSpec(dag_id="good", tasks=CHAIN))
    bad = world.trigger("bad")
    turns()
    world.conn.execute("update dag_version set spec = jsonb_set(spec, '{surprise}', '1') where version_key = %s", [version])

    def broken(conn: Any, *_: Any, **__: Any) -> None:
        conn.execute("select 1 / 0")

    with monkeypatch.context() as patch:
        patch.setattr("evenflow.store.scheduling.quarantine.end_instances", broken)
        world.cancel(bad)
        turns()
        good = world.trigger("good")
        finish(world, turns)
        assert (world.run_state(bad), world.run_state(good)) == ("running", "success")
        assert quarantine(world).keys() == {f"run {bad}"}
    world.cancel(bad)
    turns()
    assert world.run_state(bad) == "failed"


def test_looking_for_the_fault_leaves_no_lane_behind(world: World, turns: Any) -> None:
    """Transactions for some of the runs release limits that others wait for."""
    world.pool("small", 3)
    world.add_dag(DagSpec(dag_id="d", tasks=tuple(task(f"t{n}", pool="small") for n in range(4)), max_active_tasks=2))
    runs = [world.trigger("d") for _ in range(6)]
    turns()
    turn_metrics = TurnMetrics()
    sweep = Sweep(turn_metrics.meter)
    bad = runs[0]
    while tries := world.claim():
        world.report(tries)
        if not quarantine(world):
            corrupt(world, bad)
        turns()
        sweep.perform(world.conn)
        assert world.startable() == []
        world.audit()
    assert [world.run_state(run) for run in runs] == ["running", *["success"] * 5]
    assert quarantine(world).keys() == {f"run {bad}"}
    assert turn_metrics.meter.value(REPAIRS) == 0


def test_it_is_nobodys_fault_when_a_round_fails_without_any_run(
    world: World, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.add_dag(DagSpec(dag_id="d", tasks=CHAIN))
    world.trigger("d")

    def broken(*_: Any) -> None:
        raise AssertionError("of all runs")

    monkeypatch.setattr("evenflow.scheduler.round.Round.run", broken)
    with pytest.raises(AssertionError, match="of all runs"):
        take_turn(world.conn, Catalog(), TurnMetrics(), threading.Event(), partial(connect, database_url, name="again"), sweep=True)
    assert quarantine(world) == {}


@pytest.mark.parametrize("schedulers", [1, 2])
def test_the_throughput_of_others_goes_on(
    world: World, database_url: str, schedulers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several poisons, some of them in reports and some in runs, come while schedulers work."""
    world.add_dag(DagSpec(dag_id="d", tasks=CHAIN))
    runs = [world.trigger("d") for _ in range(40)]
    poisoned, reported = set(runs[5:40:10]), set(runs[7:40:10])
    stop = threading.Event()

    def scheduler() -> None:
        while not stop.is_set():
            with connect(database_url, name="turns") as conn, connect(database_url, name="listen") as listener:
                try:
                    take_turns(conn, listener, TurnMetrics(), stop, partial(connect, database_url, name="again"))
                except (KeyError, IndexError):  # the other one is about to set it aside; the service begins again, too
                    stop.wait(RETRY_S)

    threads = [threading.Thread(target=scheduler) for _ in range(schedulers)]
    with poison(monkeypatch, lambda report: report.run_key in reported and report.outcome == "success"):
        for thread in threads:
            thread.start()
        try:
            deadline = threading.Event()
            for _ in range(400):
                tries = world.claim()
                for t in tries:
                    if t.run_key in poisoned and t.task_id == "a":
                        corrupt(world, t.run_key)
                if tries:
                    world.report(tries)
                    world.conn.execute("notify inbox")
                states = dict(world.conn.execute("select run_key, state::text from dag_run").fetchall())
                others = {states[run] for run in runs if run not in poisoned | reported}
                if (
                    others == {"success"}
                    and {states[run] for run in reported} == {"failed"}
                    and len(quarantine(world)) == len(poisoned)
                ):
                    break
                deadline.wait(0.02)
            else:
                raise AssertionError(states)
        finally:
            stop.set()
            world.conn.execute("notify inbox")
            for thread in threads:
                thread.join()
    assert set(quarantine(world)) == {f"run {run}" for run in poisoned}
    world.audit()


def test_a_failure_of_the_database_is_no_fault_of_a_run(world: World, database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    world.add_dag(DagSpec(dag_id="d", tasks=CHAIN))
    world.trigger("d")

    def full(*_: Any) -> None:
        raise psycopg.errors.DiskFull("could not extend file")

    monkeypatch.setattr("evenflow.scheduler.ledgers.Ledgers.write", full)
    with pytest.raises(psycopg.errors.DiskFull):
        take_turn(world.conn, Catalog(), TurnMetrics(), threading.Event(), partial(connect, database_url, name="again"), sweep=True)
    assert quarantine(world) == {}


@pytest.mark.parametrize("kind", ["schedule", "assets"])
def test_a_dag_whose_runs_cannot_be_made_is_set_aside_until_its_next_version(world: World, kind: str) -> None:
    schedule = Schedule(kind="cron", cron="@hourly") if kind == "schedule" else Schedule(kind="assets", assets="x")
    for dag_id in ("bad", "good"):
        version = world.add_dag(DagSpec(dag_id=dag_id, tasks=CHAIN, schedule=schedule))
        world.conn.execute("insert into asset_queue values (%s, 'x', false, 1)", [dag_id])
        if dag_id == "bad":
            world.conn.execute("update dag_version set spec = spec || '{\"params\": 7}' where version_key = %s", [version])
    world.conn.execute("update dag set next_run_at = now() - interval '1 minute' where bundle = 'main'")
    for _ in range(2):
        create_scheduled(world.conn) if kind == "schedule" else create_asset_runs(world.conn)
    assert world.conn.execute("select distinct dag_id from dag_run").fetchall() == [("good",)]
    assert quarantine(world).keys() == {f"{kind} bad"}
    world.conn.execute(sql("quarantine/delete_one"), {"kind": kind, "object": "bad"})
    world.conn.execute("update dag_version set spec = spec - 'params' where dag_id = 'bad'")
    create_scheduled(world.conn) if kind == "schedule" else create_asset_runs(world.conn)
    assert world.conn.execute("select distinct dag_id from dag_run order by 1").fetchall() == [("bad",), ("good",)]


def test_a_backfill_whose_runs_cannot_be_made_is_set_aside(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.add_dag(DagSpec(dag_id="d", tasks=CHAIN))
    for n in range(2):
        (number,) = world.conn.execute(
            f"insert into backfill ({BACKFILL})"
            " values ('d', now(), now(), false, 'none', 1, '{}', 0, 'ann') returning backfill_id"
        ).fetchone()
        world.conn.execute(
            "insert into backfill_run (backfill_id, position, logical_date, data_interval_start, data_interval_end, run_after)"
            " select %s, 0, d, d, d, d from (select timestamptz '2026-01-01 UTC' + %s * interval '1 day' as d) as x",
            [number, n],
        )
    original = schedules.make_backfill_runs

    def make(conn: Any, found: Any) -> int:
        if found.backfill_id != number:
            conn.execute("select 1 / 0")
        return original(conn, found)

    monkeypatch.setattr(schedules, "make_backfill_runs", make)
    for _ in range(2):
        make_backfill_runs(world.conn)
    assert world.conn.execute("select backfill_id from dag_run").fetchall() == [(number,)]
    ((what, reason),) = quarantine(world).items()
    assert what == f"backfill {number - 1}"
    assert reason.startswith("DivisionByZero (SQLSTATE 22012)")


def test_a_duty_that_fails_keeps_no_other_from_its_turn(world: World) -> None:
    stop, told = threading.Event(), []

    def fail(_: Any) -> None:
        told.append("failed")
        raise KeyError

    def work(_: Any) -> None:
        told.append("worked")
        stop.set()

    Agenda([Duty("one", 1.0, fail), Duty("other", 1.0, work)]).perform(world.conn, stop)
    assert told == ["failed", "worked"]


def test_an_event_that_cannot_be_applied_becomes_a_failure_of_its_trigger(world: World, turns: Any) -> None:
    world.add_dag(DagSpec(dag_id="d", tasks=(task("a"),)))
    run, other = world.trigger("d"), world.trigger("d")
    turns()
    world.defer(world.claim())
    turns()
    world.fire(run, event="no base64 at all!")
    world.fire(other, event="ZXZlbnQ=")
    turns()
    found = dict(world.conn.execute("select run_key, purpose from deferral").fetchall())
    assert found == {run: "failed", other: "event"}
    (reason,) = world.conn.execute("select reason from deferral where run_key = %s", [run]).fetchone()
    assert reason.startswith("what it reported could not be applied: ")
    assert world.conn.execute("select detail ->> 'report' from run_event where event = 'set_aside'").fetchall() == [("event",)]
    finish(world, turns)
    assert world.run_state(run) == "success"
    world.audit()


def test_what_is_deferred_in_a_run_that_is_set_aside_waits(world: World, turns: Any) -> None:
    world.add_dag(DagSpec(dag_id="d", tasks=(task("a"), task("b"))))
    run = world.trigger("d")
    turns()
    first, second = world.claim()
    world.defer([first])
    turns()
    corrupt(world, run)
    turns()
    assert quarantine(world)
    world.fire(run, int(first.task_id == "b"))
    world.defer([second])
    turns()
    assert {world.states(run)[t.task_id] for t in (first, second)} == {"deferred", "queued"}, "nothing is applied to it"
    world.audit()
    cure(world, run)
    release(world, run)
    turns()
    assert {world.states(run)[t.task_id] for t in (first, second)} == {"queued", "deferred"}
    world.audit()
    world.fire(run, int(second.task_id == "b"))
    finish(world, turns)
    assert world.run_state(run) == "success"
    world.audit()


def test_what_is_deferred_ends_by_force(world: World, turns: Any) -> None:
    world.pool("people", 1)
    version = world.add_dag(DagSpec(dag_id="d", tasks=(task("a", pool="people"),)))
    run = world.trigger("d")
    turns()
    world.defer(world.claim())
    turns()
    assert world.used("pool", "people") == 1
    world.conn.execute("update dag_version set spec = jsonb_set(spec, '{surprise}', '1') where version_key = %s", [version])
    world.cancel(run)
    turns()
    assert world.states(run) == {"a": "failed"}
    assert world.run_state(run) == "failed"
    assert world.waiting(run) == {}
    assert world.used("pool", "people") == 0
    world.audit()
