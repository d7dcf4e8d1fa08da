"""R-AF1: what watches an asset does so while a DAG that is on waits for the asset, and by one DAG at a time."""

from __future__ import annotations

from evenflow.core.model import AssetSpec, DagSpec, Schedule, TaskSpec
from evenflow.scheduler.assets import end_watches
from evenflow.scheduler.duties.schedules import create_scheduled
from tests.scheduler.world import World

TASK = TaskSpec(task_id="watch", operator="AssetWatch", outlets=("a",))
DAGS = "update dag set next_run_at = now() where dag_id like 'watch%'"


def add_watch(world: World, dag_id: str = "watch", key: str = "k", **spec: object) -> None:
    schedule = Schedule(kind="watch", watch="a", watch_key=key)
    world.add_dag(DagSpec(dag_id=dag_id, tasks=(TASK,), schedule=schedule, assets=(AssetSpec(name="a", uri="a"),), **spec))  # type: ignore[arg-type]
    world.conn.execute("insert into asset_watch values (%s, 'a', %s) on conflict do nothing", [dag_id, key])
    world.conn.execute(DAGS)


def add_consumer(world: World) -> None:
    world.add_dag(DagSpec(dag_id="use", tasks=(TaskSpec(task_id="t", operator="python"),)))
    world.conn.execute("insert into asset_consumer values ('use', 'a', false)")


def live(world: World) -> list[str]:
    return [row[0] for row in world.conn.execute("select dag_id from dag_run where state in ('queued', 'running') order by 1")]


def look(world: World) -> list[str]:
    create_scheduled(world.conn)
    end_watches(world.conn)
    world.advance()
    return live(world)


def begin(world: World) -> None:
    """Its one task is deferred."""
    world.advance()
    world.defer(world.claim())
    world.advance()


def test_it_watches_while_a_dag_that_is_on_waits_for_the_asset(world: World) -> None:
    add_watch(world)
    assert look(world) == []
    add_consumer(world)
    assert look(world) == look(world) == ["watch"]
    begin(world)
    assert look(world) == ["watch"]
    world.conn.execute("update dag set is_paused = true where dag_id = 'use'")
    assert look(world) == []
    (state,) = world.conn.execute("select state::text from dag_run").fetchone() or ()
    assert state == "success", "nothing has failed"
    assert world.conn.execute("select count(*) from asset_event").fetchone() == (0,)
    world.conn.execute("update dag set is_paused = false where dag_id = 'use'")
    world.conn.execute(DAGS)
    assert look(world) == ["watch"]
    world.audit()


def test_of_two_with_one_key_one_watches_and_the_other_takes_over(world: World) -> None:
    add_watch(world, "watch.1")
    add_watch(world, "watch.2")
    add_consumer(world)
    assert look(world) == ["watch.1"]
    begin(world)
    world.conn.execute("update dag set is_active = false where dag_id = 'watch.1'")
    end_watches(world.conn)
    create_scheduled(world.conn)
    assert live(world) == ["watch.1"], "two never watch at once"
    assert look(world) == []
    assert look(world) == ["watch.2"]
    world.audit()


def test_a_new_version_of_its_file_begins_anew(world: World) -> None:
    add_watch(world)
    add_consumer(world)
    look(world)
    begin(world)
    add_watch(world, description="another")
    end_watches(world.conn)
    world.advance()
    assert live(world) == []
    assert look(world) == ["watch"]


def test_one_that_has_not_begun_is_cancelled(world: World) -> None:
    add_watch(world)
    add_consumer(world)
    create_scheduled(world.conn)
    world.conn.execute("update dag set is_active = false where dag_id = 'use'")
    assert look(world) == []
