"""What lies beside the database, deleted: logs of runs and DAGs that are gone, and objects of values that are gone, of deleted runs
and of tries whose values a later try replaced.
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
    """For ever. Several API processes may do it at once, each with names of its own."""
    while True:
        more = False
        try:
            more = await delete_some_logs(pool, logs)
        except Exception as error:  # the database or the storage is away: what is left is found again
            observe(seen.logs_not_deleted(str(error)))
        try:
            more |= await delete_some(pool, storage)
        except Exception as error:
            observe(seen.values_not_deleted(storage.url, str(error)))
        if not more:
            await asyncio.sleep(limits.GARBAGE_PAUSE)


async def delete_some(pool: AsyncPool, storage: ObjectStorage) -> bool:
    """Whether there may be more."""
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
    """What lost tries have stored and no value refers to. ``tries``: how the names of their objects begin."""
    stored = await asyncio.to_thread(storage.list_all)
    left = [name for name in stored if name[: name.find("-") + 1] in tries]
    async with pool.connection() as conn:
        used = await xcom.find_used(conn, left)
    await asyncio.to_thread(_delete_objects, storage, [name for name in left if name not in used])


async def delete_some_logs(pool: AsyncPool, logs: LogStore) -> bool:
    """Whether there may be more. Logs of a name that is in use again stay, to go with whoever has it now."""
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
    """Some at a time, as each may be a request to far away; answers those that are deleted."""

    def delete(name: str) -> bool:
        try:
            storage.delete(name)
        except Exception as error:  # whatever a file system raises
            observe(seen.object_not_deleted(storage.url, name, str(error)))
            return False
        return True

    with ThreadPoolExecutor(limits.GARBAGE_AT_ONCE, "garbage") as threads:
        return [name for name, gone in zip(names, threads.map(delete, names), strict=True) if gone]
