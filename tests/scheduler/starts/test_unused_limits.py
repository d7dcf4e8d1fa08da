"""Limits that DAGs and tasks brought with them go when no version knows them any more, whatever schedulers remember (R-HA20)."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from evenflow.core.model import DagSpec, TaskSpec
from evenflow.scheduler.advance import advance
from evenflow.scheduler.catalog import Catalog
from evenflow.scheduler.duties.retention import UnusedLimits, delete_superseded
from evenflow.store.db.connect import connect
from tests.scheduler.world import World
from tests.world import World as Storing


def dag(dag_id: str = "d", *tasks: str) -> DagSpec:
    specs = tuple(TaskSpec(task_id=name, operator="python", max_active_tis_per_dag=1) for name in tasks or ("a",))
    return DagSpec(dag_id=dag_id, tasks=specs, max_active_runs=5)


def delete(world: World) -> None:
    assert delete_superseded(world.conn, UnusedLimits()) is None


def limits(world: World) -> set[tuple[str, str]]:
    rows = world.conn.execute("select kind::text, name from concurrency_limit where kind in ('dag_task', 'dag_runs')")
    return set(rows.fetchall())


def limit_classes(world: World) -> int:
    (count,) = world.conn.execute("select count(*) from limit_class where task_limit is not null").fetchone()  # type: ignore[misc]
    return int(count)


def forget(world: World, dag_id: str) -> None:
    """As people delete a DAG whose runs are gone."""
    world.conn.execute("delete from dag_run where dag_id = %s", [dag_id])
    world.conn.execute("delete from dag where dag_id = %s", [dag_id])
    world.conn.execute("delete from dag_version where dag_id = %s", [dag_id])


@pytest.fixture
def other(world: World, database_url: str) -> Iterator[tuple[psycopg.Connection, Catalog]]:
    """Another scheduler."""
    with connect(database_url, name="other") as conn:
        yield conn, Catalog()


def drain(world: World, other: tuple[psycopg.Connection, Catalog], runs: int) -> None:
    """Two schedulers take turns; one task at a time has a worker."""
    for _ in range(2 * runs + 2):
        advance(*other)
        started = world.claim()
        assert len(started) <= 1, "the task has a limit of 1"
        world.report(started)
        world.advance()


def test_they_go_with_their_dag_and_come_back_with_it(world: World, other: tuple[psycopg.Connection, Catalog]) -> None:
    """Two schedulers remember the limit classes of before, and limit the DAG that comes back by the limit that comes with it."""
    world.add_dag(dag("stays"))
    for _ in range(3):
        world.add_dag(dag())
        runs = [world.trigger(dag_id) for dag_id in ("d", "d", "d")]
        drain(world, other, len(runs))
        assert {world.run_state(run) for run in runs} == {"success"}
        assert limit_classes(world) == 1
        forget(world, "d")
        delete(world)
        assert limits(world) == {("dag_task", "stays/a"), ("dag_runs", "stays")}
        assert limit_classes(world) == 0
        world.audit()


def test_a_limit_stays_while_a_version_has_the_task(world: World) -> None:
    """Its runs may be cleared, and schedulers remember where its tasks wait."""
    old = world.add_dag(dag("d", "a", "b"))
    world.add_dag(dag("d", "a"))
    world.advance()
    delete(world)
    assert limits(world) == {("dag_task", "d/a"), ("dag_task", "d/b"), ("dag_runs", "d")}
    world.conn.execute("delete from dag_version where version_key = %s", [old])
    delete(world)
    assert limits(world) == {("dag_task", "d/a"), ("dag_runs", "d")}


def test_a_limit_stays_while_something_is_held_of_it_or_is_yet_to_be_folded(world: World) -> None:
    world.add_dag(dag())
    forget(world, "d")
    world.conn.execute("update concurrency_limit set used = 1 where kind = 'dag_runs'")
    world.conn.execute("insert into wake (limit_id, released) select limit_id, 0 from concurrency_limit where kind = 'dag_task'")
    delete(world)
    assert limits(world) == {("dag_task", "d/a"), ("dag_runs", "d")}
    world.conn.execute("update concurrency_limit set used = 0 where kind = 'dag_runs'")
    world.conn.execute("delete from wake")
    delete(world)
    assert limits(world) == set()


def test_a_dag_that_is_just_being_stored_keeps_its_limits(world: World, database_url: str) -> None:
    """The version is not to be seen yet, and it relies on the limits that it has found."""
    world.add_dag(dag())
    forget(world, "d")
    with connect(database_url, name="api") as api:
        with api.transaction():
            Storing(api).add_dag(dag())
            world.conn.execute("set lock_timeout = '1ms'")
            delete(world)
        delete(world)
    assert limits(world) == {("dag_task", "d/a"), ("dag_runs", "d")}


def test_the_end_of_a_run_reads_no_limit_classes(world: World) -> None:
    """However many there are: foreign keys are looked up by index."""
    world.add_dag(dag())
    world.conn.execute(
        "insert into concurrency_limit (kind, name, capacity) select 'dag_task', 'x/' || n, 1 from generate_series(1, 5000) n;"
        "insert into limit_class (class_id, pool_limit, executor_limit, queue, weight, task_limit, base_id) overriding system value"
        " select 1000 + l.limit_id, 1, 2, 'default', 1, l.limit_id, 1000 + l.limit_id"
        " from concurrency_limit l where l.name like 'x/%';"
        "insert into concurrency_limit (kind, run_key, name, capacity) select 'run', n, '', 1 from generate_series(1, 9) n;"
        "analyze limit_class; analyze concurrency_limit"
    )
    read = "select seq_tup_read from pg_stat_xact_user_tables where relname = 'limit_class'"
    with world.conn.transaction():
        before = world.conn.execute(read).fetchone()
        world.conn.execute("delete from concurrency_limit where run_key > 0")
        assert world.conn.execute(read).fetchone() == before
