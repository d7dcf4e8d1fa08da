"""A DAG whose file is gone goes with its history, and logs of what is gone follow."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from evenflow.api.garbage import delete_some_logs
from evenflow.api.logs.directory import LogDirectory
from evenflow.client.rest import RestClient
from evenflow.errors import ApiRefused, DatabaseUnavailable
from evenflow.store.db.connect import open_pool
from evenflow.store.serving import dag_deletion, operations
from tests.api.world import World

LEFT = ("dag", "dag_version", "task", "dag_run", "task_instance", "task_event", "run_event", "backfill", "asset_queue")


@pytest.fixture
def retired(world: World) -> int:
    """The version of a DAG whose file is gone, with 25 runs that have ended."""
    version = world.add_dag()
    for number in range(25):
        run = world.run(version, f"r{number}", state="success")
        world.instance(run, 0, -1, state="success")
    world.conn.execute("update dag set is_active = false where dag_id = 'sales'")
    return version


async def test_a_dag_is_deleted_with_its_history(rest: RestClient, world: World, retired: int) -> None:
    assert (await rest.delete_dag("sales", dry_run=True)).runs == 25
    assert world.one("select count(*) from dag_run") == 25
    assert (await rest.delete_dag("sales")).runs == 25
    left = {table: world.one(f"select count(*) from {table} t where to_jsonb(t) ->> 'dag_id' = 'sales'") for table in LEFT}
    assert {table: n for table, n in left.items() if n} == {}
    assert world.one("select count(*) from task_instance") == 0
    assert world.all("select object from audit_event where action = 'dag.delete'") == ["sales"]
    with pytest.raises(ApiRefused, match="There is no DAG 'sales'"):
        await rest.delete_dag("sales")


async def test_a_deletion_that_is_interrupted_is_told(
    database_url: str, world: World, retired: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-SE5: who deletes the history of a DAG stands in the events, however it ends."""
    monkeypatch.setattr("evenflow.store.serving.dag_deletion.RUNS_AT_ONCE", 10)
    delete, parts = operations.delete_runs, iter([True, False])

    async def interrupted(conn: Any, run_keys: Iterable[int]) -> int:
        if not next(parts):
            raise DatabaseUnavailable("gone")
        return await delete(conn, run_keys)

    monkeypatch.setattr("evenflow.store.serving.operations.delete_runs", interrupted)
    async with await open_pool(database_url, name="test", min_size=1, max_size=1) as pool, pool.connection() as conn:
        with pytest.raises(DatabaseUnavailable):
            await dag_deletion.delete_dag(conn, "sales", actor="ann")
    assert world.one("select count(*) from dag_run") == 15
    assert world.all("select actor, object from audit_event where action = 'dag.delete'") == [("ann", "sales")]


async def test_not_while_its_file_is_there(rest: RestClient, world: World) -> None:
    world.add_dag()
    with pytest.raises(ApiRefused, match=r"is defined in pipeline\.py"):
        await rest.delete_dag("sales")


async def test_not_while_a_run_is_live(rest: RestClient, world: World, retired: int) -> None:
    world.run(retired, "live")
    with pytest.raises(ApiRefused, match="The run 'live' of DAG 'sales' has not ended"):
        await rest.delete_dag("sales")
    assert world.one("select count(*) from dag_run") == 26


async def test_logs_of_what_is_gone_are_deleted(database_url: str, world: World, tmp_path: Path) -> None:
    world.run(world.add_dag(), "again")
    root = tmp_path / "deleted"
    folders = {name: root / name for name in ("sales/gone", "sales/again", "other/r1")}
    for folder in folders.values():
        os.makedirs(folder)
    world.conn.execute("insert into log_garbage values ('sales', 'gone'), ('sales', 'again'), ('other', ''), ('sales', '')")
    logs = LogDirectory(root)
    async with await open_pool(database_url, name="test", min_size=1, max_size=1) as pool:
        assert not await delete_some_logs(pool, logs)
    assert {name for name, folder in folders.items() if os.path.exists(folder)} == {"sales/again"}  # noqa: ASYNC240
    assert world.one("select count(*) from log_garbage") == 0


async def test_servers_share_the_logs_that_are_to_be_deleted(database_url: str, world: World) -> None:
    """R-HA20: what one has taken no other takes, until it has had time enough."""
    world.conn.execute("insert into log_garbage select 'd', n::text from generate_series(1, 5) n")
    async with (
        await open_pool(database_url, name="test", min_size=2, max_size=2) as pool,
        pool.connection() as one,
        pool.connection() as other,
    ):
        async with one.transaction():
            first = await dag_deletion.take_log_garbage(one, limit=3)
            second = await dag_deletion.take_log_garbage(other, limit=3)
        assert (len(first), len(second), len({*first, *second})) == (3, 2, 5)
        assert await dag_deletion.take_log_garbage(one, limit=3) == []
        world.conn.execute("update log_garbage set at = now()")
        assert len(await dag_deletion.take_log_garbage(one, limit=9)) == 5
