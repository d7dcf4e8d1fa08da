"""What lies beside the database, deleted: logs of runs and DAGs that are gone, and objects of values that are gone, of deleted runs
and of tries whose values a later try replaced.
"""

from __future__ import annotations

import asyncio
import logging

from evenflow.api import limits
from evenflow.api.logs import LogDirectory
from evenflow.store import dag_deletion, xcom
from evenflow.store.connect import AsyncPool
from evenflow.wire.objects import ObjectStorage

log = logging.getLogger(__name__)


async def delete_garbage(pool: AsyncPool, storage: ObjectStorage, logs: LogDirectory) -> None:
    """For ever. Several API processes may do it at once: what is gone already is deleted."""
    while True:
        more = False
        try:
            more = await delete_some_logs(pool, logs)
            more |= await delete_some(pool, storage)
        except Exception as error:  # the database or the storage is away: what is left is found again
            log.warning("values of deleted runs stay in %s: %s", storage.url, error)
        if not more:
            await asyncio.sleep(limits.GARBAGE_PAUSE)


async def delete_some(pool: AsyncPool, storage: ObjectStorage) -> bool:
    """Whether there may be more."""
    async with pool.connection() as conn:
        names = await xcom.read_garbage(conn, limit=limits.GARBAGE)
    if names:
        await asyncio.to_thread(_delete_objects, storage, names)
        async with pool.connection() as conn:
            await xcom.delete_garbage(conn, names)
    return len(names) == limits.GARBAGE


async def delete_some_logs(pool: AsyncPool, logs: LogDirectory) -> bool:
    """Whether there may be more. Logs of a name that is in use again stay, to go with whoever has it now."""
    async with pool.connection() as conn:
        found = await dag_deletion.read_log_garbage(conn, limit=limits.GARBAGE)
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


def _delete_objects(storage: ObjectStorage, names: list[str]) -> None:
    for name in names:
        storage.delete(name)
