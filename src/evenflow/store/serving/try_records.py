"""What tries leave besides their results: what they tell of their work, their rendered templates, and what their task instances
store once for all tries: ids of what they have made outside, and the keys to make it with.
"""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Any, Literal, NamedTuple

from psycopg.rows import dict_row

from evenflow.store.db.connect import AsyncConn, Row
from evenflow.store.db.failures import BAD_VALUE, not_storable
from evenflow.store.db.sql import sql
from evenflow.store.scheduling.tasks import TryKey


async def write_record(conn: AsyncConn, key: TryKey, *, try_number: int, kind: str, value: str, most_links: int = 0) -> bool:
    """Whether the try still runs, or waits; ``value`` is a JSON object. Links are added to those that the try has told, until
    these are ``most_links``.
    """
    names = {**asdict(key), "try_number": try_number, "kind": kind, "value": value, "most_links": most_links}
    cursor = await conn.execute(sql("records/write"), names, prepare=True)
    return await cursor.fetchone() is not None


async def read_own(conn: AsyncConn, key: TryKey, *, kind: str) -> dict[str, Any] | None:
    """Returns what this try has said of its work."""
    row = await (await conn.execute(sql("records/read_own"), {**asdict(key), "kind": kind}, prepare=True)).fetchone()
    return None if row is None else dict(row[0])


async def read_lineage(
    conn: AsyncConn, *, dag_id: str, run_id: str, task_id: str, map_index: int, try_number: int | None
) -> Row | None:
    """Of the newest try that has told, where none is asked for."""
    names = {"dag_id": dag_id, "run_id": run_id, "task_id": task_id, "map_index": map_index, "try_number": try_number}
    return await (await conn.cursor(row_factory=dict_row).execute(sql("records/read_lineage"), names)).fetchone()


async def read_of_spark(
    conn: AsyncConn,
    kind: Literal["spark_ui", "spark_stages"],
    *,
    dag_id: str,
    run_id: str,
    task_id: str,
    map_index: int,
    try_number: int | None = None,
) -> Row | None:
    """Of the newest try that has told, where none is asked for."""
    of = {"dag_id": dag_id, "run_id": run_id, "task_id": task_id, "map_index": map_index, "try_number": try_number}
    return await (await conn.cursor(row_factory=dict_row).execute(sql("records/read_of_spark"), {"kind": kind, **of})).fetchone()


async def read_links(conn: AsyncConn, *, dag_id: str, run_id: str, task_id: str, map_index: int) -> Row | None:
    """Of the newest try that has told any."""
    names = {"dag_id": dag_id, "run_id": run_id, "task_id": task_id, "map_index": map_index}
    return await (await conn.cursor(row_factory=dict_row).execute(sql("records/read_links"), names)).fetchone()


async def take_unsent(conn: AsyncConn, *, limit: int, again_s: float) -> list[Row]:
    """Takes rows as :func:`read_lineage` returns them. A caller that does not report them as sent leaves them to others after
    ``again_s`` seconds.
    """
    names = {"limit": limit, "again_s": again_s}
    return await (await conn.cursor(row_factory=dict_row).execute(sql("records/take_unsent"), names)).fetchall()


async def tell_sent(conn: AsyncConn, *, run_key: int, epoch: int) -> None:
    await conn.execute(sql("records/tell_sent"), {"run_key": run_key, "epoch": epoch})


class PreviousRunTimes(NamedTuple):
    data_interval_start: datetime | None
    data_interval_end: datetime | None
    started_at: datetime | None
    ended_at: datetime | None


async def write_rendered(conn: AsyncConn, *, epoch: int, fields: str) -> bool:
    """Whether the try still runs; ``fields`` is a JSON object."""
    cursor = await conn.execute(sql("rendered/write"), {"epoch": epoch, "fields": fields}, prepare=True)
    return await cursor.fetchone() is not None


async def read_rendered(conn: AsyncConn, *, dag_id: str, run_id: str, task_id: str, map_index: int) -> dict[str, str] | None:
    names = {"dag_id": dag_id, "run_id": run_id, "task_id": task_id, "map_index": map_index}
    row = await (await conn.execute(sql("rendered/read"), names)).fetchone()
    return None if row is None else dict(row[0])


async def previous_run(conn: AsyncConn, run_key: int) -> PreviousRunTimes | None:
    """The last successful run of the same DAG before this one."""
    row = await (await conn.execute(sql("runs/read_previous"), {"run_key": run_key})).fetchone()
    return None if row is None else PreviousRunTimes(*row)


class OnceValue(NamedTuple):
    """Neither a value nor a sealed one: nothing is stored yet."""

    key: str
    value: str | None  # JSON
    sealed: bytes | None


async def ask_once(conn: AsyncConn, *, epoch: int, name: str, limit: int) -> OnceValue | None:
    """None when the try is over, or when its task instance has ``limit`` other names."""
    row = await (await conn.execute(sql("once/ask"), {"epoch": epoch, "name": name, "limit": limit}, prepare=True)).fetchone()
    return None if row is None else OnceValue(*row)


async def store_once(
    conn: AsyncConn, *, epoch: int, name: str, value: str | None, sealed: bytes | None, replaces: bool, outside: bool
) -> OnceValue | None:
    """Returns the value that is stored then: the first one stays, unless this one ``replaces`` it. None when the try is over or has
    not asked for the name.

    Raises :class:`XComError` when the value is not JSON that the database can hold.
    """
    names = {"epoch": epoch, "name": name, "value": value, "sealed": sealed, "replaces": replaces, "outside": outside}
    try:
        row = await (await conn.execute(sql("once/set"), names, prepare=True)).fetchone()
    except BAD_VALUE as error:
        raise not_storable(f"What is to be stored once as {name!r}", error) from None
    return None if row is None else OnceValue(*row)


async def forget_once(conn: AsyncConn, *, epoch: int, name: str | None) -> bool:
    """Whether the try still runs. Without a name: all that its task instance has stored."""
    cursor = await conn.execute(sql("once/forget"), {"epoch": epoch, "name": name}, prepare=True)
    return await cursor.fetchone() is not None
