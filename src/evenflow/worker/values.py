"""Values of tries on their way to the control plane and back: large ones use object storage."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeVar

from evenflow.core.limits import MAX_XCOM_BYTES
from evenflow.errors import XComError
from evenflow.masker import Masker
from evenflow.sdk.xcom import mapped_length
from evenflow.wire.messages import StoredObject, XComPush, XComValue
from evenflow.wire.objects import ObjectStorage, new_name
from evenflow.wire.storage_threads import StorageThreads
from evenflow.worker import limits
from evenflow.worker.limits import AT_ONCE

NULL = b"null"

T = TypeVar("T")


async def off_loop(size: int, work: Callable[[], T]) -> T:
    """Returns or raises what ``work`` on ``size`` bytes does. A thread does large work, because the event loop beats for all tries
    of a worker.
    """
    return work() if size <= AT_ONCE else await asyncio.to_thread(work)


class LargeValues:
    """Values of more than ``inline`` bytes of JSON are stored in ``storage``."""

    def __init__(self, storage: ObjectStorage, inline: int) -> None:
        self._storage, self._inline = storage, inline
        self._threads = StorageThreads(limits.STORAGE_CALLS)

    def is_large(self, value: bytes) -> bool:
        return len(value) > self._inline

    def takes_time(self, value: bytes) -> bool:
        """Returns whether a value takes time to look through, or to store."""
        return self.is_large(value) or len(value) > AT_ONCE

    async def store(self, epoch: int, value: bytes, what: str) -> StoredObject:
        """Stores a value. Raises :class:`XComError` when it cannot be stored."""
        stored = StoredObject(name=new_name(epoch), size=len(value))
        try:
            stored.length = await self._threads.run(
                limits.STORAGE, self._write, stored.name, value, undo=partial(self._delete, stored.name)
            )
        except Exception as error:  # a file system may raise anything
            raise XComError(
                f"{what} has {len(value):,} bytes and could not be stored in {self._storage.url}: {type(error).__name__}: {error}. "
                "Check EVENFLOW_XCOM_URL on this worker."
            ) from None
        return stored

    async def discard(self, stored: StoredObject) -> None:
        """Deletes an object that no row will refer to."""
        with contextlib.suppress(TimeoutError):
            await self._threads.run(limits.STORAGE, self._delete, stored.name)

    async def fetch(self, value: XComValue, what: str) -> bytes:
        """Returns the whole JSON. Raises :class:`XComError`."""
        if value.stored is None and not value.stored_items:
            return value.value or NULL
        try:
            return await self._threads.run(limits.STORAGE, self._read, value)
        except Exception as error:
            raise XComError(
                f"{what} could not be read from {self._storage.url}: {type(error).__name__}: {error}. All workers need the same "
                "EVENFLOW_XCOM_URL."
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


class TryValues:
    """Values of one try."""

    def __init__(self, values: LargeValues, epoch: int) -> None:
        self._values, self._epoch = values, epoch
        self.fetch, self.discard = values.fetch, values.discard

    async def prepared(self, key: str, value: bytes, masker: Masker) -> XComPush:
        """Returns the push of ``value``, which goes to object storage if it is large. Raises :class:`XComError`."""
        if len(value) > MAX_XCOM_BYTES:  # the process of the try may send any size
            raise XComError(f"The XCom {key!r} has {len(value):,} bytes, above the limit of {MAX_XCOM_BYTES:,}.")
        secret = await off_loop(len(value), lambda: masker.finds_in(value))
        if not self._values.is_large(value):
            return XComPush(key=key, value=value, secret=secret)
        stored = await self._values.store(self._epoch, value, f"The XCom {key!r}")
        return XComPush(key=key, value=NULL, stored=stored, secret=secret)


def _filled(text: bytes, parts: Mapping[int, bytes]) -> bytes:
    items = json.loads(text)
    for place, part in parts.items():
        items[place] = json.loads(part)
    whole = json.dumps(items, ensure_ascii=False, separators=(",", ":")).encode()
    if len(whole) > MAX_XCOM_BYTES:
        raise XComError(f"the list has {len(whole):,} bytes, above the limit of {MAX_XCOM_BYTES:,}")
    return whole
