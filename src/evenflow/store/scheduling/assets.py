"""Events of assets as the scheduler writes them, and the runs that they make."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from psycopg.types.json import Json

from evenflow.store.db.columns import numbers, texts
from evenflow.store.db.rows import Conn, execute, row_of


class Produced(NamedTuple):
    """An event of an asset, by the success of a task instance."""

    asset: str
    uri: str
    extra: Mapping[str, Any]
    alias: str | None
    partition: str | None  # null: that of the run, if the asset has partitions
    run_key: int
    task_index: int
    map_index: int


class Pending(NamedTuple):
    """A DAG has events of this asset, or alias, in its queue. ``condition`` is what it waits for, as JSON."""

    dag_id: str
    name: str
    is_alias: bool
    condition: Any


class Consumer(NamedTuple):
    version_key: int
    spec: str
    now: datetime


def record_events(conn: Conn, events: Sequence[Produced]) -> None:
    assets, uris, extras, aliases, partitions, run_keys, tasks, maps = zip(*events, strict=True)
    params = {
        "assets": texts(assets),
        "uris": texts(uris),
        "extras": texts(json.dumps(extra) for extra in extras),
        "aliases": texts(aliases),
        "partitions": texts(partitions),
        "run_keys": numbers(run_keys),
        "tasks": numbers(tasks),
        "maps": numbers(maps),
    }
    execute(conn, "assets/record_events", params)


def end_watches(conn: Conn) -> int:
    """Returns how many runs that watch an asset are told to end."""
    return execute(conn, "assets/end_watches", {"actor": "scheduler"}).rowcount


def list_pending(conn: Conn) -> list[Pending]:
    return list(map(row_of(Pending), execute(conn, "assets/list_pending").fetchall()))


def lock_consumer(conn: Conn, dag_id: str) -> Consumer | None:
    """Returns the DAG as it is now, for this transaction alone; None when another scheduler has it, or it is paused or gone."""
    row = execute(conn, "assets/lock_consumer", {"dag_id": dag_id}).fetchone()
    return None if row is None else Consumer(*row)


def list_queued(conn: Conn, dag_id: str) -> list[tuple[str, bool]]:
    """(name, is_alias) of everything in the queue of a DAG."""
    return execute(conn, "assets/list_queued", {"dag_id": dag_id}).fetchall()


def insert_run(conn: Conn, *, dag_id: str, run_id: str, version_key: int, params: Mapping[str, Any]) -> None:
    """A run, with all events of the DAG's queue."""
    names = {"dag_id": dag_id, "run_id": run_id, "version_key": version_key, "params": Json(params)}
    execute(conn, "assets/insert_run", names)
