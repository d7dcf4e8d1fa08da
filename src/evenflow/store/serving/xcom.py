"""Values that tasks push and pull. All are JSON text here: only tasks know their meaning."""

from __future__ import annotations

from typing import Any

from psycopg.rows import dict_row

from evenflow.store.db.connect import AsyncConn
from evenflow.store.db.failures import BAD_VALUE, not_storable
from evenflow.store.db.instant import read
from evenflow.store.db.sql import sql

PRIOR_RUNS = 1_000  # that are looked through for a value: a thousand lookups by primary key, some milliseconds


async def push(
    conn: AsyncConn,
    *,
    epoch: int,
    key: str,
    value: str,
    secret: bool = False,
    stored: tuple[str, int, int | None] | None = None,
    length: int | None = None,
) -> bool:
    """Whether the try still runs and so the value was stored; ``stored`` is (name, bytes, elements) of one in object storage, and
    ``length`` says the elements of a value that does not show them.

    Raises :class:`XComError` when it is not JSON for the database.
    """
    name, size, of_object = stored or (None, None, None)
    length = of_object if length is None else length
    names = {"epoch": epoch, "key": key, "value": value, "secret": secret, "object": name, "size": size, "length": length}
    try:
        row = await (await conn.execute(sql("xcom/push"), names, prepare=True)).fetchone()
    except BAD_VALUE as error:
        raise not_storable(f"The XCom {key!r}", error) from None
    return row is not None


async def pull_one(
    conn: AsyncConn, *, epoch: int, run_key: int, task_index: int, map_index: int, key: str
) -> tuple[str | None, str | None, bool] | None:
    """Returns the JSON, null without a value; the name of the object that it stands for, if any; and whether it is secret. None
    when the try ``epoch``, which asks, is over.
    """
    names = {"epoch": epoch, "run_key": run_key, "task_index": task_index, "map_index": map_index, "key": key}
    row = await (await conn.execute(sql("xcom/pull_one"), names, prepare=True)).fetchone()
    return None if row is None else (row[0], row[1], row[2])


async def pull_mapped(
    conn: AsyncConn, *, epoch: int, run_key: int, task_index: int, key: str, limit: int
) -> tuple[str | None, dict[str, str], bool] | None:
    """The values of all instances of a mapped task as a JSON list in map order, null above ``limit`` bytes; the names of those
    that lie in object storage, by their place; and whether any is secret. None when the try ``epoch``, which asks, is over.
    """
    names = {"epoch": epoch, "run_key": run_key, "task_index": task_index, "key": key, "limit": limit}
    row = await (await conn.execute(sql("xcom/pull_mapped"), names, prepare=True)).fetchone()
    assert row is not None
    return (row[0], row[1], row[3]) if row[2] else None


async def begin_folder(conn: AsyncConn, *, epoch: int) -> None:
    """The try is about to write a folder: what no value refers to when it has ended is garbage."""
    await conn.execute(sql("xcom/begin_folder"), {"epoch": epoch})


async def take_garbage(conn: AsyncConn, *, limit: int) -> list[str]:
    """Returns names of objects that no value refers to any more, and hides them from other callers for a while."""
    return [name for (name,) in await (await conn.execute(sql("xcom/take_garbage"), {"limit": limit})).fetchall()]


async def find_used(conn: AsyncConn, names: list[str]) -> set[str]:
    """Those of these objects that a value refers to."""
    return {name for (name,) in await (await conn.execute(sql("xcom/find_used"), {"names": names})).fetchall()}


async def delete_garbage(conn: AsyncConn, names: list[str]) -> None:
    """These objects are deleted."""
    await conn.execute(sql("xcom/delete_garbage"), {"names": names})


async def find_run(conn: AsyncConn, *, dag_id: str, run_id: str) -> int | None:
    row = await (await conn.execute(sql("xcom/find_run"), {"dag_id": dag_id, "run_id": run_id})).fetchone()
    return None if row is None else row[0]


async def find_prior(conn: AsyncConn, *, run_key: int, task_id: str, map_index: int, key: str) -> str | None:
    """Which run has the newest value of a task: the run itself, or one of the latest before it by logical date."""
    names = {"run_key": run_key, "task_id": task_id, "map_index": map_index, "key": key, "most": PRIOR_RUNS}
    row = await (await conn.execute(sql("xcom/find_prior"), names)).fetchone()
    return None if row is None else row[0]


async def find_state(conn: AsyncConn, *, epoch: int) -> int | None:
    """How often people have changed the run of the try ``epoch``; None when that is over."""
    row = await (await conn.execute(sql("xcom/find_state"), {"epoch": epoch}, prepare=True)).fetchone()
    return None if row is None else row[0]


async def list_pushed(conn: AsyncConn, *, run_key: int, task_index: int, key: str) -> tuple[list[int], bool]:
    """The map indexes of the instances of a mapped task that pushed a value, ascending, and whether no other one still can."""
    names = {"run_key": run_key, "task_index": task_index, "key": key}
    row = await (await conn.execute(sql("xcom/list_pushed"), names, prepare=True)).fetchone()
    assert row is not None
    return row[0], row[1]


async def list_values(
    conn: AsyncConn, *, dag_id: str, run_id: str, task_id: str | None, limit: int, after: str | None
) -> list[dict[str, Any]]:
    """What the tasks of a run pushed, in the order of the DAG, without the values."""
    names = {"dag_id": dag_id, "run_id": run_id, "task_id": task_id, "limit": limit, "after": after}
    return await read(conn, "xcom/list_values", names)


async def read_value(conn: AsyncConn, *, dag_id: str, run_id: str, task_id: str, map_index: int, key: str) -> dict[str, Any] | None:
    """One value for people; null when it is secret."""
    names = {"dag_id": dag_id, "run_id": run_id, "task_id": task_id, "map_index": map_index, "key": key}
    return await (await conn.cursor(row_factory=dict_row).execute(sql("xcom/read_value"), names)).fetchone()
