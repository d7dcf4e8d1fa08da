"""Objects that no value refers to are deleted by whichever API server comes first, once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import psycopg
import pytest

from evenflow.api.garbage import delete_some
from evenflow.core.model import DagSpec, TaskSpec
from evenflow.store.db.connect import AsyncPool, open_pool
from evenflow.store.serving import xcom
from evenflow.wire.objects import ObjectStorage
from tests.world import Unscheduled


@pytest.fixture
async def pool(database_url: str) -> AsyncIterator[AsyncPool]:
    opened = await open_pool(database_url, name="test", min_size=1, max_size=2)
    yield opened
    await opened.close()


@pytest.fixture
def storage(tmp_path: Path) -> ObjectStorage:
    return ObjectStorage(str(tmp_path / "xcom"))


async def test_what_lost_tries_have_left_is_found(pool: AsyncPool, storage: ObjectStorage, db: psycopg.Connection) -> None:
    """R-HA20: what a value refers to stays, and what other tries have stored."""
    for name in ("7-a.json", "7-b.json", "71-a.json", "8-a.json", "9-a.json"):
        storage.write(name, b"1")
    db.execute("insert into xcom (run_key, task_index, key, value, epoch, object) values (1, 0, 'k', 'null', 7, '7-b.json')")
    db.execute("insert into xcom_garbage (object) values ('7-*'), ('8-a.json'), ('99-*')")
    assert not await delete_some(pool, storage)
    assert sorted(storage.list_all()) == ["7-b.json", "71-a.json", "9-a.json"]
    assert db.execute("select * from xcom_garbage").fetchall() == []


async def test_servers_share_the_work(pool: AsyncPool, storage: ObjectStorage, db: psycopg.Connection) -> None:
    """R-HA20: what one has taken no other takes, until it has had time enough."""
    db.execute("insert into xcom_garbage (object) select n || '-a.json' from generate_series(1, 5) n")
    async with pool.connection() as one, pool.connection() as other:
        first = await xcom.take_garbage(one, limit=3)
        second = await xcom.take_garbage(other, limit=3)
        assert (len(first), len(second), len({*first, *second})) == (3, 2, 5)
        assert await xcom.take_garbage(one, limit=3) == []
        db.execute("update xcom_garbage set at = now()")
        assert len(await xcom.take_garbage(one, limit=9)) == 5


async def test_what_cannot_be_deleted_is_tried_again(
    pool: AsyncPool, storage: ObjectStorage, db: psycopg.Connection, tmp_path: Path
) -> None:
    """The others go."""
    storage.write("1-a.json", b"1")
    (tmp_path / "xcom" / "2-a.json").mkdir()
    db.execute("insert into xcom_garbage (object) values ('1-a.json'), ('2-a.json')")
    with pytest.raises(OSError, match="1 of 2 could not be deleted"):
        await delete_some(pool, storage)
    assert db.execute("select object from xcom_garbage").fetchall() == [("2-a.json",)]
    assert storage.list_all() == ["2-a.json"]


FRAME = """{"__type__": "frame", "value": {"name": "%s", "rows": 1}}"""
MINE, OTHERS = "7-0123456789abcdef.parquet", "8-0123456789abcdef.parquet"


async def test_folders_of_dataframes_go_with_their_values(pool: AsyncPool, storage: ObjectStorage, db: psycopg.Connection) -> None:
    """R-HA20: with the run, or when another try has taken its place; what names the folder of another try does not own it."""
    for name in (MINE, OTHERS):
        storage.begin_folder(name)
    insert = "insert into xcom (run_key, task_index, map_index, key, value, epoch) values (1, 0, %s, 'return_value', %s, 7)"
    db.execute(insert, [0, FRAME % MINE])
    db.execute(insert, [1, FRAME % OTHERS])
    db.execute(insert, [2, FRAME % "7-0123456789abcdef.parquet/../.."])
    assert db.execute("select folder from xcom order by map_index").fetchall() == [(MINE,), (None,), (None,)]
    db.execute("delete from xcom where map_index > 0")
    assert db.execute("select object from xcom_garbage").fetchall() == []
    db.execute("update xcom set value = '1'")
    await delete_some(pool, storage)
    assert storage.list_all() == [OTHERS]


async def test_what_a_try_has_begun_is_looked_for_when_it_has_ended(
    pool: AsyncPool, storage: ObjectStorage, db: psycopg.Connection
) -> None:
    """R-HA20: while it runs it is its own; afterwards what its result names stays."""
    world = Unscheduled(db)
    dag = DagSpec(dag_id="d", tasks=(TaskSpec(task_id="t", operator="python"),))
    epoch = world.dispatch(world.run(world.add_dag(dag)))
    async with pool.connection() as conn:
        for _ in range(2):
            await xcom.begin_folder(conn, epoch=epoch)
    kept, left = (f"{epoch}-{digit * 16}.parquet" for digit in "ab")
    for name in (kept, left):
        storage.begin_folder(name)
    assert db.execute("select object, at > now() from xcom_garbage").fetchall() == [(f"{epoch}-*", True)]
    db.execute("update xcom_garbage set at = now()")
    await delete_some(pool, storage)
    assert sorted(storage.list_all()) == [kept, left]
    insert = "insert into xcom (run_key, task_index, key, value, epoch) values (1, 0, 'return_value', %s, %s)"
    db.execute(insert, [FRAME % kept, epoch])
    db.execute("delete from dispatch")
    await delete_some(pool, storage)
    assert storage.list_all() == [kept]
    assert db.execute("select object from xcom_garbage").fetchall() == []
