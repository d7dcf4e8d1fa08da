"""Values of tries on their way to the control plane, with their secrets noted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from evenflow.core.limits import MAX_XCOM_BYTES
from evenflow.errors import XComError
from evenflow.masker import Masker
from evenflow.wire.large_values import NULL, LargeValues
from evenflow.wire.messages import XComPush
from evenflow.worker.limits import AT_ONCE

T = TypeVar("T")


async def off_loop(size: int, work: Callable[[], T]) -> T:
    """Returns or raises what ``work`` on ``size`` bytes does. A thread does large work, because the event loop beats for all tries
    of a worker.
    """
    return work() if size <= AT_ONCE else await asyncio.to_thread(work)


class TryValues:
    """Values of one try."""

    def __init__(self, values: LargeValues, epoch: int) -> None:
        self._values, self._epoch = values, epoch
        self.fetch, self.discard = values.fetch, values.discard

    def takes_time(self, value: bytes) -> bool:
        """Returns whether a value takes time to look through, or to store."""
        return self._values.is_large(value) or len(value) > AT_ONCE

    async def prepared(self, key: str, value: bytes, masker: Masker) -> XComPush:
        """Returns the push of ``value``, which goes to object storage if it is large. Raises :class:`XComError`."""
        if len(value) > MAX_XCOM_BYTES:  # the process of the try may send any size
            raise XComError(f"The XCom {key!r} has {len(value):,} bytes, above the limit of {MAX_XCOM_BYTES:,}.")
        secret = await off_loop(len(value), lambda: masker.finds_in(value))
        if not self._values.is_large(value):
            return XComPush(key=key, value=value, secret=secret)
        stored = await self._values.store(self._epoch, value, f"The XCom {key!r}")
        return XComPush(key=key, value=NULL, stored=stored, secret=secret)
