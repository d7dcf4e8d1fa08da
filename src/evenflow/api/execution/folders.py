"""Where tries put results that are files: in object storage, each in a folder of its own."""

from __future__ import annotations

import asyncio

from evenflow.api.execution.endpoint import Call
from evenflow.api.refusals import Refused
from evenflow.store.db.connect import AsyncPool
from evenflow.store.serving import xcom
from evenflow.wire.objects import FOLDER, ObjectStorage, new_name
from evenflow.wire.questions import Folder


class FolderRoutes:
    """That a try may leave one is noted before it has it."""

    def __init__(self, pool: AsyncPool, storage: ObjectStorage) -> None:
        self._pool, self._storage = pool, storage

    async def begin(self, call: Call) -> Folder:
        epoch = call.of_try.epoch
        async with self._pool.connection() as conn:
            await xcom.begin_folder(conn, epoch=epoch)
        name = new_name(epoch, FOLDER)
        try:
            await asyncio.to_thread(self._storage.begin_folder, name)
        except OSError as error:
            raise Refused(500, "no_storage", f"No folder can be made in {self._storage.url} for a result: {error}.") from None
        return Folder(url=self._storage.url, name=name)
