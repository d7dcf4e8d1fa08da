"""Values on their way to the control plane and back: large ones use object storage."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from functools import partial

from evenflow.core.limits import MAX_XCOM_BYTES, STORAGE_CALLS, STORAGE_S
from evenflow.errors import XComError
from evenflow.sdk.xcom import mapped_length
from evenflow.wire.messages import StoredObject, XComValue
from evenflow.wire.objects import ObjectStorage, new_name
from evenflow.wire.storage_threads import StorageThreads

NULL = b"null"


class LargeValues:
    """Values of more than ``inline`` bytes of JSON are stored in ``storage``."""

    def __init__(self, storage: ObjectStorage, inline: int) -> None:
        self._storage, self._inline = storage, inline
        self._threads = StorageThreads(STORAGE_CALLS)

    def is_large(self, value: bytes) -> bool:
        return len(value) > self._inline

    async def store(self, epoch: int, value: bytes, what: str) -> StoredObject:
        """Stores a value. Raises :class:`XComError` when it cannot be stored."""
        stored = StoredObject(name=new_name(epoch), size=len(value))
        try:
            undo = partial(self._delete, stored.name)
            stored.length = await self._threads.run(STORAGE_S, self._write, stored.name, value, undo=undo)
        except Exception as error:  # a file system may raise anything
            raise XComError(
                f"{what} has {len(value):,} bytes and could not be stored in {self._storage.url}: {type(error).__name__}: {error}. "
                "Check EVENFLOW_XCOM_URL here."
            ) from None
        return stored

    async def discard(self, stored: StoredObject) -> None:
        """Deletes an object that no row will refer to."""
        with contextlib.suppress(TimeoutError):
            await self._threads.run(STORAGE_S, self._delete, stored.name)

    async def fetch(self, value: XComValue, what: str) -> bytes:
        """Returns the whole JSON. Raises :class:`XComError`."""
        if value.stored is None and not value.stored_items:
            return value.value or NULL
        try:
            return await self._threads.run(STORAGE_S, self._read, value)
        except Exception as error:
            raise XComError(
                f"{what} could not be read from {self._storage.url}: {type(error).__name__}: {error}. All workers, and the "
                "API, need the same EVENFLOW_XCOM_URL."
            ) from None

    def _write(self, name: str, value: bytes) -> int | None:
        length = mapped_length(json.loads(value))
        self._storage.write(name, value)
        return length

    def _delete(self, name: str) -> None:
        with contextlib.suppress(Exception):  # a file system may raise anything: the object stays, and only costs space
            self._storage.delete(name)

    def _read(self, value: XComValue) -> bytes:
        if value.stored is not None:
            return self._storage.read(value.stored)
        return _filled(value.value or NULL, {place: self._storage.read(name) for place, name in value.stored_items.items()})


def _filled(text: bytes, parts: Mapping[int, bytes]) -> bytes:
    items = json.loads(text)
    for place, part in parts.items():
        items[place] = json.loads(part)
    whole = json.dumps(items, ensure_ascii=False, separators=(",", ":")).encode()
    if len(whole) > MAX_XCOM_BYTES:
        raise XComError(f"the list has {len(whole):,} bytes, above the limit of {MAX_XCOM_BYTES:,}")
    return whole
