"""Assets as DAG files declare them, and their events as people and tasks read and make them. For the API."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from psycopg.rows import kwargs_row

from evenflow.contracts.rest.assets import Emitted
from evenflow.core.assets import Leaf
from evenflow.core.ending import told
from evenflow.core.model import AssetSpec
from evenflow.store.db.connect import AsyncConn, Row
from evenflow.store.db.failures import BAD_VALUE, not_storable
from evenflow.store.db.instant import read
from evenflow.store.db.sql import sql


class StoredPartitions(NamedTuple):
    partitions: dict[str, Any] | None
    first: str | None  # of the existing ones
    later: list[str]  # of these, at most a thousand of the running interval and of the future


async def register(conn: AsyncConn, assets: Sequence[AssetSpec], *, made: Collection[str]) -> None:
    """Makes assets, or gives them the URI, group and extra that a DAG file declares now. Those that are ``made`` by its tasks have
    the partitions that it says, or none; of others it may say them.
    """
    names = {
        "names": [asset.name for asset in assets],
        "uris": [asset.uri for asset in assets],
        "groups": [asset.group for asset in assets],
        "extras": [json.dumps(asset.extra) for asset in assets],
        "partitions": [None if asset.partitions is None else json.dumps(told(asset.partitions)) for asset in assets],
        "made": [asset.name in made for asset in assets],
    }
    if assets:
        await conn.execute(sql("assets/register"), names)


async def set_consumer(conn: AsyncConn, dag_id: str, leaves: Collection[Leaf]) -> None:
    """Makes a DAG wait for these assets and aliases, and for no others."""
    names = {"dag_id": dag_id, "names": [leaf.name for leaf in leaves], "aliases": [leaf.is_alias for leaf in leaves]}
    await conn.execute(sql("assets/delete_consumers"), names)
    if leaves:
        await conn.execute(sql("assets/insert_consumers"), names)


async def set_producer(conn: AsyncConn, dag_id: str, made: Collection[str]) -> None:
    """Says that a DAG makes these assets, and no others."""
    names = {"dag_id": dag_id, "names": list(made)}
    await conn.execute(sql("assets/delete_producers"), names)
    if made:
        await conn.execute(sql("assets/insert_producers"), names)


async def set_watch(conn: AsyncConn, dag_id: str, asset: str, key: str) -> None:
    """Says which asset a DAG watches from outside. An empty name: none."""
    await conn.execute(sql("assets/set_watch"), {"dag_id": dag_id, "asset": asset, "watch_key": key})


async def list_assets(conn: AsyncConn, *, asset: str | None = None, scope: str | None, limit: int, after: str | None) -> list[Row]:
    return await _rows(conn, "assets/list_assets", asset=asset, scope=scope, limit=limit, after=after)


async def list_events(
    conn: AsyncConn, *, asset: str | None, scope: str | None = None, limit: int, after: str | None = None
) -> list[Row]:
    """The newest first; of all assets when ``asset`` is None."""
    if asset is None:
        return await _rows(conn, "assets/list_all_events", scope=scope, limit=limit, after=after)
    return await _rows(conn, "assets/list_events", asset=asset, scope=scope, limit=limit, after=after)


async def list_alias_events(conn: AsyncConn, alias: str, *, limit: int) -> list[Row]:
    """Events of assets that tasks added to the alias, the newest first."""
    return await _rows(conn, "assets/list_alias_events", alias=alias, limit=limit)


async def list_named(conn: AsyncConn, name: str, *, is_alias: bool, limit: int) -> list[Row]:
    """The asset of this name; of an alias those of its ``limit`` newest events, by name."""
    return await _rows(conn, "assets/list_named", named=name, is_alias=is_alias, limit=limit)


async def list_run_events(conn: AsyncConn, run_key: int, *, limit: int) -> list[Row]:
    """Events that made a run, the newest first."""
    return await _rows(conn, "assets/list_run_events", run_key=run_key, limit=limit)


async def read_partitions(conn: AsyncConn, asset: str, *, scope: str | None) -> StoredPartitions | None:
    """Returns None for an asset that does not exist."""
    row = await (await conn.execute(sql("assets/read_partitions"), {"asset": asset, "scope": scope})).fetchone()
    return None if row is None else StoredPartitions(*row)


async def list_partitions(conn: AsyncConn, asset: str, partitions: Sequence[str], *, scope: str | None) -> list[Row]:
    """Those of ``partitions`` that there are."""
    return await _rows(conn, "assets/list_partitions", asset=asset, partitions=list(partitions), scope=scope)


async def emit_event(
    conn: AsyncConn, asset: str, *, partition: str | None, extra: Mapping[str, Any], actor: str, scope: str | None = None
) -> Emitted | None:
    """Emits an event by hand. Returns None when the asset does not exist, or when only DAGs beyond the scope make it or wait for
    it.
    """
    cursor = conn.cursor(row_factory=kwargs_row(Emitted))
    names = {"asset": asset, "partition": partition, "extra": json.dumps(extra), "actor": actor, "scope": scope}
    return await (await cursor.execute(sql("assets/emit_event"), names)).fetchone()


async def read_value(conn: AsyncConn, asset: str, name: str) -> str | None:
    """Returns JSON, or None if nothing is kept under the name."""
    row = await (await conn.execute(sql("assets/read_value"), {"asset": asset, "name": name})).fetchone()
    return None if row is None else row[0]


async def write_value(conn: AsyncConn, asset: str, name: str, value: str, *, epoch: int, limit: int) -> bool:
    """Returns False when the try is over, or when the asset has ``limit`` other values.

    Raises :class:`XComError` when the value is not JSON that the database can hold.
    """
    names = {"asset": asset, "name": name, "value": value, "epoch": epoch, "limit": limit}
    try:
        return await (await conn.execute(sql("assets/write_value"), names)).fetchone() is not None
    except BAD_VALUE as error:
        raise not_storable(f"What is to be kept with asset {asset!r} as {name!r}", error) from None


async def forget_values(conn: AsyncConn, asset: str, name: str | None, *, epoch: int) -> bool:
    """Whether the try still runs. Without a name: all values of the asset."""
    names = {"asset": asset, "name": name, "epoch": epoch}
    return await (await conn.execute(sql("assets/forget_values"), names)).fetchone() is not None


async def _rows(conn: AsyncConn, name: str, **names: Any) -> list[Row]:
    return await read(conn, name, names)
