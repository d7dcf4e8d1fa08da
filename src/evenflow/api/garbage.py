"""Deletes what lies beside the database: logs of deleted runs and DAGs, and objects of values that no longer exist, because their
run was deleted or a later try replaced them.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

from evenflow.api import limits
from evenflow.api import observations as seen
from evenflow.api.logs.store import LogStore
from evenflow.store.db.connect import AsyncPool
from evenflow.store.serving import dag_deletion, xcom
from evenflow.telemetry.observing import observe
from evenflow.wire.objects import ObjectStorage


async def delete_garbage(pool: AsyncPool, storage: ObjectStorage, logs: LogStore) -> None:
    """Runs until it is cancelled. Several API processes may do this at once: each takes other names."""
    while True:
        more = False
        try:
            more = await delete_some_logs(pool, logs)
        except Exception as error:  # the database or the storage is away; the next round finds the rest
            observe(seen.logs_not_deleted(str(error)))
        try:
            more |= await delete_some(pool, storage)
        except Exception as error:
            observe(seen.values_not_deleted(storage.url, str(error)))
        if not more:
            await asyncio.sleep(limits.GARBAGE_PAUSE)


async def delete_some(pool: AsyncPool, storage: ObjectStorage) -> bool:
    """Returns whether there may be more."""
    async with pool.connection() as conn:
        names = await xcom.take_garbage(conn, limit=limits.GARBAGE)
    if tries := {name.removesuffix("*") for name in names if name.endswith("-*")}:
        await _delete_left(pool, storage, tries)
    if names:
        deleted = await asyncio.to_thread(_delete_objects, storage, [name for name in names if name.removesuffix("*") not in tries])
        deleted += [f"{begin}*" for begin in tries]
        async with pool.connection() as conn:
            await xcom.delete_garbage(conn, deleted)
        if len(deleted) < len(names):
            raise OSError(f"{len(names) - len(deleted)} of {len(names)} could not be deleted; they are tried again later")
    return len(names) == limits.GARBAGE


async def _delete_left(pool: AsyncPool, storage: ObjectStorage, tries: set[str]) -> None:
    """Deletes objects that lost tries have stored and no value refers to. ``tries``: the prefixes of the objects' names."""
    stored = await asyncio.to_thread(storage.list_all)
    left = [name for name in stored if name[: name.find("-") + 1] in tries]
    async with pool.connection() as conn:
        used = await xcom.find_used(conn, left)
    await asyncio.to_thread(_delete_objects, storage, [name for name in left if name not in used])


async def delete_some_logs(pool: AsyncPool, logs: LogStore) -> bool:
    """Returns whether there may be more. Logs stay if their name is in use again; they are deleted with its new owner."""
    async with pool.connection() as conn:
        found = await dag_deletion.take_log_garbage(conn, limit=limits.GARBAGE)
    for garbage in found:
        if garbage.in_use:
            continue
        if garbage.run_id:
            await logs.delete_run(garbage.dag_id, garbage.run_id)
        else:
            await logs.delete_dag(garbage.dag_id)
    if found:
        async with pool.connection() as conn:
            await dag_deletion.forget_log_garbage(conn, found)
    return len(found) == limits.GARBAGE


def _delete_objects(storage: ObjectStorage, names: list[str]) -> list[str]:
    """Deletes several at a time, because each may be a request to a distant storage. Returns the names that are deleted."""

    def delete(name: str) -> bool:
        try:
            storage.delete(name)
        except Exception as error:  # a file system may raise anything
            observe(seen.object_not_deleted(storage.url, name, str(error)))
            return False
        return True

    with ThreadPoolExecutor(limits.GARBAGE_AT_ONCE, "garbage") as threads:
        return [name for name, gone in zip(names, threads.map(delete, names), strict=True) if gone]
