"""Objects that no value refers to are deleted by whichever API server comes first, once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import psycopg
import pytest

from evenflow.api.garbage import delete_some
from evenflow.store.db.connect import AsyncPool, open_pool
from evenflow.store.serving import xcom
from evenflow.wire.objects import ObjectStorage


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
