"""Objects of values that are gone, deleted: of runs that were deleted, and of tries whose values a later try replaced."""

from __future__ import annotations

import asyncio
import logging

from evenflow.api import limits
from evenflow.store import xcom
from evenflow.store.connect import AsyncPool
from evenflow.wire.objects import ObjectStorage

log = logging.getLogger(__name__)


async def delete_garbage(pool: AsyncPool, storage: ObjectStorage) -> None:
    """For ever. Several API processes may do it at once: an object that is gone already is deleted."""
    while True:
        try:
            more = await delete_some(pool, storage)
        except Exception as error:  # the database or the storage is away: what is left is found again
            log.warning("values of deleted runs stay in %s: %s", storage.url, error)
            more = False
        if not more:
            await asyncio.sleep(limits.GARBAGE_PAUSE)


async def delete_some(pool: AsyncPool, storage: ObjectStorage) -> bool:
    """Whether there may be more."""
    async with pool.connection() as conn:
        names = await xcom.read_garbage(conn, limit=limits.GARBAGE)
    if names:
        await asyncio.to_thread(lambda: [storage.delete(name) for name in names])
        async with pool.connection() as conn:
            await xcom.delete_garbage(conn, names)
    return len(names) == limits.GARBAGE
