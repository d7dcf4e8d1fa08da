"""Removes secrets from a log, even if a secret arrives in pieces."""

from __future__ import annotations

import asyncio
from typing import Protocol

from evenflow.masker import Masker
from evenflow.membership import limits


class Stream(Protocol):
    def write(self, data: bytes) -> None: ...

    def close(self) -> None: ...

    async def shipped(self) -> None: ...


class MaskedLog:
    """Text that may be the beginning of a secret is held until more arrives, or until a moment has passed."""

    def __init__(self, stream: Stream, masker: Masker) -> None:
        self._stream, self._masker = stream, masker
        self._kept = b""
        self._timer: asyncio.TimerHandle | None = None

    def write(self, data: bytes) -> None:
        if not self._masker and not self._kept:
            self._stream.write(data)
            return
        self._stop_waiting()
        data = self._masker.mask(self._kept + data)
        shown = len(data) - self._masker.tail_to_keep(data)
        self._kept = data[shown:]
        if self._kept:
            self._timer = asyncio.get_running_loop().call_later(limits.MASK_WAIT, self._let_go)
        if shown:
            self._stream.write(data[:shown])

    def close(self) -> None:
        self._let_go()
        self._stream.close()

    async def shipped(self) -> None:
        """After the close: returns when all of the log is stored or refused."""
        await self._stream.shipped()

    def _let_go(self) -> None:
        self._stop_waiting()
        if self._kept:
            kept, self._kept = self._kept, b""
            self._stream.write(kept)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
