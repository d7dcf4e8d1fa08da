"""Break the scheduler on purpose: the auditor or the oracle must notice each time, within a few turns."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from evenflow.core.deferral import Split
from evenflow.core.model import DagSpec, MapInput, Mapping, TaskSpec
from evenflow.core.selection import rules
from evenflow.core.selection.lanes import Lane
from evenflow.core.selection.loading import FindRoom, Loading
from evenflow.errors import IllegalMove
from evenflow.explaining.audit import audit
from evenflow.scheduler import deferrals
from evenflow.scheduler.ledgers.holds import Holds
from evenflow.scheduler.starts import Starts
from evenflow.store.db import rows
from evenflow.store.db.sql import sql
from evenflow.store.scheduling import deferrals as stored_deferrals
from evenflow.store.scheduling import selection
from evenflow.store.scheduling.lanes import Read
from tests.scheduler.world import World

TURNS = 12
Patch = pytest.MonkeyPatch


def task(task_id: str, *upstream: int, **kw: Any) -> TaskSpec:
    return TaskSpec(task_id=task_id, operator="python", upstream=upstream, pool="p", **kw)


SPEC = DagSpec(
    dag_id="d",
    tasks=(
        task("a", max_active_tis_per_dag=1),
        task("b", max_active_tis_per_dagrun=1, mapping=Mapping(inputs=(MapInput(name="x", length=6),))),
        task("c", pool_slots=2),
        task("d", 0, 2),
        task("e", 1),
    ),
    max_active_tasks=2,
    max_active_runs=3,
)


def noticed(world: World, *, before: Callable[[], None] = lambda: None) -> set[str]:
    """Drives a busy world for some turns; answers what the auditor finds, and ``oracle`` when a startable task is left, or a
    task has ended that nobody reported, ``refused`` when the state machine does.
    """
    r = random.Random(1)
    world.pool("p", 5)
    world.add_dag(SPEC)
    kinds: set[str] = set()
    reported: set[int] = set()
    for turn in range(TURNS):
        if turn < 4:
            world.trigger("d")
            world.trigger("d")
        if turn == 3:
            before()
        try:
            world.advance()
        except IllegalMove:  # the state machine noticed
            return kinds | {"refused"}
        tries = [t for t in world.claim() if r.random() < 0.8]
        world.report(tries)
        reported |= {t.epoch for t in tries}
        kinds |= {finding.kind for finding in audit(world.conn)}
        if world.startable() and not world.conn.execute("select from wake").fetchone():
            kinds.add("oracle")
        ended = {epoch for (epoch,) in world.conn.execute("select epoch from task_event where state = 'success'")}
        if ended - reported:
            kinds.add("oracle")
    return kinds


def test_unbroken_nothing_is_noticed(world: World) -> None:
    assert noticed(world) == set()


def test_wakes_that_are_forgotten(world: World, monkeypatch: Patch) -> None:
    """What others released is deleted and not counted."""

    def forget(conn: rows.Conn) -> rows.Rows[tuple[int, int, float, bool]]:
        conn.execute("delete from wake")
        return rows.Rows(conn.execute("select 1, 0, 0.0, false where false"), tuple)

    def release_elsewhere() -> None:
        world.conn.execute("insert into wake (limit_id, released) select limit_id, 1 from concurrency_limit where name = 'p'")
        world.conn.execute("update concurrency_limit set used = used + 1 where name = 'p'")

    monkeypatch.setattr(selection, "fold_wakes", forget)
    assert "limit" in noticed(world, before=release_elsewhere)


def test_releases_that_open_nobody(world: World, monkeypatch: Patch) -> None:
    monkeypatch.setattr(rules.Selection, "_wake", lambda *_: None)
    assert noticed(world) & {"stranded", "oracle"}


def test_parked_lanes_that_are_not_read(world: World, monkeypatch: Patch) -> None:
    add = Loading._add_parked
    monkeypatch.setattr(Loading, "_add_parked", lambda self, lanes: add(self, []))
    assert noticed(world) & {"stranded", "oracle"}


def test_releasing_twice(world: World, monkeypatch: Patch) -> None:
    """A worker that comes back late gives its slot back a second time."""
    release = Holds.release

    def twice(self: Holds, *args: Any) -> None:
        release(self, *args)
        release(self, *args)

    monkeypatch.setattr(Holds, "release", twice)
    assert "limit" in noticed(world)


def test_a_release_that_is_forgotten(world: World, monkeypatch: Patch) -> None:
    monkeypatch.setattr(Holds, "release", lambda *_: None)
    assert "limit" in noticed(world)


def test_a_report_of_a_past_epoch_that_is_applied(world: World, monkeypatch: Patch) -> None:
    """R-CS3: it ends whatever its run has going."""
    text = sql("inbox/take_reports").decode()
    fence = "where dispatch.epoch = r.epoch and dispatch.run_key = r.run_key offset 0"
    loose = text.replace(fence, "where dispatch.run_key = r.run_key order by epoch limit 1")
    loose = loose.replace("r.run_key, r.epoch,", "r.run_key, coalesce(d.epoch, r.epoch),")
    assert loose.count("limit 1") == text.count("limit 1") + 1

    def stale() -> None:
        world.conn.execute(
            "insert into report (run_key, kind, epoch, payload)"
            " select run_key, 'exit', 1, '{\"outcome\": \"success\"}' from dag_run where state = 'running'"
        )

    monkeypatch.setattr(rows, "sql", lambda name: loose.encode() if name == "inbox/take_reports" else sql(name))
    assert "oracle" in noticed(world, before=stale)


@pytest.mark.parametrize("kind", ["pool", "dag_task", "run", "run_task"])
def test_a_limit_that_is_not_checked(world: World, monkeypatch: Patch, kind: str) -> None:
    answer = Read.answer

    def blind(self: Read, question: Any, rows: Any) -> None:
        if isinstance(question, FindRoom):
            unchecked = world_limits(world.conn, kind)
            found = [*self.room.values(), *rows]  # some have been read before
            rows = [room._replace(free=10**6) if room.limit_id in unchecked else room for room in found]
        answer(self, question, rows)

    monkeypatch.setattr(Read, "answer", blind)
    assert "overdrawn" in noticed(world)


def world_limits(conn: rows.Conn, kind: str) -> set[int]:
    return {limit for (limit,) in conn.execute("select limit_id from concurrency_limit where kind = %s", [kind]).fetchall()}


def test_a_hold_that_is_not_taken(world: World, monkeypatch: Patch) -> None:
    """Neither counted nor written: both sides agree, and both are wrong."""
    add = Starts.add

    def forget(self: Starts, place: Any, lane: Lane, *args: Any, **kw: Any) -> None:
        all_of_them, lane.locals = lane.locals, lane.locals[:-1]
        add(self, place, lane, *args, **kw)
        lane.locals = all_of_them

    monkeypatch.setattr(Starts, "add", forget)
    assert "holds" in noticed(world)


def test_a_hold_that_is_not_counted(world: World, monkeypatch: Patch) -> None:
    add = Starts.add

    def uncount(self: Starts, *args: Any, **kw: Any) -> None:
        add(self, *args, **kw)
        self.used.popitem()

    monkeypatch.setattr(Starts, "add", uncount)
    assert "limit" in noticed(world)


def test_a_lane_that_outlives_its_cancelled_run(world: World, monkeypatch: Patch) -> None:
    """And passes no wake on."""

    def keep(conn: rows.Conn, run_key: int) -> rows.Rows[tuple[int]]:
        return rows.Rows(conn.execute("select 1 where false"), tuple)

    def cancel() -> None:
        for (run,) in world.conn.execute("select run_key from dag_run where state = 'running'").fetchall():
            world.cancel(run)

    monkeypatch.setattr(selection, "delete_run_lanes", keep)
    assert noticed(world, before=cancel) & {"lane", "task", "refused"}


def test_a_counter_that_misses_an_upstream(world: World, monkeypatch: Patch) -> None:
    text = sql("tasks/count_upstreams").decode()
    deaf = text.replace("success = c.success + d.success", "success = c.success + 0 * d.success")
    assert deaf != text
    monkeypatch.setattr(rows, "sql", lambda name: deaf.encode() if name == "tasks/count_upstreams" else sql(name))
    assert "counter" in noticed(world)


def noticed_of_deferred(world: World) -> set[str]:
    """Defers some tasks, and lets them return and end; answers what the auditor finds."""
    world.pool("p", 5)
    world.add_dag(SPEC)
    run = world.trigger("d")
    world.advance()
    kinds: set[str] = set()

    def look() -> None:
        world.advance()
        kinds.update(finding.kind for finding in audit(world.conn))

    world.defer(world.claim())
    look()
    for task_index, map_index in world.waiting(run):
        world.fire(run, task_index, map_index)
    look()
    world.report(world.claim())
    look()
    return kinds


def test_unbroken_nothing_is_noticed_of_deferred_tasks(world: World) -> None:
    assert noticed_of_deferred(world) == set()


def test_a_resume_that_takes_nothing_again(world: World, monkeypatch: Patch) -> None:
    monkeypatch.setattr(deferrals, "_take_again", lambda *_: None)
    assert "limit" in noticed_of_deferred(world)


def test_a_deferral_that_keeps_nothing(world: World, monkeypatch: Patch) -> None:
    monkeypatch.setattr(deferrals, "split", lambda *_: Split([], 0, [], 0))
    assert {"limit", "deferral"} <= noticed_of_deferred(world)


def test_a_deferral_that_outlives_its_try(world: World, monkeypatch: Patch) -> None:
    monkeypatch.setattr(stored_deferrals, "delete_all", lambda *_: None)
    assert "deferral" in noticed_of_deferred(world)
