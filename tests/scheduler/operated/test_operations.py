"""Clearing and marking tasks: states, counters, lanes, tries and runs are as if they had been computed anew."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from evenflow.core.limits import CHANGES_PER_TURN
from evenflow.core.model import DagSpec, MapInput, Mapping, TaskSpec
from evenflow.core.operations import Only, Operation
from evenflow.core.states import TaskEvent
from evenflow.core.trigger_rules import TriggerRule
from evenflow.scheduler.advance import advance
from evenflow.scheduler.catalog import Catalog
from evenflow.scheduler.ledgers import Ledgers
from evenflow.store.db.connect import connect
from evenflow.store.db.rows import execute
from evenflow.store.scheduling.operations import request
from tests.scheduler.world import World

CLEAR = TaskEvent.CLEAR


def task(task_id: str, *upstream: int, **kw: Any) -> TaskSpec:
    return TaskSpec(task_id=task_id, operator="python", upstream=upstream, retry_delay=kw.pop("retry_delay", 0.0), **kw)


def mapped(length: int) -> Mapping:
    return Mapping(inputs=(MapInput(name="x", length=length),))


DIAMOND = DagSpec(dag_id="d", tasks=(task("a"), task("b", 0), task("c", 0), task("e", 1, 2)))


def operate(world: World, run: int, event: TaskEvent, *tasks: str, **options: Any) -> None:
    """Asks, and lets a scheduler apply it."""
    request(world.conn, [run], Operation(event=event, actor="ann", tasks=tasks or None, **options))
    world.advance()
    world.audit()


def tries(world: World, run: int) -> dict[str, int]:
    rows = world.conn.execute(
        "select task_id, max(try_number) from task_instance join dag_run using (run_key) join task using (version_key, task_index)"
        " where run_key = %s group by 1",
        [run],
    )
    return dict(rows.fetchall())


def finished(world: World, spec: DagSpec, **outcomes: str) -> int:
    world.add_dag(spec)
    run = world.trigger(spec.dag_id)
    world.drain(outcomes)
    world.audit()
    return int(run)


def test_a_cleared_task_runs_again_with_all_below(world: World) -> None:
    run = finished(world, DIAMOND)
    operate(world, run, CLEAR, "b", downstream=True)
    assert world.run_state(run) == "running"
    assert world.states(run) == {"a": "success", "b": "queued", "c": "success", "e": "none"}
    assert world.drain() == ["b", "e"]
    world.audit()
    assert world.run_state(run) == "success"
    assert tries(world, run) == {"a": 1, "b": 2, "c": 1, "e": 2}


def test_what_has_ended_below_keeps_its_state(world: World) -> None:
    run = finished(world, DIAMOND)
    operate(world, run, CLEAR, "a")
    assert world.drain() == ["a"]
    assert world.run_state(run) == "success"
    world.audit()


def test_what_is_above_is_cleared_too_when_asked(world: World) -> None:
    run = finished(world, DIAMOND)
    operate(world, run, CLEAR, "e", upstream=True)
    assert world.states(run) == {"a": "queued", "b": "none", "c": "none", "e": "none"}
    assert world.drain() == ["a", "b", "c", "e"]
    world.audit()


def test_a_failed_run_is_rerun_from_what_failed(world: World) -> None:
    run = finished(world, DIAMOND, b="failed")
    assert world.states(run)["e"] == "upstream_failed"
    operate(world, run, CLEAR, only=Only.FAILED)
    assert world.states(run) == {"a": "success", "b": "queued", "c": "success", "e": "none"}
    assert world.drain() == ["b", "e"]
    assert world.run_state(run) == "success"


def test_a_failure_above_is_found_anew(world: World) -> None:
    run = finished(world, DIAMOND, b="failed")
    operate(world, run, CLEAR, "e")
    assert world.states(run)["e"] == "upstream_failed"
    assert world.run_state(run) == "failed"


def test_retries_count_from_the_clear(world: World) -> None:
    run = finished(world, DagSpec(dag_id="d", tasks=(task("a", retries=1),)), a="failed")
    world.drain({"a": "failed"})
    assert tries(world, run) == {"a": 2}
    operate(world, run, CLEAR, "a")
    assert [*world.drain({"a": "failed"}), *world.drain({"a": "failed"}), *world.drain()] == ["a", "a"]
    assert tries(world, run) == {"a": 4}
    assert world.run_state(run) == "failed"


def test_a_retry_that_waits_is_void(world: World) -> None:
    world.add_dag(DagSpec(dag_id="d", tasks=(task("a", retries=1, retry_delay=3600.0), task("b"))))
    run = world.trigger("d")
    world.advance()
    (a,) = [t for t in world.claim() if t.task_id == "a"]
    world.report([a], "failed")
    world.advance()
    assert world.states(run)["a"] == "up_for_retry"
    world.conn.execute("update timer set due_at = now()")
    operate(world, run, CLEAR, "a")
    assert world.states(run)["a"] == "queued"
    assert world.conn.execute("select count(*) from dispatch where task_index = 0").fetchone() == (1,)


@pytest.mark.parametrize(("event", "state"), [("mark_success", "success"), ("mark_failed", "failed"), ("mark_skipped", "skipped")])
def test_a_mark_decides_what_is_below(world: World, event: str, state: str) -> None:
    world.add_dag(DIAMOND)
    run = world.trigger("d")
    world.advance()
    operate(world, run, TaskEvent(event), "a")
    below = {"success": "queued", "failed": "upstream_failed", "skipped": "skipped"}[state]
    assert world.states(run) == {"a": state, "b": below, "c": below, "e": "none" if state == "success" else below}
    world.drain()
    assert world.run_state(run) == ("failed" if state == "failed" else "success")
    world.audit()


def test_marking_a_failure_as_success_lets_the_run_go_on(world: World) -> None:
    run = finished(world, DIAMOND, b="failed")
    operate(world, run, TaskEvent.MARK_SUCCESS, "b")
    assert world.states(run) == {"a": "success", "b": "success", "c": "success", "e": "queued"}
    assert world.drain() == ["e"]
    assert world.run_state(run) == "success"


def test_a_whole_run_is_marked(world: World) -> None:
    run = finished(world, DIAMOND, a="failed")
    operate(world, run, TaskEvent.MARK_SUCCESS)
    assert set(world.states(run).values()) == {"success"}
    assert world.run_state(run) == "success"
    operate(world, run, TaskEvent.MARK_FAILED)
    assert world.run_state(run) == "failed"


def test_a_live_try_ends_before_it_is_cleared(world: World) -> None:
    """R-CS8"""
    world.add_dag(DIAMOND)
    run = world.trigger("d")
    world.advance()
    (a,) = world.claim()
    world.report([a], started=True)
    world.advance()
    operate(world, run, CLEAR, "a")
    assert world.states(run)["a"] == "running"
    assert world.conn.execute("select kill from dispatch").fetchall() == [(True,)]
    world.report([a], "failed")
    world.advance()
    world.audit()
    assert world.states(run) == {"a": "queued", "b": "none", "c": "none", "e": "none"}
    assert world.drain() == ["a", "b", "c", "e"]


@pytest.mark.parametrize("outcome", ["success", "failed"])
def test_a_live_try_ends_as_it_was_marked(world: World, outcome: str) -> None:
    """R-CS8"""
    world.add_dag(DIAMOND)
    run = world.trigger("d")
    world.advance()
    (a,) = world.claim()
    operate(world, run, TaskEvent.MARK_SKIPPED, "a")
    assert world.states(run)["a"] == "queued"
    world.report([a], outcome)
    world.advance()
    world.audit()
    assert set(world.states(run).values()) == {"skipped"}
    assert world.run_state(run) == "success"


def test_a_try_that_no_worker_has_is_over_at_once(world: World) -> None:
    world.add_dag(DIAMOND)
    run = world.trigger("d")
    world.advance()
    operate(world, run, TaskEvent.MARK_SUCCESS, "a")
    assert world.states(run) == {"a": "success", "b": "queued", "c": "queued", "e": "none"}


class ClaimsMeanwhile:
    """A worker that claims on a connection of its own, at the moment when a turn deletes dispatches."""

    def __init__(self, url: str, worker: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self._url, self._worker = url, worker
        self.given: list[int] = []
        end = Ledgers.write_ends

        def claim_first(ledgers: Ledgers) -> None:
            self.given += self.claim("meanwhile")
            end(ledgers)

        monkeypatch.setattr(Ledgers, "write_ends", claim_first)

    def claim(self, key: str) -> list[int]:
        """The epochs that it is given for a claim of this key."""
        params = {
            "service_id": self._worker,
            "claim_key": key,
            "slots": 9,
            "resumes": 9,
            "queues": ["default"],
            "lease_s": 600,
            "since": "{}",
            "looks": False,
            "newest_run": 0,
            "api": None,
        }
        with connect(self._url, name="api") as conn:
            return [row[6] for row in execute(conn, "dispatch/claim", params) if row[6] is not None]


@pytest.mark.parametrize("resumes", [False, True])
@pytest.mark.parametrize("event", ["clear", "mark_success", "cancel"])
def test_no_worker_claims_what_is_being_ended(
    world: World, database_url: str, monkeypatch: pytest.MonkeyPatch, event: str, resumes: bool
) -> None:
    """R-CS7, R-CS8: else its process would run beside that of the next try."""
    world.add_dag(DagSpec(dag_id="d", tasks=(task("a", cleans_up=True),)))
    run = world.trigger("d")
    world.advance()
    if resumes:
        world.defer(world.claim())
        world.advance()
        world.fire(run)
        world.advance()
    with monkeypatch.context() as patched:
        worker = ClaimsMeanwhile(database_url, world.worker, patched)
        if event == "cancel":
            world.cancel(run)
        else:
            request(world.conn, [run], Operation(event=TaskEvent(event), actor="ann", tasks=("a",)))
        advance(world.conn, world.catalog)
    assert worker.given == []
    world.advance()
    world.audit()
    wanted = 1 if resumes or event == "clear" else 0  # a clean-up, or the next try
    assert len(world.claim()) == wanted


@pytest.mark.parametrize("event", ["clear", "cancel"])
def test_what_is_just_being_claimed_is_its_workers(world: World, database_url: str, event: str) -> None:
    """The turn waits until the claim has committed, and kills."""
    world.add_dag(DagSpec(dag_id="d", tasks=(task("a"),)))
    run = world.trigger("d")
    world.advance()
    ((epoch,),) = world.conn.execute("select epoch from dispatch").fetchall()
    if event == "cancel":
        world.cancel(run)
    else:
        request(world.conn, [run], Operation(event=CLEAR, actor="ann", tasks=("a",)))
    waits = "select from pg_locks where pid = %s and not granted"
    with connect(database_url, name="api") as api, connect(database_url, name="eye") as eye, ThreadPoolExecutor(1) as threads:
        with api.transaction():
            api.execute("update dispatch set worker_id = %s, claimed_at = now()", [world.worker])
            turn = threads.submit(advance, world.conn, world.catalog)
            while not turn.done() and eye.execute(waits, [world.conn.info.backend_pid]).fetchone() is None:
                pass
            assert not turn.done()
        turn.result(10)
    assert world.conn.execute("select epoch, worker_id, kill from dispatch").fetchall() == [(epoch, world.worker, True)]
    world.audit()


def test_what_waits_in_a_lane_leaves_it(world: World) -> None:
    world.pool("p", 1)
    world.add_dag(DagSpec(dag_id="d", tasks=tuple(task(f"t{i}", pool="p") for i in range(3))))
    run = world.trigger("d")
    world.advance()
    waiting = [name for name, state in world.states(run).items() if state == "scheduled"]
    operate(world, run, TaskEvent.MARK_SKIPPED, *waiting)
    assert world.conn.execute("select count(*) from lane").fetchone() == (0,)
    assert len(world.drain()) == 1
    assert world.run_state(run) == "success"


def test_a_run_of_the_past_waits_for_its_slot(world: World) -> None:
    spec = DagSpec(dag_id="d", tasks=(task("a"),), max_active_runs=1, max_active_tasks=1)
    run = finished(world, spec)
    other = world.trigger("d")
    world.advance()
    operate(world, run, CLEAR, "a")
    assert (world.run_state(run), world.run_state(other)) == ("queued", "running")
    assert world.drain() == ["a", "a"]
    assert (world.run_state(run), world.run_state(other)) == ("success", "success")
    world.audit()
    operate(world, run, CLEAR, "a")
    world.drain()
    world.audit()


def test_a_cancelled_run_goes_on(world: World) -> None:
    world.add_dag(DIAMOND)
    run = world.trigger("d")
    world.advance()
    world.cancel(run)
    world.advance()
    assert world.run_state(run) == "failed"
    operate(world, run, CLEAR)
    assert world.drain() == ["a", "b", "c", "e"]
    assert world.run_state(run) == "success"
    world.audit()


def test_cleared_results_are_gone(world: World) -> None:
    world.add_dag(DIAMOND)
    run = world.trigger("d")
    world.advance()
    world.report(world.claim(), result=[1])
    world.drain()
    assert world.conn.execute("select count(*) from xcom").fetchone() == (1,)
    operate(world, run, CLEAR, "a")
    assert world.conn.execute("select count(*) from xcom").fetchone() == (0,)


def test_what_a_cleared_task_stored_once_is_gone(world: World) -> None:
    """It begins anew; what others stored stays."""
    world.add_dag(DIAMOND)
    run = world.trigger("d")
    world.drain()
    for task_index in (0, 3):
        world.conn.execute(
            "insert into once_value (run_key, task_index, map_index, name, epoch) values (%s, %s, -1, 'a', 1)", [run, task_index]
        )
    operate(world, run, CLEAR, "c")
    assert 0 in {index for (index,) in world.conn.execute("select task_index from once_value")}
    operate(world, run, CLEAR)
    assert world.conn.execute("select count(*) from once_value").fetchone() == (0,)


def test_history_says_who(world: World) -> None:
    run = finished(world, DIAMOND)
    operate(world, run, CLEAR, "e")
    assert world.conn.execute(
        "select state::text, detail ->> 'actor' from task_event where run_key = %s and event = 'clear'", [run]
    ).fetchall() == [("none", "ann")]
    (event,) = world.conn.execute(
        "select event, state::text, actor, detail from run_event where run_key = %s and actor <> 'scheduler'", [run]
    ).fetchall()
    assert event == ("clear", "queued", "ann", {"tasks": ["e"], "instances": 1})


# -- mapped tasks --------------------------------------------------------------------------------------------------------

MAPPED = DagSpec(
    dag_id="d", tasks=(task("list"), task("m", 0, mapping=Mapping(inputs=(MapInput(name="x", task=0),)), pool="p"), task("end", 1))
)


def expanded(world: World, length: int, slots: int) -> int:
    world.pool("p", slots)
    world.add_dag(MAPPED)
    run = world.trigger("d")
    world.advance()
    world.report(world.claim(), result=list(range(length)))
    world.advance()
    return int(run)


def test_one_instance_is_cleared(world: World) -> None:
    run = expanded(world, 3, 8)
    world.drain()
    operate(world, run, CLEAR, "m", map_indexes=(1,))
    assert world.states(run) == {"list": "success", "m[0]": "success", "m[1]": "queued", "m[2]": "success", "end": "success"}
    assert world.drain() == ["m"]
    assert world.run_state(run) == "success"
    world.audit()


@pytest.mark.system
def test_an_untouched_instance_is_marked_and_nothing_else_gets_a_row(world: World) -> None:
    """R-ST6"""
    run = expanded(world, 1000, 2)
    operate(world, run, TaskEvent.MARK_SKIPPED, "m", map_indexes=(500, 2, 999))
    assert len(world.states(run)) == 2 + 2 + 3
    assert world.conn.execute("select count(*) from lane").fetchone() == (2,)
    done = world.drain()
    world.audit()
    assert done.count("m") == 997
    assert done.count("end") == 0
    assert world.states(run)["end"] == "skipped"


def test_what_is_left_of_a_parted_lane_is_looked_at(world: World, database_url: str) -> None:
    """R-CS8: the new lane may come before the one that stands for all that wait for room: schedulers number lanes apart."""
    world.pool("p", 1)
    world.catalog.lane_ids.take(world.conn)
    world.add_dag(DagSpec(dag_id="best", tasks=(task("x", pool="p"),)))
    tasks = (task("one", pool="p"), task("m", pool="p", mapping=mapped(5), max_active_tis_per_dagrun=1))
    world.add_dag(DagSpec(dag_id="d", tasks=tasks, max_active_tasks=2))
    with connect(database_url, name="second") as conn:
        second = Catalog()
        world.trigger("best")
        advance(conn, second)
        run = world.trigger("d")
        advance(conn, second)
    stand = world.conn.execute("select parked_on = -2, ready from lane where run_key = %s", [run]).fetchall()
    assert sorted(stand) == [(False, 5), (True, 1)]
    operate(world, run, TaskEvent.MARK_SKIPPED, "m", map_indexes=(2,))
    assert sorted(world.drain()) == ["m"] * 4 + ["one", "x"]
    world.audit()


def test_a_mapped_task_is_marked_as_a_whole(world: World) -> None:
    """R-ST6: with no row for what was untouched."""
    run = expanded(world, 1000, 2)
    operate(world, run, TaskEvent.MARK_SUCCESS, "m")
    assert len(world.states(run)) == 2 + 2
    assert world.states(run)["end"] == "queued"
    assert world.drain() == ["end"]
    assert world.run_state(run) == "success"
    operate(world, run, CLEAR, "m", map_indexes=(700,))
    assert world.drain() == ["m"]
    world.audit()


@pytest.mark.parametrize("length", [2, 5])
def test_a_mapped_task_expands_anew(world: World, length: int) -> None:
    run = expanded(world, 3, 8)
    world.drain()
    operate(world, run, CLEAR, "list", downstream=True)
    assert world.states(run) == {"list": "queued", "m": "none", "end": "none"}
    world.report(world.claim(), result=list(range(length)))
    assert world.drain() == ["m"] * length + ["end"]
    assert tries(world, run) == {"list": 2, "m": 2, "end": 2}
    assert world.run_state(run) == "success"
    world.audit()


def test_a_mapped_task_waits_for_its_processes_before_it_expands_anew(world: World) -> None:
    """R-CS8"""
    run = expanded(world, 10, 3)
    live = world.claim(2)
    operate(world, run, CLEAR, "m")
    assert world.states(run) == {"list": "success", "m[0]": "queued", "m[1]": "queued", "end": "none"}
    world.report(live[:1], "failed")
    world.advance()
    world.audit()
    world.report(live[1:], "success")
    world.advance()
    world.audit()
    assert world.conn.execute("select count(*) from task_instance where task_index = 1").fetchone() == (3,)
    done = world.drain()
    assert done == ["m"] * 10 + ["end"]
    assert tries(world, run)["m"] == 2
    world.audit()


def test_a_cleared_instance_waits_for_what_it_needs(world: World) -> None:
    run = expanded(world, 3, 8)
    world.drain()
    operate(world, run, CLEAR, "list")
    operate(world, run, CLEAR, "m", map_indexes=(1,))
    assert world.states(run)["m[1]"] == "none"
    world.report(world.claim(), result=[1, 2, 3])
    assert world.drain() == ["m"]
    assert world.run_state(run) == "success"
    world.audit()


def test_joined_downstream_of_a_mapped_task_waits_for_the_cleared_instance(world: World) -> None:
    spec = DagSpec(
        dag_id="d", tasks=(task("m", mapping=mapped(3)), task("end", 0, trigger_rule=TriggerRule.ALL_DONE), task("last", 1))
    )
    run = finished(world, spec)
    operate(world, run, CLEAR, "m", map_indexes=(0,), downstream=True)
    assert world.states(run) == {"m[0]": "queued", "m[1]": "success", "m[2]": "success", "end": "none", "last": "none"}
    assert world.drain() == ["m", "end", "last"]
    world.audit()


def test_many_operations_hold_up_no_report(world: World) -> None:
    """Each costs the size of its run, so a transaction applies a few of them, and finds the reports behind the others."""
    world.add_dag(DagSpec(dag_id="d", tasks=(task("a"),), max_active_runs=None))
    runs = [world.trigger("d") for _ in range(CHANGES_PER_TURN * 2 + 1)]
    world.drain()
    last = world.trigger("d")
    world.advance()
    (begun,) = world.claim()
    request(world.conn, runs, Operation(event=CLEAR, actor="ann"))
    world.report([begun])
    progress = advance(world.conn, world.catalog, max_runs=CHANGES_PER_TURN + 1)
    assert (progress.reports, progress.again) == (CHANGES_PER_TURN + 1, True)
    assert world.run_state(last) == "success"
    world.drain()
    assert world.conn.execute("select count(*) from dag_run where clears = 1 and state = 'success'").fetchone() == (len(runs),)
    world.audit()
